"""The best model for each of many rows, row by row or by matrix products.

Row by row, most widths need not be computed (`kernels.models.score`); a product computes all of them, but
each much faster. A few rows show which is better. Products and the kernels of single rows round differently:
if that could change the best model, the answer is UNDECIDED, as at a tie, and the caller scores that row
again.
"""

from functools import cache

import numpy as np
from threadpoolctl import ThreadpoolController

from postserve.linalg import forms, reading
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import CACHE, DENSE_COUNT, LEVEL_RIDGE, LEVEL_SIZE, OWNER, Storage
from postserve.types import FloatArray, IntArray

ENTRIES_AT_ONCE = 2**20
"""Numbers of an intermediate product: few enough for a processor's cache, and enough to be fast."""
TRIED, LEAST, AT_ONCE = 8, 64, 256
"""Rows tried one by one first; the fewest for which products pay; rows per call of a kernel."""
MOSTLY = 0.3
"""If rows need less than this share of all widths, going row by row is faster."""


def argmax_scores(storage: Storage, U: FloatArray, models: IntArray, radius: FloatArray) -> IntArray:
    """For each row u the index i of the largest w_i·u + radius_i ||u||_{A_i^{-1}}, or UNDECIDED."""
    found = np.empty(len(U), dtype=np.int64)
    tried = TRIED if len(U) >= LEAST else len(U)
    widths = _in_turn(storage, U[:tried], models, radius, found)
    if tried < len(U) and widths >= MOSTLY * tried * len(models):
        with _libraries().limit(limits=1, user_api="blas"):  # more threads would only wait
            _by_products(storage, U[tried:], models, radius, found[tried:])
    else:
        _in_turn(storage, U[tried:], models, radius, found[tried:])
    return found


def _in_turn(storage: Storage, U: FloatArray, models: IntArray, radius: FloatArray, found: IntArray) -> int:
    """Some rows per call: a kernel cannot be interrupted."""
    widths, size = 0, 5 * len(models) + len(storage.prior) + storage.symmetric.shape[2]
    for start in range(0, len(U), AT_ONCE):
        some, work = slice(start, start + AT_ONCE), np.empty(size)
        widths += kernels.argmax_scores_in_turn(U[some], models, radius, work, found[some], storage.where)
    return widths


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


def _by_products(
    storage: Storage, U: FloatArray, models: IntArray, radius: FloatArray, found: IntArray
) -> None:
    dense = _Dense(storage, models)
    few = _Few(storage, models)
    norms, ridge = np.zeros(len(models)), 1.0 / np.where(storage.prior > 0.0, storage.prior, np.inf)
    norms[dense.columns], norms[few.columns] = dense.norms(ridge), few.norms(ridge)
    m, variance = _level(storage)
    norms += abs(m) * np.sqrt(storage.frame[LEVEL_RIDGE])  # ||h|| in the norm of Lambda is at most that
    at_once = max(16, ENTRIES_AT_ONCE // max(dense.width, few.width, len(models)))
    for start in range(0, len(U), at_once):
        rows = U[start : start + at_once]
        cold = (rows**2) @ storage.prior
        if len(dense.columns) == len(models):
            means, squares = dense.project(rows)
        else:
            means, squares = np.zeros((len(rows), len(models))), np.repeat(cold[:, None], len(models), axis=1)
            means[:, dense.columns], squares[:, dense.columns] = dense.project(rows)
            few.fill(rows, means, squares)
        if variance > 0.0:
            tilts = np.repeat(rows[:, -1:], len(models), axis=1)
            tilts[:, dense.columns] = dense.tilts(rows)
            few.tilt(rows, tilts)
            means += m * tilts
            np.maximum(squares, 0.0, out=squares)
            squares += variance * tilts**2
            # a tilt is as accurate as sqrt(lambda_o·cold) allows, and its square enters here
            cold += variance * (storage.frame[LEVEL_RIDGE] * cold + tilts.max(axis=1) ** 2)
        kernels.argmax_beyond_rounding(means, squares, radius, cold, norms, found[start : start + at_once])


def _level(storage: Storage) -> tuple[float, float]:
    """m and 1/A_0 of the shared level; both 0 without one."""
    precision, moment, _ = storage.frame[:LEVEL_SIZE].tolist()
    return (moment / precision, 1.0 / precision) if precision > 0.0 else (0.0, 0.0)


class _Dense:
    """The models among `models` that are dense: their columns, weights and inverses."""

    def __init__(self, storage: Storage, models: IntArray) -> None:
        place = storage.place[models]
        self.columns = np.flatnonzero(place >= 0)
        place, dim = place[self.columns], len(storage.prior)
        # u^T P u costs 2 dim² by a product with P and one with u, and dim² with the packed u u^T, which must
        # be made first and makes a thin product if there are few models.
        self.packed = len(self.columns) >= dim
        self.width = dim * (dim + 1) // 2 if self.packed else len(self.columns) * dim
        everything = len(place) == storage.counts[DENSE_COUNT] and bool((np.diff(place) == 1).all())
        used = slice(0, len(place)) if everything else place  # a slice does not copy
        self.weights = storage.vectors[CACHE, used, 0]
        self.h = storage.frame[LEVEL_RIDGE] * storage.symmetric[CACHE, used, -dim:]
        if self.packed:
            self.inverse = storage.symmetric[CACHE, used]
        else:
            self.inverse = reading.matrices(storage, CACHE, models[self.columns]).reshape(-1, dim)

    def norms(self, ridge: FloatArray) -> FloatArray:
        """||w|| in the norm of Lambda."""
        return np.sqrt(self.weights**2 @ ridge)

    def tilts(self, U: FloatArray) -> FloatArray:
        """h·u of every row under each of them."""
        return np.asarray(U @ self.h.T)

    def project(self, U: FloatArray) -> tuple[FloatArray, FloatArray]:
        """w·u and u^T A^{-1} u of every row under each of them."""
        squares = np.empty((len(U), len(self.columns)))
        if self.packed:
            outer = np.empty((len(U), self.width))
            kernels.pack_rows(U, outer)
            np.matmul(outer, self.inverse.T, out=squares)
        else:
            kernels.dot_blocks(U @ self.inverse.T, U, squares)
        return U @ self.weights.T, squares


class _Few:
    """The models among `models` that have rows: their columns, and g and c of all of these rows."""

    def __init__(self, storage: Storage, models: IntArray) -> None:
        live = forms.live_rows(storage)
        column = np.full(len(storage.place), -1)
        column[models] = np.arange(len(models))
        columns = column[storage.links[live, OWNER]]
        order = np.flatnonzero(columns >= 0)
        columns, live = columns[order], live[order]
        self.starts = np.flatnonzero(np.diff(columns, prepend=-1))
        self.columns = columns[self.starts]
        self.width = len(live)
        self.g, self.c = storage.rows[CACHE, live], storage.values[CACHE, live, 0]
        self.g_of_level = storage.frame[LEVEL_RIDGE] * self.g[:, -1]

    def norms(self, ridge: FloatArray) -> FloatArray:
        """Bounds above ||w|| in the norm of Lambda."""
        along = np.abs(self.c) * np.sqrt(self.g**2 @ ridge)
        return np.add.reduceat(along, self.starts) if self.width else along

    def fill(self, U: FloatArray, means: FloatArray, squares: FloatArray) -> None:
        if self.width:
            along = U @ self.g.T
            means[:, self.columns] = np.add.reduceat(along * self.c, self.starts, axis=1)
            squares[:, self.columns] -= np.add.reduceat(along**2, self.starts, axis=1)

    def tilt(self, U: FloatArray, tilts: FloatArray) -> None:
        if self.width:
            along = (U @ self.g.T) * self.g_of_level
            tilts[:, self.columns] -= np.add.reduceat(along, self.starts, axis=1)
