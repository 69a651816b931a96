"""Evidence refits, as their share of a whole run of PoLinUCB with its defaults (10 arms, 100 + 5)."""

import time
from typing import Any
from unittest.mock import patch

from postserve import PoLinUCB, RidgeMap, SyntheticEnvironment, simulate
from postserve.linalg.prior import BlockPrior


def measure(quick: bool = False) -> dict[str, float]:
    """Time in refits, including the refactorisation that ends each, over the time of the run."""
    found = {}
    _share(50)  # compiles
    for horizon in (1000,) if quick else (1000, 5000):
        share, refits, evaluations = _share(horizon)
        found[f"T = {horizon}: share of the run"] = share
        found[f"T = {horizon}: refits of arms and map"] = refits
        found[f"T = {horizon}: evaluations per refit"] = evaluations / refits
    return found


def _share(horizon: int) -> tuple[float, float, float]:
    env = SyntheticEnvironment("polynomial", seed=0)
    spent, evaluations = [], []
    renew = BlockPrior.renew

    def timed(prior: BlockPrior, learner: Any) -> None:
        start = time.perf_counter()
        renew(prior, learner)
        spent.append(time.perf_counter() - start)
        if prior.fitted_at == learner.updates:
            evaluations.append(prior.evaluations)

    policy = PoLinUCB(10, RidgeMap(100, 5, features=env.features))
    with patch.object(BlockPrior, "renew", timed):
        start = time.perf_counter()
        simulate(policy, env, horizon, seed=0)
        total = time.perf_counter() - start
    return sum(spent) / total, float(len(evaluations)), float(sum(evaluations))
