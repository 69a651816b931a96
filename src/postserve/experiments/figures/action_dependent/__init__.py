"""Proposition 2: contexts for each arm, and what a map for each of them costs."""

from functools import partial
from typing import Any

import numpy as np

from postserve.environments.action_dependent import Maps
from postserve.experiments import style
from postserve.experiments.bounds import CONSTANTS, DRAWN, bounds_of, lies_below
from postserve.experiments.claims import compared, ordered
from postserve.experiments.contenders import MAP_PER_ARM, ONE_MAP, ORACLE, RANDOM, X_ONLY, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.action_dependent.settings import (
    KINDS,
    MAP_RATE,
    MIDDLE,
    N_ARMS,
    QUICK,
    SIZE,
    cells,
    described,
    environment,
    place,
)
from postserve.experiments.rates import grows_within, in_rounds_of, late_slope, slope_over, with_slopes
from postserve.experiments.statistics import Slope, mean_and_error
from postserve.experiments.study import Study
from postserve.theory import Kind, rate
from postserve.types import FloatArray

APART, ONE = evidence(MAP_PER_ARM), evidence(ONE_MAP)
KIND: Kind = "action_dependent"
RATE = rate(KIND, map_rate=MAP_RATE).horizon
PRICE = rate(KIND, map_rate=MAP_RATE).map_term.n_arms
MARKERS: dict[str, Any] = {
    "separate": {"marker": "o", "markersize": 4},
    "shared": {"marker": "s", "markersize": 7, "markerfacecolor": "none"},
}
"""Hollow and larger: both can be seen where they lie on each other."""


def numbers(study: Study) -> list[int]:
    """The numbers of arms that were run."""
    return [n for n in N_ARMS if place(KINDS[0], n) in study.environments]


def shares(study: Study, kind: str, policy: str) -> list[FloatArray]:
    """Final regret in rounds of random play: gaps grow with the number of arms."""
    return in_rounds_of(study, RANDOM, policy, [place(kind, n) for n in numbers(study)])


def price(study: Study) -> list[FloatArray]:
    """What maps of their own cost where one would do: ratios of regret, seed by seed."""
    places = [place("shared", n) for n in numbers(study)]
    return [study.final(where, APART) / study.final(where, ONE) for where in places]


def price_slope(study: Study) -> Slope:
    """How the price grows with the number of arms."""
    return slope_over(numbers(study), price(study))


def bounds(study: Study, kind: Maps) -> FloatArray:
    """Proposition 2's, one row a seed."""
    return bounds_of(KIND, partial(environment, kind, MIDDLE), study)


def claims(study: Study) -> list[Claim]:
    """The exponent of proposition 2, and the price of separate maps."""
    separate, shared = (place(kind, MIDDLE) for kind in KINDS)
    paid = ", ".join(f"{mean_and_error(each)[0]:.1f}" for each in price(study))
    slope = price_slope(study)
    told = [
        *(lies_below(study, place(kind, MIDDLE), APART, bounds(study, kind)) for kind in KINDS),
        grows_within(study, separate, APART, RATE),
        grows_within(study, shared, APART, RATE),
        grows_within(study, shared, ONE, RATE),
        Claim(
            f"The price of a map for each arm where one would do: {paid} times the regret with "
            f"{', '.join(map(str, numbers(study)))} arms, growing with exponent {slope}; held if it is above "
            f"0 and not above the proposition's K^{PRICE:g}, which is K^map_rate by Hölder.",
            slope.low > 0.0 and slope.value <= PRICE,
        ),
        ordered(study, (APART, evidence(X_ONLY), RANDOM), study.horizon, [separate, shared]),
    ]
    late = late_slope(study, separate, ONE)
    told.append(
        Claim(
            f"{separate}: one map cannot be every arm's, and its regret is linear: slope {late}; held if "
            "above 0.8.",
            late.low > 0.8,
        )
    )
    for kind, policy in (("separate", APART), ("shared", APART), ("shared", ONE)):
        slope = slope_over(numbers(study), shares(study, kind, policy))
        told.append(
            Claim(
                f"{kind} phi: {policy} has a final regret, in rounds of random play, that grows over the "
                f"number of arms with exponent {slope}. The bound's 1/2 is for the worst world at each "
                "T. Here gaps are clear: once an arm is learnt regret hardly grows, and to learn it costs "
                "rounds for each arm, which is steeper in K and far below the bound.",
                None,
            )
        )
    return [*told, compared(study, evidence(ORACLE), APART, study.horizon, [separate])]


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets with slopes, and the exponent of the bound where there is one."""
    return [
        {**row, "rate": RATE if row["policy"] in (APART, ONE) else 1.0}
        for row in with_slopes(study, study.summary())
    ]


def draw(study: Study) -> Any:
    """Growth in both worlds, regret over the number of arms, and the price of separate maps."""
    with style.picture(1, 4, height=5.2, width=4.3) as (made, axes):
        *growths, over_arms, ratio = axes[0]
        for panel, kind in zip(growths, KINDS, strict=True):
            where = place(kind, MIDDLE)
            ran = [policy for policy in study.policies if study.has(where, policy)]
            slopes = {policy: late_slope(study, where, policy) for policy in ran}
            bound = bounds(study, kind).mean(axis=0), DRAWN
            style.draw_growth(panel, study, where, slopes, [(RATE, f"proposition 2: slope {RATE:g}")], bound)
            panel.set_title(f"{where}: growth")
        growths[0].set_ylabel("cumulative regret")
        _draw_arms(over_arms, study)
        _draw_price(ratio, study)
        return made


def _draw_arms(panel: Any, study: Study) -> None:
    """Colours and dashes are policies, as in the other panels; markers are worlds."""
    n_arms, lowest = numbers(study), np.inf
    for kind, policy in (("separate", ONE), ("separate", APART), ("shared", APART), ("shared", ONE)):
        colour, dashes = style.look(policy)
        columns = shares(study, kind, policy)
        means, errors = zip(*map(mean_and_error, columns), strict=True)
        label = f"{kind} phi, {policy.removesuffix(', evidence')}: {slope_over(n_arms, columns).told()}"
        look: Any = {"color": colour, "linestyle": dashes, "label": label, **MARKERS[kind]}
        panel.errorbar(n_arms, means, yerr=errors, **look)
        lowest = min(lowest, *means)
    _draw_power(panel, n_arms, 0.7 * lowest, f"proposition 2: slope {PRICE:g}")
    panel.set(title=f"over arms, T = {study.horizon:,}", ylabel="regret, in rounds of random play")
    style.legend_below(panel)


def _draw_price(panel: Any, study: Study) -> None:
    n_arms = numbers(study)
    means, errors = zip(*map(mean_and_error, price(study)), strict=True)
    label = f"measured: {price_slope(study).told()}"
    look: Any = {"color": style.look(APART)[0], "marker": "o", "markersize": 4}
    panel.errorbar(n_arms, means, yerr=2.0 * np.array(errors), label=label, **look)
    _draw_power(panel, n_arms, 1.0, f"proposition 2: slope {PRICE:g}")
    panel.set(title="shared phi: the price of a map an arm", ylabel="regret, as a ratio to one map's, paired")
    low, high = panel.get_ylim()
    ticks = [tick for tick in (0.2, 0.5, 1, 2, 3, 5, 10, 20, 50) if low <= tick <= high]
    panel.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    style.legend_below(panel)


def _draw_power(panel: Any, n_arms: list[int], first: float, label: str) -> None:
    line = first * (np.array(n_arms) / n_arms[0]) ** PRICE
    panel.plot(n_arms, line, color=style.REFERENCE, linestyle=":", linewidth=1, label=label)
    panel.set(xscale="log", yscale="log", xlabel="number of arms")
    panel.set_xticks(n_arms, [str(n) for n in n_arms])
    panel.minorticks_off()


ACTION_DEPENDENT = Figure(
    name="action_dependent",
    title="Proposition 2: a context for each arm",
    about="Each arm has its own x and, in the first world, its own phi. The proposition bounds poLinUCB's "
    "regret by T^{1 - map_rate} K^{map_rate} + T^{1/2} K^{1/2} up to logarithms and dimensions: exponent 1/2 "
    "in T for a ridge map, and a price of at most K^{1/2} for learning K maps where the theorem has none for "
    "learning one. In the second world phi is shared: there one map and a map for each arm can be compared. "
    "The oracle chooses by the z that was drawn, whose noise is loud here, and regret is taken at phi(x): it "
    "is no lower bound. " + CONSTANTS,
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
