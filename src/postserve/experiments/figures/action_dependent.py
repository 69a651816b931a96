"""Proposition 2: contexts for each arm, and what a map for each of them costs."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from postserve.context_maps import PerArmMap
from postserve.environments import ActionDependentEnvironment
from postserve.environments.action_dependent import Maps
from postserve.experiments import contenders as c
from postserve.experiments import rates, style
from postserve.experiments.bounds import CONSTANTS, DRAWN, bounds_of, lies_below
from postserve.experiments.claims import compared, ordered
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.statistics import Slope, mean_and_error
from postserve.experiments.study import Cell, Study
from postserve.theory import Kind, rate
from postserve.types import FloatArray

TITLE = "Proposition 2: a context for each arm"
ABOUT = (
    "Each arm has its own x and, in the first world, its own phi. The proposition bounds poLinUCB's regret "
    "by T^{1 - map_rate} K^{map_rate} + T^{1/2} K^{1/2} up to logarithms and dimensions: exponent 1/2 in T "
    "for a ridge map, and a price of at most K^{1/2} for learning K maps. In the second world phi is shared, "
    "so that one map and one per arm can be compared. The oracle chooses by the z that was drawn, which is "
    "noisy here, and regret is taken at phi(x): it is no lower bound. " + CONSTANTS
)
FULL, QUICK = Size(horizon=3000, seeds=10), Size(horizon=200, seeds=3, quick=True)
place = "{} phi, {} arms".format  # the environment's name in the table

N_ARMS = {True: (2, 4, 8), False: (2, 4, 8, 16, 32)}
"""In the small world, and in full."""
MIDDLE = 8
"""Growth over rounds is drawn for so many arms."""
KINDS: tuple[Maps, ...] = ("separate", "shared")
KIND: Kind = "action_dependent"
BOUND = rate(KIND, map_rate=0.5)
"""With a ridge map on features in which phi is linear."""
RATE, PRICE = BOUND.horizon, BOUND.map_term.n_arms
ONE = c.ONE_MAP.evidence
APART = c.MAP_PER_ARM.evidence.with_options(make_map=lambda env, ridge: PerArmMap(c.map_on_h(env, ridge)))
FEW = (c.RANDOM, ONE, APART)
CONTENDERS = (c.RANDOM, c.X_ONLY.evidence, ONE, APART, c.ORACLE.evidence)
"""Where growth is drawn; elsewhere a few of them."""
MARKERS: dict[str, Any] = {
    "separate": {},
    "shared": {"marker": "s", "markersize": 7, "markerfacecolor": "none"},
}
"""Hollow and larger: both can be seen where they overlap."""


def environment(kind: Maps, n_arms: int, seed: int) -> ActionDependentEnvironment:
    """Follow-ups so noisy, and rewards so clear, that learning phi costs more than learning the weights."""
    world: Any = {"dim_x": 10, "dim_z": 3, "z_noise": 5.0, "reward_noise": 0.3}
    return ActionDependentEnvironment("polynomial", n_arms=n_arms, maps=kind, seed=seed, **world)


def cells(size: Size) -> list[Cell]:
    found = []
    for kind, n in product(KINDS, N_ARMS[size.quick]):
        world = {place(kind, n): partial(environment, kind, n)}
        found += contest(size, world, CONTENDERS if n == MIDDLE else FEW)
    return found


def settings(size: Size) -> dict[str, str]:
    return {
        "world": "each round each arm has its own x, uniform on [-10, 10]^10; z in 3 dimensions, polynomial "
        "phi of deviation 10 with noise 5, rewards with noise 0.3; maps are given h",
        "separate phi": "phi_a(x) = 10 W_a^T h(x), W_a drawn for each arm",
        "shared phi": "one W for all arms; their weights differ all the same",
        "policies": "with the learnt prior; weights for each arm",
    }


def numbers(study: Study) -> list[int]:
    return [n for n in N_ARMS[False] if place(KINDS[0], n) in study.environments]


def shares(study: Study, kind: str, contender: c.Contender) -> list[FloatArray]:
    """Final regret in rounds of random play: gaps grow with the number of arms."""
    return rates.in_random_rounds(study, contender, [place(kind, n) for n in numbers(study)])


def price(study: Study) -> list[FloatArray]:
    """What maps of their own cost where one would do: ratios of regret, seed by seed."""
    places = [place("shared", n) for n in numbers(study)]
    return [study.final(where, APART) / study.final(where, ONE) for where in places]


def price_slope(study: Study) -> Slope:
    return rates.slope_over(numbers(study), price(study))


def bounds(study: Study, kind: Maps) -> FloatArray:
    return bounds_of(KIND, partial(environment, kind, MIDDLE), study)


def claims(study: Study) -> list[Claim]:
    separate, shared = both = [place(kind, MIDDLE) for kind in KINDS]
    paid = ", ".join(f"{mean_and_error(each)[0]:.1f}" for each in price(study))
    slope, late = price_slope(study), rates.late_slope(study, separate, ONE)
    return [
        *(lies_below(study, place(kind, MIDDLE), APART, bounds(study, kind)) for kind in KINDS),
        rates.grows_within(study, separate, APART, RATE),
        rates.grows_within(study, shared, APART, RATE),
        rates.grows_within(study, shared, ONE, RATE),
        Claim(
            f"The price of a map for each arm where one would do: {paid} times the regret with "
            f"{', '.join(map(str, numbers(study)))} arms, growing with exponent {slope}; held if all of it "
            f"is above 0 and not above the proposition's K^{PRICE:g}, which is K^map_rate by Hölder.",
            slope.low > 0.0 and slope.high <= PRICE,
        ),
        ordered(study, (APART, c.X_ONLY.evidence, c.RANDOM), study.horizon, both),
        Claim(
            f"{separate}: one map cannot be every arm's, and its regret is linear: slope {late}; held if "
            "above 0.8.",
            late.low > 0.8,
        ),
        *(_over_arms(study, *pair) for pair in (("separate", APART), ("shared", APART), ("shared", ONE))),
        compared(study, c.ORACLE.evidence, APART, study.horizon, [separate]),
    ]


def _over_arms(study: Study, kind: str, contender: c.Contender) -> Claim:
    slope = rates.slope_over(numbers(study), shares(study, kind, contender))
    return Claim(
        f"{kind} phi: {contender} has a final regret, in rounds of random play, that grows with the number "
        f"of arms with exponent {slope}. The bound's 1/2 is for the worst world at each T. Here gaps are "
        "clear: once an arm is learnt regret hardly grows, and learning it costs rounds for each arm, which "
        "is steeper in K and far below the bound.",
        None,
    )


def summary(study: Study) -> list[Row]:
    return rates.with_rates(study, study.summary(), {APART.name: RATE, ONE.name: RATE})


def draw(study: Study) -> Any:
    with style.picture(1, 4, height=5.2, width=4.3) as (made, axes):
        *growths, over_arms, ratio = axes[0]
        for panel, kind in zip(growths, KINDS, strict=True):
            where = place(kind, MIDDLE)
            slopes = {
                each: rates.late_slope(study, where, each) for each in CONTENDERS if study.has(where, each)
            }
            stated, bound = [(RATE, f"proposition 2: slope {RATE:g}")], bounds(study, kind).mean(axis=0)
            style.draw_growth(panel, study, where, slopes, stated, (bound, DRAWN))
            panel.set_title(f"{where}: growth")
        growths[0].set_ylabel("cumulative regret")
        _draw_arms(over_arms, study)
        _draw_price(ratio, study)
        return made


def _draw_arms(panel: Any, study: Study) -> None:
    """Colours and dashes are policies, as in the other panels; markers are worlds."""
    n_arms, lowest = numbers(study), np.inf
    for kind, contender in product(KINDS, (ONE, APART)):
        columns = shares(study, kind, contender)
        label = f"{kind} phi, {contender.label}: {rates.slope_over(n_arms, columns).text}"
        style.draw_points(panel, n_arms, columns, contender, label=label, **MARKERS[kind])
        lowest = min(lowest, *(column.mean() for column in columns))
    _draw_power(panel, n_arms, 0.7 * lowest)
    panel.set(title=f"over arms, T = {study.horizon:,}", ylabel="regret, in rounds of random play")


def _draw_price(panel: Any, study: Study) -> None:
    line: Any = {"label": f"measured: {price_slope(study).text}", "errors": 2.0}
    style.draw_points(panel, numbers(study), price(study), APART, **line)
    _draw_power(panel, numbers(study), 1.0)
    panel.set(
        title="shared phi: the price of one map per arm", ylabel="regret, as a ratio to one map's, paired"
    )
    low, high = panel.get_ylim()
    ticks = [tick for tick in (0.2, 0.5, 1, 2, 3, 5, 10, 20, 50) if low <= tick <= high]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])


def _draw_power(panel: Any, n_arms: list[int], first: float) -> None:
    line = first * (np.array(n_arms) / n_arms[0]) ** PRICE
    label = f"proposition 2: slope {PRICE:g}"
    panel.plot(n_arms, line, color=style.REFERENCE, linestyle=":", linewidth=1, label=label)
    panel.set(xscale="log", yscale="log")
    style.name_values(panel, n_arms, "number of arms")
    style.legend_below(panel)
