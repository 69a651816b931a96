"""Growth exponents: a map that learns at rate 1/2, one at 1/4, and what cannot learn at all."""

from collections.abc import Mapping
from typing import Any

from postserve.context_maps import KernelMap, NeighborsMap, RidgeMap
from postserve.environments import HolderEnvironment, SyntheticEnvironment
from postserve.experiments.contenders import BEFORE, POLINUCB, RANDOM, X_ONLY, evidence
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakeEnvironment, MakePolicy, regret_cells, seed_list
from postserve.policies import LinUCB, LinUCBPhiHat, PoLinUCB, RandomPolicy

LOUD: Any = {"z_noise": 3.0, "reward_noise": 3.0}
"""With the figures' noise a world of ten dimensions is learnt before growth can be seen."""

SIZE = Size(horizon=20_000, seeds=10, quick=False)
QUICK = Size(horizon=1000, seeds=4, quick=True)

FAST = "polynomial phi, RidgeMap: map_rate 1/2"
NEIGHBORS = "Hölder phi, NeighborsMap: map_rate 1/4"
KERNEL = "Hölder phi, KernelMap, 512 landmarks"
RATES: dict[str, dict[str, float]] = {
    FAST: {evidence(POLINUCB): 0.5, evidence(BEFORE): 0.75},
    NEIGHBORS: {evidence(POLINUCB): 0.75, evidence(BEFORE): 0.875},
    KERNEL: {evidence(POLINUCB): 0.75, evidence(BEFORE): 0.875},
}
"""Exponents of the bounds: the theorem's, max(1 - map_rate, 1/2), and the proposition's, 1 - map_rate/2."""


def worlds() -> dict[str, tuple[MakeEnvironment, dict[str, MakePolicy]]]:
    """Each with poLinUCB and LinUCB(phi_hat) on the map that fits it, LinUCB(x) and Random."""
    return {
        FAST: (
            lambda seed: SyntheticEnvironment("polynomial", dim_x=10, dim_z=3, n_arms=5, **LOUD, seed=seed),
            _policies(lambda env: RidgeMap(env.dim_x, env.dim_z, features=env.features)),
        ),
        NEIGHBORS: (
            _holder,
            _policies(lambda env: NeighborsMap(env.dim_x, env.dim_z, smoothness=env.smoothness)),
        ),
        KERNEL: (
            _holder,
            _policies(lambda env: KernelMap(env.dim_x, env.dim_z, smoothness=env.smoothness, landmarks=512)),
        ),
    }


def _holder(seed: int) -> HolderEnvironment:
    return HolderEnvironment(0.5, dim_x=1, dim_z=2, n_arms=5, seed=seed)


def _policies(make_map: Any) -> dict[str, MakePolicy]:
    return {
        RANDOM: lambda env: RandomPolicy(env.n_arms),
        evidence(X_ONLY): lambda env: LinUCB(env.n_arms, env.dim_x),
        evidence(BEFORE): lambda env: LinUCBPhiHat(env.n_arms, make_map(env)),
        evidence(POLINUCB): lambda env: PoLinUCB(env.n_arms, make_map(env)),
    }


def cells(size: Size) -> list[Cell]:
    """Every world with its policies."""
    return [
        cell
        for name, (environment, policies) in worlds().items()
        for cell in regret_cells({name: environment}, policies, size.horizon, seed_list(size.seeds))
    ]


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        FAST: "x uniform on [-10, 10]^10, z in 3 dimensions, 5 arms, noises 3; the map is given h",
        NEIGHBORS: "x uniform on [-1, 1], phi Hölder of exponent 1/2 in 2 outputs, noise of z 0.3, 5 arms",
        KERNEL: "the same",
        "policies": "with the learnt prior",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds; slope of log mean regret over log t "
        "over the last nine tenths, seeds resampled for 95% intervals",
    }
