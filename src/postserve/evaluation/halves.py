"""Means over random draws that are each run on both halves of the same units, with errors that count both.

Seeds 2d and 2d + 1 are draw d (of arms, of a split of the columns, of an order of the rows) on a random half
of the units (users, patients) and on the other half. The number of draws is unlimited and that of units is
not: more draws shrink the draws' part of the error, never the units'. Draws may share a cut of the units:
draw d has cut d % cuts. Then the variance of single draws can be separated from that of the units.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from postserve.errors import InvalidInput
from postserve.types import FloatArray

MOST_OF_DRAWS = 0.5
"""The largest share of the difference between both halves that is attributed to the draws."""


def halves_mean_and_error(values: npt.ArrayLike, cuts: int | None = None) -> tuple[float, float]:
    """The mean of values in the order of their seeds, and its standard error.

    se² = units' part + variance of the pairs' means / number of pairs. With d_c = v1 - v2 of cut c, the mean
    over the m draws that share it, the units' part is the mean over cuts of d_c²/4, the delete-half jackknife
    (Shao and Wu 1989): for the mean of n independent rows of variance sigma² its expectation is exactly
    sigma²/n, however many cuts there are. It includes the variance of the draws too, s²/(4m), s² being the
    variance of v1 - v2 among draws that share a cut. Where m > 1 that is subtracted, but at most half of the
    whole: few cuts estimate it too poorly to trust a larger correction.

    >>> import numpy as np
    >>> halves_mean_and_error(np.array([1.0, 3.0, 1.0, 3.0]))
    (2.0, 1.0)
    """
    draws = _by_cut(values, cuts)
    differences = draws[..., 0] - draws[..., 1]
    units = float((differences.mean(axis=0) ** 2).mean()) / 4.0
    if len(differences) > 1:
        of_draws = float(differences.var(axis=0, ddof=1).mean()) / (4.0 * len(differences))
        units -= min(of_draws, MOST_OF_DRAWS * units)
    means = draws.mean(axis=-1)
    return float(means.mean()), math.sqrt(units + float(means.var(ddof=1)) / means.size)


def halves_interval(values: npt.ArrayLike, cuts: int | None = None) -> tuple[float, float, float]:
    """The mean and both ends of its 95% interval, by Student's t with (cuts - 1) degrees of freedom.

    `values` has the shape (2 n,): the result of each of n draws on one half of the units and on the other,
    in turn. Draw d was made with cut d % `cuts` of the units; by default each has a cut of its own.

    >>> import numpy as np
    >>> halves_interval(np.array([2.0, 2.0, 2.0, 2.0]))
    (2.0, 2.0, 2.0)
    """
    mean, error = halves_mean_and_error(values, cuts)
    half = error * float(stdtrit(_by_cut(values, cuts).shape[1] - 1, 0.975))
    return mean, mean - half, mean + half


def _by_cut(given: npt.ArrayLike, cuts: int | None) -> FloatArray:
    """Values by draw of a cut, cut and half; where there are no more draws than cuts, none shares one."""
    values = np.asarray(given, dtype=np.float64)
    if values.ndim != 1 or len(values) % 2 or len(values) < 4:
        raise InvalidInput(
            f"values have the shape {values.shape}, wanted (2 n,): both halves of 2 or more draws"
        )
    pairs = len(values) // 2
    cuts = pairs if cuts is None else min(cuts, pairs)
    if pairs % cuts:
        raise InvalidInput(f"values are of {pairs} draws, wanted the same number for each of {cuts} cuts")
    return np.asarray(values.reshape(-1, cuts, 2))
