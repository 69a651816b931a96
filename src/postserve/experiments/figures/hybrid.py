"""The hybrid model: weights that arms share, and weights of their own, for catalogues."""

from functools import partial
from typing import Any

from postserve.environments import CatalogueEnvironment
from postserve.experiments import contenders as c
from postserve.experiments import style
from postserve.experiments.claims import compared, unbeaten
from postserve.experiments.figure import Claim, Row, Size, contest
from postserve.experiments.rates import with_slopes
from postserve.experiments.study import Cell, Study

TITLE = "A catalogue: shared weights, weights of each arm's own, and both"
ABOUT = (
    "Many arms, few rounds for each, only some of them eligible at a time. Shared weights are learnt quickly "
    "and fit no arm exactly; weights for each arm fit and are learnt slowly. The hybrid model (Li et al. "
    "2010, here with z) has both, and the evidence decides how far the arms' own parts are trusted. The "
    "paper makes no claim about it; it should be level with the better of its halves, however alike the arms "
    "are."
)
FULL, QUICK = Size(horizon=2000, seeds=10), Size(horizon=120, seeds=3, quick=True)
place = "own part {:g}".format  # the environment's name in the table

OWN = (0.0, 0.1, 0.3, 1.0)
"""Length of the part of an arm's weights that is its own; the shared part has length 1."""
SHOWN = 0.3
"""Regret over rounds is drawn for this one."""
N_ARMS = {True: 30, False: 100}
"""In the small world, and in full."""
SHARED, DISJOINT, OURS = (
    c.Contender(f"poLinUCB, {model}", c.POLINUCB.make, colour, dashes, options={"model": model}).evidence
    for model, colour, dashes in (
        ("shared", "#CC79A7", c.DOTTED),
        ("disjoint", "#0072B2", c.DASHED),
        ("hybrid", "#009E73", c.SOLID),
    )
)
OTHERS = (SHARED, DISJOINT)
CONTENDERS = (c.RANDOM, *OTHERS, OURS)


def environment(own: float, n_arms: int, seed: int) -> CatalogueEnvironment:
    dims: Any = {"dim_x": 10, "dim_z": 3, "n_arms": n_arms, "n_eligible": 10}
    return CatalogueEnvironment("polynomial", own=own, reward_noise=1.0, seed=seed, **dims)


def cells(size: Size) -> list[Cell]:
    n_arms = N_ARMS[size.quick]
    return contest(size, {place(own): partial(environment, own, n_arms) for own in OWN}, CONTENDERS)


def settings(size: Size) -> dict[str, str]:
    return {
        "world": f"{N_ARMS[size.quick]} arms, of which a random 10 can be served each round, each with its "
        "own x, uniform on [-10, 10]^10; z in 3 dimensions, polynomial phi shared by all, noise of rewards "
        "1; the map is given h",
        "weights": "theta_a = theta_0 + own delta_a, and so beta_a, the parts on unit spheres",
        "policies": "poLinUCB with the learnt prior and one map: weights shared by all arms, weights for "
        "each arm, or the sum of both",
    }


def claims(study: Study) -> list[Claim]:
    return [
        *(unbeaten(study, OURS, OTHERS, study.horizon, [where]) for where in study.environments),
        *(compared(study, OURS, other, study.horizon, study.environments) for other in OTHERS),
    ]


def summary(study: Study) -> list[Row]:
    return with_slopes(study, study.summary())


def draw(study: Study) -> Any:
    """Regret over rounds, final regret over how much of the weights is an arm's own, and differences."""
    places = [place(own) for own in OWN]
    with style.picture(1, 3, height=4.0, width=4.8) as (made, axes):
        left, middle, right = axes[0]
        style.draw_curves(left, study, place(SHOWN), CONTENDERS[1:], study.horizon)  # Random's is too steep
        left.set(title=f"{place(SHOWN)}: regret", ylabel="cumulative regret")
        at = range(len(OWN))
        for contender in CONTENDERS:
            style.draw_points(middle, at, [study.final(where, contender) for where in places], contender)
        for contender in OTHERS:
            pairs = [study.differences(where, contender, OURS) for where in places]
            style.draw_points(right, at, pairs, contender, errors=2.0)
        middle.set(yscale="log", title=f"over the own part, T = {study.horizon:,}", ylabel="final regret")
        right.axhline(0.0, color=style.REFERENCE, linewidth=1)
        right.set_yscale("symlog", linthresh=100.0)
        right.set(title="paired differences, two standard errors", ylabel="regret minus hybrid's (symlog)")
        for panel in (middle, right):
            panel.set_xticks(at, [f"{own:g}" for own in OWN])
            panel.set_xlabel("length of the own part; the shared one has 1")
        style.legend(made, [middle], 4)
        return made
