"""The errors e_s of the predictions that Algorithm 2 regresses on, and what they cost its radii."""

from typing import Any, Literal, NamedTuple

import numpy as np

from postserve import confidence
from postserve.policies.arms import ArmModels
from postserve.types import FloatArray, IntArray

Bias = Literal["term_by_term", "projected"]


class PredictionErrors(NamedTuple):
    """sum_s e_s; or, if the bias is projected, sum_s e_s² of each regression."""

    sums: FloatArray
    is_projected: bool
    is_of_arms: bool

    @classmethod
    def none_yet(cls, bias: Bias, model: str, n_arms: int) -> "PredictionErrors":
        """Before the first round; where arms share a regression, they share its bias."""
        is_of_arms = bias == "projected" and model == "disjoint"
        return cls(np.zeros(n_arms if is_of_arms else 1), bias == "projected", is_of_arms)

    def and_one(self, slot: int, error: float) -> "PredictionErrors":
        """With that of one more round."""
        sums = self.sums.copy()
        sums[slot if self.is_of_arms else 0] += error**2 if self.is_projected else error
        return self._replace(sums=sums)

    def with_arm(self) -> "PredictionErrors":
        """With one more arm, in the last slot."""
        return self._replace(sums=np.append(self.sums, 0.0)) if self.is_of_arms else self

    def without_arm(self, slot: int) -> "PredictionErrors":
        """Without those of an arm."""
        return self._replace(sums=np.delete(self.sums, slot)) if self.is_of_arms else self

    def radius(
        self, arms: ArmModels, slots: IntArray, *, z_noise_scale: float, beta_bound: float
    ) -> FloatArray:
        """zeta of each arm times exploration: Algorithm 2's own (appendix A), or theorem 2's."""
        ellipsoid = arms.models.ellipsoid(arms.models_of(slots))
        known: Any = {"noise_scale": arms.noise(), "z_noise_scale": z_noise_scale, "beta_bound": beta_bound}
        known |= {"ridge": ellipsoid.ridge, "delta": arms.delta, "w_bound": arms.w_bound}
        if self.is_projected:
            known |= {"error_squares": self.sums[slots] if self.is_of_arms else self.sums}
            zeta = confidence.phi_hat_radius_projected(log_det_ratio=ellipsoid.log_det, **known)
            return np.asarray(arms.multiplier * zeta)
        assert arms.u_bound is not None  # checked by the policy
        known |= {"map_errors": self.sums.item(0), "u_bound": arms.u_bound * ellipsoid.stretch}
        if arms.arm_radius == "determinant":
            zeta = confidence.phi_hat_radius_determinant(log_det_ratio=ellipsoid.log_det, **known)
        else:
            n, dim_u = ellipsoid.pulls, len(ellipsoid.ridge)
            zeta = confidence.phi_hat_radius_closed_form(pulls=n, dim_u=dim_u, **known)
        return np.asarray(arms.multiplier * zeta)
