"""Growth exponents of regret against the stated rates: maps that learn at rate 1/2 and at 1/4."""

from collections.abc import Callable
from typing import Any

from postserve.context_maps import KernelMap, NeighborsMap
from postserve.environments import HolderEnvironment, SyntheticEnvironment
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.rates import late_slope, with_slopes
from postserve.experiments.statistics import growth
from postserve.experiments.study import Cell, MakeEnvironment, Study

TITLE = "Growth exponents of regret"
ABOUT = (
    "The theorem bounds poLinUCB's regret by T^{1 - map_rate} + T^{1/2} up to logarithms, the proposition "
    "that of LinUCB(phi_hat) by T^{1 - map_rate/2}: exponents 1/2 and 3/4 where phi is learnt at the rate "
    "1/2, 3/4 and 7/8 at the rate 1/4 (Hölder, smoothness 1/2, one dimension). They are worst cases, proved "
    "for other radii and optimism than the defaults that run here; where small gaps are rare, regret grows "
    "like log T. KernelMap's fixed number of landmarks limits what it can resolve, so its curve turns up in "
    "the end."
)
FULL, QUICK = Size(horizon=20_000, seeds=10), Size(horizon=1000, seeds=4, quick=True)

LOUD: Any = {"z_noise": 3.0, "reward_noise": 3.0}
"""With the figures' noise a world of ten dimensions is learnt before growth can be seen."""
OURS, THEIRS = c.POLINUCB.evidence, c.BEFORE.evidence
CONTENDERS = (c.RANDOM, c.X_ONLY.evidence, THEIRS, OURS)
FAST = "polynomial phi, RidgeMap: map_rate 1/2"
NEIGHBORS = "Hölder phi, NeighborsMap: map_rate 1/4"
KERNEL = "Hölder phi, KernelMap, 512 landmarks"
RATES: dict[str, dict[str, float]] = {
    FAST: {OURS.name: 0.5, THEIRS.name: 0.75},
    NEIGHBORS: {OURS.name: 0.75, THEIRS.name: 0.875},
    KERNEL: {OURS.name: 0.75, THEIRS.name: 0.875},
}
"""Exponents of the bounds: the theorem's, max(1 - map_rate, 1/2), and the proposition's, 1 - map_rate/2."""


def worlds() -> dict[str, tuple[MakeEnvironment, Callable[..., Any]]]:
    """Each with the map that fits it."""
    return {
        FAST: (
            lambda seed: SyntheticEnvironment("polynomial", dim_x=10, dim_z=3, n_arms=5, **LOUD, seed=seed),
            c.map_on_h,
        ),
        NEIGHBORS: (
            _holder,
            lambda env, ridge: NeighborsMap(env.dim_x, env.dim_z, smoothness=env.smoothness),
        ),
        KERNEL: (
            _holder,
            lambda env, ridge: KernelMap(env.dim_x, env.dim_z, smoothness=env.smoothness, landmarks=512),
        ),
    }


def _holder(seed: int) -> HolderEnvironment:
    return HolderEnvironment(0.5, dim_x=1, dim_z=2, n_arms=5, seed=seed)


def cells(size: Size) -> list[Cell]:
    """poLinUCB and LinUCB(phi_hat) with each map, LinUCB(x) and Random."""
    found = []
    for name, (environment, make_map) in worlds().items():
        mapped = [contender.with_options(make_map=make_map) for contender in (THEIRS, OURS)]
        found += contest(size, {name: environment}, (*CONTENDERS[:2], *mapped))
    return found


def settings(size: Size) -> dict[str, str]:
    return {
        FAST: "x uniform on [-10, 10]^10, z in 3 dimensions, 5 arms, noises 3; the map is given h",
        NEIGHBORS: "x uniform on [-1, 1], phi Hölder of exponent 1/2 in 2 outputs, noise of z 0.3, 5 arms",
        KERNEL: "the same",
        "slopes": "of log mean regret over log t, over the last nine tenths; intervals by resampling seeds",
    }


def claims(study: Study) -> list[Claim]:
    """The theorem's and the proposition's exponents are upper bounds; no policy is worse than linear."""
    found = []
    for environment in study.environments:
        for contender in CONTENDERS:
            slope = late_slope(study, environment, contender)
            late = growth(study.rounds, study.curves(environment, contender), start=study.horizon // 2)
            seen = f"{environment}: {contender} grows with exponent {slope}, over the last half alone {late}"
            rate = RATES[environment].get(contender.name)
            if rate is None:
                found.append(Claim(f"{seen}; linear is 1.", None))
            else:
                text = f"{seen}; held if the first interval is below the bound's, {rate:g}."
                found.append(Claim(text, slope.high <= rate))
    return found


def summary(study: Study) -> list[Row]:
    return [
        {**row, "rate": RATES[row["environment"]].get(row["policy"], 1.0)}
        for row in with_slopes(study, study.summary())
    ]


def draw(study: Study) -> Any:
    with style.picture(1, len(study.environments), height=5.0, width=4.4) as (made, axes):
        for panel, environment in zip(axes[0], study.environments, strict=True):
            slopes = {contender: late_slope(study, environment, contender) for contender in CONTENDERS}
            rates = [(power, f"slope {power:g}") for power in (0.5, 0.75, 1.0)]
            style.draw_growth(panel, study, environment, slopes, rates)
            panel.set_title(environment)
        axes[0, 0].set_ylabel("cumulative regret")
        return made
