"""Proposition 3: linear stochastic bandits, whose rate does not know how many candidates there are."""

from functools import partial
from typing import Any

from postserve.experiments import style
from postserve.experiments.bounds import CONSTANTS, DRAWN, bounds_of, lies_below
from postserve.experiments.claims import compared, ordered
from postserve.experiments.contenders import BEFORE, ORACLE, POLINUCB, RANDOM, X_ONLY, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.linear_stochastic.settings import (
    MAP_RATE,
    N_CANDIDATES,
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

OURS = evidence(POLINUCB)
KIND: Kind = "linear_stochastic"
RATE = rate(KIND, map_rate=MAP_RATE).horizon


def numbers(study: Study) -> list[int]:
    """The numbers of candidates that were run."""
    return [n for n in N_CANDIDATES if place(n) in study.environments]


def slope_over_candidates(study: Study, policy: str) -> Slope:
    """Of the final regret in rounds of random play, since the best of many is better than that of few."""
    places = [place(n) for n in numbers(study)]
    return slope_over(numbers(study), in_rounds_of(study, RANDOM, policy, places))


def bounds(study: Study, n: int) -> FloatArray:
    """Proposition 3's, one row a seed."""
    return bounds_of(KIND, partial(environment, n), study)


def claims(study: Study) -> list[Claim]:
    """The exponent in T, and that there is none in the number of candidates."""
    slope = slope_over_candidates(study, OURS)
    order = (OURS, evidence(BEFORE), evidence(X_ONLY), RANDOM)
    return [
        *(lies_below(study, place(n), OURS, bounds(study, n)) for n in numbers(study)),
        *(grows_within(study, where, OURS, RATE) for where in study.environments),
        Claim(
            f"The rate has no number of candidates in it: {OURS}'s final regret, in rounds of random play, "
            f"grows over it with exponent {slope}; held if the interval is below 0.25, the half of "
            "what K arms with weights of their own have.",
            slope.high < 0.25,
        ),
        ordered(study, order, study.horizon, study.environments),
        compared(study, evidence(ORACLE), OURS, study.horizon, study.environments),
    ]


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets with slopes, and the exponent of the bound where there is one."""
    return [
        {**row, "rate": RATE if row["policy"] == OURS else 1.0}
        for row in with_slopes(study, study.summary(evidence(ORACLE)))
    ]


def draw(study: Study) -> Any:
    """Growth with few and with many candidates, and the final regret over their number."""
    n_candidates = numbers(study)
    with style.picture(1, 3, height=5.2, width=4.8) as (made, axes):
        *growths, last = axes[0]
        for panel, n in zip(growths, (n_candidates[0], n_candidates[-1]), strict=True):
            slopes = {policy: late_slope(study, place(n), policy) for policy in study.policies}
            bound = bounds(study, n).mean(axis=0), DRAWN
            style.draw_growth(
                panel, study, place(n), slopes, [(RATE, f"proposition 3: slope {RATE:g}")], bound
            )
            panel.set_title(f"{place(n)}: growth")
        growths[0].set_ylabel("cumulative regret")
        for policy in study.policies:
            if policy != RANDOM:
                places = [place(n) for n in n_candidates]
                values = [mean_and_error(each) for each in in_rounds_of(study, RANDOM, policy, places)]
                name = f"{policy.removesuffix(', evidence')}: {slope_over_candidates(study, policy).told()}"
                style.draw_points(last, n_candidates, values, policy, label=name)
        last.set(xscale="log", yscale="log", xlabel="number of candidates")
        last.set(title=f"over candidates, T = {study.horizon:,}", ylabel="regret, in rounds of random play")
        last.set_xticks(n_candidates, [f"{n:,}" for n in n_candidates])
        last.minorticks_off()
        style.legend_below(last)
        return made


LINEAR_STOCHASTIC = Figure(
    name="linear_stochastic",
    title="Proposition 3: decision sets",
    about="Linear stochastic bandits: what is chosen is one of a round's candidate vectors, and there is one "
    "truth for all of them. The proposition bounds poLinUCB's regret by T^{1 - map_rate} + T^{1/2} up to "
    "logarithms and dimensions, exponent 1/2 for a ridge map, whatever the number of candidates. The more of "
    "them, the better the best, so regret is also told in rounds of random play. The oracle chooses by the z "
    "that was drawn, and the best of many candidates by their z is one with lucky noise: regret, taken at "
    "phi(x), shows it. " + CONSTANTS,
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
