"""Once the service is ready, no decision and no lesson waits for a compiler."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.service.wires import PATIENCE

ROOT = Path(__file__).parents[2]
CODE = """
import sys
from numba.core.dispatcher import Dispatcher
from tests.service.playing import Clock, experiment, playing
from tests.service.test_fold import POLICIES, traffic
from postserve.service.log.stores.memory import MemoryStore

def compiled():
    kernels = {id(each): each for module in list(sys.modules.values()) for each in vars(module).values()
               if isinstance(each, Dispatcher)}
    return {f"{each.py_func.__name__}{one}" for each in kernels.values() for one in each.signatures}

clock = Clock()
with playing(experiment(POLICIES[sys.argv[1]]), MemoryStore(), clock) as play:
    before = compiled()
    assert len(before) > 5
    traffic(play, clock, 60, seed=1)
    play.done(play.engine.snapshot())
    traffic(play, clock, 60, seed=2)
    play.learn()
    print(*sorted(compiled() - before), sep="\\n")
"""


@pytest.mark.parametrize("kind", ["PoLinUCB", "LinUCB"])
def test_nothing_is_compiled_after_the_start(kind: str) -> None:
    run = subprocess.run(
        [sys.executable, "-c", CODE, kind], cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""
