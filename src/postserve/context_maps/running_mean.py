"""The constant as a map: the mean of all z so far."""

from collections.abc import Sequence

import numpy as np

from postserve.changes import shallow, whole
from postserve.context_maps.base import SharedMap, axes_of
from postserve.state import Arrays, Stored
from postserve.types import FloatArray
from postserve.validation import number


class RunningMean(SharedMap, abstract=True):
    """The constant: the mean of all z so far, whatever x is. Its radius is the standard error of the mean.

    Sums are of z minus the first z, so that a large offset costs no digits.
    """

    def __init__(self, dim_x: int, dim_z: int) -> None:
        super().__init__(dim_x, dim_z)
        self.pairs = 0.0
        self._first, self._total, self._squares = np.zeros((3, self.dim_z))

    @property
    def variance(self) -> FloatArray:
        """Of each z so far; 0 before the second."""
        n = self.pairs or 1.0
        return np.asarray(np.maximum(self._squares / n - (self._total / n) ** 2, 0.0))

    @whole
    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]."""
        keep = number("keep", keep, above=0.0, most=1.0)
        self.pairs, self._total, self._squares = keep * self.pairs, keep * self._total, keep * self._squares

    def ball_axes(self, arms: Sequence[int]) -> FloatArray | None:
        """In proportion to the standard deviation of each z."""
        return axes_of(np.sqrt(self.variance))

    @whole
    def merge(self, other: "RunningMean") -> None:
        """Add the sums of another, which may start from another z."""
        if not self.pairs:
            self._first = other._first.copy()
        n, shift = other.pairs, other._first - self._first
        self._squares = self._squares + other._squares + shift * (2.0 * other._total + n * shift)
        self._total, self.pairs = self._total + other._total + n * shift, self.pairs + n

    def _predict(self, X: FloatArray) -> FloatArray:
        return np.repeat((self._first + self._total / (self.pairs or 1.0))[None], len(X), axis=0)

    def _radius(self, X: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.norm(self._spread(X), axis=1))

    def _spread(self, X: FloatArray) -> FloatArray:
        return np.repeat(np.sqrt(self.variance / (self.pairs or 1.0))[None], len(X), axis=0)

    def _copy_to_change(self) -> "RunningMean":
        return shallow(self)  # every verb replaces what it changes

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        if not self.pairs:
            self._first = z.copy()
        off = z - self._first
        self.pairs, self._total, self._squares = self.pairs + 1.0, self._total + off, self._squares + off**2

    def _arrays(self) -> Arrays:
        sums = {"first": self._first, "total": self._total, "squares": self._squares}
        return {"pairs": np.array([self.pairs]), **sums}

    def _restore(self, arrays: Stored) -> None:
        self.pairs = float(arrays.take("pairs", (1,))[0])
        arrays.require(self.pairs >= 0.0, "pairs", "a count")
        sums = (arrays.take(name, (self.dim_z,)) for name in ("first", "total", "squares"))
        self._first, self._total, self._squares = sums
