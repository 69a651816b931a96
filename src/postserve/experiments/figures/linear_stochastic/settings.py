"""Proposition 3: a set of candidates in each round, one truth for all of them."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from postserve.context_maps import RidgeMap
from postserve.environments import DecisionSetEnvironment
from postserve.experiments.contenders import BEFORE, ORACLE, POLINUCB, RANDOM, X_ONLY, evidence
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakePolicy, regret_cells, seed_list
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RandomPolicy
from postserve.types import FloatArray

SIZE = Size(horizon=3000, seeds=10, quick=False)
QUICK = Size(horizon=200, seeds=3, quick=True)
N_CANDIDATES = (10, 100, 1000)
QUICK_N_CANDIDATES = (10, 100)
MAP_RATE = 0.5
"""Of a ridge map whose features phi is linear in."""
WORLD: Any = {"dim_x": 10, "dim_z": 3, "z_noise": 3.0, "reward_noise": 3.0}
"""Loud, or one truth in ten dimensions is learnt before growth can be seen."""


class OnRows:
    """h as a transformer, which is given all candidates at once; a callable gets one after the other."""

    def __init__(self, h: Any) -> None:
        self.h = h

    def transform(self, X: FloatArray) -> FloatArray:
        """h of every row."""
        features: FloatArray = self.h(X)
        return features


def place(n_candidates: int) -> str:
    """The environment's name in the table."""
    return f"{n_candidates:,} candidates"


def environment(n_candidates: int, seed: int) -> DecisionSetEnvironment:
    """A polynomial world."""
    return DecisionSetEnvironment("polynomial", n_candidates=n_candidates, seed=seed, **WORLD)


def policies() -> dict[str, MakePolicy]:
    """One model for all candidates, each policy with the learnt prior."""
    one: Any = {"model": "shared"}
    return {
        RANDOM: lambda env: RandomPolicy(None),
        evidence(X_ONLY): lambda env: LinUCB(None, env.dim_x, **one),
        evidence(BEFORE): lambda env: LinUCBPhiHat(None, _on_h(env), **one),
        evidence(POLINUCB): lambda env: PoLinUCB(None, _on_h(env), **one),
        evidence(ORACLE): lambda env: LinUCBOracle(None, env.dim_x, env.dim_z, **one),
    }


def _on_h(env: Any) -> RidgeMap:
    return RidgeMap(env.dim_x, env.dim_z, features=OnRows(env.features))


def cells(size: Size) -> list[Cell]:
    """Sets of growing size."""
    return [
        cell
        for n in (QUICK_N_CANDIDATES if size.quick else N_CANDIDATES)
        for cell in regret_cells(
            {place(n): partial(environment, n)}, policies(), size.horizon, seed_list(size.seeds)
        )
    ]


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        "world": "each round a fresh set of candidates, uniform on [-10, 10]^10; z in 3 dimensions, "
        "polynomial phi of deviation 10, noises 3; one theta, one beta, one phi; the map is given h",
        "policies": "one model for all candidates, with the learnt prior",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds, paired; slopes from T/10 on",
    }
