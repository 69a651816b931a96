"""The command line: what it writes, what it refuses, and that nothing is lost when it is stopped."""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import PATIENCE, wait_until
from typer.testing import CliRunner

from postserve.cli import app
from postserve.experiments.figures import FIGURES
from postserve.experiments.report import render

SMALL = ["figure1", "observation1", "--quick", "--seeds", "2", "--horizon", "60"]
CELLS = 3 * 16 * 2 + 7 * 2


def postserve(*words: str) -> Any:
    return CliRunner().invoke(app, list(words))


def start(*words: str, **options: Any) -> subprocess.Popen[str]:
    """The real command, in a process group of its own."""
    command = [sys.executable, "-c", "from postserve.cli import main; main()", *words]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, start_new_session=True, **pipes, **options)


def ended(group: int) -> bool:
    """Whether nobody is left of a process group."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


def wait_for_cells(count: int, folder: Path, run: subprocess.Popen[str]) -> None:
    """Until so many are there, or the run has ended."""
    wait_until(lambda: run.poll() is not None or len(list(folder.rglob("cells/*.parquet"))) >= count)


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole") / "out"
    run = start("reproduce", *SMALL, "--out", str(out))
    shown, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, errors
    assert "Figure 1" in shown
    assert str(out / "report.html") in shown.replace("\n", "")
    return out


def test_it_writes_what_it_says(finished: Path) -> None:
    wanted = {
        "summary.json",
        "runs.parquet",
        "figure.png",
        "figure.pdf",
        "section.json",
        "cells",
        ".lock",
    }
    assert {path.name for path in (finished / "observation1").iterdir()} == wanted
    overview = {"overview.png", "overview.pdf"}
    assert {path.name for path in (finished / "figure1").iterdir()} == wanted | overview
    rows = json.loads((finished / "figure1" / "summary.json").read_text())
    assert len(rows) == 3 * 16
    assert set(rows[0]) == {
        "figure",
        "environment",
        "policy",
        "horizon",
        "seeds",
        "final_regret_mean",
        "final_regret_se",
        "ratio_to_oracle",
        "ratio_to_oracle_se",
    }


def test_a_killed_run_resumes_and_ends_with_the_same_bytes(finished: Path, tmp_path: Path) -> None:
    for _ in range(2):
        # At a random moment of the work: once some cells, at random many of those missing, are there.
        there = len(list(tmp_path.rglob("cells/*.parquet")))
        until = there + random.randrange(1, max(2, (CELLS - there) // 2))
        run = start("reproduce", *SMALL, "--out", str(tmp_path))
        wait_for_cells(until, tmp_path, run)
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    assert not (tmp_path / "report.html").exists()
    run = start("reproduce", *SMALL, "--out", str(tmp_path))
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, errors
    assert written(tmp_path) == written(finished)


def test_ctrl_c_says_so_and_the_same_command_goes_on(finished: Path, tmp_path: Path) -> None:
    run = start("reproduce", *SMALL, "--out", str(tmp_path))
    wait_for_cells(1, tmp_path, run)
    assert run.poll() is None
    os.killpg(run.pid, signal.SIGINT)
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130
    assert "the same command resumes from here" in errors
    assert "Traceback" not in errors
    wait_until(lambda: ended(run.pid))
    run = start("reproduce", *SMALL, "--out", str(tmp_path))
    run.communicate(timeout=PATIENCE)
    assert written(tmp_path) == written(finished)


def test_an_interrupt_that_python_cannot_raise_is_not_lost(tmp_path: Path) -> None:
    """It falls into a destructor, where an exception is only told of."""
    code = (
        "import os, signal, time\n"
        "from postserve.terminal import errors_in_one_line\n"
        "class Dies:\n"
        "    def __del__(self):\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "        time.sleep(0.1)\n"
        "with errors_in_one_line(resumes=False):\n"
        "    Dies()\n"
        "    while True: time.sleep(0.1)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE)
    assert run.stderr == "postserve: interrupted\n"
    assert "Exception ignored" not in run.stderr


def test_a_second_time_nothing_runs_and_nothing_changes(finished: Path) -> None:
    before = written(finished)
    result = postserve("reproduce", *SMALL, "--out", str(finished), "--engine", "local=1")
    assert result.exit_code == 0
    assert written(finished) == before


def test_the_report_needs_no_network_and_says_what_held(finished: Path) -> None:
    page = (finished / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 3
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)
    assert "http" not in re.sub(r'base64,[^"]*', "", page)
    for word in (
        "not judged",
        "Python 3",
        "numpy",
        "postserve reproduce figure1 --horizon 60 --seeds 2 --quick",
    ):
        assert word in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["reproduce", "figure7"], "there is no figure 'figure7', wanted 'all' or some of figure1"),
        (["reproduce", "figure1", "figure9", "x"], "'figure9', 'x'"),
        (["reproduce", "figure1", "--horizon", "19"], "horizon is 19, wanted a whole number of at least 20"),
        (["reproduce", "figure1", "--horizon", "-5"], "horizon is -5"),
        (["reproduce", "figure1", "--horizon", "many"], "Invalid value for '--horizon'"),
        (["reproduce", "figure1", "--seeds", "1"], "seeds is 1, wanted a whole number of at least 2"),
        (["reproduce", "figure1", "--horizon", "1000000000"], "wanted at most 10,000,000"),
        (["reproduce", "figure1", "--seeds", "1000000"], "wanted at most 10,000"),
        (["reproduce", "figure1", "--engine", "spark"], "engine is 'spark', wanted"),
        (
            ["reproduce", "figure1", "--engine", "dask=tcp://127.0.0.1:1"],
            "engine is 'dask=tcp://127.0.0.1:1'",
        ),
        (["reproduce", "figure1", "--engine", "ray=127.0.0.1:1"], "engine is 'ray=127.0.0.1:1'"),
        (["reproduce"], "Missing argument"),
        (["reproduce", "defaults", "--seeds", "0"], "seeds is 0"),
    ],
)
def test_what_a_user_can_mend_is_said_and_nothing_is_written(
    words: list[str], message: str, tmp_path: Path
) -> None:
    result = postserve(*words, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert message in " ".join(re.sub("[│╭╮╯╰─]", " ", result.output).split())
    assert not (tmp_path / "out").exists()


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/below"):
        result = postserve("reproduce", *SMALL, "--out", str(tmp_path / out))
        assert result.exit_code == 2
        assert "is a file, wanted a folder" in result.output.replace("\n", " ")
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever may write everywhere is told so by the system; the answer is what is tested here.
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    result = postserve("reproduce", *SMALL, "--out", str(tmp_path / "out"))
    assert result.exit_code == 2
    assert "cannot be written, wanted a folder that can" in result.output.replace("\n", " ")
    assert not (tmp_path / "out").exists()


def test_a_real_file_system_without_writing() -> None:
    result = postserve("reproduce", *SMALL, "--out", "/proc/postserve")
    assert result.exit_code == 2
    assert "/proc" in result.output


def test_a_disk_that_has_no_more_room(tmp_path: Path) -> None:
    """A limit on the size of files stands in: cells fit, the tables and pictures do not."""

    def little_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))

    words = ("reproduce", "observation1", *SMALL[2:], "--engine", "local=1", "--out", str(tmp_path))
    run = start(*words, preexec_fn=little_room)
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 2
    assert "File too large" in errors
    assert "wanted more room" in errors
    assert "Traceback" not in errors
    names = {path.name for path in tmp_path.rglob("*") if path.is_file() and path.parent.name != "cells"}
    assert names == {".lock"}
    for kind in ("parquet", "sha256"):
        assert len(list(tmp_path.rglob(f"cells/*.{kind}"))) == 7 * 2


def test_a_disk_that_fills_while_cells_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls > 2 * 5:  # a cell and its digest
            raise OSError(28, "No space left on device", "somewhere")

    monkeypatch.setattr(os, "fsync", full)
    result = postserve("reproduce", *SMALL, "--engine", "local=1", "--out", str(tmp_path))
    assert result.exit_code == 2
    assert "No space left on device" in result.output
    assert len(list(tmp_path.rglob("*.parquet"))) == 5
    assert not list(tmp_path.rglob("*.part"))


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        *product(["section.json", "summary.json"], ["{", "[]", "{}", "", "\xff", None]),
        *product(["figure.png"], ["", None]),
    ],
)
def test_another_figure_that_is_damaged_is_told(
    name: str, damage: str | None, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out, ignore=shutil.ignore_patterns("cells"))
    if damage is None:
        (out / "figure1" / name).unlink()
    else:
        (out / "figure1" / name).write_text(damage, encoding="latin-1")
    page = render(out)
    assert 'id="observation1"' in page
    whole = name == "figure.png" and damage is not None  # any bytes may be a picture
    gone = name == "section.json" and damage is None
    assert ("run postserve reproduce figure1 again" in page) == (not whole and not gone)


def test_a_damaged_figure_does_not_stop_another(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    (out / "figure1" / "section.json").write_text("{")
    result = postserve("reproduce", "observation1", *SMALL[2:], "--engine", "local=1", "--out", str(out))
    assert result.exit_code == 0
    assert "run postserve reproduce figure1 again" in (out / "report.html").read_text(encoding="utf-8")


def test_two_figures_at_once_are_both_in_the_report(tmp_path: Path) -> None:
    small = ("--quick", "--seeds", "2", "--horizon", "20", "--engine", "local=1", "--out", str(tmp_path))
    runs = [start("reproduce", name, *small) for name in ("observation1", "figure3")]
    for run in runs:
        _, errors = run.communicate(timeout=PATIENCE)
        assert run.returncode == 0, errors
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="observation1"' in page
    assert 'id="figure3"' in page


@pytest.mark.parametrize("name", ["x[/nope]", "[red]x[/red]", "out[1]"])
def test_a_folder_is_named_as_it_is(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("observation1", "--quick", "--seeds", "2", "--horizon", "20", "--engine", "local=1")
    result = postserve("reproduce", *words, "--out", name)
    assert result.exit_code == 0
    assert f"report: {name}/report.html" in result.output


def test_a_terminal_that_knows_only_ascii(tmp_path: Path) -> None:
    words = ("observation1", "--quick", "--seeds", "2", "--horizon", "20", "--engine", "local=1")
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    run = start("reproduce", *words, "--out", str(tmp_path), env=environment)
    _, errors = run.communicate(timeout=PATIENCE)
    assert run.returncode == 0, errors


def test_a_kill_between_two_names_harms_no_other_figure(tmp_path: Path) -> None:
    """The process ends itself as soon as two files of the figure have their names."""
    code = (
        "import os, signal, sys\n"
        "from postserve import files\n"
        "replace, done = os.replace, []\n"
        "def then_die(source, target):\n"
        "    replace(source, target)\n"
        "    done.append(target) if 'cells' not in str(target) else None\n"
        "    len(done) == 2 and os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.os.replace = then_die\n"
        "from postserve.cli import main; main()\n"
    )
    small = ["--quick", "--seeds", "2", "--horizon", "20", "--engine", "local=1", "--out", str(tmp_path)]
    died = subprocess.run([sys.executable, "-c", code, "reproduce", "figure3", *small], capture_output=True)
    assert died.returncode == -signal.SIGKILL
    assert list((tmp_path / "figure3").glob(".*.part"))
    assert postserve("reproduce", "observation1", *small).exit_code == 0
    assert postserve("reproduce", "figure3", *small).exit_code == 0
    assert not list(tmp_path.rglob("*.part"))


def test_quick_results_do_not_replace_full_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    small = ("--seeds", "2", "--horizon", "20", "--engine", "local=1")
    assert postserve("reproduce", "observation1", *small).exit_code == 0
    before = written(tmp_path)
    assert postserve("reproduce", "observation1", "--quick", *small).exit_code == 0
    assert {name: content for name, content in written(tmp_path).items() if name in before} == before
    assert (tmp_path / "out" / "quick" / "report.html").exists()


def test_version() -> None:
    assert postserve("--version").output.startswith("postserve 0.")


def test_list_names_every_figure() -> None:
    result = postserve("list")
    assert result.exit_code == 0
    for name in FIGURES:
        assert name in result.output


def test_help_says_follow_ups() -> None:
    assert "learn from follow-ups" in " ".join(postserve("--help").output.split())


def test_help_is_quick() -> None:
    code = "import sys, postserve.cli; print([m for m in ('numpy', 'matplotlib') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("library", "words", "extra"),
    [
        ("matplotlib", ["list"], "experiments"),
        ("matplotlib", ["reproduce", "figure1"], "experiments"),
        ("typer", ["evaluate", "data"], "experiments"),
        ("typer", ["data", "list"], "data"),
        ("typer", ["serve", "lessons.toml"], "service"),
        ("uvicorn", ["serve", "lessons.toml"], "service"),
        ("rich", [], "experiments"),
    ],
)
def test_a_command_without_its_extra_names_it(
    library: str, words: list[str], extra: str, tmp_path: Path
) -> None:
    code = (
        f"import sys; sys.modules[{library!r}] = None  # as if it were not installed\n"
        "from postserve.cli import main; main()\n"
    )
    command = [sys.executable, "-c", code, *words]
    run = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 2
    wanted = f"wanted: pip install 'postserve[{extra}]'"
    assert run.stderr == f"postserve: {library} is not installed, {wanted}\n"


def test_help_tells_defaults_that_depend() -> None:
    shown = " ".join(postserve("reproduce", "--help").output.split())
    assert "[default: (out, or out/quick)]" in shown
    assert "[default: ($POSTSERVE_DATA, or where `postserve data fetch` keeps them)]" in shown
    assert shown.count("[default: (each figure's own, see `postserve list`)]") == 2
    assert "bool" not in shown


def test_warm_up_says_what_it_did_and_where() -> None:
    told = postserve("warm-up")
    assert told.exit_code == 0
    assert "PoLinUCB, joint optimism: " in told.stdout
    assert told.stdout.splitlines()[-1].startswith("cache: ")
