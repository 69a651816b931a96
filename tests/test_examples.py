"""The scripts in examples/ run as they stand, and the line that a reader is meant to learn from holds."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

ASCENDING = {
    "quick_start.py": r"lost per day: ([\d.]+) with follow-ups \(poLinUCB\), ([\d.]+) without",
    "late_feedback.py": r"Right choices: (\d+)% of the first 100, (\d+)% of the last 100",
    "arms_come_and_go.py": r"([\d.]+)  poLinUCB.*? rows.*?([\d.]+)  LinUCB on x\n.*?([\d.]+)  [^\n]*wrong",
    "log_to_replay.py": r"as served: ([\d.]+).*?LinUCB on x: ([\d.]+).*?poLinUCB: ([\d.]+)",
}
"""Each script's key lines, with numbers that rise."""


def test_every_example_is_tried() -> None:
    assert sorted(ASCENDING) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", ASCENDING)
def test_the_example_runs_and_shows_what_it_says(name: str, tmp_path: Path) -> None:
    assert len((EXAMPLES / name).read_text().splitlines()) <= 50
    result = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    found = re.search(ASCENDING[name], result.stdout, re.DOTALL)
    assert found, result.stdout
    numbers = [float(number) for number in found.groups()]
    assert numbers == sorted(set(numbers)), result.stdout
    assert not list(tmp_path.iterdir())
