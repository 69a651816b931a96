"""One select over 100,000 candidates x 64, as a ratio to one matrix product and one triangular solve."""

import statistics
import time
import tracemalloc
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from postserve import LinUCB, PoLinUCB, RidgeMap

CANDIDATES, DIM, DIM_Z, REPEATS = 100_000, 64, 5, 7


def measure(quick: bool = False) -> dict[str, float]:
    """Medians over interleaved runs in one thread, and memory as a multiple of the candidates'."""
    rng = np.random.default_rng(0)
    policies: dict[str, Any] = {
        "LinUCB": LinUCB(None, DIM, model="shared"),
        "LinUCB, ridge 1, radius 1": LinUCB(None, DIM, model="shared", ridge=1.0, arm_radius=1.0),
        "PoLinUCB, RidgeMap, 5 follow-ups": PoLinUCB(None, RidgeMap(DIM, DIM_Z), model="shared"),
    }
    for _ in range(200):
        x = rng.normal(size=DIM)
        for policy in policies.values():
            policy.update(x, 0, x[:DIM_Z], float(x.sum()))
    candidates = rng.normal(size=(CANDIDATES, DIM))
    square = candidates[:DIM].T @ candidates[:DIM] + np.eye(DIM)
    factor = np.linalg.cholesky(square)

    def reference() -> None:
        candidates @ square
        solve_triangular(factor, candidates.T, lower=True, check_finite=False)

    times: dict[str, list[float]] = {name: [] for name in ("reference", *policies)}
    with threadpool_limits(1):
        for _ in range(3 if quick else REPEATS):
            times["reference"].append(_seconds(reference))
            for name, policy in policies.items():
                times[name].append(_seconds(lambda policy=policy: policy.select(candidates, rng)))
    whole = statistics.median(times.pop("reference"))
    ratios = {f"{name}: time": statistics.median(values) / whole for name, values in times.items()}
    for name, policy in policies.items():
        tracemalloc.start()
        policy.select(candidates, rng)
        ratios[f"{name}: memory / the candidates'"] = tracemalloc.get_traced_memory()[1] / candidates.nbytes
        tracemalloc.stop()
    return ratios


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
