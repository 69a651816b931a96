"""LinUCB(phi_hat), Algorithm 2 of the paper (after Wang et al. 2016): where it differs from Algorithm 1."""

from typing import Any, Literal, Unpack

from postserve.changes import replaced
from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies.arms import ArmOptions
from postserve.policies.phi_hat import PhiHat
from postserve.policies.polinucb import PoLinUCB
from postserve.policies.prediction_errors import Bias, PredictionErrors
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
    need `u_bound`, `z_noise_scale` L_eps and `beta_bound` >= ||beta||. `bias` says how: "term_by_term" is
    Equation (13), with sum_s e_s; "projected", with `arm_radius="determinant"`, has sqrt(sum_s e_s²) over an
    arm's own rounds in its place, needs no `u_bound`, and is what theorem 2 of docs/theory/theorem.md is
    about. The other options are those of `PoLinUCB`.

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
        bias: Bias = "term_by_term",
        optimism: Optimism = "plugin",
        missing_z: MissingZ = "raise",
        x_features: Features | None = None,
        z_features: Features | None = None,
        z_noise_scale: float = 1.0,
        beta_bound: float = 1.0,
        **options: Unpack[ArmOptions],
    ) -> None:
        self.prediction = one_of("prediction", prediction, ("before", "after"))
        self.bias: Bias = one_of("bias", bias, ("term_by_term", "projected"))
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
        radius, u_bound = self._arms.arm_radius, self._arms.u_bound
        if bias == "projected" and radius != "determinant":
            raise InvalidInput(f"arm_radius is {radius!r}, wanted 'determinant' with bias='projected'")
        if bias == "term_by_term" and radius == "determinant" and u_bound is None:
            raise InvalidInput("u_bound is None, wanted a number: Algorithm 2's radius needs it")
        self._errors = PredictionErrors.none_yet(self.bias, self._arms.model, self.n_arms)

    _argmax_scores = PoLinUCB._argmax_scores

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        """Its line 5: phi_hat learns; returns phi_hat_s(x_s), on which line 6 regresses."""
        if self.prediction == "after":
            effects, after = self._phi_hat.prepare_and_learn(x, slot, z)
            self._work += effects
            self._count_error(after, x, slot)
            return after.predict_one(x, slot)
        self._count_error(self._phi_hat, x, slot)
        return super()._observe(x, slot, z)

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
        self._count_error(self._phi_hat, x, slot)
        return super()._impute(x, slot)

    def _radius(self, slots: IntArray) -> FloatArray:
        """Its line 7: for the theory's radii, Algorithm 2's own zeta (appendix A, or theorem 2's)."""
        if self._needs_errors:
            known: Any = {"z_noise_scale": self.z_noise_scale, "beta_bound": self.beta_bound}
            return self._errors.radius(self._arms, slots, **known)
        return self._arms.radius(slots)

    @property
    def _needs_errors(self) -> bool:
        return self._arms.arm_radius in ("determinant", "closed_form")

    def _count_error(self, phi_hat: PhiHat, x: FloatArray, slot: int) -> None:
        """One more e_s, where the radius needs it."""
        if self._needs_errors:
            errors = self._errors.and_one(slot, phi_hat.learnt_radius(x, slot))
            self._work.append(replaced(self, _errors=errors))

    def _add_arm(self) -> None:
        super()._add_arm()
        self._work.append(replaced(self, _errors=self._errors.with_arm()))

    def _remove_arm(self, slot: int) -> None:
        super()._remove_arm(slot)
        self._errors = self._errors.without_arm(slot)

    def _forget(self, arms: float, map: float) -> None:
        super()._forget(arms, map)
        self._errors = self._errors._replace(sums=arms * self._errors.sums)

    def _arrays(self) -> Arrays:
        return {**super()._arrays(), "map_errors": self._errors.sums.copy()}

    def _restore(self, arrays: Stored) -> None:
        super()._restore(arrays)
        size = self.n_arms if self._errors.is_of_arms else 1
        self._errors = self._errors._replace(sums=arrays.take("map_errors", (size,)))

    def _why_not_merge(self) -> str | None:
        return "what its arms learnt depends on the map as it was at the time, wanted a PoLinUCB"
