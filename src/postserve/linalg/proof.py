"""Whether cached inverses and weights are those of the sums, as they are unless a state was patched together.

A digest shows that a file is as it was written, not that its arrays belong together. With A = gram + Lambda
and v of random signs in the columns' units, A (A^{-1} v) = v and A w = moment cost one pass over the sums.
"""

from collections.abc import Iterator

import numpy as np

from postserve.linalg import forms
from postserve.linalg.frame import parts_of
from postserve.linalg.kernels.models import CACHE, DENSE_COUNT, OWNER, SUMS
from postserve.linalg.regressions import Regressions
from postserve.state import Stored
from postserve.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-4
"""What is rounding, relative to the sizes of what cancels, in well-conditioned models."""
ROUNDING = 1e-13
"""Times the condition it is rounding in the others, of which nothing can be said when no digit is left."""
NUMBERS_AT_ONCE = 2**17
"""In memory, of full matrices or of rows: no more than the loaded state takes anyway."""


def check_caches(models: Regressions, stored: Stored) -> None:
    """Refuse a state whose cache is not that of its sums and prior."""
    with np.errstate(all="ignore"):  # numbers that overflow here are refused, too
        for at in _dense(models):
            sound = _dense_are_sound(models, at)
            stored.require(bool(sound.all()), "dense_inverse", "that of the sums")
        for rows in _groups(models):
            stored.require(bool(_rows_are_sound(models, rows).all()), "row_g", "those of the rows")


def _dense(models: Regressions) -> Iterator[IntArray]:
    """The dense models, some at a time."""
    owners = models.storage.owner[: models.storage.counts[DENSE_COUNT]]
    step = max(1, NUMBERS_AT_ONCE // models.dim**2)
    for start in range(0, len(owners), step):
        yield owners[start : start + step]


def _groups(models: Regressions) -> Iterator[IntArray]:
    """The rows of the other models, some models at a time."""
    live = forms.live_rows(models.storage)
    starts = np.flatnonzero(np.diff(models.storage.links[live, OWNER], prepend=-1))
    _, first = np.unique(starts // max(1, NUMBERS_AT_ONCE // models.dim), return_index=True)
    yield from np.split(live, starts[first])[1:]


def _dense_are_sound(models: Regressions, at: IntArray) -> BoolArray:
    gram, moment, _ = models.centred_sums(at)
    known = np.concatenate([_probes(models, np.diagonal(gram, axis1=1, axis2=2))[:, None], moment], axis=1)
    inverse = Regressions.inverse_of(models, at)
    solved = np.concatenate([known[:, :1] @ inverse, Regressions.weights_of(models, at)], axis=1)
    off = solved @ gram + models.ridge * solved - known
    np.abs(gram, out=gram)
    # Sums are centred by subtraction: their rounding is that of the sums as they are kept.
    gram += np.abs(models.gram_of(at))
    known[:, 1:] = np.abs(moment) + np.abs(models.moment_of(at))
    sizes = np.abs(known) @ np.abs(inverse, out=inverse)
    return _is_rounding(off, sizes @ gram + models.ridge * sizes, known[:, 0])


def _rows_are_sound(models: Regressions, rows: IntArray) -> BoolArray:
    """The same for rows: A = Lambda + sum u u^T, and its inverse is kept as Lambda^{-1} - sum g g^T."""
    storage = models.storage
    owners, u, values = storage.links[rows, OWNER], storage.rows[SUMS, rows], storage.values[SUMS, rows]
    g, u_sizes, value_sizes = (np.abs(part) for part in (storage.rows[CACHE, rows], u, values))
    (_, delta), (_, epsilon) = parts_of(storage.frame, models.n_outputs)
    if delta.any() or epsilon.any():
        ones = u[:, -1:]
        u, values = u - delta * ones, values - epsilon * ones
        u_sizes, value_sizes = u_sizes + np.abs(delta * ones), value_sizes + np.abs(epsilon * ones)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    at, of = owners[starts], np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))

    def times(diagonal: FloatArray, along: FloatArray, vectors: FloatArray) -> FloatArray:
        """(diagonal + sum of the rows' outer products) times one vector per model."""
        sums = np.add.reduceat(along * np.vecdot(along, vectors[of])[:, None], starts)
        return np.asarray(diagonal * vectors + sums)

    v = _probes(models, np.add.reduceat(u**2, starts))
    solved = [Regressions.solve(models, v, at), *Regressions.weights_of(models, at).swapaxes(0, 1)]
    known, known_sizes = (
        [first, *(np.add.reduceat(value[:, None] * row, starts) for value in of_outputs.T)]
        for first, row, of_outputs in ((v, u, values), (np.abs(v), u_sizes, value_sizes))
    )
    off = [times(models.ridge, u, one) - wanted for one, wanted in zip(solved, known, strict=True)]
    sizes = [times(models.ridge, u_sizes, times(storage.prior, g, one)) for one in known_sizes]
    return _is_rounding(np.stack(off, axis=1), np.stack(sizes, axis=1), v)


def _probes(models: Regressions, diagonals: FloatArray) -> FloatArray:
    """v for each diagonal of a gram, random signs in the units of its columns; 0 where inputs were 0."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], models.dim)
    return np.where(models.storage.prior > 0.0, signs, 0.0) * np.sqrt(diagonals + models.ridge)


def _is_rounding(off: FloatArray, sizes: FloatArray, v: FloatArray) -> BoolArray:
    """Whether what A y - v and A w - moment leave is rounding, given the sizes |A| |A^{-1}| |v| of each."""
    lost = np.divide(sizes[:, 0], np.abs(v), out=np.zeros_like(v), where=v != 0.0).max(axis=1, initial=0.0)
    tolerance = TOLERANCE + ROUNDING * lost[:, None, None]
    return np.asarray((np.abs(off) <= tolerance * sizes).all(axis=(1, 2)))
