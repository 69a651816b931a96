"""Paired differences with 95% intervals: over seeds with five movies, over pairs of halves in draws."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit
from scipy.stats import rankdata

from postserve.evaluation.halves import halves_interval
from postserve.experiments import contenders as c
from postserve.experiments.figures.figure2.worlds import AXES, CUTS, DRAWN, DRAWS_OF, FIVE
from postserve.experiments.statistics import mean_and_error
from postserve.experiments.study import Line, Study
from postserve.types import BoolArray, FloatArray

PREDICTED = "R² of z given x"
RIVALS = (c.X_ONLY, c.BEFORE, c.AFTER)


class Form(NamedTuple):
    """The prior of all policies that are compared, and where they ran with centred rewards."""

    title: str
    learnt: bool
    places: tuple[str, ...]

    def __call__(self, contender: c.Contender) -> c.Contender:
        """A contender with this prior."""
        return contender.evidence if self.learnt else contender

    def __str__(self) -> str:
        return self.title


RIDGE_1 = Form("ridge 1", False, (FIVE, DRAWN))
LEARNT = Form("the learnt prior", True, (FIVE, DRAWN, AXES))
FORMS = (RIDGE_1, LEARNT)


class Interval(NamedTuple):
    """A mean with its 95% interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        mean, low, high = (round(value, 2) + 0.0 for value in self)  # no -0.00
        return f"{mean:+,.2f} [{low:+,.2f}, {high:+,.2f}]"

    @property
    def below(self) -> bool:
        """Whether all of it is less than 0."""
        return self.high < 0.0

    @property
    def above(self) -> bool:
        """Whether all of it is more than 0."""
        return self.low > 0.0


def prediction(kind: str, place: str) -> str:
    """The name of a map's R² in a place."""
    return f"{kind} map, {place}"


def interval(place: str, values: FloatArray) -> Interval:
    """Of the mean over seeds."""
    if place in DRAWS_OF:
        return Interval(*halves_interval(values, CUTS))
    mean, error = mean_and_error(values)
    half = error * float(stdtrit(len(values) - 1, 0.975))
    return Interval(mean, mean - half, mean + half)


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
    low, high = np.tanh(np.arctanh(found) - half), np.tanh(np.arctanh(found) + half)
    return Interval(found, float(low), float(high))
