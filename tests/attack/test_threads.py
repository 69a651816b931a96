"""Threads around one policy: a second learner is refused, and readers and savers see whole versions."""

import os
import subprocess
import sys
from pathlib import Path

from tests.attack.size import LONG

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> None:
    """Run an attack in another process; a crash of the interpreter says where its threads were."""
    command = [sys.executable, "-X", "faulthandler", "-m", "tests.attack.threads", *arguments]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True)
    print(result.stdout)
    assert result.returncode == 0, result.stderr[-4000:]


def test_a_second_learner_is_refused() -> None:
    run("learners", "100" if LONG else "5")


def test_readers_and_savers_beside_a_learner() -> None:
    if LONG:
        run("readers", "60")
    else:
        run("readers", "0.5", "RidgeMap", "PerArmMap", "hybrid")


def test_readers_of_a_map_beside_a_learner() -> None:
    run("maps", "10" if LONG else "0.5")


def test_signals_at_random_instants() -> None:
    run("signals", "20000" if LONG else "300")
