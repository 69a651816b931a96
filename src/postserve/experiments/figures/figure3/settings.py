"""Figure 3: classes of phi, the maps that fit them, and the error that is measured."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from postserve.context_maps import KernelMap, NeighborsMap, RidgeMap
from postserve.environments import HolderEnvironment, SyntheticEnvironment
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, Curve, MakeEnvironment, cells_of, seed_list

SIZE = Size(horizon=10_000, seeds=10, quick=False)
QUICK = Size(horizon=1000, seeds=3, quick=True)
TEST_POINTS = 500
LANDMARKS = 512
"""Of KernelMap, twice its default, with which the error of b = 0.5, d = 2 falls with slope -0.13 only.

Any fixed number bounds what it can resolve: the slope from `LATE` pairs on is told too.
"""
FROM, LATE = 100, 1000
"""Slopes are taken from the first number of pairs on; the second shows whether they last."""

MakeMap = Callable[[Any], Any]


class Class(NamedTuple):
    """A class of phi: how to draw one, the maps that fit it, and its rate as a norm."""

    environment: MakeEnvironment
    maps: Mapping[str, MakeMap]
    rate: float
    rate_text: str


def classes() -> dict[str, Class]:
    """Linear in five dimensions, and Hölder of smoothness b in d of them, where the rate is b/(2b + d)."""
    found = {
        "linear, d = 5": Class(
            lambda seed: SyntheticEnvironment(
                "linear", dim_x=5, dim_z=1, n_arms=2, scale=1.0, z_noise=0.3, seed=seed
            ),
            {"RidgeMap": lambda env: RidgeMap(env.dim_x, env.dim_z)},
            rate=0.5,
            rate_text="1/2",
        )
    }
    for b, d, rate_text in ((1.0, 1, "1/3"), (0.5, 1, "1/4"), (1.0, 2, "1/4"), (0.5, 2, "1/6")):
        found[f"Hölder b = {b:g}, d = {d}"] = Class(
            partial(_holder, b, d),
            {
                "NeighborsMap": lambda env: NeighborsMap(env.dim_x, env.dim_z, smoothness=env.smoothness),
                "KernelMap": lambda env: KernelMap(
                    env.dim_x, env.dim_z, smoothness=env.smoothness, landmarks=LANDMARKS
                ),
            },
            rate=b / (2.0 * b + d),
            rate_text=rate_text,
        )
    return found


def _holder(b: float, d: int, seed: int) -> HolderEnvironment:
    return HolderEnvironment(b, dim_x=d, seed=seed)


def cells(size: Size) -> list[Cell]:
    """Every class with every map that fits it."""
    return [
        cell
        for name, kind in classes().items()
        for maker in kind.maps.items()
        for cell in cells_of(
            error_of_map, (name, kind.environment), maker, size.horizon, seed_list(size.seeds)
        )
    ]


def error_of_map(make_environment: MakeEnvironment, make_map: MakeMap, horizon: int, seed: int) -> Curve:
    """sqrt(E ||phi_hat(x) - phi(x)||²) over fresh x, after growing numbers of pairs."""
    environment = make_environment(seed)
    of_pairs, of_test = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(2))
    test = environment.rounds(TEST_POINTS, of_test).x
    truth = np.array([environment.phi(x) for x in test])
    pairs = environment.rounds(horizon, of_pairs)
    at = np.unique(np.geomspace(10, horizon, 25).astype(np.int64))
    phi_hat, errors = make_map(environment), []
    for t, (x, z) in enumerate(zip(pairs.x, pairs.z, strict=True), start=1):
        phi_hat.update(x, 0, z)
        if t in at:
            predicted = np.array([phi_hat.predict(x)[0] for x in test])
            errors.append(np.sqrt(((predicted - truth) ** 2).sum(axis=1).mean()))
    return Curve(at, np.array(errors))


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        "linear": "x uniform on [-10, 10]^5, phi linear of unit deviation; RidgeMap",
        "Hölder": "x uniform on [-1, 1]^d, phi a Weierstrass series of unit deviation, exactly of "
        "Hölder-Zygmund order b",
        "NeighborsMap": "the k nearest pairs, k growing as n^{2b/(2b+d)}",
        "KernelMap": f"Matérn kernel of smoothness b on {LANDMARKS} landmarks; with its default of 256 the "
        "slope of b = 0.5, d = 2 is -0.13",
        "noise of z": "N(0, 0.3²)",
        "error": f"root mean square of ||phi_hat(x) - phi(x)|| over {TEST_POINTS} fresh x",
        "pairs, seeds": f"{size.horizon:,} pairs, {size.seeds} seeds; slopes from {FROM} pairs on",
    }
