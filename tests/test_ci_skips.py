"""The suite's own rule: under CI=true a skip, of a test or of a whole file, is a failure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ONE_TEST = "import pytest\n\ndef test_it():\n    pytest.skip('no such package')\n"
WHOLE_FILE = "import pytest\n\npytest.skip('no such package', allow_module_level=True)\n"


@pytest.mark.parametrize("content", [ONE_TEST, WHOLE_FILE])
def test_a_skip_is_a_failure_only_under_ci(content: str, tmp_path: Path) -> None:
    shutil.copy(Path(__file__).with_name("conftest.py"), tmp_path)
    (tmp_path / "test_skips.py").write_text(content)
    (tmp_path / "test_runs.py").write_text("def test_that_runs():\n    pass\n")
    options = ["-q", "-p", "xdist", "-c", os.devnull, "--rootdir", str(tmp_path)]
    for workers, ci, failed in (("0", "true", True), ("2", "true", True), ("0", "", False)):
        result = subprocess.run(
            [sys.executable, "-m", "pytest", *options, "-n", workers, str(tmp_path)],
            env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            capture_output=True,
            text=True,
        )
        assert (result.returncode != 0) == failed, result.stdout
        assert ("no such package" in result.stdout) or not failed
