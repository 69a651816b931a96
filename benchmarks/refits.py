"""Evidence refits, as their share of a whole run of PoLinUCB with its defaults (10 arms, 100 + 5)."""

import time
from typing import Any
from unittest.mock import patch

from postserve import PoLinUCB, RidgeMap, SyntheticEnvironment, simulate
from postserve.linalg import evidence
from postserve.linalg.ridge import RidgeModels


def measure(quick: bool = False) -> dict[str, float]:
    """Time within refits (and the refactorisation that ends each) over the time of the run."""
    found = {}
    _share(50)  # compiles
    for horizon in (1000,) if quick else (1000, 5000):
        share, refits, evaluations = _share(horizon)
        found[f"T = {horizon}: share of the run"] = share
        found[f"T = {horizon}: refits of arms and map"] = refits
        found[f"T = {horizon}: evaluations a refit"] = evaluations / refits
    return found


def _share(horizon: int) -> tuple[float, float, float]:
    env = SyntheticEnvironment("polynomial", seed=0)
    spent, evaluations = [], []
    fit, adopt = RidgeModels._fit, RidgeModels._adopt

    def timed(function: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **options)
            spent.append(time.perf_counter() - start)
            if isinstance(result, evidence.Fit):
                evaluations.append(result.evaluations)
            return result

        return call

    policy = PoLinUCB(10, RidgeMap(100, 5, features=env.features))
    with patch.object(RidgeModels, "_fit", timed(fit)), patch.object(RidgeModels, "_adopt", timed(adopt)):
        start = time.perf_counter()
        simulate(policy, env, horizon, seed=0)
        total = time.perf_counter() - start
    return sum(spent) / total, float(len(evaluations)), float(sum(evaluations))
