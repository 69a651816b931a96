"""One ridge regression for everybody."""

from collections.abc import Mapping

import numpy as np

from postserve.linalg import forms
from postserve.linalg.cholesky import factorise
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import CACHE, PULLS, SQUARES, SUMS, UNDECIDED
from postserve.linalg.ridge import Ellipsoid, Projection, RidgeModels, Surroundings
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
        held = self._held
        if len(U) == 1 and models is None and held.place[0] >= 0:
            means, widths = np.empty((1, self.n_outputs)), np.empty(1)
            kernels.project_row(held.symmetric[CACHE, 0], held.vectors[CACHE, 0], U[0], means[0], widths)
            return Projection(means, widths)
        return RidgeModels.project(self, U, _same(U, models))

    def average(self, U: FloatArray, models: IntArray | None = None) -> FloatArray:
        """The means of `project` alone."""
        held = self._held
        if len(U) == 1 and models is None and held.place[0] >= 0:  # few arguments: half of the price
            means = np.empty((1, self.n_outputs))
            kernels.dot_rows(held.vectors[CACHE, 0], U[0], means[0])
            return means
        return RidgeModels.average(self, U, _same(U, models))

    def score(self, U: FloatArray, models: IntArray, radius: FloatArray) -> FloatArray:
        """mean + radius · width of every row."""
        return super().score(U, _same(U, models), radius)

    def leaders(self, U: FloatArray, models: IntArray, radius: FloatArray) -> IntArray:
        """All of them undecided: under one u all are alike."""
        return np.full(len(U), UNDECIDED)

    def solve(self, U: FloatArray, models: IntArray | None = None, block: slice | None = None) -> FloatArray:
        """A^{-1} u of every row, or a block of it."""
        return super().solve(U, _same(U, models), block)

    def surround(self, U: FloatArray, models: IntArray, starts: IntArray, size: int) -> Surroundings:
        """Of every row."""
        return super().surround(U, _same(U, models), starts, size)

    def weights_of(self, models: IntArray) -> FloatArray:
        """w, as often as it is asked for."""
        weights = self.weights
        return np.broadcast_to(weights, (len(models), *weights.shape[1:]))

    def inverse_blocks(self, models: IntArray, rows: slice, columns: slice) -> FloatArray:
        """A block of A^{-1}, as often as it is asked for."""
        block = super().inverse_blocks(_THE_ONE, rows, columns)[0]
        return np.broadcast_to(block, (len(models), *block.shape))

    def ellipsoid(self, models: IntArray) -> Ellipsoid:
        """The same for all."""
        return super().ellipsoid(np.zeros(len(models), dtype=np.int64))

    def deviations(
        self, U: FloatArray, models: IntArray, block: slice, moves: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Draws of u·(w - w_hat), one w in a draw for all its rows, (size, rows)."""
        off = self.draws(len(moves), rng)
        return np.asarray(off @ U.T + np.vecdot(moves, off[:, None, block]))

    def draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws of w - w_hat ~ N(0, A^{-1}), (size, dim)."""
        factor = factorise(self.gram[0], self.ridge, self.moment[0])
        off = rng.standard_normal((size, self.dim)) @ factor.root
        off[:, self._mute] = 0.0
        return np.asarray(off)

    def update(self, model: int, u: FloatArray, y: FloatArray) -> None:
        """One more row, of whichever model."""
        RidgeModels.update(self, 0, u, y)

    def update_batch(self, models: IntArray, U: FloatArray, Y: FloatArray) -> None:
        """Many rows, of whichever models."""
        super().update_batch(np.zeros(len(U), dtype=np.int64), U, Y)

    def packed_inverse(self) -> FloatArray:
        """A^{-1} as the kernels take it."""
        held = self._held
        return held.symmetric[CACHE, 0] if held.place[0] >= 0 else forms.pack(self.inverse[0])

    def set_sums(self, gram: FloatArray, moment: FloatArray, squares: FloatArray, pulls: float) -> None:
        """Put these in the place of all that was learnt."""
        held = self._held = forms.make_dense(self._held, 0)
        held.symmetric[SUMS, 0], held.vectors[SUMS, 0] = forms.pack(gram), moment
        held.tally[0, PULLS], held.tally[0, SQUARES:] = pulls, squares
        self.refactorise()

    def add(self, n_models: int = 1) -> None:
        """One more shares it: nothing to do but to make it at first."""
        if self.n_models == 0:
            super().add(1)

    def remove(self, model: int) -> None:
        """One less shares it: what it taught stays."""

    def restore(self, stored: Stored, n_models: int = 1) -> None:
        """Take back what `arrays` gave."""
        super().restore(stored, 1)

    @property
    def _most_rows(self) -> int:
        return 0  # there is only one: nothing is saved by keeping rows


_THE_ONE = np.zeros(1, dtype=np.int64)


def _same(U: FloatArray, models: IntArray | None) -> IntArray:
    """The one model for every row, or as often as it is asked for."""
    n = len(U) if models is None else len(models)
    return _THE_ONE if n == 1 else np.zeros(n, dtype=np.int64)
