"""An environment made of data: rounds drawn from a table of potential outcomes."""

from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import generator, integer, matrix, vector


class TableEnvironment:
    """Rounds drawn with replacement from rows of x, z and every arm's reward: full information.

    `x` is (n, dim_x), `z` (n, dim_z) and `rewards` (n, n_arms). phi(x) and means(x) are averages over the
    rows with exactly this x; an x that is not in the table is refused.

    >>> rewards = [[0, 1], [1, 0], [3, 0]]
    >>> env = TableEnvironment(x=[[1.0], [2.0], [2.0]], z=[[5.0], [6.0], [8.0]], rewards=rewards)
    >>> env.phi([2.0]), env.means([2.0])
    (array([7.]), array([2., 0.]))
    >>> env.rounds(4, np.random.default_rng(0)).x.ravel()
    array([2., 2., 2., 1.])
    """

    def __init__(self, x: npt.ArrayLike, z: npt.ArrayLike, rewards: npt.ArrayLike) -> None:
        self.x: FloatArray = matrix("x", x, None, None) + 0.0  # a copy, in which -0 is 0
        self.z: FloatArray = matrix("z", z, len(self.x), None).copy()
        self.rewards: FloatArray = matrix("rewards", rewards, len(self.x), None).copy()
        for name, array in (("x", self.x), ("z", self.z), ("rewards", self.rewards)):
            if not array.size:
                raise InvalidInput(f"{name} has shape {array.shape}, wanted at least one row and one column")
        self.dim_x, self.dim_z, self.n_arms = self.x.shape[1], self.z.shape[1], self.rewards.shape[1]
        self._place_of: dict[bytes, int] = {}
        places = [self._place_of.setdefault(row.tobytes(), len(self._place_of)) for row in self.x]
        self._places: IntArray = np.array(places, dtype=np.int64)
        self._phi, self._means = (_averaged(array, self._places) for array in (self.z, self.rewards))

    def __reduce__(self) -> tuple[Any, ...]:
        """The arguments; the rest is recomputed."""
        return type(self), (self.x, self.z, self.rewards)

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x]: the mean over the rows with this x."""
        return np.array(self._phi[self._place(x)])

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """E[reward|x] of each arm: the mean over the rows with this x."""
        return np.array(self._means[self._place(x)])

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rows as potential outcomes, drawn with replacement."""
        rows = generator(rng).integers(len(self.x), size=integer("n", n, least=0))
        return Rounds(self.x[rows], self.z[rows], self.rewards[rows], self._means[self._places[rows]])

    def _place(self, x: npt.ArrayLike) -> int:
        wanted = vector("x", x, self.dim_x) + 0.0
        place = self._place_of.get(wanted.tobytes())
        if place is None:
            raise InvalidInput(f"x is {wanted!r:.60}, wanted one of the table's")
        return place


def _averaged(rows: FloatArray, places: IntArray) -> FloatArray:
    """The mean row of each place."""
    sums = np.zeros((int(places.max()) + 1, rows.shape[1]))
    np.add.at(sums, places, rows)
    return np.asarray(sums / np.bincount(places)[:, None])
