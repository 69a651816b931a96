"""Where rows are measured from: the origin of y, and the centre of each column of u.

Adding a constant to all y, or to a column of z, must change nothing. So the sums hold y and u less their
first values, the origin, which costs no digit however large the constant is. Caches, and all that is read,
are of rows less an offset too, which is renewed with the prior: the means of y and of z. A column of x is
moved towards its mean by James and Stein's positive-part factor

    max(0, 1 - d/((N - 3) sum_i mean_i²/var_i))

of its block, so that no centre is believed that N rounds cannot tell from 0. In the frame, u ends with the
constant 1: with it a move is a linear map of the rows, u' = u - delta·1, and so of their sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.linalg import forms
from postserve.linalg.evidence import Units, or_zero
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.frame import POSSIBLE, bound_gram, move_grams
from postserve.linalg.kernels.models import (
    DENSE_COUNT,
    LEVEL_SIZE,
    NOBODY,
    OWNER,
    PULLS,
    ROW_COUNT,
    SQUARES,
    SUMS,
    Storage,
)
from postserve.state import Arrays, Stored
from postserve.types import BoolArray, FloatArray

Centring: TypeAlias = Literal["none", "shrunk", "full"]
"""How a block of u is centred: not at all, as x is, or as z is."""
LEAST_ROUNDS = 8.0
"""Fewer rounds tell no column of x from 0."""
CONSTANT = 1e-13
"""A variance below this share of the mean square is rounding: the column is constant."""
FAR = 100.0
"""If the square of an offset is so many variances, the origin moves to the centre: it costs digits."""


@dataclass(frozen=True)
class Moments:
    """The sums over all rounds of u_k, u_k², y_o, y_o², and the number of rounds."""

    u: FloatArray
    u_squares: FloatArray
    y: FloatArray
    y_squares: FloatArray
    rounds: float

    def plus(self, other: "Moments") -> "Moments":
        """The moments of the rounds of both."""
        return Moments(
            self.u + other.u,
            self.u_squares + other.u_squares,
            self.y + other.y,
            self.y_squares + other.y_squares,
            self.rounds + other.rounds,
        )

    @cached_property
    def mean(self) -> FloatArray:
        """The mean of each column of u."""
        return self.u / self._divisor

    @cached_property
    def mean_square(self) -> FloatArray:
        """The mean square of each column of u."""
        return self.u_squares / self._divisor

    @cached_property
    def variance(self) -> FloatArray:
        """The variance of each column of u."""
        return _variance(self.mean, self.mean_square)

    @cached_property
    def y_mean(self) -> FloatArray:
        """The mean of each output."""
        return self.y / self._divisor

    @cached_property
    def y_variance(self) -> FloatArray:
        """The variance of each output."""
        return _variance(self.y_mean, self.y_squares / self._divisor)

    @property
    def _divisor(self) -> float:
        return max(self.rounds, float(np.finfo(np.float64).tiny))


class Shift(NamedTuple):
    """A move: delta is taken from each column of u, epsilon from each output."""

    delta: FloatArray
    epsilon: FloatArray


class Frame:
    """Takes rows u and outputs y to where they are measured from, and appends the constant to u.

    >>> frame = Frame({"x": 1, "z": 1, "intercept": 1}, {"x": "shrunk", "z": "full"}, n_outputs=1)
    >>> frame.start(np.array([3.0, 50.0]), np.array([700.0]))
    >>> frame.row(np.array([4.0, 52.0])), frame.outputs(np.array([701.0]))
    (array([1., 2., 1.]), array([1.]))
    """

    def __init__(
        self, blocks: Mapping[str, int], centring: Mapping[str, Centring], *, n_outputs: int
    ) -> None:
        self.kinds: list[tuple[slice, Centring]] = []
        start = 0
        for name, size in blocks.items():
            self.kinds.append((slice(start, start + size), centring.get(name, "none")))
            start += size
        # Kernels have this array too (`Storage.frame`): it is only ever changed in place.
        self.array = np.zeros(LEVEL_SIZE + 2 * start + 2 * n_outputs)
        self.n_outputs = n_outputs
        self.started = False

    @property
    def u(self) -> FloatArray:
        """Origin and offset of u, (2, dim)."""
        return parts_of(self.array, self.n_outputs)[0]

    @property
    def y(self) -> FloatArray:
        """Origin and offset of y, (2, outputs)."""
        return parts_of(self.array, self.n_outputs)[1]

    def row(self, u: FloatArray) -> FloatArray:
        """One u in this frame."""
        row = np.empty(len(u) + 1)
        kernels.centre_row(u, self.array, row)
        return row

    def rows(self, U: FloatArray) -> FloatArray:
        """Rows of u in this frame."""
        if len(U) == 1:
            return self.row(U[0])[None]
        rows, (origin, offset) = np.ones((len(U), U.shape[1] + 1)), self.u
        # not less their sum, which would be rounded
        np.subtract(U, origin[:-1], out=rows[:, :-1])
        rows[:, :-1] -= offset[:-1]
        return rows

    def outputs(self, Y: FloatArray) -> FloatArray:
        """Outputs in this frame."""
        origin, offset = self.y
        return np.asarray((Y - origin) - offset)

    @property
    def y_centre(self) -> FloatArray:
        """The outputs that are 0 in this frame."""
        return np.asarray(self.y.sum(axis=0))

    def raw_weights(self, weights: FloatArray, y_centre: npt.ArrayLike) -> FloatArray:
        """Weights (…, dim) of rows as they are.

        The last, of the constant, is the output where all others are 0.
        """
        raw = weights.copy()
        raw[..., -1] += y_centre - weights @ self.u.sum(axis=0)
        return raw

    def start(self, u: FloatArray, y: FloatArray) -> None:
        """Take the first row as the origin."""
        for block, kind in self.kinds:
            if kind != "none":
                self.u[0, block] = u[block]
        self.y[0] = y
        self.started = True

    def renew(self, moments: Moments) -> Shift:
        """Move the offset to the present means; `moments` are from the origin. Returns how far it moved."""
        u, y, mean, n = self.u, self.y, moments.mean, moments.rounds
        (origin, before), y_before = u.copy(), y[1].copy()
        for block, kind in self.kinds:
            if kind == "full":
                u[1, block] = mean[block]
            elif kind == "shrunk":
                centre = _shrunk(origin[block] + mean[block], moments.variance[block], n)
                u[1, block] = centre - origin[block]
        y[1] = moments.y_mean
        return Shift(u[1] - before, y[1] - y_before)

    def units(self, moments: Moments) -> Units:
        """The units of rounds in this frame.

        Outputs in variances, the columns of centred blocks in their own.
        """
        off = moments.mean - self.u[1]
        columns, blocks = np.ones(len(off)), np.empty(len(self.kinds))
        for j, (block, kind) in enumerate(self.kinds):
            if kind == "none":
                blocks[j] = moments.mean_square[block].sum()
            else:
                columns[block] = or_zero(moments.variance[block] + off[block] ** 2)
                blocks[j] = np.count_nonzero(columns[block])
        return Units(or_zero(blocks), or_zero(moments.y_variance), columns)

    def far_offset(self, moments: Moments) -> Shift | None:
        """The means of columns and outputs that are far from the origin, 0 for others; None if none is.

        The first row was no typical one, or its arm has been removed, or it is forgotten.
        """
        delta, epsilon = moments.mean, moments.y_mean
        far = delta**2 > FAR * moments.variance
        y_far = epsilon**2 > FAR * moments.y_variance
        for block, kind in self.kinds:
            far[block] &= kind != "none"
        if not (far.any() or y_far.any()):
            return None
        return Shift(np.where(far, delta, 0.0), np.where(y_far, epsilon, 0.0))

    def move_origin(self, shift: Shift) -> None:
        """Move the origin; the centre stays."""
        self.u[0] += shift.delta
        self.u[1] -= shift.delta
        self.y[0] += shift.epsilon
        self.y[1] -= shift.epsilon

    def to(self, other: "Frame") -> Shift:
        """The move from the origin of this frame to that of another one."""
        return Shift(other.u[0] - self.u[0], other.y[0] - self.y[0])

    @property
    def offset(self) -> Shift:
        """The move from the origin to the centre."""
        return Shift(self.u[1], self.y[1])

    def arrays(self) -> Arrays:
        """Everything, as named arrays."""
        return {
            "frame_u": self.u,
            "frame_y": self.y,
            "frame_started": np.array(self.started),
        }

    def restore(self, stored: Stored) -> None:
        """Take back what `arrays` gave."""
        self.u[:], self.y[:] = stored.take("frame_u", self.u.shape), stored.take("frame_y", self.y.shape)
        self.started = bool(stored.take("frame_started", (), np.bool_))


class HasFrame:
    """A learner whose rows may have a frame.

    Verbs that learn take rows as they are, reading takes `centred` ones.
    """

    frame: Frame | None

    def centred(self, U: FloatArray) -> FloatArray:
        """Rows in the frame, if there is one."""
        return U if self.frame is None else self.frame.rows(U)

    def framed(self, u: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A row and its output in the frame, if there is one; the first ever is its origin."""
        frame = self.frame
        if frame is None:
            return u, y
        if not frame.started:
            frame.start(u, y)
        return frame.row(u), frame.outputs(y)

    def all_framed(self, U: FloatArray, Y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Rows and their outputs in the frame, if there is one."""
        frame = self.frame
        if frame is None:
            return U, Y
        if not frame.started and len(U):
            frame.start(U[0], Y[0])
        return frame.rows(U), frame.outputs(Y)


def parts_of(array: FloatArray, n_outputs: int) -> tuple[FloatArray, FloatArray]:
    """Views of a frame's array: origin and offset of u, (2, dim), and of y, (2, outputs)."""
    end = len(array) - 2 * n_outputs
    return array[LEVEL_SIZE:end].reshape(2, -1), array[end:].reshape(2, -1)


def _variance(mean: FloatArray, mean_square: FloatArray) -> FloatArray:
    """The variance of each column; exactly 0 where it is within rounding of it."""
    variance = mean_square - mean**2
    return np.where(variance > CONSTANT * mean_square, variance, 0.0)


def _shrunk(mean: FloatArray, variance: FloatArray, rounds: float) -> FloatArray:
    """The means of a block, as far as they can be told from 0; 0 for constant columns."""
    varies: BoolArray = variance > 0.0
    # Without a mean, mean²/var is on average 1/(N - 3): few rounds let it be anything.
    known = rounds - 3.0 if rounds >= LEAST_ROUNDS else 0.0
    signal = float((mean[varies] ** 2 / variance[varies]).sum()) * known
    factor = max(0.0, 1.0 - float(varies.sum()) / signal) if signal > 0.0 else 0.0
    return np.where(varies, factor * mean, 0.0)


def moments(storage: Storage) -> Moments:
    """The moments of all models; the sums of u and y only where the last column is the constant."""
    dense, dim = slice(0, storage.counts[DENSE_COUNT]), len(storage.prior)
    gram, moment = storage.symmetric[SUMS, dense], storage.vectors[SUMS, dense]
    u, u_squares = gram[:, -dim:].sum(axis=0), forms.diagonal(gram, dim).sum(axis=0)
    y = moment[:, :, -1].sum(axis=0)
    if storage.counts[ROW_COUNT]:
        live = forms.live_rows(storage)
        rows, values = storage.rows[SUMS, live], storage.values[SUMS, live]
        ones = rows[:, -1]
        u, u_squares, y = u + ones @ rows, u_squares + (rows**2).sum(axis=0), y + ones @ values
    tally = storage.tally.sum(axis=0)
    return Moments(u, u_squares, y, tally[SQUARES:], float(tally[PULLS]))


def move(storage: Storage, shift: Shift) -> None:
    """Move the sums of all models; their caches must then be renewed."""
    dim, dense = len(shift.delta), int(storage.counts[DENSE_COUNT])
    owner, gram = storage.owner[:dense], np.empty((dense, dim, dim))
    kernels.unpack_some(storage.symmetric[SUMS], np.arange(dense), gram)
    gram, moment, squares = moved(gram, storage.vectors[SUMS, :dense], storage.tally[owner, SQUARES:], shift)
    storage.symmetric[SUMS, :dense] = forms.pack(gram)
    storage.vectors[SUMS, :dense] = possible_moment(gram, moment, squares)
    storage.tally[owner, SQUARES:] = squares
    rows = slice(0, int(storage.counts[ROW_COUNT]))
    u, y, owner = storage.rows[SUMS, rows], storage.values[SUMS, rows], storage.links[rows, OWNER]
    y -= shift.epsilon * u[:, -1:]
    u -= shift.delta * u[:, -1:]
    live = owner != NOBODY
    storage.tally[storage.place < 0, SQUARES:] = 0.0
    np.add.at(storage.tally[:, SQUARES:], owner[live], y[live] ** 2)


def moved(
    gram: FloatArray, moment: FloatArray, squares: FloatArray, shift: Shift
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The sums of rows less delta, and of outputs less epsilon: (…, d, d), (…, outputs, d), (…, outputs).

    The last column of u is the constant.
    """
    (delta, epsilon), dim = shift, gram.shape[-1]
    n, s = gram[..., -1:, -1:], gram[..., -1:, :]
    squares = squares + epsilon * (epsilon * n[..., 0] - 2.0 * moment[..., -1])
    moment = moment - epsilon[:, None] * s
    moment = moment - moment[..., -1:] * delta
    gram = gram.copy()
    move_grams(gram.reshape(-1, dim, dim), delta, np.empty(dim), np.empty(dim))
    return gram, moment, np.maximum(squares, 0.0)


def possible_gram(gram: FloatArray) -> FloatArray:
    """A gram as it is, except for entries that no rows can have: |S_ij|² <= S_ii S_jj, and S_ii >= 0.

    Where sums were subtracted, what is left of an entry may be the rounding of what it was.
    """
    gram = gram.copy()
    bound_gram(gram, np.empty(len(gram)))
    return gram


def possible_moment(gram: FloatArray, moment: FloatArray, squares: FloatArray) -> FloatArray:
    """Each moment as it is, except for entries that no rows can have: |b_oj|² <= S_jj rho_o."""
    roots = np.sqrt(np.maximum(np.diagonal(gram, axis1=-2, axis2=-1), 0.0)) * (1.0 + POSSIBLE)
    most = np.sqrt(squares)[..., :, None] * roots[..., None, :]
    return np.clip(moment, -most, most)
