"""poLinUCB, Algorithm 1 of "Follow-ups Also Matter" (NeurIPS 2023), line by line.

====  =====================================================  ==================================
line  the paper                                              here
====  =====================================================  ==================================
2     receive x_t                                            ``select(x, rng)``
3     maximise (x_t, phi(x_t))·w over a, phi and w_a         ``_scores``
4     play a_t; receive z_t and the reward                   ``Decision``, then the world
5     w_hat_a = A_a^{-1} b_a, sums over the observed (x, z)  ``_credit``
6     phi_hat by empirical risk minimisation                 ``LinearPolicy._observe``
7     the confidence sets of w_hat_a and of phi_hat(x_t)     ``_radius``, ``PhiHat.ball``
====  =====================================================  ==================================
"""

from typing import ClassVar, Unpack

from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies.arms import ArmModels, ArmOptions, check_options
from postserve.policies.choosing import ChoosesFromX
from postserve.policies.linear import LinearPolicy
from postserve.policies.phi_hat import PhiHat, checked_map
from postserve.protocols import ContextMap
from postserve.steps import fast_path
from postserve.types import FloatArray, IntArray, MissingZ, Optimism
from postserve.validation import one_of


class PoLinUCB(ChoosesFromX, LinearPolicy):
    """Arms regress on the OBSERVED (x, z); they are scored at (x, phi_hat(x)), optimistically.

    `optimism` over z: "plugin" (none: the ball of z has radius 0), "posterior" (phi and w_a have independent
    posteriors, and the width is the standard deviation of (x, phi(x))·w_a under both; beyond the paper),
    "joint" (the literal line 3) or "bound" (an upper bound of it, by the triangle inequality). `missing_z`,
    for a reward without z: "raise", "impute" (z becomes phi_hat(x)) or "drop". `x_features` and `z_features`
    are callables or fitted transformers: the models see x_features(x) and z_features(z) in place of x and z,
    and the map learns E[z_features(z)]. The policy teaches its own copy of `context_map`.

    x is one context, or has one row per arm (the paper's action-dependent contexts), with one map for all
    arms or a `PerArmMap`. With `n_arms` None and `model="shared"` it is a decision set (the paper's linear
    stochastic bandits): any number of candidates, one per row, and the arm chosen is a row.

    Options of every linear policy, which `postserve.policies.arms.ArmModels` describes: `model` ("disjoint",
    "shared" or "hybrid"), `ridge` ("evidence", a number, or a pair for x and z), `prior_weights` (what z is
    worth, if that is roughly known), `arm_radius` ("posterior", "determinant", "closed_form" or a number),
    `exploration` (multiplies it: "auto" or a number), `intercept` ("auto": with the learnt prior, rewards
    have a common level), `noise_scale`, `w_bound`, `u_bound`, `delta`.

    >>> import numpy as np
    >>> from postserve import RidgeMap
    >>> policy = PoLinUCB(n_arms=2, context_map=RidgeMap(dim_x=1, dim_z=1))
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     for arm, beta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, [2 * x], reward=beta * 2 * x)
    >>> policy.select([5.0], np.random.default_rng(0))
    Decision(arm=0, propensity=1.0)
    """

    _copied_by_reference = ("x_features", "z_features")
    _phi_hat: PhiHat
    _z_blocks: ClassVar[tuple[str, ...]] = ("z",)  # where phi_hat(x) stands in u when arms are scored

    def __init__(
        self,
        n_arms: int | None,
        context_map: ContextMap,
        *,
        optimism: Optimism = "plugin",
        missing_z: MissingZ = "raise",
        x_features: Features | None = None,
        z_features: Features | None = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        check_options(self, options)
        self.optimism = one_of("optimism", optimism, ("plugin", "posterior", "joint", "bound"))
        dim_x, dim_z = checked_map(context_map).dim_x, context_map.dim_z
        super().__init__(n_arms, dim_x, dim_z, missing_z, x_features=x_features, z_features=z_features)
        self._phi_hat = PhiHat(context_map, self._arm_set)
        blocks = {"x": dim_x, **dict.fromkeys(self._z_blocks, dim_z)}
        self._arms = ArmModels(n_arms, blocks, **options)
        if self.optimism == "posterior" and self._arms.arm_radius != "posterior":
            got = f"arm_radius is {self._arms.arm_radius!r}"
            raise InvalidInput(f"{got}, wanted 'posterior' with optimism='posterior'")

    @property
    def context_map(self) -> ContextMap:
        """phi_hat: the policy's own copy, which it teaches."""
        return self._phi_hat.map

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """Line 3: the maximum over phi in C(phi_hat, x) and w in C(w_hat_a) of (x, phi(x))·w."""
        if self.optimism == "plugin":
            u_hat = self._u_hat(x, self._phi_hat.predict(x, slots))
            return self._arms.score(u_hat, slots, self._radius(slots))
        if self.optimism == "posterior":
            z_hat, spread = self._phi_hat.spread(x, slots)
            u_hat, n_phi = self._u_hat(x, z_hat), 1 if self._phi_hat.is_one_for_all else len(slots)
            return self._arms.posterior_score(u_hat, slots, self._radius(slots), spread, n_phi)
        ball = self._phi_hat.ball(x, slots)
        u_hat = self._u_hat(x, ball.z_hat)
        return self._arms.optimistic(u_hat, slots, self._radius(slots), ball, kind=self.optimism)

    def _u_hat(self, x: FloatArray, z_hat: FloatArray) -> FloatArray:
        """u at phi_hat(x), which is what is known of z before an arm is served."""
        return self._arms.stack(x, *[z_hat] * len(self._z_blocks))

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """Line 5: w_hat_a by ridge regression on the observed z."""
        self._work += self._arms.prepare(slot, x, z, reward=reward)

    def _radius(self, slots: IntArray) -> FloatArray:
        """Line 7: zeta_{t,a} of each arm; the map has its own radius."""
        return self._arms.radius(slots)

    # Fast paths: no prediction that is not used, and many rounds at once

    @fast_path
    def _update(self, x: FloatArray, slot: int, z: FloatArray | None, reward: float) -> None:
        if z is None:
            self._fill_z_and_credit(x, slot, z, reward, None)
        else:
            self._work += self._phi_hat.prepare(x, slot, z)
            self._work += self._arms.prepare(slot, x, z, reward=reward)

    @fast_path
    def _update_batch(
        self, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
    ) -> None:
        if Z is not None and (effects := self._phi_hat.prepare_all(X, Z)) is not None:
            self._work += effects + self._arms.prepare_batch(slots, self._arms.stack(X, Z), rewards)
        else:
            super()._update_batch(X, slots, Z, rewards)

    @fast_path
    def _argmax_scores(self, X: FloatArray, slots: IntArray) -> IntArray:
        if self.optimism != "plugin" or not self._phi_hat.is_one_for_all:
            return super()._argmax_scores(X, slots)
        U_hat = self._u_hat(X, self._phi_hat.predict(X, slots))
        return self._arms.argmax_scores(U_hat, slots, self._radius(slots))
