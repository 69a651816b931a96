"""Ridge regressions in their three forms: reading and learning.

Kernels that Python calls take a storage as one argument, its `where`, which says where its arrays are: to
hand over eleven arrays costs more than most of what is done with them. Those they call are inlined where
they take `StorageArrays`, whose references would be counted otherwise.

Symmetric matrices are packed: the rows of the lower triangle, one after the other. That is half of the
bytes, and u^T P u is one product with the packed u u^T, its off-diagonal entries doubled.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from postserve.linalg.kernels import compiling as compiling  # registers its listener
from postserve.types import FloatArray, IntArray

SUMS_MAY_REORDER = {"reassoc", "contract"}
"""Which lets sums vectorise; nothing else of IEEE arithmetic is relaxed."""

COLD, FIRST_ROW = -1, -2
"""Where a model stands: COLD, at FIRST_ROW - i with i its newest row, or at the dense place k >= 0."""
SUMS, CACHE = 0, 1
"""The two planes of what is stored: the sums, and what follows from them and the prior."""
PULLS, LOG_DET, LOSS, AGE, SQUARES = 0, 1, 2, 3, 4
"""The columns of the tally; sums of y_o² from SQUARES on."""
DENSE_COUNT, ROW_COUNT, GAP_COUNT, UPDATES = 0, 1, 2, 3
OWNER, PREVIOUS = 0, 1
LEVEL_PRECISION, LEVEL_MOMENT, LEVEL_RIDGE, LEVEL_SIZE = 0, 1, 2, 3
"""A_0 and c of a level that the models share, and lambda of their own intercepts; all 0 without a level."""
NOBODY = -1
UNKNOWN = -1.0
MARGIN = 1.0 + 1e-9
"""The square of a width is at most its prior's, up to rounding."""
FLOCK = 16
"""Widths that are computed before the best score is updated."""
UNDECIDED = -1
ROUNDING = 1e-12
"""How far two ways of summing may differ, relative to the sizes of the terms."""
REFACTORISE_EVERY = 4096
"""Rank-one updates of a model after which its inverse is recomputed."""
MAX_LOSS = 1e6
"""A rank-one update costs the new direction a relative error of eps·q, q = u^T A^{-1} u: their sum
since the last factorisation is the drift, free of units. At this much it is 2e-10."""


class StorageArrays(NamedTuple):
    """All arrays of ridge regressions, each in one of three forms (`forms.py`); kernels change them in place.

    A dense model has gram and A^{-1}, moment and weights. Any other has its rows (u, y), and with A and w
    from before the row and q = u^T A^{-1} u, g = A^{-1} u / sqrt(1 + q) and c = (y - w·u) / sqrt(1 + q): then
    A^{-1} = Lambda^{-1} - sum g g^T and w = sum c g.
    """

    place: IntArray  # (models,)
    tally: FloatArray  # (models, SQUARES + outputs)
    prior: FloatArray  # (dim,), the diagonal of Lambda^{-1}
    counts: IntArray  # (4,): dense models, rows in use, rows among them without a model, and rows ever learnt
    symmetric: FloatArray  # (2, dense, dim·(dim + 1)/2), packed: gram, A^{-1}
    vectors: FloatArray  # (2, dense, outputs, dim): moment, weights
    owner: IntArray  # (dense,), the model of each
    links: IntArray  # (rows, 2): the model of each or NOBODY, and the model's row before it or NOBODY
    rows: FloatArray  # (2, rows, dim): u, g
    values: FloatArray  # (2, rows, outputs): y, c
    frame: FloatArray  # (3 + 2 dim + 2 outputs,): level, origin and offset of u, and of y (`frame.py`)


N_ARRAYS = len(StorageArrays._fields)
N_MODELS, N_OUTPUTS, DIM, DENSE_ROOM, ROW_ROOM = range(N_ARRAYS, N_ARRAYS + 5)
"""What `where` has after the addresses, from which the shapes follow."""


class Storage(StorageArrays):
    """`StorageArrays` that kernels are told of by one argument."""

    @cached_property
    def where(self) -> IntArray:
        """The address of each array, and their sizes; the arrays stay as long as it does."""
        if not all(array.flags.carray for array in self):
            raise RuntimeError("a storage has an array that is not writeable or not in order")
        where = np.empty(ROW_ROOM + 1, dtype=np.int64)
        locate(where, *self)
        return np.asarray(_Holding(where, tuple(self)))

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _storage, tuple(self)  # without `where`


def _storage(*arrays: Any) -> Storage:
    """A storage that was pickled; joblib may hand over arrays that cannot be written to."""
    return Storage(*(np.require(np.asarray(array), requirements=["C", "A", "W"]) for array in arrays))


class _Holding:
    """An array for numpy, whose owner holds others too."""

    def __init__(self, array: Any, others: tuple[Any, ...]) -> None:
        self.__array_interface__ = array.__array_interface__
        self._held = array, others


@njit(no_cfunc_wrapper=True, cache=True)
def locate(
    where: IntArray,
    place: IntArray,
    tally: FloatArray,
    prior: FloatArray,
    counts: IntArray,
    symmetric: FloatArray,
    vectors: FloatArray,
    owner: IntArray,
    links: IntArray,
    rows: FloatArray,
    values: FloatArray,
    frame: FloatArray,
) -> None:
    """Set `where`."""
    where[0], where[1], where[2] = place.ctypes.data, tally.ctypes.data, prior.ctypes.data
    where[3], where[4], where[5] = counts.ctypes.data, symmetric.ctypes.data, vectors.ctypes.data
    where[6], where[7], where[8] = owner.ctypes.data, links.ctypes.data, rows.ctypes.data
    where[9], where[10] = values.ctypes.data, frame.ctypes.data
    where[N_MODELS], where[N_OUTPUTS], where[DIM] = place.shape[0], values.shape[2], prior.shape[0]
    where[DENSE_ROOM], where[ROW_ROOM] = owner.shape[0], links.shape[0]


@intrinsic
def floats(typing: Any, address: Any) -> Any:
    """The numbers at an address, for `carray`."""
    return types.CPointer(types.float64)(address), _to_pointer


@intrinsic
def integers(typing: Any, address: Any) -> Any:
    """The integers at an address, for `carray`."""
    return types.CPointer(types.int64)(address), _to_pointer


def _to_pointer(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return builder.inttoptr(values[0], context.get_value_type(signature.return_type))


@njit(no_cfunc_wrapper=True, cache=True, inline="always")
def arrays_at(where: IntArray) -> StorageArrays:
    """The arrays of a storage."""
    models, outputs, dim = where[N_MODELS], where[N_OUTPUTS], where[DIM]
    dense, rows = where[DENSE_ROOM], where[ROW_ROOM]
    return StorageArrays(
        carray(integers(where[0]), (models,)),
        carray(floats(where[1]), (models, SQUARES + outputs)),
        carray(floats(where[2]), (dim,)),
        carray(integers(where[3]), (4,)),
        carray(floats(where[4]), (2, dense, dim * (dim + 1) // 2)),
        carray(floats(where[5]), (2, dense, outputs, dim)),
        carray(integers(where[6]), (dense,)),
        carray(integers(where[7]), (rows, 2)),
        carray(floats(where[8]), (2, rows, dim)),
        carray(floats(where[9]), (2, rows, outputs)),
        carray(floats(where[10]), (LEVEL_SIZE + 2 * dim + 2 * outputs,)),
    )


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def dot(a: FloatArray, b: FloatArray) -> float:
    """a·b."""
    total = 0.0
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@njit(no_cfunc_wrapper=True, cache=True)
def fill(values: FloatArray, value: float) -> None:
    """values[:] = value, as a loop, which compiles much faster, here and in `copy`."""
    for k in range(values.shape[0]):
        values[k] = value


@njit(no_cfunc_wrapper=True, cache=True)
def copy(values: FloatArray, source: FloatArray) -> None:
    """values[:] = source."""
    for k in range(source.shape[0]):
        values[k] = source[k]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def dots(rows: FloatArray, u: FloatArray, out: FloatArray) -> None:
    """out[i] = rows[i]·u, four at once if possible: equal rows must have equal bits."""
    n = rows.shape[0]
    if n < 4:
        for i in range(n):
            out[i] = dot(rows[i], u)
        return
    for start in range(0, n, 4):
        i = min(start, n - 4)
        a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
        to_a, to_b, to_c, to_d = 0.0, 0.0, 0.0, 0.0
        for k in range(u.shape[0]):
            to_a += a[k] * u[k]
            to_b += b[k] * u[k]
            to_c += c[k] * u[k]
            to_d += d[k] * u[k]
        out[i], out[i + 1], out[i + 2], out[i + 3] = to_a, to_b, to_c, to_d


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def pack_outer(u: FloatArray, off_diagonal: float, packed: FloatArray) -> None:
    """The packed u u^T, its off-diagonal entries times a factor."""
    start = 0
    for j in range(u.shape[0]):
        row = packed[start : start + j + 1]
        factor = off_diagonal * u[j]
        for k in range(j + 1):
            row[k] = factor * u[k]
        row[j] = u[j] * u[j]
        start += j + 1


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_outer(packed: FloatArray, factor: float, u: FloatArray) -> None:
    """packed += factor · u u^T."""
    start = 0
    for j in range(u.shape[0]):
        row = packed[start : start + j + 1]
        by = factor * u[j]
        for k in range(j + 1):
            row[k] += by * u[k]
        start += j + 1


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_multiplied(packed: FloatArray, u: FloatArray, v: FloatArray) -> None:
    """v += P u."""
    start = 0
    for j in range(u.shape[0]):
        row = packed[start : start + j]
        total, by = 0.0, u[j]
        for k in range(j):
            total += row[k] * u[k]
            v[k] += row[k] * by
        v[j] += total + packed[start + j] * by
        start += j + 1


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def square(packed: FloatArray, u: FloatArray) -> float:
    """u^T P u."""
    total, start = 0.0, 0
    for j in range(u.shape[0]):
        row = packed[start : start + j]
        half = 0.0
        for k in range(j):
            half += row[k] * u[k]
        total += u[j] * (2.0 * half + packed[start + j] * u[j])
        start += j + 1
    return total


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def prior_square(prior: FloatArray, u: FloatArray) -> float:
    """u^T Lambda^{-1} u: the square of a width before the first row."""
    total = 0.0
    for k in range(u.shape[0]):
        total += prior[k] * u[k] * u[k]
    return total


# Rows in a frame (`frame.py`)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def centre_row(u: FloatArray, frame: FloatArray, row: FloatArray) -> None:
    """row = (u - origin - offset, 1); not less their sum, which would be rounded: it must not reorder."""
    dim = row.shape[0]
    for k in range(u.shape[0]):
        row[k] = (u[k] - frame[LEVEL_SIZE + k]) - frame[LEVEL_SIZE + dim + k]
    row[u.shape[0]] = 1.0


# Reading


@njit(no_cfunc_wrapper=True, cache=True)
def in_order(models: IntArray) -> bool:
    """Whether they are 0, 1, 2 and so on."""
    i = 0
    while i < models.shape[0] and models[i] == i:
        i += 1
    return bool(i == models.shape[0])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def project_all_but_dense(
    storage: StorageArrays, U: FloatArray, models: IntArray, means: FloatArray, squares: FloatArray
) -> None:
    """means[i, o] = w_o·u_i and squares[i] = u_i^T A^{-1} u_i, UNKNOWN for dense models.

    U has one row per model, or one for all of them, here and below.
    """
    one, n = U.shape[0] == 1, models.shape[0]
    # With one u for all models, their rows are read in the order of storage, not model by model.
    stream = one and n == storage.place.shape[0] and n > 1 and in_order(models)
    outputs, cold = means.shape[1], 0.0
    for i in range(n):
        u = U[0 if one else i]
        if i == 0 or not one:
            cold = prior_square(storage.prior, u)
        place = storage.place[models[i]]
        if place >= 0:
            for o in range(outputs):
                means[i, o] = dot(storage.vectors[CACHE, place, o], u)
            squares[i] = UNKNOWN
        else:
            fill(means[i], 0.0)
            squares[i] = cold
            row = NOBODY if stream else FIRST_ROW - place
            while row > NOBODY:
                along = dot(storage.rows[CACHE, row], u)
                squares[i] -= along * along
                for o in range(outputs):
                    means[i, o] += storage.values[CACHE, row, o] * along
                row = storage.links[row, PREVIOUS]
    if stream:
        u = U[0]
        for row in range(storage.counts[ROW_COUNT]):
            model = storage.links[row, OWNER]
            if model != NOBODY:
                along = dot(storage.rows[CACHE, row], u)
                squares[model] -= along * along
                for o in range(outputs):
                    means[model, o] += storage.values[CACHE, row, o] * along
    for i in range(n):
        if storage.place[models[i]] < 0:
            squares[i] = max(squares[i], 0.0)


@njit(no_cfunc_wrapper=True, cache=True)
def shares_u(U: FloatArray, models: IntArray) -> bool:
    """Whether several models share one u."""
    return bool(U.shape[0] == 1 and models.shape[0] > 1)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def dense_squares(
    inverse: FloatArray,
    place: IntArray,
    models: IntArray,
    U: FloatArray,
    packed: FloatArray,
    waiting: IntArray,
    squares: FloatArray,
) -> None:
    """squares[i] = u_i^T A^{-1} u_i of all i that are waiting, all of them dense models.

    With one u for many, four at a time read its packed u u^T once. Fewer come as four too: equal models must
    have equal bits.
    """
    count = waiting.shape[0]
    if not shares_u(U, models):
        for k in range(count):
            i = waiting[k]
            squares[i] = max(square(inverse[place[models[i]]], U[i]), 0.0)
        return
    for start in range(0, count, 4):
        i, j = waiting[start], waiting[min(start + 1, count - 1)]
        k, m = waiting[min(start + 2, count - 1)], waiting[min(start + 3, count - 1)]
        P, Q = inverse[place[models[i]]], inverse[place[models[j]]]
        R, S = inverse[place[models[k]]], inverse[place[models[m]]]
        p, q, r, s = 0.0, 0.0, 0.0, 0.0
        for at in range(P.shape[0]):
            p += P[at] * packed[at]
            q += Q[at] * packed[at]
            r += R[at] * packed[at]
            s += S[at] * packed[at]
        squares[i], squares[j] = max(p, 0.0), max(q, 0.0)
        squares[k], squares[m] = max(r, 0.0), max(s, 0.0)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def average_row(U: FloatArray, means: FloatArray, where: IntArray) -> None:
    """means[0, o] = w_o·u: `average` of a first model that is dense, at the only row, here and below."""
    storage = arrays_at(where)
    for o in range(means.shape[1]):
        means[0, o] = dot(storage.vectors[CACHE, 0, o], U[0])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def project_row(U: FloatArray, means: FloatArray, widths: FloatArray, where: IntArray) -> None:
    """`average_row`, and widths[0] = sqrt(u^T A^{-1} u)."""
    storage = arrays_at(where)
    for o in range(means.shape[1]):
        means[0, o] = dot(storage.vectors[CACHE, 0, o], U[0])
    widths[0] = np.sqrt(max(square(storage.symmetric[CACHE, 0], U[0]), 0.0))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def predict_row(U: FloatArray, means: FloatArray, where: IntArray) -> None:
    """`average_row` of a row that is not in the frame yet, plus the centre of the outputs."""
    predicted_row(arrays_at(where), U, means)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def predict_row_and_width(U: FloatArray, means: FloatArray, widths: FloatArray, where: IntArray) -> None:
    """`predict_row`, and the width there."""
    storage = arrays_at(where)
    row = predicted_row(storage, U, means)
    widths[0] = np.sqrt(max(square(storage.symmetric[CACHE, 0], row), 0.0))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def predicted_row(storage: StorageArrays, U: FloatArray, means: FloatArray) -> FloatArray:
    """`predict_row`; returns the row in the frame."""
    row, outputs, frame = np.empty(storage.prior.shape[0]), means.shape[1], storage.frame
    centre_row(U[0], frame, row)
    start = frame.shape[0] - 2 * outputs
    for o in range(outputs):
        average = dot(storage.vectors[CACHE, 0, o], row)
        means[0, o] = (average + frame[start + outputs + o]) + frame[start + o]
    return row


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def average(U: FloatArray, models: IntArray, work: FloatArray, means: FloatArray, where: IntArray) -> None:
    """means[i, o] = w_o·u_i."""
    project_all_but_dense(arrays_at(where), U, models, means, work)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def project(
    U: FloatArray,
    models: IntArray,
    packed: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    where: IntArray,
) -> None:
    """means[i, o] = w_o·u_i and squares[i] = u_i^T A^{-1} u_i; `packed` is scratch."""
    storage = arrays_at(where)
    project_all_but_dense(storage, U, models, means, squares)
    if shares_u(U, models):
        pack_outer(U[0], 2.0, packed)
    waiting, count = np.empty(models.shape[0], dtype=np.int64), 0
    for i in range(models.shape[0]):
        if squares[i] == UNKNOWN:
            waiting[count] = i
            count += 1
    # not count itself: it begins as a literal, for which Numba would compile another case
    dense_squares(storage.symmetric[CACHE], storage.place, models, U, packed, waiting[:count], squares)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def score(
    U: FloatArray, models: IntArray, radius: FloatArray, work: FloatArray, scores: FloatArray, where: IntArray
) -> int:
    """scores[i] = w·u_i + radius_i sqrt(u_i^T A^{-1} u_i); only w·u_i if that cannot be the best.

    A dense model's square is computed only if the prior's, which is never less, could win; returns how often.
    radius has one entry per model or one for all. Unless these are all models at one u, it returns UNDECIDED
    and does nothing: `score_some` scores any models, and is rarely needed. A u without its constant is not in
    the frame yet.
    """
    storage = arrays_at(where)
    n, dim = models.shape[0], storage.prior.shape[0]
    if not (U.shape[0] == 1 and n == storage.place.shape[0] and in_order(models)):
        return UNDECIDED
    means, squares, tilts = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    row, packed = work[3 * n : 3 * n + dim], work[3 * n + dim :]
    if U.shape[1] < dim:
        centre_row(U[0], storage.frame, row)
        U = row.reshape((1, dim))
    score_all_but_dense(storage, U[0], radius, packed, means, squares, tilts, scores)
    return int(score_dense(storage, U, models, radius, packed, means, squares, tilts, scores))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def score_some(
    U: FloatArray, models: IntArray, radius: FloatArray, work: FloatArray, scores: FloatArray, where: IntArray
) -> int:
    """`score` of any models, at one u or at one per model."""
    storage = arrays_at(where)
    n = models.shape[0]
    means, squares, tilts = work[:n], work[n : 2 * n], work[2 * n : 3 * n]
    packed = work[3 * n + U.shape[1] :]
    project_all_but_dense(storage, U, models, means.reshape(n, 1), squares)
    m, variance = level_of(storage)
    for i in range(n):
        tilts[i] = 0.0
        if variance > 0.0:
            add_solved(storage, models[i], U[0 if U.shape[0] == 1 else i], U.shape[1] - 1, tilts[i : i + 1])
            tilts[i] *= storage.frame[LEVEL_RIDGE]
            means[i] += m * tilts[i]
        if squares[i] != UNKNOWN:
            scores[i] = means[i] + entry(radius, i) * np.sqrt(squares[i] + variance * tilts[i] * tilts[i])
    return int(score_dense(storage, U, models, radius, packed, means, squares, tilts, scores))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", inline="always")
def level_of(storage: StorageArrays) -> tuple[float, float]:
    """m and 1/A_0 of the shared level; both 0 without one."""
    precision = storage.frame[LEVEL_PRECISION]
    if precision > 0.0:
        return storage.frame[LEVEL_MOMENT] / precision, 1.0 / precision
    return 0.0, 0.0


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def score_all_but_dense(
    storage: StorageArrays,
    u: FloatArray,
    radius: FloatArray,
    work: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    tilts: FloatArray,
    scores: FloatArray,
) -> None:
    """`score` of every model at one u; of dense ones only the means. Sets the tilts t = h·u of the level.

    Cold models are all alike, and rows are read in the order of storage.
    """
    cold, last = prior_square(storage.prior, u), u.shape[0] - 1
    m, variance = level_of(storage)
    ridge, untilted = storage.frame[LEVEL_RIDGE], 1.0 if variance > 0.0 else 0.0
    width = np.sqrt(cold + variance)
    for i in range(scores.shape[0]):
        scores[i] = m + entry(radius, i) * width
        tilts[i] = untilted
    dense = storage.counts[DENSE_COUNT]
    dots(storage.vectors[CACHE, :dense, 0], u, work)
    for place in range(dense):
        means[storage.owner[place]] = work[place]
    if variance > 0.0:
        for place in range(dense):
            model, P = storage.owner[place], storage.symmetric[CACHE, place]
            tilts[model] = ridge * dot(P[P.shape[0] - last - 1 :], u)
            means[model] += m * tilts[model]
    for row in range(storage.counts[ROW_COUNT]):
        model = storage.links[row, OWNER]
        if model != NOBODY:
            if storage.links[row, PREVIOUS] == NOBODY:
                means[model], squares[model] = 0.0, cold
            along = dot(storage.rows[CACHE, row], u)
            means[model] += storage.values[CACHE, row, 0] * along
            squares[model] -= along * along
            tilts[model] -= ridge * storage.rows[CACHE, row, last] * along
            if storage.place[model] == FIRST_ROW - row:
                t = tilts[model]
                width = np.sqrt(max(squares[model], 0.0) + variance * t * t)
                scores[model] = means[model] + m * t + entry(radius, model) * width


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def score_dense(
    storage: StorageArrays,
    U: FloatArray,
    models: IntArray,
    radius: FloatArray,
    packed: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    tilts: FloatArray,
    scores: FloatArray,
) -> int:
    """The rest of `score`: dense models, given their means and tilts and the scores of all others."""
    n, one, dense, best_dense, best = models.shape[0], U.shape[0] == 1, 0, NOBODY, -np.inf
    for i in range(n):
        if storage.place[models[i]] < 0:
            best = max(best, scores[i])
        else:
            dense += 1
            scores[i] = means[i]
            if best_dense == NOBODY or means[i] > means[best_dense]:
                best_dense = i
    computed = 0
    if dense == 0:
        return computed
    if shares_u(U, models):
        pack_outer(U[0], 2.0, packed)
    inverse, waiting, count, widest = storage.symmetric[CACHE], np.empty(FLOCK, dtype=np.int64), 1, -1.0
    _, variance = level_of(storage)
    # The dense model with the best mean is among the first four: it sets a bar for the others.
    waiting[0], enough = best_dense, 4
    for i in range(n):
        if storage.place[models[i]] >= 0 and i != best_dense:
            if widest < 0.0 or not one:
                widest = MARGIN * prior_square(storage.prior, U[0 if one else i])
            if means[i] + entry(radius, i) * np.sqrt(widest + variance * tilts[i] * tilts[i]) >= best:
                waiting[count] = i
                count += 1
        if count == enough or (count and i == n - 1):
            dense_squares(inverse, storage.place, models, U, packed, waiting[:count], squares)
            for k in range(count):
                j = waiting[k]
                width = np.sqrt(squares[j] + variance * tilts[j] * tilts[j])
                scores[j] = means[j] + entry(radius, j) * width
                best = max(best, scores[j])
            computed += count
            count, enough = 0, FLOCK
    return computed


@njit(no_cfunc_wrapper=True, cache=True)
def entry(values: FloatArray, i: int) -> float:
    """Entry i, or the only one."""
    return float(values[i if values.shape[0] > 1 else 0])


@njit(no_cfunc_wrapper=True, cache=True)
def best(scores: FloatArray) -> tuple[int, int]:
    """The index of the first best score, and how many share it; -1 and 0 where one is NaN."""
    top = -np.inf
    for i in range(scores.shape[0]):
        top = scores[i] if scores[i] > top else top
    ties, strange = 0, 0
    index = -1
    for i in range(scores.shape[0]):
        ties += scores[i] == top
        strange += scores[i] != scores[i]
        if index < 0 and scores[i] == top:
            index = i
    return (-1, 0) if strange else (index, ties)


@njit(no_cfunc_wrapper=True, cache=True)
def nth(scores: FloatArray, value: float, n: int) -> int:
    """The index of the n-th score of that value, counting from 0."""
    for i in range(scores.shape[0]):
        if scores[i] == value:
            if n == 0:
                return i
            n -= 1
    return -1


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def solve(U: FloatArray, models: IntArray, start: int, stop: int, V: FloatArray, where: IntArray) -> None:
    """V[i] = A^{-1} u_i, its coordinates from start to stop."""
    storage = arrays_at(where)
    for i in range(models.shape[0]):
        fill(V[i], 0.0)
        add_solved(storage, models[i], U[0 if U.shape[0] == 1 else i], start, V[i])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def add_solved(storage: StorageArrays, model: int, u: FloatArray, start: int, v: FloatArray) -> None:
    """v += A^{-1} u, the coordinates from start on that fit."""
    dim, size, place = u.shape[0], v.shape[0], storage.place[model]
    if place >= 0:
        P = storage.symmetric[CACHE, place]
        if size == dim:
            add_multiplied(P, u, v)
            return
        for j in range(start, start + size):
            first = j * (j + 1) // 2
            total = dot(P[first : first + j + 1], u[: j + 1])
            for k in range(j + 1, dim):
                total += P[k * (k + 1) // 2 + j] * u[k]
            v[j - start] += total
        return
    for j in range(size):
        v[j] += storage.prior[start + j] * u[start + j]
    row = FIRST_ROW - place
    while row > NOBODY:
        g = storage.rows[CACHE, row]
        along = dot(g, u)
        for j in range(size):
            v[j] -= along * g[start + j]
        row = storage.links[row, PREVIOUS]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def vectors(plane: int, models: IntArray, out: FloatArray, where: IntArray) -> None:
    """The moment, or the weights, of each: (models, outputs, dim)."""
    storage = arrays_at(where)
    for i in range(models.shape[0]):
        for o in range(out.shape[1]):
            fill(out[i, o], 0.0)
            add_vector(storage, plane, models[i], o, 0, out[i, o])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def add_vector(
    storage: StorageArrays, plane: int, model: int, output: int, start: int, out: FloatArray
) -> None:
    """out += moment or weights of one output, the coordinates from start on that fit."""
    place = storage.place[model]
    if place >= 0:
        whole = storage.vectors[plane, place, output]
        for k in range(out.shape[0]):
            out[k] += whole[start + k]
    row = FIRST_ROW - place
    while row > NOBODY:
        value, along = storage.values[plane, row, output], storage.rows[plane, row]
        for k in range(out.shape[0]):
            out[k] += value * along[start + k]
        row = storage.links[row, PREVIOUS]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def unpack(packed: FloatArray, matrix: FloatArray) -> None:
    """The whole symmetric matrix."""
    start = 0
    for j in range(matrix.shape[0]):
        copy(matrix[j], packed[start : start + j + 1])
        for k in range(j):
            matrix[k, j] = packed[start + k]
        start += j + 1


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def unpack_some(packed: FloatArray, place: IntArray, out: FloatArray) -> None:
    """`unpack` of the matrices at these places: `matrices` of dense models."""
    for i in range(place.shape[0]):
        unpack(packed[place[i]], out[i])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def matrices(
    plane: int, models: IntArray, first_row: int, first_column: int, out: FloatArray, where: IntArray
) -> None:
    """A block of the gram, or of A^{-1}, of each: (models, rows, columns)."""
    storage = arrays_at(where)
    for i in range(models.shape[0]):
        place = storage.place[models[i]]
        if place >= 0 and out.shape[1] == out.shape[2] == storage.prior.shape[0]:
            unpack(storage.symmetric[plane, place], out[i])
        else:
            for j in range(out.shape[1]):
                fill(out[i, j], 0.0)
            add_matrix(storage, plane, models[i], first_row, first_column, out[i])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def add_matrix(
    storage: StorageArrays, plane: int, model: int, first_row: int, first_column: int, out: FloatArray
) -> None:
    """out += the gram or A^{-1}, the block from the first row and column on that fits."""
    place, (rows, columns) = storage.place[model], out.shape
    for j in range(rows):
        for k in range(columns):
            low, high = first_row + j, first_column + k
            if low > high:
                low, high = high, low
            if place >= 0:
                out[j, k] += storage.symmetric[plane, place, high * (high + 1) // 2 + low]
            elif plane == CACHE and low == high:
                out[j, k] += storage.prior[low]
    row = FIRST_ROW - place
    while row > NOBODY:
        along = storage.rows[plane, row]
        for j in range(rows):
            by = -along[first_row + j] if plane == CACHE else along[first_row + j]
            for k in range(columns):
                out[j, k] += by * along[first_column + k]
        row = storage.links[row, PREVIOUS]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def project_moving(
    U: FloatArray,
    models: IntArray,
    starts: IntArray,
    variances: FloatArray,
    beta_0: FloatArray,
    packed: FloatArray,
    means: FloatArray,
    squares: FloatArray,
    moved: FloatArray,
    where: IntArray,
) -> None:
    """`project`, where d with these variances is added to u in the blocks at the starts.

    With w ~ N(w_hat, sigma² C) independent of d, the variance of (u + d)·w is sigma² squares + moved, where
    squares is u^T C u + sum_j var_j C_jj and moved is sum_j var_j (beta_j + beta_0j)². d is in all blocks.
    """
    project(U, models, packed, means, squares, where)
    storage = arrays_at(where)
    m, level_variance = level_of(storage)
    ridge, last, size = storage.frame[LEVEL_RIDGE], U.shape[1] - 1, variances.shape[1]
    t, beta, diagonal, h = np.empty(1), np.empty(size), np.empty(size), np.empty(size)
    for i in range(models.shape[0]):
        t[0] = 0.0
        copy(beta, beta_0)
        fill(diagonal, 0.0)
        fill(h, 0.0)
        for start in starts:
            add_vector(storage, CACHE, models[i], 0, start, beta)
            for other in starts:
                add_diagonal(storage, models[i], start, other, diagonal)
        if level_variance > 0.0:
            add_solved(storage, models[i], U[0 if U.shape[0] == 1 else i], last, t)
            for start in starts:
                add_row(storage, models[i], last, start, h)
        means[i, 0] += m * ridge * t[0]
        squares[i] += level_variance * (ridge * t[0]) ** 2
        moved[i] = 0.0
        for j in range(size):
            variance, along = variances[0 if variances.shape[0] == 1 else i, j], beta[j] + m * ridge * h[j]
            squares[i] += variance * (max(diagonal[j], 0.0) + level_variance * (ridge * h[j]) ** 2)
            moved[i] += variance * along * along


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def widths_of_moving(zeta: float, c: float, squares: FloatArray, moved: FloatArray) -> None:
    """squares[i] = sqrt(zeta² squares[i] + c² moved[i]), of which only the root need be in bounds."""
    for i in range(squares.shape[0]):
        variance = squares[i] * (zeta * zeta) + (c * c) * moved[i]
        if variance < np.inf:
            squares[i] = np.sqrt(variance)
        else:
            squares[i] = np.hypot(zeta * np.sqrt(squares[i]), c * np.sqrt(moved[i]))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def add_diagonal(storage: StorageArrays, model: int, start: int, other: int, out: FloatArray) -> None:
    """out[j] += A^{-1}[start + j, other + j]."""
    place = storage.place[model]
    for j in range(out.shape[0]):
        low, high = min(start, other) + j, max(start, other) + j
        if place >= 0:
            out[j] += storage.symmetric[CACHE, place, high * (high + 1) // 2 + low]
        elif low == high:
            out[j] += storage.prior[low]
    row = FIRST_ROW - place
    while row > NOBODY:
        g = storage.rows[CACHE, row]
        for j in range(out.shape[0]):
            out[j] -= g[start + j] * g[other + j]
        row = storage.links[row, PREVIOUS]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def add_row(storage: StorageArrays, model: int, last: int, start: int, out: FloatArray) -> None:
    """out[j] += A^{-1}[last, start + j], of the last row, before its diagonal."""
    place = storage.place[model]
    if place >= 0:
        first = last * (last + 1) // 2 + start
        for j in range(out.shape[0]):
            out[j] += storage.symmetric[CACHE, place, first + j]
    row = FIRST_ROW - place
    while row > NOBODY:
        g = storage.rows[CACHE, row]
        for j in range(out.shape[0]):
            out[j] -= g[last] * g[start + j]
        row = storage.links[row, PREVIOUS]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def project_around(
    U: FloatArray,
    models: IntArray,
    starts: IntArray,
    packed: FloatArray,
    means: FloatArray,
    widths: FloatArray,
    beta: FloatArray,
    cross: FloatArray,
    block: FloatArray,
    where: IntArray,
) -> None:
    """Means, widths, and beta, cross and block: sums of w, A^{-1} u and A^{-1} over the blocks at the starts.

    With d added to u in all of these, means change by beta·d, squared widths by 2 cross·d + d^T block d. A
    shared level has its part in all of them.
    """
    project(U, models, packed, means, widths, where)
    storage = arrays_at(where)
    m, variance = level_of(storage)
    ridge, last = storage.frame[LEVEL_RIDGE], U.shape[1] - 1
    tilt, h = np.empty(1), np.empty((1, block.shape[1]))
    for i in range(models.shape[0]):
        widths[i] = np.sqrt(widths[i])
        fill(beta[i], 0.0)
        fill(cross[i], 0.0)
        for j in range(block.shape[1]):
            fill(block[i, j], 0.0)
        u = U[0 if U.shape[0] == 1 else i]
        for start in starts:
            add_vector(storage, CACHE, models[i], 0, start, beta[i])
            add_solved(storage, models[i], u, start, cross[i])
            for other in starts:
                add_matrix(storage, CACHE, models[i], start, other, block[i])
        if variance > 0.0:
            tilt[0] = 0.0
            add_solved(storage, models[i], u, last, tilt)
            t = ridge * tilt[0]
            fill(h[0], 0.0)
            for start in starts:
                add_matrix(storage, CACHE, models[i], last, start, h)
            means[i, 0] += m * t
            widths[i] = np.sqrt(widths[i] * widths[i] + variance * t * t)
            for j in range(h.shape[1]):
                beta[i, j] += m * ridge * h[0, j]
                cross[i, j] += variance * t * ridge * h[0, j]
                for k in range(h.shape[1]):
                    block[i, j, k] += variance * ridge * ridge * h[0, j] * h[0, k]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_shared_level(
    ridge: FloatArray,
    shared: FloatArray,
    shared_weights: FloatArray,
    U: FloatArray,
    V: FloatArray,
    means: FloatArray,
    squares: FloatArray,
) -> None:
    """With t = Lambda v, v = A^{-1} u: means += m_o·t and squares = u·v + t^T A_0^{-1} t."""
    t = np.empty(V.shape[1])
    for i in range(V.shape[0]):
        for k in range(V.shape[1]):
            t[k] = ridge[k] * V[i, k]
        own = dot(U[0 if U.shape[0] == 1 else i], V[i])
        squares[i] = max(own, 0.0) + max(square(shared, t), 0.0)
        for o in range(means.shape[1]):
            means[i, o] += dot(shared_weights[o], t)


# Reading many rows at once


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def argmax_scores_in_turn(
    U: FloatArray, models: IntArray, radius: FloatArray, work: FloatArray, indices: IntArray, where: IntArray
) -> int:
    """The index of each row's best `score`, UNDECIDED at ties; returns the number of widths computed."""
    n, computed = models.shape[0], 0
    scores, rest = work[:n], work[n:]
    for i in range(U.shape[0]):
        widths = score(U[i : i + 1], models, radius, rest, scores, where)
        if widths == UNDECIDED:
            widths = score_some(U[i : i + 1], models, radius, rest, scores, where)
        computed += widths
        index, ties = best(scores)
        indices[i] = index if ties == 1 else UNDECIDED
    return computed


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def pack_rows(U: FloatArray, packed: FloatArray) -> None:
    """The packed u u^T of each row, its off-diagonal entries doubled."""
    for i in range(U.shape[0]):
        pack_outer(U[i], 2.0, packed[i])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def dot_blocks(V: FloatArray, U: FloatArray, out: FloatArray) -> None:
    """out[i, k] = u_i·v, v being the k-th stretch of dim entries of row i of V."""
    dim = U.shape[1]
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = dot(V[i, k * dim : (k + 1) * dim], U[i])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def argmax_beyond_rounding(
    means: FloatArray,
    squares: FloatArray,
    radius: FloatArray,
    cold: FloatArray,
    norms: FloatArray,
    indices: IntArray,
) -> None:
    """The index of each row's best mean + radius sqrt(square), UNDECIDED if rounding could matter.

    A square is accurate to e = ROUNDING·cold, cold being the prior's square, and its root w to
    2e/(w + sqrt(e)); a mean to ROUNDING·sqrt(cold)·||w||, norms being those in the norm of Lambda.
    """
    rows, n = means.shape
    for i in range(rows):
        least, most, second, index, top = -np.inf, -np.inf, -np.inf, 0, 0
        e, length = ROUNDING * cold[i], ROUNDING * np.sqrt(cold[i])
        root = np.sqrt(e)
        for j in range(n):
            zeta, width = entry(radius, j), np.sqrt(max(squares[i, j], 0.0))
            score = means[i, j] + zeta * width
            if score + length * norms[j] + 2.0 * zeta * root < least:
                continue  # whatever its rounding
            off = length * norms[j] + (zeta * 2.0 * e / (width + root) if root > 0.0 else 0.0)
            if score - off > least:
                least, index = score - off, j
            if score + off > most:
                second, most, top = most, score + off, j
            elif score + off > second:
                second = score + off
        indices[i] = index if index == top and least > second else UNDECIDED


# Learning


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def learn(model: int, u: FloatArray, y: FloatArray, work: FloatArray, where: IntArray) -> tuple[float, bool]:
    """`learn_row`, called from Python; a row without its constant gets it here, in the frame."""
    storage = arrays_at(where)
    if u.shape[0] < storage.prior.shape[0]:
        u, y = from_origin(storage, u, y, work)
    return learn_row(storage, model, u, y, work)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", inline="always")
def from_origin(
    storage: StorageArrays, u: FloatArray, y: FloatArray, work: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(u - origin, 1) and y - origin, in the third and fourth part of `work`: what sums hold of a row."""
    dim, outputs = storage.prior.shape[0], y.shape[0]
    row, value = work[2 * dim : 3 * dim], work[3 * dim : 3 * dim + outputs]
    for k in range(u.shape[0]):
        row[k] = u[k] - storage.frame[LEVEL_SIZE + k]
    row[dim - 1] = 1.0
    for o in range(outputs):
        value[o] = y[o] - storage.frame[LEVEL_SIZE + 2 * dim + o]
    return row, value


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def learn_row(
    storage: StorageArrays, model: int, u: FloatArray, y: FloatArray, work: FloatArray
) -> tuple[float, bool]:
    """Add a row to a model that has room for it: to the sums, then to the cache, by Sherman and Morrison.

    Returns q = u^T A^{-1} u from before the row, and whether the cache can still be trusted; work begins with
    A^{-1} u from before, then has the centred u, and at the end the centred y.
    """
    tally, place, dim, outputs = storage.tally[model], storage.place[model], u.shape[0], y.shape[0]
    v, centred, value = work[:dim], work[dim : 2 * dim], work[3 * dim + outputs : 3 * dim + 2 * outputs]
    storage.counts[UPDATES] += 1
    tally[PULLS] += 1.0
    for o in range(outputs):
        tally[SQUARES + o] += y[o] * y[o]
    if place >= 0:
        less_offset(u, u[dim - 1], storage.frame, LEVEL_SIZE + dim, centred)
        less_offset(y, u[dim - 1], storage.frame, LEVEL_SIZE + 2 * dim + outputs, value)
        add_outer(storage.symmetric[SUMS, place], 1.0, u)
        for o in range(outputs):
            b = storage.vectors[SUMS, place, o]
            for k in range(dim):
                b[k] += y[o] * u[k]
        q = rank_one(storage, place, centred, value, v)
    else:
        q = append(storage, model, u, y, work)
    tally[AGE] += 1.0
    tally[LOSS] += q if q >= 0.0 else np.inf
    tally[LOG_DET] += np.log1p(q)
    return q, tally[LOSS] <= MAX_LOSS and tally[AGE] < REFACTORISE_EVERY


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def less_offset(values: FloatArray, one: float, frame: FloatArray, start: int, out: FloatArray) -> None:
    """out = values - offset, in a row that counts for `one`² rows; without a frame the offset is 0."""
    for k in range(values.shape[0]):
        out[k] = values[k] - frame[start + k] * one


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def rank_one(storage: StorageArrays, place: int, u: FloatArray, y: FloatArray, v: FloatArray) -> float:
    """The cache of a dense model: A^{-1} -= v v^T / (1 + q), w += (y - w·u) v / (1 + q)."""
    inverse, weights = storage.symmetric[CACHE, place], storage.vectors[CACHE, place]
    fill(v, 0.0)
    add_multiplied(inverse, u, v)
    q = dot(u, v)
    gain = 1.0 / (1.0 + q)
    add_outer(inverse, -gain, v)
    for o in range(y.shape[0]):
        w = weights[o]
        by = gain * (y[o] - dot(w, u))
        if o == 0:
            t = storage.frame[LEVEL_RIDGE] * v[v.shape[0] - 1]
            storage.frame[LEVEL_PRECISION] += gain * t * t
            storage.frame[LEVEL_MOMENT] += by * t
        for k in range(u.shape[0]):
            w[k] += by * v[k]
    return q


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER, inline="always")
def append(storage: StorageArrays, model: int, u: FloatArray, y: FloatArray, work: FloatArray) -> float:
    """`learn_row` of a model that keeps its rows: one more (u, y), and its g and c."""
    row = storage.counts[ROW_COUNT]
    storage.counts[ROW_COUNT] = row + 1
    storage.links[row, OWNER] = model
    storage.links[row, PREVIOUS] = FIRST_ROW - storage.place[model]
    storage.place[model] = FIRST_ROW - row
    copy(storage.rows[SUMS, row], u)
    copy(storage.values[SUMS, row], y)
    q = float(whiten(storage.prior, storage.links, storage.rows, storage.values, storage.frame, row, work))
    t = storage.frame[LEVEL_RIDGE] * storage.rows[CACHE, row, u.shape[0] - 1]
    storage.frame[LEVEL_PRECISION] += t * t
    storage.frame[LEVEL_MOMENT] += t * storage.values[CACHE, row, 0]
    return q


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def whiten(
    prior: FloatArray,
    links: IntArray,
    rows: FloatArray,
    values: FloatArray,
    frame: FloatArray,
    row: int,
    work: FloatArray,
) -> float:
    """g and c of a row, given those of its model's earlier rows; returns q, and work begins with A^{-1} u."""
    dim, c = prior.shape[0], values[CACHE, row]
    one = rows[SUMS, row, dim - 1]
    v, u = work[:dim], work[dim : 2 * dim]
    less_offset(rows[SUMS, row], one, frame, LEVEL_SIZE + dim, u)
    less_offset(values[SUMS, row], one, frame, LEVEL_SIZE + 2 * dim + c.shape[0], c)
    for k in range(dim):
        v[k] = prior[k] * u[k]
    before = links[row, PREVIOUS]
    while before > NOBODY:
        g = rows[CACHE, before]
        along = dot(g, u)
        for k in range(dim):
            v[k] -= along * g[k]
        for o in range(c.shape[0]):
            c[o] -= values[CACHE, before, o] * along
        before = links[before, PREVIOUS]
    q = max(dot(u, v), 0.0)
    root = 1.0 / np.sqrt(1.0 + q)
    for k in range(dim):
        rows[CACHE, row, k] = root * v[k]
    for o in range(c.shape[0]):
        c[o] *= root
    return q


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def whiten_all(work: FloatArray, where: IntArray) -> None:
    """g and c of all rows, and their models' tally of them, under the present prior."""
    storage = arrays_at(where)
    for row in range(storage.counts[ROW_COUNT]):
        model = storage.links[row, OWNER]
        if model != NOBODY:
            tally = storage.tally[model]
            if storage.links[row, PREVIOUS] == NOBODY:
                tally[LOG_DET] = tally[LOSS] = tally[AGE] = 0.0
            q = whiten(storage.prior, storage.links, storage.rows, storage.values, storage.frame, row, work)
            tally[AGE] += 1.0
            tally[LOSS] += q
            tally[LOG_DET] += np.log1p(q)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def learn_rows(models: IntArray, U: FloatArray, Y: FloatArray, work: FloatArray, where: IntArray) -> IntArray:
    """Row by row; returns the models with a cache that can no longer be trusted."""
    storage = arrays_at(where)
    lost = []
    for i in range(models.shape[0]):
        u, y = U[i], Y[i]
        if u.shape[0] < storage.prior.shape[0]:
            u, y = from_origin(storage, u, y, work)
        _, sound = learn_row(storage, models[i], u, y, work)
        if not sound and models[i] not in lost:
            lost.append(models[i])
    return np.array(lost, dtype=np.int64)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def fill_dense(model: int, place: int, where: IntArray) -> None:
    """Turn a model's rows into sums in a dense place."""
    storage = arrays_at(where)
    for plane in (SUMS, CACHE):
        fill(storage.symmetric[plane, place], 0.0)
        for o in range(storage.values.shape[2]):
            fill(storage.vectors[plane, place, o], 0.0)
    start = 0
    for j in range(storage.prior.shape[0]):
        storage.symmetric[CACHE, place, start + j] = storage.prior[j]
        start += j + 1
    row = FIRST_ROW - storage.place[model]
    while row > NOBODY:
        for plane in (SUMS, CACHE):
            along = storage.rows[plane, row]
            add_outer(storage.symmetric[plane, place], 1.0 if plane == SUMS else -1.0, along)
            for o in range(storage.values.shape[2]):
                value, total = storage.values[plane, row, o], storage.vectors[plane, place, o]
                for k in range(along.shape[0]):
                    total[k] += value * along[k]
        storage.links[row, OWNER] = NOBODY
        storage.counts[GAP_COUNT] += 1
        row = storage.links[row, PREVIOUS]
    storage.place[model] = place
    storage.owner[place] = model
    storage.counts[DENSE_COUNT] += 1  # at last: other threads may be reading
