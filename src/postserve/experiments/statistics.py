"""Means over seeds with their errors and intervals, and growth exponents."""

import math
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import betaincinv, stdtrit

from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray

RESAMPLES = 2000


class Interval(NamedTuple):
    """A value with its 95% interval.

    >>> found = Interval(0.123456, 0.1, 0.15)
    >>> found.rounded(), found.rounded(2), str(found)
    ('0.123 [0.100, 0.150]', '0.12 [0.10, 0.15]', '+0.123 [+0.100, +0.150]')
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return self.rounded(sign="+")

    def rounded(self, decimals: int | None = None, *, sign: Literal["", "+"] = "") -> str:
        """As text; by default with as many decimals as two digits of the width need."""
        width = self.high - self.low
        if decimals is None:
            decimals = min(6, max(0, 1 - math.floor(math.log10(width)))) if width > 0.0 else 2
        numbers = (round(number, decimals) + 0.0 for number in self)  # no -0.0
        value, low, high = (f"{number:{sign},.{decimals}f}" for number in numbers)
        return f"{value} [{low}, {high}]"

    @property
    def below(self) -> bool:
        return self.high < 0.0

    @property
    def above(self) -> bool:
        return self.low > 0.0

    @property
    def size(self) -> "Interval":
        """Of the absolute value.

        >>> Interval(-1.0, -2.0, 0.5).size
        Interval(value=1.0, low=0.0, high=2.0)
        """
        low, high = sorted((abs(self.low), abs(self.high)))
        return Interval(abs(self.value), low if self.below or self.above else 0.0, high)


class Slope(Interval):
    """A growth exponent with its 95% interval."""

    def __str__(self) -> str:
        return self.rounded(2)

    @property
    def informative(self) -> bool:
        """Whether the interval is narrow enough to say anything about growth."""
        return self.high - self.low <= 1.0

    @property
    def text(self) -> str:
        return str(self) if self.informative else "too little data"

    def named(self) -> dict[str, float]:
        return {"slope": self.value, "slope_low": self.low, "slope_high": self.high}


def mean_and_error(values: FloatArray) -> tuple[float, float]:
    """The mean over seeds and its standard error."""
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def mean_interval(values: FloatArray) -> Interval:
    """The mean over seeds with Student's 95% interval."""
    mean, error = mean_and_error(values)
    half = error * float(stdtrit(len(values) - 1, 0.975))
    return Interval(mean, mean - half, mean + half)


def share_interval(count: int, of: int) -> Interval:
    """A share with Clopper and Pearson's 95% interval, which never covers too seldom.

    >>> share_interval(0, 3).rounded(2), share_interval(4, 80).rounded(2)
    ('0.00 [0.00, 0.71]', '0.05 [0.01, 0.12]')
    """
    low = float(betaincinv(count, of - count + 1, 0.025)) if count else 0.0
    high = float(betaincinv(count + 1, of - count, 0.975)) if count < of else 1.0
    return Interval(count / of, low, high)


def growth(rounds: IntArray, curves: FloatArray, start: int) -> Slope:
    """Slope of log mean value over log round from round `start` on, with a 95% interval over seeds.

    Whole curves are resampled for its standard error; with few seeds that is too small, and a normal
    interval too narrow, so it is scaled by sqrt(n/(n - 1)) and taken times Student's t.

    >>> t = np.array([10, 100, 1000])
    >>> str(growth(t, np.array([t**0.5, 2 * t**0.5]), start=10))
    '0.50 [0.50, 0.50]'
    """
    late, n = rounds >= start, len(curves)
    if late.sum() < 2 or n < 2 or not np.isfinite(curves).all():
        raise InvalidInput(f"no slope from round {start} on, wanted 2 rounds, 2 seeds and finite values")
    positive = curves[curves > 0.0]
    least = positive.min() if len(positive) else 1.0  # where there is none yet, or none at all: no growth
    # Even in log t, so that the many recorded rounds at the end do not decide alone.
    grid = np.linspace(np.log(rounds[late][0]), np.log(rounds[late][-1]), 30)
    log_t = grid - grid.mean()

    def slopes(means: FloatArray) -> FloatArray:
        logs = np.log(np.maximum(means, least))
        log_values = np.array([np.interp(grid, np.log(rounds), row) for row in logs])
        return np.asarray(log_values @ log_t / (log_t @ log_t))

    drawn = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    value = float(slopes(curves.mean(axis=0, keepdims=True))[0])
    error = float(slopes(curves[drawn].mean(axis=1)).std()) * np.sqrt(n / (n - 1))
    half = float(error * stdtrit(n - 1, 0.975))
    return Slope(value, value - half, value + half)
