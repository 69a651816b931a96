"""The mean over the nearest pairs, for phi in a Hölder class."""

import math
from typing import TYPE_CHECKING

import numpy as np

from postserve.changes import whole
from postserve.context_maps.base import lengths
from postserve.context_maps.landmarks import one_over_deviation
from postserve.context_maps.pairs import PairsMap, one_over_spread
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray
from postserve.validation import flag, integer, number

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

FIRST_TREE = 256
"""With fewer pairs a tree is no faster."""
MORE = 8
"""Neighbours beyond the k-th to query at first: the last must be further away than all ties."""
SLACK = 1e-9
"""The tree rounds distances differently: pairs this much further away do not tie."""


class NeighborsMap(PairsMap):
    """phi_hat(x) = the mean of z over the k nearest pairs and all that tie with the k-th.

    Ties are included, so their order does not matter and x may be discrete. k grows with the n pairs as
    ceil(n^{2b/(2b + dim_x)}), b = min(`smoothness`, 1), which balances noise and bias for phi in the Hölder
    class b: the squared error is of order n^{-2b/(2b + dim_x)}. A mean cannot use more smoothness than 1: if
    the neighbours lie to one side, as at the border, its error is proportional to their distance. `neighbors`
    fixes k. With `own_units`, each column of x is in units of its standard deviation, renewed each time the
    pairs have doubled. The radius is Assumption 1's, with the rate of the error, b/(2b + dim_x), as the
    default of `map_rate`, plus L r^b, r being how far away the furthest of the neighbours is.

    >>> phi_hat = NeighborsMap(dim_x=1, dim_z=1, neighbors=2)
    >>> for x in (1.0, 2.0, 4.0, 8.0):
    ...     phi_hat.update([x], 0, [10 * x])
    >>> phi_hat.predict([3.0]), phi_hat.predict([7.0])
    (array([[30.]]), array([[60.]]))
    """

    def __init__(
        self,
        dim_x: int,
        dim_z: int,
        *,
        smoothness: float = 1.0,
        neighbors: int | None = None,
        own_units: bool = True,
        ridge: float = 1.0,
        map_rate: float | None = None,
        delta: float = 0.05,
        radius_scale: float = 1.0,
    ) -> None:
        self.smoothness = number("smoothness", smoothness, above=0.0)
        self.neighbors = None if neighbors is None else integer("neighbors", neighbors, least=1)
        self.own_units = flag("own_units", own_units)
        self._holder = b = min(self.smoothness, 1.0)
        self._rate = b / (2.0 * b + integer("dim_x", dim_x, least=1))
        map_rate = self._rate if map_rate is None else map_rate
        super().__init__(dim_x, dim_z, ridge=ridge, map_rate=map_rate, delta=delta, radius_scale=radius_scale)
        self._units, self._units_at = np.ones(self.dim_x), 1  # and how many pairs there were at that time
        self._tree: cKDTree | None = None
        self._in_tree = (0, 0)  # the tree holds the pairs from the first to before the second

    @whole
    def forget(self, keep: float) -> None:
        """Average over only the newest share `keep`, in (0, 1], of the pairs that counted so far."""
        super().forget(keep)
        if self._pairs.first > sum(self._in_tree) / 2:  # more than half of the tree is forgotten
            self._build_tree()

    def _predict_relative(self, X: FloatArray) -> FloatArray:
        return np.array([self._average_near(x) for x in X]).reshape(len(X), self.dim_z)

    def _average_near(self, x: FloatArray) -> FloatArray:
        return np.asarray(self._near(x)[1].mean(axis=0)) if self._pairs.counting() else np.zeros(self.dim_z)

    def _near(self, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The pairs whose mean is phi_hat(x)."""
        counting = self._pairs.counting()
        k = min(self._k(counting), counting)
        X, Z = self._pairs.at(self._candidates(x, k))
        with np.errstate(over="ignore"):  # so far away is infinitely far
            # With or without a tree, so saving changes no bit.
            squared = (((X - x) * self._units) ** 2).sum(axis=1)
        nearest = squared <= np.partition(squared, k - 1)[k - 1]
        return X[nearest], Z[nearest]

    def _distances(self, X: FloatArray, near: FloatArray) -> FloatArray:
        """How far the furthest neighbour of each row is: their mean is off by what phi changes on the way."""
        units = one_over_spread(near)
        return np.array([lengths((self._near(x)[0] - x) * units).max() for x in X])

    def _usual_distance(self) -> float:
        return 0.0  # no distance is so usual that phi does not change over it

    def _k(self, n: int) -> int:
        """How many of n pairs to average."""
        return self.neighbors or math.ceil(round(n ** (2.0 * self._rate), 9))  # 8^(1/3) is 2, not 2 + eps

    def _candidates(self, x: FloatArray, k: int) -> IntArray:
        """Pairs, oldest first, that include the k nearest and all ties."""
        first, (start, stop) = self._pairs.first, self._in_tree
        newer = np.arange(max(first, stop), self._pairs.seen, dtype=np.int64)
        if self._tree is None:
            return newer
        wanted = k + MORE
        while wanted < stop - start:
            distances, found = map(np.asarray, self._tree.query(x * self._units, k=wanted))
            counts = found >= first - start
            if np.count_nonzero(counts) >= k and distances[-1] > distances[counts][k - 1] * (1.0 + SLACK):
                return np.concatenate([np.sort(start + found[counts]), newer])
            wanted *= 2  # too many are forgotten, or tie
        return np.arange(first, self._pairs.seen, dtype=np.int64)

    def _learn_relative(self, x: FloatArray, z: FloatArray) -> None:
        self._keep(x, z, self._errors_at(x[None], z)[0])
        start, stop = self._in_tree
        if self.own_units and self._pairs.seen >= 2 * self._units_at:
            counting = np.arange(self._pairs.first, self._pairs.seen)
            self._units, self._units_at = one_over_deviation(self._pairs.at(counting)[0]), self._pairs.seen
            self._build_tree()
        elif self._pairs.seen - stop >= max(FIRST_TREE, stop - start):
            self._build_tree()

    def _build_tree(self) -> None:
        """Build a tree of all pairs that count, if they are enough."""
        from scipy.spatial import cKDTree  # here, as importing it is slow

        first, seen = self._pairs.first, self._pairs.seen
        self._tree, self._in_tree = None, (first, first)
        if seen - first >= FIRST_TREE:
            contexts = self._pairs.at(np.arange(first, seen))[0] * self._units
            self._tree, self._in_tree = cKDTree(contexts), (first, seen)

    def _arrays(self) -> Arrays:
        return {**super()._arrays(), "units": self._units, "units_at": np.array([self._units_at])}

    def _restore(self, arrays: Stored) -> None:
        super()._restore(arrays)
        self.own_units = self.own_units and arrays.has("units")  # states of earlier versions have one unit
        if arrays.has("units"):
            self._units = arrays.take("units", (self.dim_x,))
            self._units_at = int(arrays.take("units_at", (1,), np.int64)[0])
            arrays.require(bool((self._units >= 0.0).all()), "units", "no negative numbers")
            arrays.require(
                1 <= self._units_at <= max(1, self._pairs.seen), "units_at", "a count of the pairs"
            )
        self._build_tree()
