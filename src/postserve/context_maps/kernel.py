"""Kernel ridge regression of z on x, for phi of known smoothness."""

from typing import Literal

import numpy as np

from postserve import confidence
from postserve.context_maps.landmarks import EXPLAINED, Landmarks, median_distance
from postserve.context_maps.pairs import Pairs
from postserve.context_maps.ridge import RegressionMap
from postserve.linalg.prior import as_given
from postserve.linalg.ridge import RidgeModels, one_regression
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, Ridge
from postserve.validation import integer, number, one_of_or_number

LAST_REBUILD = 32
"""After this many times as many pairs as landmarks there are no more rebuilds, and no pairs are kept."""
BLOCK = 4096
"""Rows with features in memory at once during a rebuild."""


class KernelMap(RegressionMap):
    """phi_hat(x) = sum_i alpha_i k(x_i, x) + c, alpha = (K + lambda I)^{-1} (z - c): k a Matérn kernel.

    This is ridge regression on features f with f(x)·f(x') = k(x, x'), and an intercept: exact while
    `landmarks` pairs explain all others (at most that many pairs, or values of x), and by Nyström's
    approximation on `landmarks` of them afterwards. `smoothness` is the kernel's nu, at most 50;
    `length_scale` a number, or "median", the median distance between pairs. The landmarks, each the pair that
    the earlier ones explain least, and the length scale are renewed each time the pairs have doubled, up to
    32 times `landmarks`; an update is O(landmarks²). Details of phi finer than the distances between
    landmarks count as noise: a rough phi needs more of them. `ridge`: "evidence", a number, or a pair
    (kernel, intercept). The radius is the posterior standard deviation, including what the landmarks do not
    explain of x, times `radius_scale`; with evidence the learnt noise replaces `noise_scale`.

    >>> phi_hat = KernelMap(dim_x=1, dim_z=1)
    >>> for x in np.linspace(-3, 3, 50):
    ...     phi_hat.update([x], 0, [5 + np.sin(x)])
    >>> float(phi_hat.predict([1.0])[0, 0].round(2))
    5.84
    >>> bool(phi_hat.radius([1.0]) < 0.1 < phi_hat.radius([9.0]))
    True
    """

    def __init__(
        self,
        dim_x: int,
        dim_z: int,
        *,
        smoothness: float = 1.5,
        length_scale: Literal["median"] | float = "median",
        landmarks: int = 256,
        ridge: Ridge = "evidence",
        noise_scale: float = 1.0,
        radius_scale: float = 1.0,
    ) -> None:
        super().__init__(dim_x, dim_z)
        self.smoothness = number("smoothness", smoothness, above=0.0, most=50.0)
        self.length_scale = one_of_or_number("length_scale", length_scale, ("median",), above=0.0)
        self.landmarks = integer("landmarks", landmarks, least=1)
        self.noise_scale = number("noise_scale", noise_scale, least=0.0)
        self.radius_scale = number("radius_scale", radius_scale, least=0.0)
        self._pairs = Pairs(dim_x, dim_z)
        self._rebuilt_at = 0  # the number of pairs at the last rebuild
        self._landmarks = Landmarks(dim_x, self.smoothness, self.landmarks)
        self._landmarks.length = 0.0 if length_scale == "median" else self.length_scale
        self._models = self._fresh_models(ridge)
        self.ridge = as_given(ridge)

    @property
    def scale_free(self) -> bool:
        """True with evidence and the median."""
        return self._models.prior.evidence and self.length_scale == "median"

    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]; the next rebuild uses that share of the newest pairs."""
        self._pairs.forget(keep)
        super().forget(keep)

    def _predict(self, X: FloatArray) -> FloatArray:
        return self._models.average(self._rows(self._landmarks.features(X).rows))

    def _radius(self, X: FloatArray) -> FloatArray:
        features = self._landmarks.features(X)
        width = self._models.project(self._rows(features.rows)).widths
        # The part of x that the landmarks do not explain is new to the pairs: there the prior holds.
        width = np.hypot(width, np.sqrt(features.left / self._models.ridge[0]))
        return self.radius_scale * confidence.map_radius_posterior(width=width, noise_scale=self._noise())

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        if self._rebuilt_at < LAST_REBUILD * self.landmarks:
            self._pairs.append(x, z)
            if self._pairs.seen >= max(2, 2 * self._rebuilt_at):
                self._rebuild()
                return
        features = self._landmarks.features(x[None])
        rows = features.rows
        if features.left[0] > EXPLAINED and rows.shape[1] < self._room:
            rows = self._landmarks.admit(x, features)[None]
        self._models.update(0, self._rows(rows)[0], z)

    def _rebuild(self) -> None:
        """Renew landmarks, length scale and sums, from the pairs that count."""
        X, Z = self._pairs.at(np.arange(self._pairs.first, self._pairs.seen))
        length = median_distance(X) if isinstance(self.length_scale, str) else self.length_scale
        self._landmarks.spread(X, length)
        self._rebuilt_at = self._pairs.seen
        self._models = self._fresh_models(self.ridge)
        blocks = (slice(start, start + BLOCK) for start in range(0, len(X), BLOCK))
        rows = ((self._rows(self._landmarks.features(X[block]).rows), Z[block]) for block in blocks)
        self._models.learn_sums(0, rows)
        if self._rebuilt_at >= LAST_REBUILD * self.landmarks:
            self._pairs = Pairs(self.dim_x, self.dim_z)

    @property
    def _room(self) -> int:
        """The most features before the next rebuild."""
        return min(self.landmarks, max(1, 2 * self._rebuilt_at))

    def _fresh_models(self, ridge: Ridge) -> RidgeModels:
        return one_regression({"kernel": self._room, "intercept": 1}, n_outputs=self.dim_z, ridge=ridge)

    def _rows(self, features: FloatArray) -> FloatArray:
        """Features, zeros for future landmarks, and 1 for the intercept."""
        rows = np.zeros((len(features), self._room + 1))
        rows[:, : features.shape[1]] = features
        rows[:, -1] = 1.0
        return rows

    def _noise(self) -> FloatArray:
        return np.full(self.dim_z, super()._noise())  # noise_scale is one number for all outputs

    def _arrays(self) -> Arrays:
        return {
            "rebuilt_at": np.array([self._rebuilt_at]),
            **self._landmarks.arrays(),
            **self._pairs.arrays(),
            **self._models.arrays(),
        }

    def _restore(self, arrays: Stored) -> None:
        self._rebuilt_at = int(arrays.take("rebuilt_at", (1,), np.int64)[0])
        arrays.require(0 <= self._rebuilt_at < 2**62, "rebuilt_at", "a count")
        self._landmarks.restore(arrays)
        arrays.require(len(self._landmarks.points) <= self._room, "landmarks", f"at most {self._room} rows")
        self._pairs.restore(arrays)
        self._models = self._fresh_models(self.ridge)
        self._models.restore(arrays, 1)
