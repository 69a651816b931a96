"""What policies with a linear reward model an arm, and perhaps a map, have in common."""

import copy
from collections.abc import Callable
from typing import Any

from postserve.context_maps.features import check_probe, probe
from postserve.errors import InvalidInput
from postserve.policies.arms import DEFAULTS, ArmModels
from postserve.policies.base import BasePolicy
from postserve.protocols import ContextMap, Forgets, HoldsArms, Merges, RefitsPrior
from postserve.state import Arrays, Persistent, Stored
from postserve.types import FloatArray, Prior


class LinearPolicy(BasePolicy, abstract=True):
    """`_arms` are the reward models; `context_map` is phi_hat, None where there is none."""

    _arms: ArmModels
    _option_defaults = DEFAULTS
    context_map: ContextMap | None = None

    @property
    def scale_free(self) -> bool:
        """True with evidence, the posterior radius and a map that is scale-free."""
        return self._arms.scale_free and (
            self.context_map is None or bool(getattr(self.context_map, "scale_free", False))
        )

    @property
    def weights(self) -> FloatArray:
        """w_hat, a row an arm in the order of `arms`."""
        return self._arms.models.weights[:, 0].copy()

    @property
    def pulls(self) -> FloatArray:
        """n(a), an entry an arm; forgetting makes it a fraction."""
        return self._arms.models.pulls.copy()

    @property
    def prior(self) -> Prior:
        """The arms' prior in force: the noise variance, and lambda of each block of u."""
        return self._arms.models.prior

    def refit_prior(self) -> None:
        """Learn the priors of arms and map from the evidence now, from a cold start."""
        self._arms.models.refit_prior()
        if isinstance(self.context_map, RefitsPrior):
            self.context_map.refit_prior()

    def _merge(self, other: Any) -> None:
        self._arms.models.merge(other._arms.models)
        if isinstance(self.context_map, Merges):
            self.context_map.merge(other.context_map)

    def _forget(self, arms: float, map: float) -> None:
        if map < 1.0:
            if not isinstance(self.context_map, Forgets):
                what = "there is no map" if self.context_map is None else "its map cannot forget"
                raise InvalidInput(f"map is {map:g}, wanted 1: {what}")
            self.context_map.forget(map)
        if arms < 1.0:
            self._arms.models.forget(arms)

    def _add_arm(self) -> None:
        self._arms.models.add()

    def _remove_arm(self, slot: int) -> None:
        self._arms.models.remove(slot)
        if isinstance(self.context_map, HoldsArms):
            self.context_map.remove_arm(int(self._ids[slot]))

    def _arrays(self) -> Arrays:
        probed = probe(self._map_handed_back(), self.dim_x or 0)
        return {**super()._arrays(), **self._arms.models.arrays(), "probe": probed}

    def _restore(self, arrays: Stored) -> None:
        super()._restore(arrays)
        self._arms.models.restore(arrays, self.n_arms)
        stored = arrays.take("probe", (None,))
        check_probe("context_map", self._map_handed_back(), self.dim_x or 0, stored)

    def _map_handed_back(self) -> Callable[[FloatArray], FloatArray] | None:
        """A map of the user's own, which loading cannot rebuild, as a function to know it again by."""
        phi_hat = self.context_map
        if phi_hat is None or isinstance(phi_hat, Persistent):
            return None
        return lambda point: phi_hat.predict(point, self.arms)


def own_map(context_map: ContextMap) -> ContextMap:
    """A copy of the map: each policy teaches its own, so that two can start from the same one."""
    if not isinstance(context_map, ContextMap) or isinstance(context_map, type):
        raise InvalidInput(f"context_map is a {type(context_map).__name__}, wanted a context map")
    return copy.deepcopy(context_map)
