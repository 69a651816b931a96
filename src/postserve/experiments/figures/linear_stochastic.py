"""Proposition 3: linear stochastic bandits, whose rate does not depend on the number of candidates."""

from functools import partial
from typing import Any

from postserve.context_maps import RidgeMap
from postserve.environments import DecisionSetEnvironment
from postserve.experiments import contenders as c
from postserve.experiments import rates, style
from postserve.experiments.bounds import CONSTANTS, DRAWN, bounds_of, lies_below
from postserve.experiments.claims import compared, ordered
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.statistics import Slope
from postserve.experiments.study import Cell, Study
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RandomPolicy
from postserve.theory import Kind, rate
from postserve.types import FloatArray

TITLE = "Proposition 3: decision sets"
ABOUT = (
    "Linear stochastic bandits: the policy chooses one of a round's candidate vectors, and one truth holds "
    "for all. The proposition bounds poLinUCB's regret by T^{1 - map_rate} + T^{1/2} up to logarithms and "
    "dimensions, exponent 1/2 for a ridge map, whatever the number of candidates. The best of many is better "
    "than the best of few, so regret is also given in rounds of random play. The oracle chooses by the z "
    "that was drawn: of many candidates, one with lucky noise, which regret at phi(x) shows. " + CONSTANTS
)
FULL, QUICK = Size(horizon=3000, seeds=10), Size(horizon=200, seeds=3, quick=True)
place = "{:,} candidates".format  # the environment's name in the table

N_CANDIDATES = {True: (10, 100), False: (10, 100, 1000)}
"""In the small world, and in full."""
KIND: Kind = "linear_stochastic"
RATE = rate(KIND, map_rate=0.5).horizon
"""With a ridge map on features in which phi is linear."""


class OnRows:
    """h as a transformer, which is given all candidates at once; a callable gets one after the other."""

    def __init__(self, h: Any) -> None:
        self.h = h

    def transform(self, X: FloatArray) -> FloatArray:
        features: FloatArray = self.h(X)
        return features


def _one_model(policy: Any, env: Any) -> Any:
    """One model for all candidates."""
    phi_hat = RidgeMap(env.dim_x, env.dim_z, features=OnRows(env.features))
    return policy(None, phi_hat, model="shared")


OURS = c.POLINUCB.evidence.made_by(partial(_one_model, PoLinUCB))
THEIRS = c.BEFORE.evidence.made_by(partial(_one_model, LinUCBPhiHat))
X_ONLY = c.X_ONLY.evidence.made_by(lambda env: LinUCB(None, env.dim_x, model="shared"))
ORACLE = c.ORACLE.evidence.made_by(lambda env: LinUCBOracle(None, env.dim_x, env.dim_z, model="shared"))
RANDOM = c.RANDOM.made_by(lambda env: RandomPolicy(None))
CONTENDERS = (RANDOM, X_ONLY, THEIRS, OURS, ORACLE)


def environment(n_candidates: int, seed: int) -> DecisionSetEnvironment:
    """A polynomial world, loud, or one truth in ten dimensions is learnt before growth can be seen."""
    world: Any = {"dim_x": 10, "dim_z": 3, "z_noise": 3.0, "reward_noise": 3.0}
    return DecisionSetEnvironment("polynomial", n_candidates=n_candidates, seed=seed, **world)


def cells(size: Size) -> list[Cell]:
    return contest(size, {place(n): partial(environment, n) for n in N_CANDIDATES[size.quick]}, CONTENDERS)


def settings(size: Size) -> dict[str, str]:
    return {
        "world": "each round a fresh set of candidates, uniform on [-10, 10]^10; z in 3 dimensions, "
        "polynomial phi of deviation 10, noises 3; one theta, one beta, one phi; the map is given h",
        "policies": "one model for all candidates, with the learnt prior",
    }


def numbers(study: Study) -> list[int]:
    return [n for n in N_CANDIDATES[False] if place(n) in study.environments]


def slope_over_candidates(study: Study, contender: c.Contender) -> Slope:
    """Of the final regret in rounds of random play, since the best of many is better than that of few."""
    places = [place(n) for n in numbers(study)]
    return rates.slope_over(numbers(study), rates.in_random_rounds(study, contender, places))


def bounds(study: Study, n: int) -> FloatArray:
    return bounds_of(KIND, partial(environment, n), study)


def claims(study: Study) -> list[Claim]:
    slope = slope_over_candidates(study, OURS)
    return [
        *(lies_below(study, place(n), OURS, bounds(study, n)) for n in numbers(study)),
        *(rates.grows_within(study, where, OURS, RATE) for where in study.environments),
        Claim(
            f"The rate does not depend on the number of candidates: {OURS}'s final regret, in rounds of "
            f"random play, grows with it with exponent {slope}; held if the interval is below 0.25, half "
            "the exponent of K arms with weights of their own.",
            slope.high < 0.25,
        ),
        ordered(study, (OURS, THEIRS, X_ONLY, RANDOM), study.horizon, study.environments),
        compared(study, ORACLE, OURS, study.horizon, study.environments),
    ]


def summary(study: Study) -> list[Row]:
    return rates.with_rates(study, study.summary(ORACLE), {OURS.name: RATE})


def draw(study: Study) -> Any:
    n_candidates = numbers(study)
    places = [place(n) for n in n_candidates]
    with style.picture(1, 3, height=5.2, width=4.8) as (made, axes):
        *growths, last = axes[0]
        for panel, n in zip(growths, (n_candidates[0], n_candidates[-1]), strict=True):
            slopes = {contender: rates.late_slope(study, place(n), contender) for contender in CONTENDERS}
            stated, bound = [(RATE, f"proposition 3: slope {RATE:g}")], bounds(study, n).mean(axis=0)
            style.draw_growth(panel, study, place(n), slopes, stated, (bound, DRAWN))
            panel.set_title(f"{place(n)}: growth")
        growths[0].set_ylabel("cumulative regret")
        for contender in CONTENDERS[1:]:
            label = f"{contender.label}: {slope_over_candidates(study, contender).text}"
            columns = rates.in_random_rounds(study, contender, places)
            style.draw_points(last, n_candidates, columns, contender, label=label)
        last.set(xscale="log", yscale="log", ylabel="regret, in rounds of random play")
        last.set_title(f"over candidates, T = {study.horizon:,}")
        style.name_values(last, n_candidates, "number of candidates")
        style.legend_below(last)
        return made
