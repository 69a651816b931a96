"""The suite's own rules: what a skip is under CI=true, and which tests never run at the same time."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ONE_TEST = "import pytest\n\ndef test_it():\n    pytest.skip('no such package')\n"
WHOLE_FILE = "import pytest\n\npytest.skip('no such package', allow_module_level=True)\n"


NAMES_ITS_PROCESS = """
import os
from pathlib import Path
import pytest

@pytest.mark.parametrize("i", range(3))
def test_it(i):
    Path(__file__).with_suffix(f".{os.environ['PYTEST_XDIST_WORKER']}").touch()
"""


@pytest.mark.parametrize("content", [ONE_TEST, WHOLE_FILE])
def test_a_skip_is_a_failure_only_under_ci(content: str, tmp_path: Path) -> None:
    (tmp_path / "test_skips.py").write_text(content)
    (tmp_path / "test_runs.py").write_text("def test_that_runs():\n    pass\n")
    for workers, ci, failed in ((0, "true", True), (2, "true", True), (0, "", False)):
        result = run_in(tmp_path, workers, ci)
        assert (result.returncode != 0) == failed, result.stdout
        assert ("no such package" in result.stdout) or not failed


def test_what_starts_processes_runs_in_one(tmp_path: Path) -> None:
    for name in ("test_cli", "test_engines", "test_regret", "test_others"):
        (tmp_path / f"{name}.py").write_text(NAMES_ITS_PROCESS)
    result = run_in(tmp_path, workers=2, ci="true")
    assert result.returncode == 0, result.stdout
    seen = {name: workers_of(name, tmp_path) for name in ("test_cli", "test_engines", "test_regret", "*")}
    assert seen["test_cli"] == seen["test_engines"]
    assert [len(workers) for workers in seen.values()] == [1, 1, 1, 2]


def workers_of(name: str, folder: Path) -> set[str]:
    return {path.suffix for path in folder.glob(f"{name}.gw*")}


def run_in(folder: Path, workers: int, ci: str) -> subprocess.CompletedProcess[str]:
    """A suite of its own, under this one's rules."""
    shutil.copy(Path(__file__).with_name("conftest.py"), folder)
    options = ["-q", "-p", "xdist", "-n", str(workers), "-c", os.devnull, "--rootdir", str(folder)]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(folder)],
        env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
    )
