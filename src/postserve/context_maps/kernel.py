"""Kernel ridge regression of z on x, for phi of known smoothness."""

from typing import Literal

import numpy as np

from postserve import confidence
from postserve.changes import Effect, replaced, shallow, whole
from postserve.context_maps.landmarks import EXPLAINED, Landmarks, median_distance, one_over_deviation
from postserve.context_maps.pairs import Pairs
from postserve.context_maps.ridge import RegressionMap
from postserve.linalg.frame import Centring
from postserve.linalg.prior import as_given
from postserve.linalg.ridge import RidgeModels, one_regression
from postserve.state import Arrays, Stored
from postserve.steps import fast_path
from postserve.types import FloatArray, Ridge
from postserve.validation import integer, number, one_of_or_number

LAST_REBUILD = 32
"""After this many times as many pairs as landmarks there are no more rebuilds, and no pairs are kept."""
NUGGETS = (0.01, 0.05, 0.25, 1.0)
"""Candidates for the variance of what is each context's own, relative to the variance of the smooth part."""
DECISIVE = 5.0
"""How much better the logarithm of the evidence must be with a nugget: chance repeats give 1 to 4."""
SURPRISE = 6.0
"""A pair is a surprise if its z is this many predictive standard deviations off."""
SURPRISES, MOST_WAITING = 8, 64
"""Surprises are learnt when they are at so many contexts, or so many in all."""
BLOCK = 4096
"""Rows with features in memory at once during a rebuild."""


Fitted = tuple[Landmarks, RidgeModels, bool]
"""Landmarks, the regression on their features, and whether contexts repeat."""


class KernelMap(RegressionMap):
    """phi_hat(x) = sum_i alpha_i k(x_i, x) + c, alpha = (K + lambda I)^{-1} (z - c): k a Matérn kernel.

    This is ridge regression on features f with f(x)·f(x') = k(x, x'), and an intercept: exact while
    `landmarks` pairs explain all others (at most that many pairs, or values of x), and by Nyström's
    approximation on `landmarks` of them afterwards. `smoothness` is the kernel's nu, at most 50;
    `length_scale` a number; "raw median", the median distance between pairs; or "median", the same with each
    column of x in units of its standard deviation, here and in the kernel, so that its unit does not matter.
    A column that did not vary so far has no unit, and until the next rebuild a new value in it changes
    nothing; but if no column varied, every other x is new, and its radius as wide as the prior.
    The landmarks, each the pair that the earlier ones explain least, the units and the length scale are
    renewed each time the pairs have doubled, up to 32 times `landmarks`; an update is O(landmarks²). Details
    of phi finer than the distances between landmarks count as noise: a rough phi needs more of them. `ridge`:
    "evidence" (then z varies around a level with a flat prior), a number, or a pair (kernel, intercept). The
    radius is the posterior standard deviation, including what the landmarks do not explain of x, times
    `radius_scale`; with evidence the learnt noise replaces `noise_scale`.

    `nugget` is the variance, relative to that of the smooth part, of what is each context's own. Without it,
    rows of a table that come again with the same z would say that there is no noise, and phi_hat would go
    through all of them, however wildly. "evidence" picks it at each rebuild if contexts repeat. Then pairs
    for which there is no landmark and which the learnt noise all but excludes also wait until they are at
    eight contexts, and bring a new prior. With a number every pair is learnt as it comes.

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
        length_scale: Literal["median", "raw median"] | float = "median",
        landmarks: int = 256,
        nugget: Literal["evidence"] | float = "evidence",
        ridge: Ridge = "evidence",
        noise_scale: float = 1.0,
        radius_scale: float = 1.0,
    ) -> None:
        super().__init__(dim_x, dim_z)
        self.smoothness = number("smoothness", smoothness, above=0.0, most=50.0)
        self.length_scale = one_of_or_number(
            "length_scale", length_scale, ("median", "raw median"), above=0.0
        )
        self.landmarks = integer("landmarks", landmarks, least=1)
        self.nugget = one_of_or_number("nugget", nugget, ("evidence",), least=0.0)
        self.noise_scale = number("noise_scale", noise_scale, least=0.0)
        self.radius_scale = number("radius_scale", radius_scale, least=0.0)
        self._pairs = Pairs(dim_x, dim_z)
        self._rebuilt_at = 0  # the number of pairs at the last rebuild
        self._waiting = Pairs(dim_x, dim_z)  # surprises that are not learnt yet
        self._landmarks = Landmarks(dim_x, self.smoothness, self.landmarks)
        self._landmarks.length = 0.0 if isinstance(self.length_scale, str) else self.length_scale
        self.ridge = as_given(ridge)
        self._level = isinstance(ridge, str)  # whether z varies around a level with a flat prior
        self._models = self._fresh_models()

    @property
    def scale_free(self) -> bool:
        """True with evidence and a median."""
        return self._models.prior.evidence and isinstance(self.length_scale, str)

    @property
    def column_free(self) -> bool:
        """True with evidence and the median of columns in their own units."""
        return self._models.prior.evidence and self.length_scale == "median"

    @whole
    def forget(self, keep: float) -> None:
        """Multiply the sums by keep, in (0, 1]; the next rebuild uses that share of the newest pairs."""
        keep = number("keep", keep, above=0.0, most=1.0)
        self._pairs.forget(keep)
        super().forget(keep)

    def _predict(self, X: FloatArray) -> FloatArray:
        return self._models.predict(self._rows(self._landmarks.features(X).rows))

    def _radius(self, X: FloatArray) -> FloatArray:
        features = self._landmarks.features(X)
        width = self._models.project(self._models.centred(self._rows(features.rows))).widths
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
        row = self._rows(features.rows)
        if features.left[0] > EXPLAINED:
            if features.rows.shape[1] < self._room:
                row = self._rows(self._landmarks.admit(x, features)[None])
            elif self._is_surprise(row, z):
                self._wait(x, z)
                return
        self._models.update(0, row[0], z)

    def _copy_to_change(self) -> "KernelMap":
        twin = shallow(self)
        twin._models, twin._landmarks = self._models.beside(), shallow(self._landmarks)
        twin._pairs, twin._waiting = shallow(self._pairs), shallow(self._waiting)
        return twin

    @fast_path
    def _prepare(self, x: FloatArray, z: FloatArray) -> list[Effect]:
        effects, keeps = [], self._rebuilt_at < LAST_REBUILD * self.landmarks
        features = self._landmarks.features(x[None])
        row = self._rows(features.rows)
        rebuilds = keeps and self._pairs.seen + 1 >= max(2, 2 * self._rebuilt_at)
        is_new = features.left[0] > EXPLAINED
        has_room = features.rows.shape[1] < self._room
        if rebuilds or (is_new and (has_room or self._is_surprise(row, z))):
            return super()._prepare(x, z)
        if keeps:
            pairs = shallow(self._pairs)
            pairs.append(x, z)
            effects = [replaced(self, _pairs=pairs)]
        return effects + self._models.prepare(0, row[0], z)

    def _wait(self, x: FloatArray, z: FloatArray) -> None:
        """Learn surprises at several contexts at once, and the prior with them: one would bend the whole map.

        Many at few contexts are learnt, too, or nothing would ever be known about these.
        """
        self._waiting.append(x, z)
        X, Z = self._waiting.at(np.arange(self._waiting.seen))
        if self._landmarks.count_distinct(X) >= SURPRISES or len(X) >= MOST_WAITING:
            self._waiting = Pairs(self.dim_x, self.dim_z)
            rows = self._rows(self._landmarks.features(X).rows)
            self._models.update_batch(np.zeros(len(X), dtype=np.int64), rows, Z)
            self._models.prior.renew(self._models)

    def _is_surprise(self, row: FloatArray, z: FloatArray) -> bool:
        """Whether the prior in force all but excludes z."""
        prior = self._models.prior
        if not prior.evidence or self.nugget != "evidence":
            return False
        squares = (z - self._models.predict(row)[0]) ** 2
        limit = SURPRISE**2 * prior.noise_variance
        if not (squares > limit).any():  # as nearly always
            return False
        width = self._models.project(self._models.centred(row)).widths[0]
        return bool((squares > limit * (1.0 + width**2)).any())

    def _rebuild(self) -> None:
        """Renew landmarks, length scale, nugget and sums, from the pairs that count."""
        X, Z = self._pairs.at(np.arange(self._pairs.first, self._pairs.seen))
        units = one_over_deviation(X) if self.length_scale == "median" else np.ones(self.dim_x)
        if not units.any():  # one x only, with length 0: every other is far from it, in whatever unit
            units = np.ones(self.dim_x)
        length = median_distance(X * units) if isinstance(self.length_scale, str) else self.length_scale
        self._rebuilt_at, self._waiting = self._pairs.seen, Pairs(self.dim_x, self.dim_z)
        learns_nugget = self.nugget == "evidence"
        best = self._fitted(X, Z, units, length, 0.0 if learns_nugget else self.nugget)
        if learns_nugget and best[1].prior.fitted_at and best[2]:
            best = self._with_nugget(X, Z, units, length, best)
        self._landmarks, self._models, _ = best
        if self._rebuilt_at >= LAST_REBUILD * self.landmarks:
            self._pairs = Pairs(self.dim_x, self.dim_z)

    def _with_nugget(
        self, X: FloatArray, Z: FloatArray, units: FloatArray, length: float, without: Fitted
    ) -> Fitted:
        """The fit with the best nugget, if that is decisively better than the one without."""
        least = limit = _surprisal(without[1])
        best = without
        for nugget in NUGGETS:
            other = self._fitted(X, Z, units, length, nugget)
            surprisal = _surprisal(other[1])
            if surprisal > least:  # and larger ones are worse still
                break
            best, least = other, surprisal
        return best if least < limit - DECISIVE else without

    def _fitted(
        self, X: FloatArray, Z: FloatArray, units: FloatArray, length: float, nugget: float
    ) -> Fitted:
        """Landmarks among these pairs, and the regression on their features."""
        landmarks = Landmarks(self.dim_x, self.smoothness, self.landmarks)
        landmarks.units = units
        repeat = landmarks.spread(X, length, nugget)
        models = self._fresh_models()
        blocks = (slice(start, start + BLOCK) for start in range(0, len(X), BLOCK))
        models.learn_sums(0, ((self._rows(landmarks.features(X[block]).rows), Z[block]) for block in blocks))
        return landmarks, models, repeat

    @property
    def _room(self) -> int:
        """The most features before the next rebuild."""
        return min(self.landmarks, max(1, 2 * self._rebuilt_at))

    def _fresh_models(self) -> RidgeModels:
        """Features are not centred: their inner product is the kernel."""
        blocks = {"kernel": self._room, "intercept": 1}
        centring: dict[str, Centring] | None = {} if self._level else None
        return one_regression(blocks, n_outputs=self.dim_z, ridge=self.ridge, centring=centring)

    def _rows(self, features: FloatArray) -> FloatArray:
        """Features, zeros for future landmarks, and without a level 1 for the intercept."""
        rows = np.zeros((len(features), self._room if self._level else self._room + 1))
        rows[:, : features.shape[1]] = features
        if not self._level:
            rows[:, -1] = 1.0
        return rows

    def _noise(self) -> FloatArray:
        return np.full(self.dim_z, super()._noise())  # noise_scale is one number for all outputs

    def _arrays(self) -> Arrays:
        return {
            "rebuilt_at": np.array([self._rebuilt_at]),
            **self._landmarks.arrays(),
            **self._pairs.arrays(),
            **{f"waiting_{name}": array for name, array in self._waiting.arrays().items()},
            **self._models.arrays(),
        }

    def _restore(self, arrays: Stored) -> None:
        self._rebuilt_at = int(arrays.take("rebuilt_at", (1,), np.int64)[0])
        arrays.require(0 <= self._rebuilt_at < 2**62, "rebuilt_at", "a count")
        self._landmarks.restore(arrays)
        if not arrays.has("landmarks_nugget"):  # a state of an earlier version
            self.nugget = 0.0
            self.length_scale = "raw median" if self.length_scale == "median" else self.length_scale
        arrays.require(len(self._landmarks.points) <= self._room, "landmarks", f"at most {self._room} rows")
        self._pairs.restore(arrays)
        if arrays.has("waiting_pairs_seen"):  # states of earlier versions have none
            self._waiting.restore(arrays.below("waiting_"))
            arrays.require(self._waiting.seen < MOST_WAITING, "waiting_pairs_seen", "a small count")
        self._level = arrays.has("frame_u")
        arrays.allow_size(self._room, "rebuilt_at")
        self._models = self._fresh_models()
        self._models.restore(arrays, 1)


def _surprisal(models: RidgeModels) -> float:
    """The negative logarithm of the evidence, up to a constant."""
    units = models.units(models.moments())
    known = units.blocks > 0.0
    ridge = models.prior.block_ridge[: len(known)]
    return models.objective(units, None).at(np.log(ridge[known] / units.blocks[known])).value
