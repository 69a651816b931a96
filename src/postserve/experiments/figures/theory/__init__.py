"""The theory: bounds over measured regret, the lemmas' slack and tightness, the noisy Gram factor."""

from typing import Any

import numpy as np

from postserve.experiments.figure import Figure
from postserve.experiments.figures.theory.claims import claims, excess_factors, slope
from postserve.experiments.figures.theory.drawing import draw
from postserve.experiments.figures.theory.settings import (
    COVERAGE,
    EXCESS,
    GRAM,
    MISSED,
    QUICK,
    REGRET,
    SIZE,
    cells,
    described,
)
from postserve.experiments.statistics import mean_and_error
from postserve.experiments.study import Study


def summary(study: Study) -> list[dict[str, Any]]:
    """Values at the horizon, and slopes of regrets and of their bounds.

    Of shares and of coverage, which are all but 1, what they lack is told: 1/share - 1 and, at the recorded
    round where it is largest, 1 - coverage.
    """
    return [_row(study, row) for row in study.summary()]


def _row(study: Study, row: dict[str, Any]) -> dict[str, Any]:
    place, name = row["environment"], row["policy"]
    if place == REGRET:
        return {**row, **slope(study, REGRET, name).named()}
    if place == GRAM:
        excess = excess_factors(study, name)[:, -1]
        told = mean_and_error(excess) if np.isfinite(excess).all() else (None, None)
        return {**row, "environment": EXCESS, **_final(*told)}
    if place == COVERAGE:
        missed = 1.0 - study.curves(COVERAGE, name)
        worst = missed[:, missed.mean(axis=0).argmax()]
        return {**row, "environment": MISSED, **_final(*mean_and_error(worst))}
    return row


def _final(mean: float | None, error: float | None) -> dict[str, float | None]:
    return {"final_value_mean": mean, "final_value_se": error}


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
