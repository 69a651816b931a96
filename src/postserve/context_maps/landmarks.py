"""Features with a Matérn kernel as their inner product, by Nyström's method."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray

EXPLAINED = 1e-8
"""If the landmarks leave less than this of k(x, x) = 1, x does not become one: noise is never smaller, and
the factor's pivots, its square root, stay far above rounding."""
CANDIDATES = 8
"""Landmarks are chosen from this many times as many contexts: more would make no difference."""
FAR = 1e4
"""Every kernel is 0 at this t."""
SAMPLE = 256
"""The number of contexts for the median distance."""
LAST_ROWS, FACTOR_ERROR = 8, 1e-6
"""How many rows of a loaded factor are compared with the kernel, which is at most 1, and how closely."""


class Coordinates(NamedTuple):
    """The features of each context, (n, count), and what they leave of k(x, x) = 1."""

    rows: FloatArray
    left: FloatArray


class Landmarks:
    """f(x) = L^{-1} k(x), k_i(x) = k(x_i, x), L L^T = (k(x_i, x_j)), k = matern + nugget at equal contexts.

    f(x)·f(x') is k(x, x') where either is a landmark, and its best approximation elsewhere. Column j of x is
    multiplied by units_j. Contexts whose kernel is 1 up to EXPLAINED are equal.

    >>> landmarks = Landmarks(dim_x=1, smoothness=0.5, most=2)
    >>> landmarks.spread(np.array([[0.0], [0.5], [1.0]]), length=1.0)
    False
    >>> landmarks.points.ravel()
    array([0., 1.])
    >>> landmarks.features(np.array([[0.0], [0.5]])).left.round(2)
    array([0.  , 0.46])
    """

    def __init__(self, dim_x: int, smoothness: float, most: int) -> None:
        self.smoothness = smoothness
        self.most = most
        self.length = 0.0
        self.units = np.ones(dim_x)
        self.nugget = 0.0
        self.points = np.empty((0, dim_x))
        self._points_in_units = self.points
        self._factor = np.empty((0, 0))

    def features(self, X: FloatArray) -> Coordinates:
        """f of every row."""
        if len(self.points) == 0:
            return Coordinates(np.empty((len(X), 0)), np.full(len(X), 1.0 + self.nugget))
        if len(X) > 1 and (X[:1] == X).all():  # BLAS may give equal columns different bits
            one = self.features(X[:1])
            return Coordinates(np.repeat(one.rows, len(X), axis=0), np.repeat(one.left, len(X)))
        kernel = self._kernel(self._points_in_units, X * self.units)
        rows = solve_triangular(self._factor, kernel, lower=True, check_finite=False).T
        return Coordinates(rows, np.maximum(1.0 + self.nugget - (rows**2).sum(axis=1), 0.0))

    def _kernel(self, X: FloatArray, Y: FloatArray) -> FloatArray:
        """k(x_i, y_j) of contexts in units."""
        kernel = matern(distances(X, Y), self.length, self.smoothness)
        return kernel if self.nugget == 0.0 else kernel + self.nugget * (kernel >= 1.0 - EXPLAINED)

    def admit(self, x: FloatArray, features: Coordinates) -> FloatArray:
        """Make x, given its features, a landmark; returns its new features.

        Features of contexts that were fully explained only get a zero appended.
        """
        row = np.append(features.rows[0], np.sqrt(features.left[0]))
        self._factor = np.pad(self._factor, ((0, 1), (0, 1)))
        self._factor[-1] = row
        self.points = np.vstack([self.points, x])
        self._points_in_units = self.points * self.units
        return row

    def spread(self, X: FloatArray, length: float, nugget: float = 0.0) -> bool:
        """Choose landmarks, each the row that the earlier ones explain least (a pivoted Cholesky factor).

        Returns whether rows repeat: clearly more of them than by chance are equal to a landmark.
        """
        X = X[evenly(len(X), CANDIDATES * self.most)]
        self.length, self.nugget = length, nugget
        in_units = X * self.units
        rows = np.zeros((min(self.most, len(X)), len(X)))
        left = np.full(len(X), 1.0 + nugget)
        chosen: list[int] = []
        n_equal = 0
        for j, row in enumerate(rows):
            i = int(np.argmax(left))
            if left[i] <= EXPLAINED:
                break
            kernel = self._kernel(in_units[i][None], in_units)[0]
            n_equal += int((kernel >= 1.0 - EXPLAINED).sum())
            row[:] = (kernel - rows[:j, i] @ rows[:j]) / np.sqrt(left[i])
            left = np.maximum(left - row**2, 0.0)
            left[i] = 0.0
            chosen.append(i)
        self.points, self._points_in_units = X[chosen], in_units[chosen]
        self._factor = np.tril(rows[: len(chosen), chosen].T)
        return n_equal > 1.1 * len(chosen)

    def count_distinct(self, X: FloatArray) -> int:
        """How many rows differ from all rows before them."""
        in_units = X * self.units
        equal = matern(distances(in_units, in_units), self.length, self.smoothness) >= 1.0 - EXPLAINED
        return int((np.argmax(equal, axis=0) == np.arange(len(X))).sum())

    def arrays(self) -> Arrays:
        """The landmarks, their factor and the length scale."""
        return {
            "landmarks": self.points,
            "landmarks_factor": self._factor,
            "landmarks_length": np.array([self.length]),
            "landmarks_units": self.units,
            "landmarks_nugget": np.array([self.nugget]),
        }

    def restore(self, stored: Stored) -> None:
        """Take back what `arrays` gave."""
        self.points = stored.take("landmarks", (None, self.points.shape[1]))
        count = len(self.points)
        stored.require(count <= self.most, "landmarks", f"at most {self.most} rows")
        self._factor = stored.take("landmarks_factor", (count, count))
        stored.require(bool((np.diagonal(self._factor) > 0.0).all()), "landmarks_factor", "a Cholesky factor")
        self.length = float(stored.take("landmarks_length", (1,))[0])
        stored.require(self.length >= 0.0, "landmarks_length", "a length")
        if stored.has("landmarks_nugget"):  # states of earlier versions have neither
            self.units = stored.take("landmarks_units", self.units.shape)
            stored.require(bool((self.units >= 0.0).all()), "landmarks_units", "no negative numbers")
            self.nugget = float(stored.take("landmarks_nugget", (1,))[0])
            stored.require(self.nugget >= 0.0, "landmarks_nugget", "a variance")
        self._points_in_units = self.points * self.units
        stored.require(self._is_factor_of_kernel(), "landmarks_factor", "that of the landmarks")

    def _is_factor_of_kernel(self) -> bool:
        """Whether the last rows of L L^T are those of the kernel: the factor is that of these landmarks."""
        last = slice(-LAST_ROWS, None)
        kernel = self._kernel(self._points_in_units[last], self._points_in_units)
        return bool((np.abs(self._factor[last] @ self._factor.T - kernel) < FACTOR_ERROR).all())


def matern(distance: FloatArray, length: float, smoothness: float) -> FloatArray:
    """k = 2^{1-nu}/Gamma(nu) t^nu K_nu(t), t = sqrt(2 nu) distance/length; length 0: 1 at 0, else 0.

    The logarithms keep it exact at distance 0 and finite for every nu up to 50.

    >>> matern(np.array([0.0, 1.0, 1e9]), 1.0, 0.5)
    array([1.        , 0.36787944, 0.        ])
    """
    if length == 0.0:
        return np.asarray(distance == 0.0, dtype=np.float64)
    with np.errstate(over="ignore"):
        t = np.minimum(np.sqrt(2.0 * smoothness) * (distance / length), FAR)
    if smoothness == 0.5:
        return np.asarray(np.exp(-t))
    if smoothness == 1.5:
        return np.asarray((1.0 + t) * np.exp(-t))
    if smoothness == 2.5:
        return np.asarray((1.0 + t + t**2 / 3.0) * np.exp(-t))
    from scipy.special import gammaln, kve

    bessel = kve(smoothness, t)
    with np.errstate(divide="ignore", invalid="ignore"):
        log = smoothness * np.log(t) + np.log(bessel) - t
    k = np.exp(np.minimum(log + (1.0 - smoothness) * np.log(2.0) - gammaln(smoothness), 0.0))
    # K_nu is infinite at 0 and overflows just beside it, where k is 1 to rounding.
    return np.asarray(np.where(np.isinf(bessel), 1.0, k))


def distances(X: FloatArray, Y: FloatArray) -> FloatArray:
    """||x_i - y_j||."""
    from scipy.spatial.distance import cdist  # here, as importing it is slow

    return np.asarray(cdist(X, Y))


def median_distance(X: FloatArray) -> float:
    """The median of the positive distances between rows (of up to SAMPLE of them); 0 without any."""
    X = X[evenly(len(X), SAMPLE)]
    apart = distances(X, X)
    apart = apart[apart > 0.0]
    return float(np.median(apart)) if len(apart) else 0.0


def one_over_deviation(X: FloatArray) -> FloatArray:
    """1/s of each column, s its standard deviation; 0 if it is constant: it has no unit yet.

    >>> one_over_deviation(np.array([[0.0, 0.1], [4.0, 0.1]]))
    array([0.5, 0. ])
    """
    deviation = (X - X[0]).std(axis=0)  # exactly 0 where all are equal
    return np.asarray(np.divide(1.0, deviation, out=np.zeros(X.shape[1]), where=deviation > 0.0))


def evenly(n: int, most: int) -> IntArray:
    """At most that many of n indices, evenly spread.

    >>> evenly(9, 3), evenly(2, 3)
    (array([0, 4, 8]), array([0, 1]))
    """
    return np.linspace(0, n - 1, min(n, most)).astype(np.int64)
