"""Growth exponents of the worst regret over worlds of all gaps: maps that learn at rate 1/2 and at 1/4."""

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import polars as pl

from postserve.context_maps import KernelMap, NeighborsMap
from postserve.environments import HolderEnvironment, SyntheticEnvironment
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import at_most
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.rates import with_slopes
from postserve.experiments.statistics import Slope, growth
from postserve.experiments.study import Cell, MakeEnvironment, Study

TITLE = "Growth exponents of the worst regret over gaps"
ABOUT = (
    "The theorem bounds poLinUCB's regret by T^{1 - map_rate} + T^{1/2} up to logarithms, the proposition "
    "that of LinUCB(phi_hat) by T^{1 - map_rate/2}: exponents 1/2 and 3/4 where phi is learnt at the rate "
    "1/2, 3/4 and 7/8 at the rate 1/4 (Hölder, smoothness 1/2, one dimension). They are worst cases. In one "
    "world regret grows like log T once the gaps are resolved, whatever the exponent. So each world is run "
    "with noises from small to large, that is with gaps from large to small, in units of the noise; and what "
    "is drawn is the largest of these regrets at each round. There a policy that resolves gaps of order "
    "T^{-1/2} in T rounds grows with exponent 1/2, and one that does not learn with exponent 1. The bounds "
    "are proved for other radii and optimism than the defaults that run here."
)
FULL, QUICK = Size(horizon=20_000, seeds=10), Size(horizon=1000, seeds=4, quick=True)

OURS, THEIRS = c.POLINUCB.evidence, c.BEFORE.evidence
CONTENDERS = (c.RANDOM, c.X_ONLY.evidence, THEIRS, OURS)
FAST = "polynomial phi, RidgeMap: map_rate 1/2"
NEIGHBORS = "Hölder phi, NeighborsMap: map_rate 1/4"
KERNEL = "Hölder phi, KernelMap, 512 landmarks"
NOISES = {
    FAST: (15.0, 30.0, 60.0, 120.0, 240.0, 480.0, 960.0),
    NEIGHBORS: (1.5, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0),
    KERNEL: (1.5, 6.0, 24.0, 96.0),
}
"""Of z and of rewards, by kind of world: regret is in units of them."""
RATES: dict[str, dict[str, float]] = {
    FAST: {OURS.name: 0.5, THEIRS.name: 0.75},
    NEIGHBORS: {OURS.name: 0.75, THEIRS.name: 0.875},
    KERNEL: {},
}
"""Exponents of the bounds: the theorem's, max(1 - map_rate, 1/2), and the proposition's, 1 - map_rate/2.

There is no theorem for a fixed number of landmarks.
"""
LOGARITHMS = 0.1
"""How far above a stated exponent a slope may be: the bounds have logarithms, which count as powers here."""
place = "{}; noises {:g}".format  # the environment's name in the table


def worlds() -> dict[str, tuple[MakeEnvironment, Callable[..., Any]]]:
    """Each with the map that fits it."""
    makers: dict[str, tuple[Callable[[float], MakeEnvironment], Callable[..., Any]]] = {
        FAST: (_polynomial, c.map_on_h),
        NEIGHBORS: (
            _holder,
            lambda env, ridge: NeighborsMap(env.dim_x, env.dim_z, smoothness=env.smoothness),
        ),
        KERNEL: (
            _holder,
            lambda env, ridge: KernelMap(env.dim_x, env.dim_z, smoothness=env.smoothness, landmarks=512),
        ),
    }
    return {
        place(kind, noise): (of_noise(noise), make_map)
        for kind, (of_noise, make_map) in makers.items()
        for noise in NOISES[kind]
    }


def _polynomial(noise: float) -> MakeEnvironment:
    loud: Any = {"z_noise": noise, "reward_noise": noise}
    return lambda seed: SyntheticEnvironment("polynomial", dim_x=10, dim_z=3, n_arms=5, seed=seed, **loud)


def _holder(noise: float) -> MakeEnvironment:
    loud: Any = {"z_noise": noise, "reward_noise": noise}
    return lambda seed: HolderEnvironment(0.5, dim_x=1, dim_z=2, n_arms=5, seed=seed, **loud)


def cells(size: Size) -> list[Cell]:
    """poLinUCB and LinUCB(phi_hat) with each map, LinUCB(x) and Random."""
    found = []
    for name, (environment, make_map) in worlds().items():
        mapped = [contender.with_options(make_map=make_map) for contender in (THEIRS, OURS)]
        found += contest(size, {name: environment}, (*CONTENDERS[:2], *mapped))
    return found


def settings(size: Size) -> dict[str, str]:
    return {
        FAST: "x uniform on [-10, 10]^10, z in 3 dimensions, 5 arms; the map is given h",
        NEIGHBORS: "x uniform on [-1, 1], phi Hölder of exponent 1/2 in 2 outputs, 5 arms",
        KERNEL: "the same",
        "noises": "of z and of rewards: "
        + "; ".join(f"{', '.join(f'{noise:g}' for noise in of)} ({kind})" for kind, of in NOISES.items()),
        "regret": "the largest over the noises of the mean over seeds, at each round, in units of the noise",
        "slopes": "of log mean regret over log t, over the last two decades; intervals by resampling seeds",
        "settled late": "at first each world had one noise: that of the figures in the Hölder worlds, and 3 "
        "in the polynomial one, raised from that of the figures because ten dimensions were learnt before "
        "growth could be seen. Slopes were as low as 0.08 there against an exponent of 0.5, which "
        "tests nothing. The noises, the two decades and the allowance for logarithms came after that",
    }


def hardest(study: Study) -> Study:
    """The worst regret over the noises, in units of them: the curves of the noise with the largest mean."""
    rows = []
    for kind, contender in product(kinds(study), CONTENDERS):
        curves = _in_units(study, kind, contender)
        worst = curves.mean(axis=1).argmax(axis=0)  # of each round
        for seed, of_seed in enumerate(curves.swapaxes(0, 1)):
            values = of_seed[worst, np.arange(len(worst))]
            rows += [
                (kind, contender.name, seed, int(t), float(value))
                for t, value in zip(study.rounds, values, strict=True)
            ]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row"))


def kinds(study: Study) -> list[str]:
    return [kind for kind in NOISES if place(kind, NOISES[kind][0]) in study.environments]


def _in_units(study: Study, kind: str, contender: c.Contender) -> Any:
    """Regret over noise, (noises, seeds, rounds)."""
    return np.array([study.curves(place(kind, noise), contender) / noise for noise in NOISES[kind]])


def slope_of(worst: Study, kind: str, contender: c.Contender) -> Slope:
    """Growth over the last two decades."""
    return growth(worst.rounds, worst.curves(kind, contender), start=worst.horizon // 100)


def claims(study: Study) -> list[Claim]:
    """The theorem's and the proposition's exponents are upper bounds; who does not learn exceeds them."""
    worst, found = hardest(study), []
    for kind, contender in product(kinds(study), CONTENDERS):
        slope = slope_of(worst, kind, contender)
        at_end = int(_in_units(study, kind, contender)[:, :, -1].mean(axis=1).argmax())
        noise, rate = NOISES[kind][at_end], RATES[kind].get(contender.name)
        text = f"{kind}: {contender}'s worst regret grows with exponent {slope}; at the end it is that of "
        text += f"noise {noise:g}"
        if rate is None:
            found.append(Claim(f"{text}. Linear is 1.", None))
        elif at_end == len(NOISES[kind]) - 1:
            found.append(Claim(f"{text}, the largest: smaller gaps may be worse. Not judged.", None))
        else:
            limit = rate + LOGARITHMS
            wanted = f"held if the interval is below {limit:g}, the bound's {rate:g} and {LOGARITHMS:g} for "
            text += f"; {wanted}its logarithms, where Random has {slope_of(worst, kind, c.RANDOM)}"
            found.append(at_most(text, slope, limit))
    return found


def summary(study: Study) -> list[Row]:
    """Of each world by itself; the exponent of its bound is for the worst of them."""
    stated = {place(kind, noise): RATES[kind] for kind in NOISES for noise in NOISES[kind]}
    return [
        {**row, "rate": stated[row["environment"]].get(row["policy"], 1.0)}
        for row in with_slopes(study, study.summary())
    ]


def draw(study: Study) -> Any:
    worst = hardest(study)
    with style.picture(1, len(worst.environments), height=5.0, width=4.4) as (made, axes):
        for panel, kind in zip(axes[0], worst.environments, strict=True):
            slopes = {contender: slope_of(worst, kind, contender) for contender in CONTENDERS}
            rates = [(power, f"slope {power:g}") for power in (0.5, 0.75, 1.0)]
            style.draw_growth(panel, worst, kind, slopes, rates)
            panel.set_title(kind)
        axes[0, 0].set_ylabel("worst cumulative regret, in units of the noise")
        return made
