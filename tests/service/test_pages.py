"""The commands of the README and of the service's page run as they stand; only the port is another one."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.service.processes import free_port
from tests.service.wires import PATIENCE

ROOT = Path(__file__).parents[2]
PORT = "8711"
START = re.search(r"```bash\n(postserve serve .*?)```", (ROOT / "docs/service.md").read_text(), re.DOTALL)


def script_of(page: str) -> str:
    """The page's blocks in their order, as one script that ends what it started."""
    parts = ["set -euo pipefail", "trap 'kill -TERM $! 2> /dev/null; wait $!' EXIT"]
    for kind, block in re.findall(r"```(bash|python)\n(.*?)```", page, re.DOTALL):
        parts.append(block if kind == "bash" else f"python -W error - <<'END'\n{block}END")
    return "\n".join(parts)


@pytest.fixture
def run(tmp_path: Path) -> subprocess.CompletedProcess[str]:
    port, page = str(free_port()), (ROOT / "docs/service.md").read_text()
    script = script_of(page).replace(PORT, port)
    init = "postserve serve lessons.toml --init"
    assert script.count(init) == 1
    ready = re.sub(rf"({init}.*)", rf"\1\nsed -i s/{PORT}/{port}/ lessons.toml", script)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", ready],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_the_page_runs_as_written(run: subprocess.CompletedProcess[str], tmp_path: Path) -> None:
    shown = run.stdout + run.stderr
    assert run.returncode == 0, shown
    assert "the service's model is the library's to the bit" in shown
    assert re.search(r"1,000 +-?[\d.]+ +\d\d%", shown)
    assert '"id":"visit-1","status":"closed"' in shown
    assert '"z":{"minutes":12.5,"finished":"yes"}' in shown
    assert "as served" in shown
    assert '{"id":"visit-2","status":"closed","repeated":false},{"id":"visit-3","status":"parked"' in shown
    for name in (
        "lessons.sqlite",
        "log.parquet",
        "log.dsjson",
        "model.npz",
        "later.parquet",
        "out/evaluation/evaluation.json",
    ):
        assert (tmp_path / name).stat().st_size > 0
    assert '{"error"' not in shown


def test_the_readme_starts_as_the_page_does() -> None:
    assert START is not None
    assert START[1] in (ROOT / "README.md").read_text()
    assert len(START[1].strip().splitlines()) == 3
