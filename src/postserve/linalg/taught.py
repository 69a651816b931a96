"""What arms teach the shared weights of a hybrid regression (`hybrid.py`), removed arms too."""

from typing import NamedTuple

import numpy as np

from postserve.linalg.frame import Moments, Shift, moved
from postserve.linalg.hybrid_evidence import taught
from postserve.linalg.regressions import Regressions
from postserve.state import Stored
from postserve.types import BoolArray, FloatArray


class Taught(NamedTuple):
    """What arms taught w_0, as sums of rows of its regression, and the moments of their rounds."""

    gram: FloatArray  # (d, d)
    moment: FloatArray  # (outputs, d)
    squares: FloatArray  # (outputs,), of the innovations
    pulls: FloatArray  # (1,)
    u_squares: FloatArray  # (d,), sum u_j² of the rounds themselves: the units
    y_squares: FloatArray  # (outputs,), sum y²
    u_sums: FloatArray  # (d,), sum u_j, where u ends with a constant
    y_sums: FloatArray  # (outputs,), sum y

    def moments(self) -> Moments:
        """The moments of the rounds themselves."""
        return Moments(self.u_sums, self.u_squares, self.y_sums, self.y_squares, float(self.pulls[0]))

    def moved(self, shift: Shift) -> "Taught":
        """The same after a move of the rows' centre."""
        gram, moment, squares = moved(self.gram, self.moment, self.squares, shift)
        return self._replace(gram=gram, moment=moment, squares=squares)

    def from_origin(self, shift: Shift) -> "Taught":
        """The same after a move of the rounds' origin."""
        (delta, epsilon), n = shift, self.pulls[0]
        return self._replace(
            u_squares=np.maximum(self.u_squares + delta * (n * delta - 2.0 * self.u_sums), 0.0),
            y_squares=np.maximum(self.y_squares + epsilon * (n * epsilon - 2.0 * self.y_sums), 0.0),
            u_sums=self.u_sums - n * delta,
            y_sums=self.y_sums - n * epsilon,
        )


def taught_by(own: Regressions, model: int, zero_inputs: BoolArray) -> Taught:
    """What one model has taught w_0, from its sums and cache."""
    one = np.array([model])
    raw, weights = (own.gram_of(one)[0], own.moment_of(one)[0]), own.weights_of(one)[0]
    gram, moment, squares = (part[0] for part in own.centred_sums(one))
    rows = taught(gram, own.inverse_of(one)[0], own.ridge)
    rows[zero_inputs] = 0.0
    return Taught(
        rows,
        own.ridge * weights,
        np.maximum(squares - np.vecdot(moment, weights), 0.0),
        own.pulls[model : model + 1].copy(),
        np.diagonal(raw[0]),
        own.squares[model].copy(),
        raw[0][-1],
        raw[1][:, -1],
    )


def plus(one: Taught, other: Taught) -> Taught:
    """What both taught."""
    return Taught(*(mine + theirs for mine, theirs in zip(one, other, strict=True)))


def shapes(own: Regressions) -> list[tuple[int, ...]]:
    """The shapes of the fields."""
    dim, outputs = own.dim, own.n_outputs
    return [(dim, dim), (outputs, dim), (outputs,), (1,), (dim,), (outputs,), (dim,), (outputs,)]


def restored(stored: Stored, own: Regressions) -> Taught:
    """What was saved by the names of the fields, checked."""
    found, sums = {}, ("u_sums", "y_sums")  # which states of earlier versions have not
    for name, shape in zip(Taught._fields, shapes(own), strict=True):
        known = name not in sums or stored.has(name)
        values = found[name] = stored.take(name, shape) if known else np.zeros(shape)
        if name not in ("moment", *sums):
            checked = np.diagonal(values) if name == "gram" else values
            stored.require(not (checked < 0.0).any(), name, "no negative numbers")
    return Taught(**found)
