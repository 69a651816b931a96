"""Intervals for the mean of terms, one per round.

"normal" and "bootstrap" are right for many rounds; "bernstein" and "sequence" for every number, if the terms
lie in a range that is known beforehand. "sequence" also holds at all times at once: it may be looked at after
every round, and stopped at any.
"""

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from scipy.special import ndtri, zeta

from postserve.types import FloatArray

Kind = Literal["normal", "bootstrap", "bernstein", "sequence"]
NEED_RANGE: tuple[Kind, ...] = ("bernstein", "sequence")
KINDS: tuple[Kind, ...] = ("normal", "bootstrap", *NEED_RANGE)
RESAMPLES, MOST_DRAWN = 1000, 100_000
"""Of the bootstrap: samples, and the rounds or groups of rounds in each."""
AT_ONCE = 100_000
"""Rounds whose deviations, or whose `sequence`, are in memory at once: there may be many millions."""
EPOCH, POWER = 2.0, 1.4
"""Of the boundary of `sequence`: variances double from epoch to epoch; POWER shares the error out."""


class Range(NamedTuple):
    """Between which numbers terms lie, whatever the log has."""

    low: float
    high: float


def standard_error(terms: FloatArray) -> float:
    """Of the mean: the standard deviation over the root of their number; NaN for one term.

    >>> standard_error(np.array([0.0, 2.0]))
    1.0
    """
    n, mean = len(terms), terms.mean()
    if n < 2:
        return math.nan
    off = (terms[start : start + AT_ONCE] - mean for start in range(0, n, AT_ONCE))
    return math.sqrt(sum(float(each @ each) for each in off) / (n - 1)) / math.sqrt(n)


def normal(terms: FloatArray, level: float) -> tuple[float, float]:
    """The mean ± as many standard errors as the normal distribution has at that level.

    >>> low, high = normal(np.array([0.0, 2.0]), 0.95)
    >>> round(low, 2), round(high, 2)
    (-0.96, 2.96)
    """
    half = float(ndtri(0.5 + level / 2.0)) * standard_error(terms)
    mean = float(terms.mean())
    return mean - half, mean + half


def bootstrap(terms: FloatArray, level: float, rng: np.random.Generator) -> tuple[float, float]:
    """Bootstrap-t: rounds are drawn again, and each mean is measured in its own standard errors.

    Its ends are not symmetric where terms are skewed, as ratios make them (Efron and Tibshirani 1993,
    chapter 12). Draws whose terms are all equal say nothing of errors and are left out. In a long log, what
    is drawn is not rounds but groups of subsequent ones: sums of deviations from the mean have the same
    skewness over all groups as terms have over all rounds.

    >>> low, high = bootstrap(np.arange(100.0), 0.95, np.random.default_rng(0))
    >>> low < 45.0 < 54.0 < high
    True
    """
    mean, error = float(terms.mean()), standard_error(terms)
    units = terms - mean
    if len(units) > MOST_DRAWN:
        starts = np.arange(MOST_DRAWN) * len(units) // MOST_DRAWN
        units = np.add.reduceat(units, starts)
    n, off = len(units), []
    for _ in range(RESAMPLES):
        drawn = units[rng.integers(n, size=n)]
        its_error = standard_error(drawn)
        if its_error > 0.0:
            off.append(float(drawn.mean()) / its_error)
    if not off:
        return normal(terms, level)
    low, high = np.quantile(off, [0.5 - level / 2.0, 0.5 + level / 2.0])
    return mean - float(high) * error, mean - float(low) * error


def bernstein(terms: FloatArray, level: float, within: Range) -> tuple[float, float]:
    """The empirical Bernstein bound (Maurer and Pontil 2009, theorem 4), for independent terms in a range.

    mean ± (sqrt(2 V L / n) + 7 width L / (3 (n - 1))), V being the variance of the terms, L = ln(4 / delta)
    and delta = 1 - level, half of it for each end.

    >>> low, high = bernstein(np.tile([0.0, 1.0], 500), 0.95, Range(0.0, 1.0))
    >>> round(low, 3), round(high, 3)
    (0.443, 0.557)
    """
    n, mean = len(terms), float(terms.mean())
    if n < 2:
        return within
    logarithm = math.log(4.0 / (1.0 - level))
    width = within.high - within.low
    half = math.sqrt(2.0 * logarithm) * standard_error(terms) + 7.0 * width * logarithm / (3.0 * (n - 1))
    return max(mean - half, within.low), min(mean + half, within.high)


def sequence(terms: FloatArray, level: float, within: Range) -> tuple[FloatArray, FloatArray]:
    """Both ends after each round: with the stated probability, all of them hold, at all times at once.

    For terms in a range whose mean given the past may vary (a policy that learns): the interval is for the
    mean of these means. Howard, Ramdas, McAuliffe and Sekhon (2021), theorem 4 with the stitched boundary of
    theorem 1: in units of the width, the mean is within u(V) / n, V being 1 or the sum of squares of terms
    around the mean of those before them, and
    u(V) = sqrt(k1² V l + k2² l²) + k2 l, l = POWER · ln(1 + log2 V) + ln(2 zeta(POWER) / delta).

    >>> low, high = sequence(np.tile([0.0, 1.0], 500), 0.95, Range(0.0, 1.0))
    >>> bool(low[-1] > 0.4), bool(high[-1] < 0.6), low[0], high[0]
    (True, True, np.float64(0.0), np.float64(1.0))
    """
    ends = list(_ends(terms, level, within))
    return np.concatenate([low for low, _ in ends]), np.concatenate([high for _, high in ends])


def _ends(terms: FloatArray, level: float, within: Range) -> Iterator[tuple[FloatArray, FloatArray]]:
    """`sequence`, some rounds at a time."""
    width = within.high - within.low
    k1 = (EPOCH**0.25 + EPOCH**-0.25) / math.sqrt(2.0)
    k2 = (math.sqrt(EPOCH) + 1.0) / 2.0
    total = squares = 0.0
    for start in range(0, len(terms), AT_ONCE):
        unit = (terms[start : start + AT_ONCE] - within.low) / width
        n = np.arange(start + 1, start + len(unit) + 1)
        sums = np.cumsum(np.concatenate([[total], unit]))[1:]
        expected = (0.5 + sums - unit) / n  # from the terms before, and one at the middle of the range
        spread = np.cumsum(np.concatenate([[squares], (unit - expected) ** 2]))[1:]
        total, squares = sums[-1], spread[-1]
        variance = np.maximum(spread, 1.0)
        epochs = np.log(variance) / math.log(EPOCH)
        logarithm = POWER * np.log1p(epochs) + math.log(2.0 * float(zeta(POWER)) / (1.0 - level))
        u = np.sqrt(k1**2 * variance * logarithm + (k2 * logarithm) ** 2) + k2 * logarithm
        low, high = (sums - u) / n, (sums + u) / n
        yield within.low + width * np.maximum(low, 0.0), within.low + width * np.minimum(high, 1.0)


def interval(
    kind: Kind, terms: FloatArray, level: float, rng: np.random.Generator, within: Range | None = None
) -> tuple[float, float]:
    """Both ends of an interval of that kind; `within` is needed by "bernstein" and "sequence".

    >>> interval("normal", np.ones(3), 0.9, np.random.default_rng(0))
    (1.0, 1.0)
    """
    if kind == "normal":
        return normal(terms, level)
    if kind == "bootstrap":
        return bootstrap(terms, level, rng)
    assert within is not None
    if kind == "bernstein":
        return bernstein(terms, level, within)
    *_, (low, high) = _ends(terms, level, within)
    return float(low[-1]), float(high[-1])
