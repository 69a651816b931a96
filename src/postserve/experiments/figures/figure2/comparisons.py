"""Paired differences with 95% intervals: over seeds with five movies, over pairs of halves in draws."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from postserve.evaluation.halves import halves_interval
from postserve.experiments import contenders as c
from postserve.experiments.figures.figure2.worlds import CUTS, DRAWN, DRAWS_OF, FIVE
from postserve.experiments.statistics import Interval, mean_interval
from postserve.experiments.study import Line, Study
from postserve.types import BoolArray, FloatArray

PREDICTED = "R² of z given x"
RIVALS = (c.X_ONLY, c.BEFORE, c.AFTER)


class Form(NamedTuple):
    """The prior of all policies that are compared, and where they ran with centred rewards."""

    title: str
    learnt: bool
    draws: tuple[str, ...]

    def __call__(self, contender: c.Contender) -> c.Contender:
        """A contender with this prior."""
        return contender.evidence if self.learnt else contender

    def __str__(self) -> str:
        return self.title

    @property
    def places(self) -> tuple[str, ...]:
        return (FIVE, *self.draws)


RIDGE_1 = Form("ridge 1", False, (DRAWN,))
LEARNT = Form("the learnt prior", True, DRAWS_OF)
FORMS = (RIDGE_1, LEARNT)


def prediction(kind: str, place: str) -> str:
    """The name of a map's R² in a place."""
    return f"{kind} map, {place}"


def interval(place: str, values: FloatArray) -> Interval:
    """Of the mean over seeds, which are pairs of halves in draws."""
    return Interval(*halves_interval(values, CUTS)) if place in DRAWS_OF else mean_interval(values)


def difference(study: Study, place: str, one: Line, other: Line) -> Interval:
    """One's final regret minus the other's."""
    return interval(place, study.differences(place, one, other))


def gains(study: Study, place: str, form: Form) -> FloatArray:
    """By how much poLinUCB's regret is below LinUCB(x)'s, for each seed."""
    return study.differences(place, form(c.X_ONLY), form(c.POLINUCB))


def by_draw(values: FloatArray) -> FloatArray:
    """The mean over both halves of each draw."""
    return np.asarray(values.reshape(-1, 2).mean(axis=1))


def predicted(study: Study, kind: str, place: str) -> FloatArray:
    """R² of z given x by a map, for each seed."""
    return study.final(PREDICTED, prediction(kind, place))


def in_order(study: Study, place: str, policies: Sequence[Line]) -> BoolArray:
    """For each draw, whether each policy has less regret than the next, over both halves."""
    regrets = np.array([by_draw(study.final(place, policy)) for policy in policies])
    return np.asarray((np.diff(regrets, axis=0) > 0.0).all(axis=0))


def rank_correlation(one: FloatArray, other: FloatArray) -> Interval:
    """Spearman's, with Bonett and Wright's interval; all of [-1, 1] for few draws, or for constants."""
    n = len(one)
    if n < 4 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return Interval(0.0, -1.0, 1.0)
    found = float(np.clip(np.corrcoef(rankdata(one), rankdata(other))[0, 1], -1.0 + 1e-12, 1.0 - 1e-12))
    half = 1.96 * np.sqrt((1.0 + found**2 / 2.0) / (n - 3))
    low, high = np.tanh(np.arctanh(found) + np.array([-half, half]))
    return Interval(found, float(low), float(high))
