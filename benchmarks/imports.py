"""Starting, as a ratio to importing numpy (fresh interpreters in turn, warm caches, medians)."""

import os
import statistics
import subprocess
import sys
import tempfile
from functools import partial
from typing import Any

from benchmarks.timing import seconds

NOTHING, NUMPY = "python -c pass", "import numpy"
HELP = "postserve --help, over python -c pass"
SELECT = "first select of LinUCB (10, 105), compiled before"


ROUNDS = """import numpy as np
from postserve import LinUCB, PoLinUCB, RidgeMap
rng = np.random.default_rng(0)
def play(policy, dim_x=4, dim_z=2, rounds=10):
    for _ in range(rounds):
        x, z = rng.normal(size=dim_x), rng.normal(size=dim_z)
        policy.update(x, policy.select(x, rng).arm, z, x[0] + z[0])
"""
FIRST_USES = {
    "first rounds of LinUCB, ridge 1": "play(LinUCB(2, 4, ridge=1.0, arm_radius=1.0))",
    "first rounds of PoLinUCB, learning its prior": "play(PoLinUCB(2, RidgeMap(4, 2)))",
    "the same with joint optimism": "play(PoLinUCB(2, RidgeMap(4, 2), optimism='joint'))",
    "first 60 rounds of PoLinUCB (10, 25 + 7)": "play(PoLinUCB(10, RidgeMap(25, 7)), 25, 7, 60)",
}
"""The last is the bar: under 7 s from an empty cache, under 0.7 s from a full one, on two quiet cores."""
AGAIN = 5


def measure(quick: bool = False) -> dict[str, Any]:
    """Medians over interleaved runs; milliseconds are of the whole process."""
    statements = {
        NOTHING: "pass",
        NUMPY: "import numpy",
        "import postserve": "import postserve",
        "import numpy, postserve": "import numpy, postserve",
        "from postserve import PoLinUCB": "from postserve import PoLinUCB",
        HELP: "import sys; sys.argv[1:] = ['--help']; from postserve.cli import main; main()",
        SELECT: "import numpy as np; from postserve import LinUCB; "
        "LinUCB(10, 105, ridge=1.0, arm_radius=1.0).select(np.ones(105), np.random.default_rng(0))",
    }
    times: dict[str, list[float]] = {name: [] for name in statements}
    for i in range(6 if quick else 16):
        for name, code in statements.items():
            taken = seconds(partial(_run, code))
            if i:  # the first fills the caches
                times[name].append(taken)
    medians = {name: statistics.median(values) for name, values in times.items()}
    found: dict[str, Any] = {
        name: {"ms": 1e3 * value, "ratio": value / medians[NOTHING if name == HELP else NUMPY]}
        for name, value in medians.items()
        if name != NUMPY
    }
    return found if quick else {**found, **{name: _first_use(code) for name, code in FIRST_USES.items()}}


def _run(code: str, **environment: str) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run(
        [sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL, env={**inherited, **environment}
    )


def _first_use(code: str) -> dict[str, float]:
    """With an empty cache of compiled code, and with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        taken = [seconds(lambda: _run(ROUNDS + code, NUMBA_CACHE_DIR=cache)) for _ in range(1 + AGAIN)]
    return {"seconds": taken[0], "full_seconds": statistics.median(taken[1:])}
