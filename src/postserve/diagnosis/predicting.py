"""How well something is predicted on rows that were held out, with its error.

R² is 1 - mean(a)/mean(b), with a the squared errors of a model and b those of a constant, so its standard
error is that of a ratio of means; differences between two models are paired, row by row.
"""

from collections.abc import Callable
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from postserve.types import FloatArray, IntArray

FOLDS = 5
RIDGES = tuple(10.0**k for k in range(-1, 6))
MOST_FOREST_ROWS = 4_000
MOST_COLUMNS = 150
"""Features beyond this many cost more than they tell."""
WIDTH = 1.96
CHANCE = 1e-4
"""With which probability the largest of many differences is called one, if there is none."""
PERHAPS = 0.05
"""With which probability it is called none no more."""


def percent(value: float, low: float, high: float) -> str:
    """A share and its interval, in whole percents.

    >>> percent(-0.001, -0.02, 0.004)  # not "-0%"
    '0% [-2%, 0%]'
    """
    shown = [f"{round(each, 2) + 0.0:.0%}" for each in (value, low, high)]
    return f"{shown[0]} [{shown[1]}, {shown[2]}]"


def more(found: "Share") -> str:
    """How much more is explained, in words.

    >>> more(Share(-0.01, 0.004)), more(Share(0.2, 0.01))
    ('nothing more (-1% [-2%, 0%])', '20% [18%, 22%] more')
    """
    return f"nothing more ({found})" if found.value < 0.005 else f"{found} more"


class Share(NamedTuple):
    """A share of a variance, or a difference of two, with its standard error."""

    value: float
    error: float

    @property
    def low(self) -> float:
        """The lower end of the 95% interval."""
        return self.value - WIDTH * self.error

    @property
    def high(self) -> float:
        """Its upper end."""
        return self.value + WIDTH * self.error

    def __str__(self) -> str:
        return percent(self.value, self.low, self.high)

    def numbers(self) -> dict[str, float]:
        """For JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


def share(left: FloatArray, of: FloatArray) -> Share:
    """R²: how much less the squared errors `left` are than those `of` a constant."""
    return difference(of, left, of)


def difference(worse: FloatArray, better: FloatArray, of: FloatArray) -> Share:
    """By how much R² rises from one model's squared errors to another's."""
    whole = float(of.mean())
    if not whole > 0.0:
        return Share(0.0, 0.0)  # what never varies has nothing to explain
    gained = worse - better
    value = float(gained.mean()) / whole
    error = float(np.std((gained - value * of) / whole)) / np.sqrt(len(of))
    return Share(value, error)


def deviations(values: FloatArray) -> FloatArray:
    """The deviation of each column; exactly 0 for one that never varies, which `std` alone gets wrong.

    >>> deviations(np.full((600, 1), 3.7)).tolist()
    [0.0]
    """
    return np.asarray((values - values[0]).std(axis=0))


def beyond_chance(tests: int, chance: float = CHANCE) -> float:
    """How many standard errors the largest of so many differences exceeds by chance as good as never."""
    return NormalDist().inv_cdf(1.0 - chance / (2 * tests))


Model = Callable[[], Any]


def ridge() -> Any:
    """Ridge regression whose ridge is chosen on held-out rows."""
    from sklearn.linear_model import RidgeCV

    return RidgeCV(RIDGES)


def line() -> Any:
    """The same in standardised columns."""
    from sklearn.pipeline import make_pipeline  # here, as it takes a second
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), ridge())


def forest() -> Any:
    """A forest, which finds steps and products that no line has.

    It keeps seven digits of each number, so that columns must be standardised here, too.
    """
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), RandomForestRegressor(40, min_samples_leaf=0.01, random_state=0))


def fold_of(n: int) -> IntArray:
    """Which fold each row is in."""
    return np.asarray(np.random.default_rng(0).permutation(np.arange(n) % FOLDS))


def held_out(model: Model, inputs: FloatArray, targets: FloatArray) -> FloatArray:
    """Squared errors, of the shape of the targets; each row is predicted by a model of the other folds."""
    fold, errors = fold_of(len(inputs)), np.empty(targets.shape)
    targets = targets - targets[0]  # so that one that never varies is predicted without rounding
    for k in range(FOLDS):
        out = fold == k
        found = model().fit(inputs[~out], np.squeeze(targets[~out]))
        errors[out] = (targets[out] - found.predict(inputs[out]).reshape(targets[out].shape)) ** 2
    return errors


def held_out_means(targets: FloatArray, arms: IntArray | None = None) -> FloatArray:
    """The same for the mean, or that of each arm, which is what R² is relative to."""
    fold, errors = fold_of(len(targets)), np.empty(targets.shape)
    arms = np.zeros(len(targets), dtype=np.int64) if arms is None else arms
    targets = targets - targets[0]  # as above
    for k in range(FOLDS):
        out = fold == k
        overall = targets[~out].mean(axis=0)
        for arm in np.unique(arms):
            own = targets[~out & (arms == arm)]
            mean = own.mean(axis=0) if len(own) else overall
            here = out & (arms == arm)
            errors[here] = (targets[here] - mean) ** 2
    return errors


def products(indicators: FloatArray, inputs: FloatArray) -> FloatArray:
    """Inputs for lines of which each arm has its own, besides a common one."""
    own = (indicators[:, :, None] * inputs[:, None, :]).reshape(len(inputs), -1)
    return np.hstack([inputs, indicators, own])
