"""The theory: bounds over measured regret, the lemmas' slack and tightness, the noisy Gram factor."""

from typing import Any

from postserve.experiments.figure import Figure
from postserve.experiments.figures.theory.claims import claims, slope
from postserve.experiments.figures.theory.drawing import draw
from postserve.experiments.figures.theory.settings import QUICK, REGRET, SIZE, cells, described
from postserve.experiments.study import Study


def summary(study: Study) -> list[dict[str, Any]]:
    """Values at the horizon, and slopes of regrets and of their bounds."""
    return [
        {**row, **slope(study, REGRET, row["policy"]).named()} if row["environment"] == REGRET else row
        for row in study.summary()
    ]


THEORY = Figure(
    name="theory",
    title="The theory: bounds, lemmas and coverage",
    about="The regret bounds with constants that hold, over the regret of policies with the theory's own "
    "radii, both in units of reward (bounds are proved for gaps of at most 1: the weights' bounds and the "
    "noise are divided by the largest gap, and the result is multiplied by it); the slack of the elliptical "
    "potential lemmas, without noise, with noise in every direction (the paper's generalised lemma) and with "
    "noise of z alone, where that does not apply; where each bound is below the trivial one; the lemma's "
    "tightness at x_t = 1; the factor by which noise of z can enlarge ||v||² at worst, measured, bounded on "
    "the sequence and a priori; and how often the confidence ellipsoid does not hold the truth. docs/theory/ "
    "derives each.",
    settings=described,
    size=SIZE,
    quick=QUICK,
    cells=cells,
    summary=summary,
    claims=claims,
    draw=draw,
    measure="value",
)
