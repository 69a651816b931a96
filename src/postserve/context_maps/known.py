"""A map that is given, not learnt."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from postserve.changes import Effect
from postserve.context_maps.base import SharedMap
from postserve.context_maps.features import check_probe, probe
from postserve.errors import InvalidInput
from postserve.state import Arrays, Stored, refuse_other_settings
from postserve.steps import fast_path
from postserve.types import FloatArray
from postserve.validation import number, vector


class KnownMap(SharedMap):
    """phi_hat = phi: the true map, or one learnt elsewhere. Its radius is zero.

    >>> KnownMap(dim_x=2, dim_z=1, function=lambda x: [x[0] * x[1]]).predict([2.0, 3.0])
    array([[6.]])
    """

    _copied_by_reference = ("function",)
    order_free = True

    def __init__(self, dim_x: int, dim_z: int, function: Callable[[FloatArray], npt.ArrayLike]) -> None:
        super().__init__(dim_x, dim_z)
        if not callable(function):
            raise InvalidInput(f"function is a {type(function).__name__}, wanted a callable")
        self.function = function

    def forget(self, keep: float) -> None:
        """Do nothing: the map is given."""
        number("keep", keep, above=0.0, most=1.0)

    def merge(self, other: "KnownMap") -> None:
        """Do nothing but check that the other is the same map."""
        refuse_other_settings(self, other)

    def _predict(self, X: FloatArray) -> FloatArray:
        rows = [vector("function(x)", self.function(x.copy()), self.dim_z) for x in X]
        return np.array(rows).reshape(len(X), self.dim_z)

    def _arrays(self) -> Arrays:
        return {"probe": probe(self.function, self.dim_x)}

    def _restore(self, arrays: Stored) -> None:
        check_probe("function", probe(self.function, self.dim_x), arrays.take("probe", (None,)))

    def _radius(self, X: FloatArray) -> FloatArray:
        return np.zeros(len(X))

    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        pass

    @fast_path
    def _prepare(self, x: FloatArray, z: FloatArray) -> list[Effect]:
        return []
