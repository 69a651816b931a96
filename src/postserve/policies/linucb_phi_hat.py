"""LinUCB(phi_hat), Algorithm 2 of the paper (after Wang et al. 2016): where it differs from Algorithm 1."""

from typing import Any, Literal, Unpack

import numpy as np

from postserve import confidence
from postserve.changes import replaced
from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies.arms import ArmOptions
from postserve.policies.phi_hat import PhiHat
from postserve.policies.polinucb import PoLinUCB
from postserve.protocols import ContextMap
from postserve.state import Arrays, Stored
from postserve.types import FloatArray, IntArray, MissingZ, Optimism
from postserve.validation import number, one_of


class LinUCBPhiHat(PoLinUCB):
    """Arms regress on the PREDICTED (x_s, phi_hat_s(x_s)), never refreshed; scored at the same.

    `prediction`: "before" predicts before z_s is learnt; "after", the literal Algorithm 2, once it is learnt,
    which leaks z_s while the map is young (no radius is proved for it). `observe` returns the prediction, and
    `credit` takes it as z_hat; without it "before" raises, and "after" predicts with the present map. The
    theory's radii are Algorithm 2's own: they grow with the errors e_s of the map (at its own delta), and
    need `u_bound`, `z_noise_scale` L_eps and `beta_bound` >= ||beta||. The other options are those of
    `PoLinUCB`.

    >>> import numpy as np
    >>> from postserve import RidgeMap
    >>> policy = LinUCBPhiHat(n_arms=2, context_map=RidgeMap(dim_x=1, dim_z=1))
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     for arm, beta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, [2 * x], reward=beta * 2 * x)
    >>> policy.select([5.0], np.random.default_rng(0))
    Decision(arm=0, propensity=1.0)
    """

    def __init__(
        self,
        n_arms: int | None,
        context_map: ContextMap,
        *,
        prediction: Literal["before", "after"] = "before",
        optimism: Optimism = "plugin",
        missing_z: MissingZ = "raise",
        x_features: Features | None = None,
        z_features: Features | None = None,
        z_noise_scale: float = 1.0,
        beta_bound: float = 1.0,
        **options: Unpack[ArmOptions],
    ) -> None:
        self.prediction = one_of("prediction", prediction, ("before", "after"))
        self.z_noise_scale = number("z_noise_scale", z_noise_scale, least=0.0)
        self.beta_bound = number("beta_bound", beta_bound, least=0.0)
        super().__init__(
            n_arms,
            context_map,
            optimism=optimism,
            missing_z=missing_z,
            x_features=x_features,
            z_features=z_features,
            **options,
        )
        if self._arms.arm_radius == "determinant" and self._arms.u_bound is None:
            raise InvalidInput("u_bound is None, wanted a number: Algorithm 2's radius needs it")
        self._map_errors = 0.0  # sum_s e_s

    _argmax_scores = PoLinUCB._argmax_scores

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        """Its line 5: phi_hat learns; returns phi_hat_s(x_s), on which line 6 regresses."""
        if self.prediction == "after":
            effects, after = self._phi_hat.prepare_and_learn(x, slot, z)
            self._work += effects
            error = self._map_error(after, x, slot)
            z_hat: FloatArray | None = after.predict_one(x, slot)
        else:
            error, z_hat = self._map_error(self._phi_hat, x, slot), super()._observe(x, slot, z)
        self._work.append(replaced(self, _map_errors=self._map_errors + error))
        return z_hat

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """Its line 6: w_hat_a by ridge regression on phi_hat_s(x_s) instead of z_s."""
        if z_hat is None and self.prediction == "after":
            z_hat = self._phi_hat.predict_one(x, slot)
        if z_hat is None:
            raise InvalidInput("z_hat is None, wanted the prediction that observe() returned")
        self._work += self._arms.prepare(slot, x, z_hat, reward=reward)

    def _row(self, x: FloatArray, z: FloatArray, z_hat: FloatArray | None) -> FloatArray:
        assert z_hat is not None  # the map predicted it
        row: FloatArray = self._arms.stack(x, z_hat)[0]
        return row

    def _before_parts(self, x: FloatArray, slot: int) -> FloatArray | None:
        return None if self.prediction == "after" else super()._before_parts(x, slot)

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        """A prediction without a z has an error too."""
        errors = self._map_errors + self._map_error(self._phi_hat, x, slot)
        self._work.append(replaced(self, _map_errors=errors))
        return super()._impute(x, slot)

    def _radius(self, slots: IntArray) -> FloatArray:
        """Its line 7: for the theory's radii, Algorithm 2's own zeta (appendix A)."""
        arms = self._arms
        if arms.arm_radius not in ("determinant", "closed_form"):
            return arms.radius(slots)
        assert arms.u_bound is not None  # checked on construction
        ellipsoid = arms.models.ellipsoid(arms.models_of(slots))
        common: Any = {
            "ridge": ellipsoid.ridge,
            "map_errors": self._map_errors,
            "noise_scale": arms.noise(),
            "z_noise_scale": self.z_noise_scale,
            "beta_bound": self.beta_bound,
            "u_bound": arms.u_bound * ellipsoid.stretch,
            "delta": arms.delta,
            "w_bound": arms.w_bound,
        }
        if arms.arm_radius == "determinant":
            zeta = confidence.phi_hat_radius_determinant(log_det_ratio=ellipsoid.log_det, **common)
        else:
            n, dim_u = ellipsoid.pulls, len(ellipsoid.ridge)
            zeta = confidence.phi_hat_radius_closed_form(pulls=n, dim_u=dim_u, **common)
        return np.asarray(arms.multiplier * zeta)

    def _map_error(self, phi_hat: PhiHat, x: FloatArray, slot: int) -> float:
        """e_s, where the radius needs it."""
        if self._arms.arm_radius not in ("determinant", "closed_form"):
            return 0.0
        return phi_hat.learnt_radius(x, slot)

    def _forget(self, arms: float, map: float) -> None:
        super()._forget(arms, map)
        self._map_errors *= arms

    def _arrays(self) -> Arrays:
        return {**super()._arrays(), "map_errors": np.array([self._map_errors])}

    def _restore(self, arrays: Stored) -> None:
        super()._restore(arrays)
        self._map_errors = float(arrays.take("map_errors", (1,))[0])

    def _why_not_merge(self) -> str | None:
        return "what its arms learnt depends on the map as it was at the time, wanted a PoLinUCB"
