"""One thing varied at a time: exploration, noise and dimension of z, how much of phi can be learnt."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from postserve.context_maps import RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.environments.phi import FEATURES
from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    ORACLE,
    PAPER_RADIUS,
    POLINUCB,
    ROBUST,
    X_ONLY,
    evidence,
)
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakePolicy, regret_cells, seed_list
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RobustPoLinUCB
from postserve.types import FloatArray

SIZE = Size(horizon=1000, seeds=10, quick=False)
QUICK = Size(horizon=300, seeds=3, quick=True)
DIMS: Any = {"dim_x": 20, "n_arms": 5}


class Panel(NamedTuple):
    """What varies, over which values, and how a value makes an environment and an exploration."""

    title: str
    values: tuple[float, ...]
    environment: Callable[[float, int], Any]
    exploration: Callable[[float], float] = lambda value: 1.0


def panels() -> dict[str, Panel]:
    """The four sweeps, around one polynomial world."""
    return {
        "exploration": Panel(
            "exploration (multiplies every radius)",
            (0.1, 0.3, 0.5, 1.0, 2.0, 3.0, 10.0),
            lambda value, seed: _world(seed),
            lambda value: value,
        ),
        "noise of z": Panel(
            "noise of z, against a phi of deviation 10",
            (0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
            lambda value, seed: _world(seed, z_noise=value),
        ),
        "dim_z": Panel(
            "dimension of z", (1.0, 2.0, 5.0, 10.0, 20.0), lambda value, seed: _world(seed, dim_z=int(value))
        ),
        "unlearnable": Panel(
            "share of phi's variance that the map cannot express",
            (0.0, 0.1, 0.25, 0.5, 0.75, 1.0),
            lambda value, seed: _partly_hidden(seed, value),
        ),
    }


def place(panel: str, value: float) -> str:
    """The environment's name in the table."""
    return f"{panel} = {value:g}"


def policies(exploration: float) -> dict[str, MakePolicy]:
    """With the learnt prior, and poLinUCB with ridge 1 too."""
    more: Any = {"exploration": exploration}
    paper: Any = {"ridge": 1.0, "arm_radius": PAPER_RADIUS}
    return {
        evidence(X_ONLY): lambda env: LinUCB(env.n_arms, env.dim_x, **more),
        evidence(BEFORE): lambda env: LinUCBPhiHat(env.n_arms, _map(env), **more),
        evidence(AFTER): lambda env: LinUCBPhiHat(env.n_arms, _map(env), prediction="after", **more),
        POLINUCB: lambda env: PoLinUCB(env.n_arms, _map(env, ridge=1.0), **paper, **more),
        evidence(POLINUCB): lambda env: PoLinUCB(env.n_arms, _map(env), **more),
        evidence(ROBUST): lambda env: RobustPoLinUCB(env.n_arms, _map(env), **more),
        evidence(ORACLE): lambda env: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z, **more),
    }


def cells(size: Size) -> list[Cell]:
    """Every value of every sweep."""
    return [
        cell
        for name, panel in panels().items()
        for value in panel.values
        for cell in regret_cells(
            {place(name, value): partial(panel.environment, value)},
            policies(panel.exploration(value)),
            size.horizon,
            seed_list(size.seeds),
        )
    ]


def _world(seed: int, dim_z: int = 5, z_noise: float = 1.0) -> SyntheticEnvironment:
    return SyntheticEnvironment("polynomial", dim_z=dim_z, z_noise=z_noise, seed=seed, **DIMS)


def _partly_hidden(seed: int, share: float) -> SyntheticEnvironment:
    """phi = 10 W^T (sqrt(1 - share) h(x) + sqrt(share) cos(25 x) sqrt(2)): the map is given only h."""
    h, dim_x, dim_z = FEATURES["polynomial"], DIMS["dim_x"], 5
    W = np.random.default_rng([seed, 25]).standard_normal((dim_x, dim_z)) / np.sqrt(dim_x)

    def phi(X: FloatArray) -> FloatArray:
        hidden = np.sqrt(2.0) * np.cos(25.0 * X)
        return np.asarray(10.0 * (np.sqrt(1.0 - share) * h(X) + np.sqrt(share) * hidden) @ W)

    return SyntheticEnvironment(phi, dim_z=dim_z, features=h, seed=seed, **DIMS)


def _map(env: Any, **options: Any) -> RidgeMap:
    return RidgeMap(env.dim_x, env.dim_z, features=env.features, **options)


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        "world": "polynomial phi, x uniform on [-10, 10]^20, z in 5 dimensions, 5 arms, the map is given "
        "h; one thing varies at a time",
        "unlearnable": "phi mixes the polynomial part with cos(25 x), of which the map has no feature",
        "policies": f"with the learnt prior; poLinUCB also with ridge 1, radius {PAPER_RADIUS}",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds, paired",
    }
