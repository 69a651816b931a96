"""Rewards that are linear in features of x and of z, and in nothing less."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from postserve.context_maps import RidgeMap
from postserve.environments import NonlinearEnvironment
from postserve.experiments.contenders import (
    ON_FEATURES,
    ON_X_FEATURES,
    ORACLE_ON_FEATURES,
    RANDOM,
    WITHOUT_FEATURES,
    X_ONLY,
    evidence,
)
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakePolicy, regret_cells, seed_list
from postserve.policies import LinUCB, LinUCBOracle, PoLinUCB, RandomPolicy

SIZE = Size(horizon=3000, seeds=10, quick=False)
QUICK = Size(horizon=250, seeds=3, quick=True)
MAP_RATE = 0.5
"""Of a ridge map whose features E[pi_z(z)|x] is linear in."""
NOISES = (1.0, 5.0)
"""Of z, against a phi of deviation 10: the louder, the further is E[pi_z(z)] from pi_z(E[z])."""
WORLD: Any = {"dim_x": 5, "dim_z": 3, "n_arms": 5, "reward_noise": 0.5}


def place(z_noise: float) -> str:
    """The environment's name in the table."""
    return f"noise of z {z_noise:g}"


def environment(z_noise: float, seed: int) -> NonlinearEnvironment:
    """phi is periodic, so that no features of x that arms are given can stand in for those of z."""
    return NonlinearEnvironment("periodic", z_noise=z_noise, seed=seed, **WORLD)


def policies() -> dict[str, MakePolicy]:
    """With features of x and z, of x alone, of neither; the oracle with both. All maps can express phi."""
    return {
        RANDOM: lambda env: RandomPolicy(env.n_arms),
        evidence(X_ONLY): lambda env: LinUCB(env.n_arms, env.dim_x),
        evidence(WITHOUT_FEATURES): lambda env: PoLinUCB(
            env.n_arms, RidgeMap(env.dim_x, env.dim_z, features=env.features)
        ),
        evidence(ON_X_FEATURES): lambda env: PoLinUCB(
            env.n_arms,
            RidgeMap(2 * env.dim_x, env.dim_z, features=env.map_features),
            x_features=env.x_features,
        ),
        evidence(ON_FEATURES): lambda env: PoLinUCB(
            env.n_arms,
            RidgeMap(2 * env.dim_x, 2 * env.dim_z, features=env.map_features),
            x_features=env.x_features,
            z_features=env.z_features,
        ),
        evidence(ORACLE_ON_FEATURES): lambda env: LinUCBOracle(
            env.n_arms,
            2 * env.dim_x,
            2 * env.dim_z,
            x_features=env.x_features,
            z_features=env.z_features,
        ),
    }


def cells(size: Size) -> list[Cell]:
    """Both noises of z."""
    return [
        cell
        for z_noise in NOISES
        for cell in regret_cells(
            {place(z_noise): partial(environment, z_noise)}, policies(), size.horizon, seed_list(size.seeds)
        )
    ]


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        "world": "x uniform on [-10, 10]^5, z = phi(x) + eps in 3 dimensions, phi = 10 W^T sqrt(2) cos(x); 5 "
        "arms, rewards linear in (x, x²) and (z, z²), standardised, with noise 0.5",
        "maps": "given 1, cos(x) and the products of its entries, in which E[z|x] and E[z²|x] are linear",
        "policies": "with the learnt prior",
        "settled late": "phi was linear at first, where features of x nearly sufficed; and what has no "
        "features was first to have a slope above 0.8, which failed",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds, paired; slopes from T/10 on",
    }
