"""A catalogue of arms that are more or less alike, learnt as one, apart, or both."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from postserve.context_maps import RidgeMap
from postserve.environments import CatalogueEnvironment
from postserve.experiments.contenders import DISJOINT, HYBRID, RANDOM, SHARED, evidence
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakePolicy, regret_cells, seed_list
from postserve.policies import PoLinUCB, RandomPolicy

SIZE = Size(horizon=2000, seeds=10, quick=False)
QUICK = Size(horizon=120, seeds=3, quick=True)
OWN = (0.0, 0.1, 0.3, 1.0)
"""How large the part of an arm's weights is that is its own; the shared part has length 1."""
SHOWN = 0.3
"""Regret over rounds is drawn for this one."""
WORLD: Any = {"dim_x": 10, "dim_z": 3, "n_eligible": 10, "reward_noise": 1.0}
N_ARMS, QUICK_N_ARMS = 100, 30


def place(own: float) -> str:
    """The environment's name in the table."""
    return f"own part {own:g}"


def environment(own: float, n_arms: int, seed: int) -> CatalogueEnvironment:
    """A polynomial world."""
    return CatalogueEnvironment("polynomial", own=own, n_arms=n_arms, seed=seed, **WORLD)


def policies() -> dict[str, MakePolicy]:
    """poLinUCB with each of the three models, on one map."""
    return {
        RANDOM: lambda env: RandomPolicy(env.n_arms),
        evidence(SHARED): partial(_polinucb, "shared"),
        evidence(DISJOINT): partial(_polinucb, "disjoint"),
        evidence(HYBRID): partial(_polinucb, "hybrid"),
    }


def _polinucb(model: Any, env: Any) -> PoLinUCB:
    phi_hat = RidgeMap(env.dim_x, env.dim_z, features=env.features)
    return PoLinUCB(env.n_arms, phi_hat, model=model)


def cells(size: Size) -> list[Cell]:
    """From arms that are all alike to arms that hardly are."""
    return [
        cell
        for own in OWN
        for cell in regret_cells(
            {place(own): partial(environment, own, QUICK_N_ARMS if size.quick else N_ARMS)},
            policies(),
            size.horizon,
            seed_list(size.seeds),
        )
    ]


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    n_arms = QUICK_N_ARMS if size.quick else N_ARMS
    return {
        "world": f"{n_arms} arms, of which a random 10 can be served each round, each with its own x, "
        "uniform on [-10, 10]^10; z in 3 dimensions, polynomial phi shared by all, noise of rewards 1; the "
        "map is given h",
        "weights": "theta_a = theta_0 + own delta_a, and so beta_a, the parts on unit spheres",
        "policies": "poLinUCB with the learnt prior and one map: weights shared by all arms, weights for "
        "each arm, or the sum of both",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds, paired",
    }
