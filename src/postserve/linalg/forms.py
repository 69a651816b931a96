"""The storage of ridge regressions, which grows with the rounds played.

A model has one of three forms, all exact and invisible from outside:

- cold: no row yet, and nothing is stored. Its inverse is Lambda^{-1}, its weights are 0.
- rows: each (u, y), and the g and c that make A^{-1} = Lambda^{-1} - sum g g^T and w = sum c g. One log
  has the rows of all models, in order of arrival.
- dense: packed gram and A^{-1}, moment and weights, once these take less room than the rows.

Here the arrays of `kernels.Storage` grow, and models change form.
"""

from functools import cache
from typing import Any

import numpy as np

from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import (
    CACHE,
    COLD,
    DENSE_COUNT,
    FIRST_ROW,
    GAP_COUNT,
    LEVEL_SIZE,
    NOBODY,
    OWNER,
    PREVIOUS,
    PULLS,
    ROW_COUNT,
    SQUARES,
    SUMS,
    Storage,
)
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray

LEAST_ROWS = 64
"""Rows that the log has room for at first."""


def empty(dim: int, outputs: int) -> Storage:
    """No model at all."""
    return Storage(
        place=np.zeros(0, dtype=np.int64),
        tally=np.zeros((0, SQUARES + outputs)),
        prior=np.zeros(dim),
        counts=np.zeros(4, dtype=np.int64),
        symmetric=np.zeros((2, 0, dim * (dim + 1) // 2)),
        vectors=np.zeros((2, 0, outputs, dim)),
        owner=np.zeros(0, dtype=np.int64),
        links=np.zeros((0, 2), dtype=np.int64),
        rows=np.zeros((2, 0, dim)),
        values=np.zeros((2, 0, outputs)),
        frame=np.zeros(LEVEL_SIZE + 2 * dim + 2 * outputs),
    )


def pack(matrices: FloatArray) -> FloatArray:
    """The lower triangles of (…, dim, dim), row by row.

    >>> pack(np.array([[1.0, 2.0], [2.0, 3.0]]))
    array([1., 2., 3.])
    """
    *rest, dim, _ = matrices.shape
    return np.asarray(matrices.reshape(*rest, dim * dim)[..., _lower(dim)])


def unpack(packed: FloatArray, dim: int) -> FloatArray:
    """The symmetric matrix of a packed one.

    >>> unpack(np.array([1.0, 2.0, 3.0]), 2)
    array([[1., 2.],
           [2., 3.]])
    """
    matrix = np.empty((dim, dim))
    kernels.unpack(packed, matrix)
    return matrix


@cache
def _lower(dim: int) -> IntArray:
    """The flat indices of a matrix's lower triangle."""
    return np.asarray(np.ravel_multi_index(np.tril_indices(dim), (dim, dim)))


def diagonal(packed: FloatArray, dim: int) -> FloatArray:
    """The diagonals of packed matrices, (…, dim)."""
    return np.asarray(packed[..., np.cumsum(np.arange(1, dim + 1)) - 1])


def add_cold(storage: Storage, n_models: int) -> Storage:
    """Append models without rows.

    Who still reads the old storage has no room for them, so their rows must not be counted there.
    """
    tally = np.zeros((len(storage.tally) + n_models, storage.tally.shape[1]))
    tally[: len(storage.tally)] = storage.tally
    place = np.concatenate([storage.place, np.full(n_models, COLD)])
    return _apart(storage)._replace(place=place, tally=tally)


def remove(storage: Storage, model: int) -> Storage:
    """Remove a model and what it has stored; later ones move down by one."""
    hole = int(storage.place[model])
    if hole >= 0:  # the last dense one moves into its place
        last = int(storage.counts[DENSE_COUNT]) - 1
        for arrays in (storage.symmetric, storage.vectors):
            arrays[:, hole] = arrays[:, last]
        storage.owner[hole] = storage.owner[last]
        storage.place[storage.owner[hole]] = hole
        storage.counts[DENSE_COUNT] = last
    else:
        owner = storage.links[: storage.counts[ROW_COUNT], OWNER]
        storage.counts[GAP_COUNT] += np.count_nonzero(owner == model)
        owner[owner == model] = NOBODY
    storage.place[model] = COLD
    storage.tally[model] = 0.0
    storage = without_gaps(storage)
    dense, rows = storage.counts[:GAP_COUNT]
    for owner in (storage.owner[:dense], storage.links[:rows, OWNER]):
        owner[owner > model] -= 1
    place, tally = np.delete(storage.place, model), np.delete(storage.tally, model, axis=0)
    return storage._replace(place=place, tally=tally)


def make_dense(storage: Storage, model: int) -> Storage:
    """Storage in which a model has the dense form; the given one stays as it is.

    They share the matrices, of which the model gets a place that nobody had.
    """
    if storage.place[model] >= 0:
        return storage
    room, used = len(storage.owner), int(storage.counts[DENSE_COUNT])
    storage = _apart(storage)
    if used == room:
        room = min(max(4, 2 * room), len(storage.place))
        storage = storage._replace(
            symmetric=_grown(storage.symmetric, used, room),
            vectors=_grown(storage.vectors, used, room),
            owner=_grown(storage.owner[None], used, room)[0],
        )
    kernels.fill_dense(model, used, storage.where)
    return without_gaps(storage)


def with_room_for_rows(storage: Storage, more: int = 1) -> Storage:
    """Make room for more rows in the log."""
    room, used = len(storage.links), int(storage.counts[ROW_COUNT])
    if used + more <= room:
        return storage
    room = max(LEAST_ROWS, used + more, 3 * room // 2)
    return _apart(storage)._replace(
        links=_grown(storage.links[None], used, room)[0],
        rows=_grown(storage.rows, used, room),
        values=_grown(storage.values, used, room),
    )


def without_gaps(storage: Storage) -> Storage:
    """Close the gaps in the log once they are more than half of it."""
    _, rows, gaps, updates = storage.counts
    if rows < LEAST_ROWS or 2 * gaps <= rows:
        return storage
    alive = np.flatnonzero(storage.links[: storage.counts[ROW_COUNT], OWNER] != NOBODY)
    compact = _apart(storage)._replace(
        counts=np.array([storage.counts[DENSE_COUNT], len(alive), 0, updates]),
        links=storage.links[alive],
        rows=storage.rows.take(alive, axis=1),  # as an index it would change the order in memory
        values=storage.values.take(alive, axis=1),
    )
    chain(compact)
    return compact


def chain(storage: Storage) -> None:
    """Link each row to its model's previous row, and each model to its newest row, from the owners."""
    links = storage.links[: storage.counts[ROW_COUNT]]
    order = np.argsort(links[:, OWNER], kind="stable")
    owners = links[order, OWNER]
    first = np.concatenate([[True], owners[1:] != owners[:-1]])[: len(order)]
    links[order, PREVIOUS] = np.where(first, NOBODY, np.concatenate([[NOBODY], order[:-1]])[: len(order)])
    storage.place[storage.place <= FIRST_ROW] = COLD
    last = np.concatenate([first[1:], [True]])[: len(order)]
    storage.place[owners[last]] = FIRST_ROW - order[last]


def live_rows(storage: Storage) -> IntArray:
    """The rows that have a model, model by model, in order of arrival."""
    owners = storage.links[: storage.counts[ROW_COUNT], OWNER]
    order = np.argsort(owners, kind="stable")
    return np.asarray(order[owners[order] != NOBODY])


def arrays(storage: Storage) -> Arrays:
    """Everything in use, as named arrays."""
    dense, live = slice(0, storage.counts[DENSE_COUNT]), live_rows(storage)
    return {
        "tally": storage.tally,
        "dense_models": storage.owner[dense],
        "dense_gram": storage.symmetric[SUMS, dense],
        "dense_inverse": storage.symmetric[CACHE, dense],
        "dense_moment": storage.vectors[SUMS, dense],
        "dense_weights": storage.vectors[CACHE, dense],
        "row_models": storage.links[live, OWNER],
        "row_u": storage.rows[SUMS, live],
        "row_g": storage.rows[CACHE, live],
        "row_y": storage.values[SUMS, live],
        "row_c": storage.values[CACHE, live],
    }


def restored(stored: Stored, n_models: int, dim: int, outputs: int) -> Storage:
    """What `arrays` gave, checked; or a state of version 1."""
    if stored.has("gram"):
        return _restored_full(stored, n_models, dim, outputs)
    storage = add_cold(empty(dim, outputs), n_models)
    packed = dim * (dim + 1) // 2
    dense, owners = (stored.take(name, (None,), np.int64) for name in ("dense_models", "row_models"))
    symmetric = [stored.take(name, (len(dense), packed)) for name in ("dense_gram", "dense_inverse")]
    vectors = [stored.take(name, (len(dense), outputs, dim)) for name in ("dense_moment", "dense_weights")]
    rows = [stored.take(name, (len(owners), dim)) for name in ("row_u", "row_g")]
    values = [stored.take(name, (len(owners), outputs)) for name in ("row_y", "row_c")]
    storage = storage._replace(
        tally=stored.take("tally", (n_models, SQUARES + outputs)),
        counts=np.array([len(dense), len(owners), 0, 0]),
        symmetric=np.array(symmetric),
        vectors=np.array(vectors),
        owner=dense,
        links=np.stack([owners, owners], axis=1),
        rows=np.array(rows),
        values=np.array(values),
    )
    everyone = np.sort(np.concatenate([dense, np.unique(owners)]))
    each_once = bool((np.diff(everyone, prepend=-1, append=n_models) > 0).all())
    stored.require(each_once, "dense_models", "each model once, with rows or without")
    stored.require(not (storage.tally < 0.0).any(), "tally", "no negative numbers")
    stored.require(not (diagonal(symmetric[0], dim) < 0.0).any(), "dense_gram", "no negative numbers")
    storage.place[dense] = np.arange(len(dense))
    chain(storage)
    return storage


def _restored_full(stored: Stored, n_models: int, dim: int, outputs: int) -> Storage:
    """A state of version 1: full matrices of every model, pulled or not."""
    names = {"pulls": np.float64, "log_det": np.float64, "loss": np.float64, "age": np.int64}
    tally = [stored.take(name, (n_models,), kind) for name, kind in names.items()]
    squares = stored.take("squares", (n_models, outputs))
    symmetric = [stored.take(name, (n_models, dim, dim)) for name in ("gram", "inverse")]
    vectors = [stored.take(name, (n_models, outputs, dim)) for name in ("moment", "weights")]
    storage = add_cold(empty(dim, outputs), n_models)
    pulled = np.flatnonzero(tally[PULLS] > 0.0)
    storage.place[pulled] = np.arange(len(pulled))
    storage = storage._replace(
        tally=np.column_stack([*tally, squares]),
        counts=np.array([len(pulled), 0, 0, 0]),
        symmetric=np.array([pack(part[pulled]) for part in symmetric]),
        vectors=np.array([part[pulled] for part in vectors]),
        owner=pulled,
    )
    for name, values in (
        ("pulls", tally[PULLS]),
        ("squares", squares),
        ("gram", np.diagonal(symmetric[0], axis1=1, axis2=2)),
    ):
        stored.require(not (values < 0).any(), name, "no negative numbers")
    return storage


def _apart(storage: Storage) -> Storage:
    """Copy places, owners, links and counts: the old ones stay as they are until they are replaced."""
    return storage._replace(
        place=storage.place.copy(),
        owner=storage.owner.copy(),
        links=storage.links.copy(),
        counts=storage.counts.copy(),
    )


def _grown(planes: Any, used: int, room: int) -> Any:
    """A copy with more room along the second axis."""
    grown = np.zeros((planes.shape[0], room, *planes.shape[2:]), dtype=planes.dtype)
    grown[:, :used] = planes[:, :used]
    return grown
