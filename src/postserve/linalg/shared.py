"""One ridge regression for everybody."""

from collections.abc import Mapping

import numpy as np

from postserve.linalg.cholesky import factorise
from postserve.linalg.ridge import Ellipsoid, Projection, RidgeModels
from postserve.state import Stored
from postserve.types import FloatArray, IntArray, Ridge


class SharedModel(RidgeModels):
    """One regression that all share: whichever model a row is said to be of, it is this one.

    >>> model = SharedModel({"x": 2}, ridge=4.0)
    >>> model.update(7, np.array([1.0, 0.0]), np.array([5.0]))
    >>> model.project(np.array([[1.0, 0.0], [2.0, 0.0]])).means
    array([[1.],
           [2.]])
    """

    def __init__(self, blocks: Mapping[str, int], *, n_outputs: int = 1, ridge: Ridge = "evidence") -> None:
        super().__init__(1, blocks, n_outputs=n_outputs, ridge=ridge)

    def project(self, U: FloatArray, models: IntArray | None = None) -> Projection:
        """Means and widths of every row."""
        return super().project(U, _same(len(U)))

    def average(self, U: FloatArray, models: IntArray | None = None) -> FloatArray:
        """The means of `project` alone."""
        return super().average(U, _same(len(U)))

    def solve(self, U: FloatArray, models: IntArray | None = None) -> FloatArray:
        """A^{-1} u of every row."""
        return super().solve(U, _same(len(U)))

    def weights_of(self, models: IntArray) -> FloatArray:
        """w, as often as it is asked for."""
        return np.broadcast_to(self.weights, (len(models), *self.weights.shape[1:]))

    def inverse_blocks(self, models: IntArray, rows: slice, columns: slice) -> FloatArray:
        """A block of A^{-1}, as often as it is asked for."""
        block = self.inverse[0, rows, columns]
        return np.broadcast_to(block, (len(models), *block.shape))

    def ellipsoid(self, models: IntArray) -> Ellipsoid:
        """The same for all."""
        return super().ellipsoid(_same(len(models)))

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), one w in a draw for all its rows, (size, rows)."""
        off = self.draws(len(moves), rng)
        return np.asarray(off @ U.T + np.vecdot(moves, off[:, None, block]))

    def draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws of w - w_hat ~ N(0, A^{-1}), (size, dim)."""
        off = rng.standard_normal((size, self.dim)) @ factorise(self.gram[0], self.ridge, self.moment[0]).root
        off[:, self._mute] = 0.0
        return np.asarray(off)

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None:
        """One more row, of whichever model."""
        super().update(0, u, y)

    def add(self, n_models: int = 1) -> None:
        """One more shares it: nothing to do but to make it at first."""
        if self.n_models == 0:
            super().add(1)

    def remove(self, model: int) -> None:
        """One less shares it: what it taught stays."""

    def restore(self, stored: Stored, n_models: int = 1) -> None:
        """Take back what `arrays` gave."""
        super().restore(stored, 1)


def _same(rows: int) -> IntArray:
    return np.zeros(rows, dtype=np.int64)
