"""What policies with a context map have in common: how they ask it, and how they teach it."""

import copy

import numpy as np

from postserve.context_maps.base import answering_for_all
from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies.arms import filled
from postserve.policies.linear import LinearPolicy
from postserve.protocols import ContextMap, HoldsArms
from postserve.types import FloatArray, IntArray, MissingZ
from postserve.validation import matrix, number, plain_vector_check, vector


class MappedPolicy(LinearPolicy, abstract=True):
    """`context_map` is phi_hat. What it answers is checked: it may be anyone's.

    A map that gives all arms the same answer is asked but once, with arrays that were checked already.
    """

    def __init__(
        self,
        n_arms: int | None,
        context_map: ContextMap,
        missing_z: MissingZ,
        *,
        x_features: Features | None,
        z_features: Features | None,
    ) -> None:
        self._context_map = own_map(context_map, n_arms)
        self._shared_map = answering_for_all(self._context_map)
        dim_x, dim_z = context_map.dim_x, context_map.dim_z
        super().__init__(n_arms, dim_x, dim_z, missing_z, x_features=x_features, z_features=z_features)
        self._z_is_plain = plain_vector_check(dim_z)

    @property
    def context_map(self) -> ContextMap:
        """phi_hat: the policy's own copy, which it teaches."""
        return self._context_map

    def _teach_map(self, x: FloatArray, slot: int, z: FloatArray) -> None:
        if self._shared_map:
            self._shared_map._learn(x, z)  # x and z were checked
        else:
            self.context_map.update(x, self._id_of(slot), z)

    def _predict(self, x: FloatArray, slot: int) -> FloatArray:
        z_hat = self._predictions(x, np.array([slot]))
        return z_hat if z_hat.ndim == 1 else z_hat[0]

    def _predictions(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """phi_hat(x), checked, as the map may be anyone's: a row a slot, or one vector for all of them."""
        if self._shared_map is None:
            rows = self.context_map.predict(x, self._ids_of(slots))
            return matrix("context_map.predict(x)", rows, len(slots), self.dim_z)
        if x.ndim == 1:
            return self._checked(self._shared_map._predict(x[None])[0])
        return matrix("context_map.predict(x)", self._shared_map._predict(x), len(x), self.dim_z)

    def _checked(self, z_hat: FloatArray) -> FloatArray:
        return z_hat if self._z_is_plain(z_hat) else vector("context_map.predict(x)", z_hat, self.dim_z)

    def _map_radii(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """e at x, checked, an entry a slot."""
        if self._shared_map and x.ndim == 1:
            return _radii(self._shared_map._radius(x[None])[0], slots)
        if self._shared_map:
            e = self._shared_map._radius(x)
        else:
            e = self.context_map.radius(x, self._ids_of(slots))
        e = vector("context_map.radius(x)", e, len(slots))
        number("context_map.radius(x)", float(e.min()), least=0.0)
        return e

    def _ball(self, x: FloatArray, slots: IntArray) -> tuple[FloatArray, FloatArray]:
        """The confidence set of phi(x): its centre phi_hat(x), and its radius."""
        if self._shared_map and x.ndim == 1:
            z_hat, e = self._shared_map._ball(x[None])
            return self._checked(z_hat[0]), _radii(e[0], slots)
        return self._predictions(x, slots), self._map_radii(x, slots)

    def _try_rows(self, X: FloatArray, slots: IntArray) -> None:
        if self._shared_map:
            self._predictions(X, slots)
            return
        for x, slot in zip(X, slots.tolist(), strict=True):
            self._predict(x, slot)

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        return self._predict(x, slot)


def _radii(e: float, slots: IntArray) -> FloatArray:
    """One radius, checked, for all slots."""
    return filled(len(slots), number("context_map.radius(x)", float(e), least=0.0))


def own_map(context_map: ContextMap, n_arms: int | None) -> ContextMap:
    """A copy of the map: each policy teaches its own, so that two can start from the same one."""
    if not isinstance(context_map, ContextMap) or isinstance(context_map, type):
        raise InvalidInput(f"context_map is a {type(context_map).__name__}, wanted a context map")
    if n_arms is None and isinstance(context_map, HoldsArms):
        raise InvalidInput("context_map has a map an arm, wanted one for all: candidates have no ids")
    return copy.deepcopy(context_map)
