"""What maps shared by all arms have in common: the checks, and one answer for every arm."""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.state import Persistent
from postserve.types import FloatArray
from postserve.validation import generator, integer, vector


class SharedMap(Persistent, abstract=True):
    """One map for all arms: subclasses predict, measure their radius and learn, of checked arrays."""

    def __init__(self, dim_x: int, dim_z: int) -> None:
        self._dim_x = integer("dim_x", dim_x, least=1)
        self._dim_z = integer("dim_z", dim_z, least=1)

    @property
    def dim_x(self) -> int:
        """Length of x."""
        return self._dim_x

    @property
    def dim_z(self) -> int:
        """Length of z."""
        return self._dim_z

    @property
    def scale_free(self) -> bool:
        """Whether scaling x or z by a power of two scales predictions and radius exactly."""
        return False

    @property
    def order_free(self) -> bool:
        """Whether the map is a function of sums: any order of updates, and merging, give the same."""
        return False

    def predict(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """phi_hat(x), one equal row an arm."""
        z_hat = self._predict(vector("x", x, self.dim_x))
        return np.repeat(z_hat[None], _count(arms), axis=0)

    def radius(self, x: npt.ArrayLike, arms: Sequence[int] = (0,)) -> FloatArray:
        """e: the radius of the ball around phi_hat(x) in which phi(x) is believed to lie."""
        return np.full(_count(arms), self._radius(vector("x", x, self.dim_x)))

    def sample(self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator) -> FloatArray:
        """A draw of phi(x) around phi_hat(x): one equal row an arm."""
        x = vector("x", x, self.dim_x)
        draw = self._predict(x) + self._spread(x) * generator(rng).standard_normal(self.dim_z)
        return np.repeat(draw[None], _count(arms), axis=0)

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Learn that z followed x."""
        integer("arm", arm, least=0)
        self._learn(vector("x", x, self.dim_x), vector("z", z, self.dim_z))

    @abstractmethod
    def _predict(self, x: FloatArray) -> FloatArray: ...

    @abstractmethod
    def _radius(self, x: FloatArray) -> float: ...

    def _spread(self, x: FloatArray) -> FloatArray:
        """Standard deviation of each coordinate: their squares sum to the squared radius."""
        return np.full(self.dim_z, self._radius(x) / np.sqrt(self.dim_z))

    @abstractmethod
    def _learn(self, x: FloatArray, z: FloatArray) -> None: ...


def _count(arms: Sequence[int]) -> int:
    if not hasattr(arms, "__len__") or isinstance(arms, str):
        raise InvalidInput(f"arms is {arms!r}, wanted a sequence of arm ids")
    return len(arms)
