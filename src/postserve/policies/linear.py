"""What policies with linear reward models, and perhaps a map, have in common."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from postserve.changes import one_version
from postserve.context_maps.features import check_probe, probe
from postserve.errors import InvalidInput
from postserve.policies.arms import DEFAULTS, ArmModels
from postserve.policies.base import NO_Z, BasePolicy
from postserve.policies.describing import Description, describe
from postserve.protocols import ContextMap, Forgets, HoldsArms, Merges, RefitsPrior
from postserve.state import Arrays, Persistent, Stored
from postserve.types import FloatArray, IntArray, Prior


class LinearPolicy(BasePolicy, abstract=True):
    """A subclass makes its reward models, `_arms`, and its map, `_phi_hat`; it scores and teaches arms."""

    _arms: ArmModels
    _settings_from = ("_arm_set", "_arms")
    _option_defaults = DEFAULTS

    @property
    def context_map(self) -> ContextMap | None:
        """phi_hat: the policy's own copy, which it teaches; None without a map."""
        return None if self._phi_hat is None else self._phi_hat.map

    @property
    def scale_free(self) -> bool:
        """True with evidence, the posterior radius, a scale-free map or none, and no features or guesses."""
        if self.x_features is not None or self.z_features is not None or not self._arms.scale_free:
            return False
        return self.context_map is None or bool(getattr(self.context_map, "scale_free", False))

    @property
    def column_free(self) -> bool:
        """True if it is scale free, with a level and a map with columns in their own units (or none)."""
        phi_hat = self.context_map
        columns = phi_hat is None or bool(getattr(phi_hat, "column_free", False))
        return self.scale_free and self._arms.models.frame is not None and columns

    @property
    def shift_free(self) -> bool:
        """True with a level, a map that learns that of z (or none), and no features or prior weights of z."""
        phi_hat, arms = self.context_map, self._arms
        level = phi_hat is None or bool(getattr(phi_hat, "shift_free", False))
        plain = self.z_features is None and arms.prior_weights is None
        return arms.models.frame is not None and level and plain

    @property
    @one_version
    def weights(self) -> FloatArray:
        """w_hat, one row per arm in the order of `arms`; one row with decision sets."""
        slots = np.zeros(1, dtype=np.int64) if self._arm_set.by_row else self._arm_set.all_slots
        return self._arms.weights(slots)

    @property
    def pulls(self) -> FloatArray:
        """n(a), one entry per arm, or one if they share a model; forgetting makes it a fraction."""
        return self._arms.models.pulls.copy()

    @property
    @one_version
    def prior(self) -> Prior:
        """The arms' prior in force: the noise variance, and lambda of each block of u."""
        return self._arms.models.prior.in_force

    @one_version
    def describe(
        self, x_names: Sequence[str] | None = None, z_names: Sequence[str] | None = None
    ) -> Description:
        """What arms and map have learnt, by the names of the inputs: `BasePolicy.describe`.

        >>> from postserve import LinUCB
        >>> policy = LinUCB(n_arms=2, dim_x=2, ridge=1.0)
        >>> policy.update([1.0, 0.0], 1, None, reward=3.0)
        >>> print(policy.describe(x_names=["age", "visits"]))
        LinUCB: 2 arms
        <BLANKLINE>
                arm 0  arm 1
        pulls       0      1
        age         0    1.5
        visits      0      0
        <BLANKLINE>
        Prior, fixed: ridge x 1.
        """
        return describe(self, x_names, z_names)

    def _refit_prior(self) -> None:
        self._arms.models.prior.refit(self._arms.models)
        self._arms.renew_widths()
        if isinstance(self.context_map, RefitsPrior):
            self.context_map.refit_prior()

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        """Algorithm 1's line 6: phi_hat learns (x, z); returns what it predicted before.

        Before its first z a map cannot say where z lies; then the prediction is from after it.
        """
        phi_hat = self._phi_hat
        if phi_hat is None:
            return None
        if phi_hat.is_taught(slot):
            z_hat = phi_hat.predict_one(x, slot)
            self._work += phi_hat.prepare(x, slot, z)
            return z_hat
        effects, after = phi_hat.prepare_and_learn(x, slot, z)
        self._work += effects
        return after.predict_one(x, slot)

    def _before_parts(self, x: FloatArray, slot: int) -> FloatArray | None:
        phi_hat = self._phi_hat
        return None if phi_hat is None or not phi_hat.is_taught(slot) else phi_hat.predict_one(x, slot)

    def _rows_out(
        self, x: FloatArray, slot: int, z: FloatArray | None, z_hat: FloatArray | None
    ) -> tuple[FloatArray | None, ...]:
        """u at phi_hat(x) until z comes, and then as the arm will learn it; z_hat may be known."""
        if z is not None or self._phi_hat is None:
            return (self._row(x, NO_Z if z is None else z, z_hat),)
        if not self._phi_hat.is_taught(slot):
            return (None,)
        if z_hat is None:
            z_hat = self._phi_hat.predict_one(x, slot)
        return (self._row(x, z_hat, z_hat),)

    def _row(self, x: FloatArray, z: FloatArray, z_hat: FloatArray | None) -> FloatArray:
        """u of a round as the arm learns it."""
        row: FloatArray = self._arms.stack(x, z)[0]
        return row

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        return super()._impute(x, slot) if self._phi_hat is None else self._phi_hat.predict_one(x, slot)

    def _regressions(self) -> list[ArmModels]:
        return [self._arms]

    def _try_rows(self, X: FloatArray, slots: IntArray) -> None:
        if self._phi_hat is not None:
            self._phi_hat.try_rows(X, slots)

    def _why_not_merge(self) -> str | None:
        phi_hat = self.context_map
        if phi_hat is not None and self.missing_z == "impute":
            return "an imputed z depends on the map as it was at the time, wanted missing_z='drop' or 'raise'"
        if phi_hat is not None and not (isinstance(phi_hat, Merges) and phi_hat.order_free):
            return f"its map, {type(phi_hat).__name__}, is not made of sums, wanted an order_free map"
        if not self._arms.models.order_free:
            return "what removed arms taught was weighed by the prior of that time, wanted a numeric ridge"
        return None  # everything learnt is a sum

    def _merge(self, other: Any) -> None:
        if isinstance(self.context_map, Merges):
            self.context_map.merge(other.context_map)  # first, as only the map may refuse
        self._arms.models.merge(other._arms.models)
        self._arms.renew_widths()

    def _forget(self, arms: float, map: float) -> None:
        if map < 1.0:
            if not isinstance(self.context_map, Forgets):
                what = "there is no map" if self.context_map is None else "its map cannot forget"
                raise InvalidInput(f"map is {map:g}, wanted 1: {what}")
            self.context_map.forget(map)
        if arms < 1.0:
            self._arms.models.forget(arms)
            self._arms.renew_widths()

    def _add_arm(self) -> None:
        self._work += self._arms.prepare_add()

    def _remove_arm(self, slot: int) -> None:
        self._arms.remove(slot)
        if isinstance(self.context_map, HoldsArms):
            self.context_map.remove_arm(int(self._arm_set.ids[slot]))

    def _arrays(self) -> Arrays:
        probes = {name: answer for name, _, answer in _probes(self)}
        return {**super()._arrays(), **self._arms.models.arrays(), **probes}

    def _restore(self, arrays: Stored) -> None:
        super()._restore(arrays)
        self._arms.restore(arrays, self.n_arms)
        for name, what, answer in _probes(self):
            check_probe(what, answer, arrays.take(name, (None,)))


def _probes(policy: LinearPolicy) -> Iterator[tuple[str, str, FloatArray]]:
    """Array name, argument and answer, to compare the objects that are handed back on loading."""
    phi_hat, dim_x = policy.context_map, policy.dim_x or 0
    if phi_hat is None or isinstance(phi_hat, Persistent):
        yield "probe", "context_map", probe(None, dim_x)
    else:  # a map of the user's own
        yield "probe", "context_map", probe(lambda x: phi_hat.predict(x, policy.arms or (0,)), dim_x)
    for one in (policy._x, policy._z):
        if one.features is not None:
            yield f"{one.name}_probe", f"{one.name}_features", one.probe()
