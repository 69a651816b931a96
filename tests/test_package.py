"""The package's face: what it costs to import, what it exports, and that its pages are true to the code."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.untyped import untyped

import postserve


def is_protocol(value: Any) -> bool:
    return bool(getattr(value, "_is_protocol", False))


ROOT = Path(__file__).parent.parent


def test_importing_postserve_imports_nothing_heavy() -> None:
    code = (
        "import sys, postserve; dir(postserve); "
        "heavy = ('numba', 'sklearn', 'scipy', 'matplotlib', 'numpy', 'httpx'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_every_public_name_resolves_and_says_what_it_is() -> None:
    for name in postserve.__all__:
        value = getattr(postserve, name)
        assert inspect.getdoc(value), f"{name} has no docstring"
        plain = inspect.isclass(value) and (issubclass(value, Exception | tuple) or is_protocol(value))
        assert plain or inspect.ismodule(value) or ">>>" in value.__doc__, f"{name} has no doctest"
    assert sorted(postserve.__all__) == postserve.__all__
    assert set(postserve.__all__) <= set(dir(postserve))
    with pytest.raises(AttributeError, match="Nonesuch"):
        _ = untyped(postserve).Nonesuch


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(postserve.__file__).parent / "py.typed").exists()


def test_the_version_is_stated_once() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in settings["project"]["dynamic"]
    assert settings["tool"]["hatch"]["version"]["path"] == "src/postserve/__init__.py"
    assert version("postserve") == postserve.__version__
    assert f"version: {postserve.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {postserve.__version__} - " in (ROOT / "CHANGELOG.md").read_text()


def test_a_star_import_brings_every_public_name_and_no_other() -> None:
    names: dict[str, Any] = {}
    exec("from postserve import *", names)
    assert sorted(names.keys() - {"__builtins__"}) == postserve.__all__
    assert "PoLinUCB" in names
    assert "theory" in names


def test_a_star_import_of_a_core_install_brings_what_needs_no_extra() -> None:
    code = """
import sys
for name in ("polars", "httpx"):
    sys.modules[name] = None  # as if it were not installed
import postserve
names = {}
exec("from postserve import *", names)
print(*sorted(set(dir(postserve)) & names.keys() - {"__builtins__"}))
for name in ("run_study", "Client"):
    try:
        getattr(postserve, name)
    except ModuleNotFoundError as error:
        print(error)
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names, *errors = result.stdout.splitlines()
    assert set(postserve.__all__) - set(names.split()) == {"Study", "run_study", "Client", "AsyncClient"}
    assert errors == [
        f"postserve.{name} needs {library}, which is not installed, wanted: pip install 'postserve[{extra}]'"
        for name, library, extra in (("run_study", "polars", "experiments"), ("Client", "httpx", "client"))
    ]


def test_every_library_that_is_imported_is_declared() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [*settings["optional-dependencies"].values()]
    core = {_library(line) for line in settings["dependencies"]}
    known = core.union(*({_library(line) for line in lines} for lines in extras))
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text())
        of_the_command = path.name in ("cli.py", "terminal.py", "showing.py")
        of_an_extra = of_the_command or {"client", "experiments", "service"} & {*path.parts}
        assert _libraries(tree.body) <= (known if of_an_extra else core), path
        assert _libraries(ast.walk(tree)) <= known, path


def _libraries(nodes: Iterable[ast.AST]) -> set[str]:
    """The libraries that these statements import, without Python's own and this one."""
    names: list[str] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names.append(node.module or "postserve")
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"postserve"}


def _library(requirement: str) -> str:
    """The name under which a requirement is imported."""
    name = re.split(r"[^\w-]", requirement)[0]
    return {"scikit-learn": "sklearn"}.get(name, name.replace("-", "_"))


def test_the_example_runs_as_written(tmp_path: Path, monkeypatch: Any) -> None:
    import numpy as np

    from postserve import PoLinUCB, RidgeMap

    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    policy = PoLinUCB(n_arms=3, context_map=RidgeMap(dim_x=25, dim_z=7))

    x = rng.normal(size=25)
    decision = policy.select(x, rng)
    z, reward = rng.normal(size=7), 1.0
    policy.update(x, decision.arm, z, reward)

    z_hat = policy.observe(x, decision.arm, z)
    policy.credit(x, decision.arm, z, reward, z_hat=z_hat)

    policy.save("policy.npz")
    policy = postserve.load("policy.npz")
    assert policy.pulls.sum() == 2.0


PAGES = sorted(p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
THEORY = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/theory/*.md"))


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "docs/recipes.md",
        "docs/figures.md",
        "docs/data.md",
        "docs/logs.md",
        "docs/evaluation.md",
        "docs/diagnosis.md",
        "CONTRIBUTING.md",
        *THEORY,
    ],
)
def test_the_pages_python_runs_as_written(page: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    assert blocks
    names = {"__name__": "page"}  # a block may go on where the one above it ended
    for block in blocks:
        exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_paths_on_pages_exist(page: str) -> None:
    named = re.findall(r"`((?:tests|examples|benchmarks|docs)/[\w./-]+)`", (ROOT / page).read_text())
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_the_readme_and_the_house_are_short() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 900
    assert len((ROOT / "docs/house.md").read_text().partition("## One round")[0].split()) <= 350


def test_the_list_of_the_package_is_complete() -> None:
    page = (ROOT / "docs/package.md").read_text()
    rooms = ("policies", "context_maps", "environments")
    names = [
        name
        for name in postserve.__all__
        if getattr(getattr(postserve, name), "__module__", "..").split(".")[1] in rooms
    ]
    assert len(names) > 20
    assert [name for name in names if f"`{name}`" not in page] == []


def test_the_walks_of_one_round_name_steps_that_exist() -> None:
    rows = re.findall(
        r"^\| \d+ \| `([\w.]+)`.*? \| `([\w/.]+)` \|", (ROOT / "docs/house.md").read_text(), re.M
    )
    assert len(rows) == 12 + 9
    for call, file in rows:
        source = (ROOT / "src/postserve" / file).read_text()
        for name in call.split("."):
            assert re.search(rf"(def|class) {name}\b", source), f"{file} has no {name}"


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_lines_fit(page: str) -> None:
    lines = (ROOT / page).read_text().splitlines()
    assert [f"line {i}" for i, line in enumerate(lines, 1) if len(line) > 120] == []


@pytest.mark.parametrize("page", THEORY)
def test_the_formulas_of_the_theory_are_tex(page: str) -> None:
    from matplotlib.mathtext import MathTextParser

    parse, text = MathTextParser("path").parse, (ROOT / page).read_text()
    prose = re.sub(r"^```python.*?^```", "", text, flags=re.M | re.DOTALL)
    shown = "".join(re.findall(r"^```math\n(.*?)^```", prose, re.M | re.DOTALL)).splitlines()
    formulas = [*re.findall(r"\$`([^`]*)`\$", prose), *shown]
    assert len(formulas) > 50
    for formula in formulas:
        parse(f"${formula}$")  # raises where a brace is missing or a command is unknown
    left = re.sub(r"^```math.*?^```|\$`[^`]*`\$|`[^`]*`|^#[^\n]*", "", prose, flags=re.M | re.DOTALL)
    assert re.findall(r"[$‖Σ√ᵀ≤≥]|\w_\{", left) == []


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_links_lead_somewhere(page: str) -> None:
    here = ROOT / page
    links = re.findall(r"(?<!!)\[[^\]]+\](?:\(|: )(?!https:)([\w./-]*)(#[\w-]+)?", here.read_text())
    for target, anchor in links:
        path = (here.parent / target).resolve() if target else here
        assert path.exists(), f"{page} links to {target}"
        headings = re.findall(r"^#+ (.*)", path.read_text(), re.M) if anchor else []
        assert not anchor or anchor[1:] in map(_anchor, headings), f"{page} links to {target}{anchor}"


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def test_policy_files_are_short_enough_to_read_beside_the_paper() -> None:
    for path in (ROOT / "src/postserve/policies").glob("*linucb*.py"):
        assert len(path.read_text().splitlines()) <= 150, path.name
