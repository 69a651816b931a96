"""The hybrid model: weights that arms share, and weights of their own, for catalogues."""

from typing import Any

from postserve.experiments import style
from postserve.experiments.claims import compared, unbeaten
from postserve.experiments.contenders import DISJOINT, HYBRID, RANDOM, SHARED, evidence
from postserve.experiments.figure import Claim, Figure
from postserve.experiments.figures.hybrid.settings import OWN, QUICK, SHOWN, SIZE, cells, described, place
from postserve.experiments.rates import with_slopes
from postserve.experiments.statistics import mean_and_error
from postserve.experiments.study import Study

OURS = evidence(HYBRID)
OTHERS = (evidence(SHARED), evidence(DISJOINT))


def claims(study: Study) -> list[Claim]:
    """That neither of its halves beats the sum, in any of the worlds."""
    return [
        *(unbeaten(study, OURS, OTHERS, study.horizon, [where]) for where in study.environments),
        *(compared(study, OURS, other, study.horizon, study.environments) for other in OTHERS),
    ]


def summary(study: Study) -> list[dict[str, Any]]:
    """Final regrets and slopes."""
    return with_slopes(study, study.summary())


def draw(study: Study) -> Any:
    """Regret over rounds, final regret over how much of the weights is an arm's own, and differences."""
    places = [place(own) for own in OWN]
    with style.picture(1, 3, height=4.0, width=4.8) as (made, axes):
        left, middle, right = axes[0]
        learners = [policy for policy in study.policies if policy != RANDOM]  # whose curve is too steep
        style.draw_curves(left, study, place(SHOWN), learners, study.horizon)
        left.set(title=f"{place(SHOWN)}: regret", ylabel="cumulative regret")
        at = range(len(OWN))
        for policy in study.policies:
            finals = [mean_and_error(study.final(where, policy)) for where in places]
            style.draw_points(middle, at, finals, policy)
            if policy not in (OURS, RANDOM):
                pairs = [study.difference(where, policy, OURS) for where in places]
                style.draw_points(right, at, pairs, policy, errors=2.0)
        middle.set(yscale="log", title=f"over the own part, T = {study.horizon:,}", ylabel="final regret")
        right.axhline(0.0, color=style.REFERENCE, linewidth=1)
        right.set_yscale("symlog", linthresh=100.0)
        right.set(title="paired differences, two standard errors", ylabel="regret minus hybrid's (symlog)")
        for panel in (middle, right):
            panel.set_xticks(at, [f"{own:g}" for own in OWN])
            panel.set_xlabel("length of the own part; the shared one has 1")
        style.legend(made, [middle], 4)
        return made


HYBRID_FIGURE = Figure(
    name="hybrid",
    title="A catalogue: shared weights, weights of each arm's own, and both",
    about="Many arms, few rounds for each, and only some of them eligible at a time. Weights shared by all "
    "arms are learnt quickly and are wrong for each; weights for each arm are right and are learnt slowly. "
    "The hybrid model (Li et al. 2010, here with z) has both, and the evidence decides how far the arms' own "
    "parts are trusted. Nothing in the paper is claimed of it; it is to be at least level with the better of "
    "its halves, however alike the arms are.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
)
