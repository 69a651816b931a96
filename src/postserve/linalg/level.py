"""A level m that all regressions share, with a flat prior: y = m + o_a + w_a·(u - mu) + noise.

The frame appends a constant to u (`frame.py`), so that o_a, the arm's own intercept, is the last weight;
lambda_o is its precision, P = A_a^{-1}, and h_a = lambda_o P e_o, which is e_o - A_a^{-1} sum u. Then, as in
a hybrid regression (`hybrid.py`) with a shared level of one dimension and no prior,

    A_0 = sum_a lambda_o (1 - h_ao),  c = sum_a lambda_o w_ao,  m = c/A_0,
    weights of arm a  w_a + m h_a,  their covariance  sigma² C_a,  C_a = P + h_a h_a^T/A_0,

with m added to o_a, which is where u has a 1. A row (u, y) adds gain·t² to A_0 and gain·t·error to c, where
t = h_a·u, error = y - w_a·u and gain = 1/(1 + u^T P u), all from before it (`kernels.learn_row`).
"""

from collections.abc import Mapping

import numpy as np

from postserve.linalg import forms
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import (
    CACHE,
    DENSE_COUNT,
    LEVEL_MOMENT,
    LEVEL_PRECISION,
    LEVEL_RIDGE,
    LEVEL_SIZE,
)
from postserve.linalg.prior import OWN_INTERCEPT, BlockPrior
from postserve.linalg.projections import Projection
from postserve.linalg.reading import present
from postserve.linalg.ridge import RidgeModels
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, Ridge


class LevelModels(RidgeModels):
    """`RidgeModels` with one output and a `centring`, which share a level beside their own intercepts.

    >>> models = LevelModels(2, {"x": 1, "intercept": 1}, centring={"x": "shrunk"})
    >>> for x, y in ((-1.0, 99.0), (1.0, 101.0), (2.0, 102.0)):
    ...     models.update(0, np.array([x]), np.array([y]))
    >>> both = np.array([0, 1])
    >>> means = models.average(models.centred(np.array([[3.0]])), both) + models.frame.y_centre
    >>> means[:, 0].round(1)  # the other regression starts from the common level
    array([103., 100.])
    """

    def _new_prior(self, blocks: Mapping[str, int], n_outputs: int, ridge: Ridge) -> BlockPrior:
        others = (len(blocks) - 1) / (1.0 - OWN_INTERCEPT)
        parts = np.append(np.full(len(blocks) - 1, others), 1.0 / OWN_INTERCEPT)
        return BlockPrior(blocks, n_outputs=n_outputs, ridge=ridge, parts=parts)

    @property
    def level(self) -> float:
        """m, in the frame; 0 before the first row."""
        level = self.storage.frame
        return float(level[LEVEL_MOMENT] / level[LEVEL_PRECISION]) if level[LEVEL_PRECISION] > 0.0 else 0.0

    # Reading: as without a level, and then its part

    def project(self, U: FloatArray, models: IntArray | None = None) -> Projection:
        """Means and widths, in the norm of C, of row i of U under models[i]."""
        assert models is not None  # there are several
        (means, widths), t = super().project(U, models), self._tilts(U, models)
        return Projection(means + (self.level * t)[:, None], np.hypot(widths, self._spread * t))

    def average(self, U: FloatArray, models: IntArray | None = None) -> FloatArray:
        """The means of `project` alone."""
        assert models is not None
        return super().average(U, models) + (self.level * self._tilts(U, models))[:, None]

    def solve(self, U: FloatArray, models: IntArray) -> FloatArray:
        """C u of row i of U under models[i]."""
        along = self._spread**2 * self._tilts(U, models)
        return super().solve(U, models) + along[:, None] * self._h(models)

    def weights_of(self, models: IntArray | None = None) -> FloatArray:
        """w_a + m h_a of each, or of all models: (len(models), 1, dim)."""
        return super().weights_of(models) + self.level * self._h(models)[:, None]

    def inverse_of(
        self, models: IntArray | None = None, rows: slice | None = None, columns: slice | None = None
    ) -> FloatArray:
        """C, or a block of it, of each, or of all models: (len(models), rows, columns)."""
        spread, every = self._spread * self._h(models), slice(None)
        shared_part = spread[:, rows or every, None] * spread[:, None, columns or every]
        return super().inverse_of(models, rows, columns) + shared_part

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), w ~ N(w_hat, C) jointly over rows of different models: (size, rows).

        The level is drawn once for all rows.
        """
        own = super().deviations(U, models, block, moves, rng)
        tilts = self._tilts(U, models) + np.vecdot(moves, self._h(models)[:, block])
        return np.asarray(own + self._spread * rng.standard_normal((len(moves), 1)) * tilts)

    @property
    def _spread(self) -> float:
        """1/sqrt(A_0): the standard deviation of m, in units of sigma; 0 before the first row."""
        precision = float(self.storage.frame[LEVEL_PRECISION])
        return precision**-0.5 if precision > 0.0 else 0.0

    def _tilts(self, U: FloatArray, models: IntArray) -> FloatArray:
        """t = h_a·u of row i of U under models[i]."""
        last, solved = self.dim - 1, np.empty((len(models), 1))
        kernels.solve(U, models, last, self.dim, solved, present(self.storage, models).where)
        return np.asarray(self.ridge[-1] * solved[:, 0])

    def _h(self, models: IntArray | None) -> FloatArray:
        """h_a of each, or of all models: (len(models), dim)."""
        last = slice(self.dim - 1, self.dim)
        return np.asarray(self.ridge[-1] * super().inverse_of(models, last)[:, 0])

    # The level's own sums

    def refactorise(self) -> None:
        """Renew every cache from sums and prior, and the level's sums from these."""
        super().refactorise()
        self._renew_level()

    def refactorise_one(self, model: int) -> None:
        """Renew the cache of one, and the level's sums."""
        super().refactorise_one(model)
        self._renew_level()

    def remove(self, model: int) -> None:
        """Remove a model, and what it taught the level; later ones move down by one."""
        super().remove(model)
        self.keep_digits()
        self._renew_level()

    def _renew_level(self) -> None:
        storage = self.storage
        ridge = 0.0 if self.prior.zero_inputs[-1] else float(self.ridge[-1])
        dense, rows = storage.owner[: storage.counts[DENSE_COUNT]], forms.live_rows(storage)
        # by arm and age, in which a saved state has them, too
        g, c = storage.rows[CACHE, rows, -1], storage.values[CACHE, rows, 0]
        inverse = storage.symmetric[CACHE, : len(dense), -1]
        weights = storage.vectors[CACHE, : len(dense), 0, -1]
        storage.frame[LEVEL_RIDGE] = ridge
        precision = float((1.0 - ridge * inverse).sum()) + ridge * float((g**2).sum())
        storage.frame[LEVEL_PRECISION] = max(ridge * precision, 0.0)
        storage.frame[LEVEL_MOMENT] = ridge * (float(weights.sum()) + float((g * c).sum()))

    def arrays(self) -> Arrays:
        """Sums, cache, prior, frame and level."""
        return {**super().arrays(), "level": self.storage.frame[:LEVEL_SIZE]}

    def restore(self, stored: Stored, n_models: int) -> None:
        """Take back what `arrays` gave."""
        super().restore(stored, n_models)
        self.storage.frame[:LEVEL_SIZE] = stored.take("level", (LEVEL_SIZE,))
        stored.require(self.storage.frame[LEVEL_PRECISION] >= 0.0, "level", "no negative precision")
