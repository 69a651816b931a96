"""poLinUCB, Algorithm 1 of "Follow-ups Also Matter" (NeurIPS 2023), line by line.

====  =====================================================  ==================================
line  the paper                                              here
====  =====================================================  ==================================
2     receive x_t                                            ``select(x, rng)``
3     maximise (x_t, phi(x_t))·w over a, phi and w_a         ``_scores``
4     play a_t; receive z_t and the reward                   ``Decision``, then the world
5     w_hat_a = A_a^{-1} b_a, sums over the observed (x, z)  ``_credit``
6     phi_hat by empirical risk minimisation                 ``_observe``
7     the confidence sets of w_hat_a and of phi_hat(x_t)     ``_radius``, ``context_map.radius``
====  =====================================================  ==================================
"""

from typing import ClassVar, Unpack

import numpy as np

from postserve.context_maps.features import Features
from postserve.errors import InvalidInput
from postserve.policies.arms import ArmModels, ArmOptions, check_options
from postserve.policies.base import ChoosesFromX
from postserve.policies.linear import LinearPolicy, own_map
from postserve.protocols import ContextMap, Merges
from postserve.types import FloatArray, IntArray, MissingZ, Optimism
from postserve.validation import matrix, one_of, vector


class PoLinUCB(ChoosesFromX, LinearPolicy):
    """Arms regress on the OBSERVED (x, z); they are scored at (x, phi_hat(x)), optimistically.

    `optimism`, over z beside w: "plugin" (none: the ball of z has radius 0), "joint" (the literal
    line 3) or "bound" (the triangle inequality above it). `missing_z`, for a reward whose z never
    comes: "raise", "impute" (z becomes phi_hat(x)) or "drop". `x_features` and `z_features`, callables
    or fitted transformers, stand between what is given and what is learnt from: then x and z are theirs
    in all that follows, and the map learns E[z_features(z)] as a function of x_features(x). The policy
    teaches its own copy of `context_map`.

    x may be one context, or have a row an arm (the paper's action-dependent contexts), with a map for
    all or a `PerArmMap`. With `n_arms` None and `model="shared"` it is a decision set (its linear
    stochastic bandits): any number of candidates, a row each, and the arm chosen is a row.

    Options, the same for every linear policy: `model` ("disjoint", "shared" or "hybrid"), `ridge`
    ("evidence", a number, or a pair for x and z), `arm_radius` ("posterior", "determinant",
    "closed_form" or a number), `exploration` (multiplies it), `intercept` (a constant in u, for rewards
    that are not centred), `noise_scale`, `w_bound`, `u_bound`, `delta`;
    `postserve.policies.arms.ArmModels` says what each is.

    >>> import numpy as np
    >>> from postserve import RidgeMap
    >>> policy = PoLinUCB(n_arms=2, context_map=RidgeMap(dim_x=1, dim_z=1))
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     for arm, beta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, [2 * x], reward=beta * 2 * x)
    >>> policy.select([5.0], np.random.default_rng(0))
    Decision(arm=0, propensity=1.0)
    """

    context_map: ContextMap
    _shared = ("x_features", "z_features")
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
        self.context_map = own_map(context_map, n_arms)
        self.optimism = one_of("optimism", optimism, ("plugin", "joint", "bound"))
        dim_x, dim_z = context_map.dim_x, context_map.dim_z
        super().__init__(n_arms, dim_x, dim_z, missing_z, x_features=x_features, z_features=z_features)
        blocks = {"x": dim_x, **dict.fromkeys(self._z_blocks, dim_z)}
        check_options(self, options)
        self._arms = ArmModels(n_arms, blocks, **options)
        self._settings.update(
            context_map=self.context_map,
            optimism=optimism,
            missing_z=missing_z,
            x_features=x_features,
            z_features=z_features,
            **self._arms.settings,
        )

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """Line 3: the maximum over phi in C(phi_hat, x) and w in C(w_hat_a) of (x, phi(x))·w."""
        z_hat = self._predictions(x, slots)
        u_hat = self._arms.stack(x, *[z_hat] * len(self._z_blocks), rows=len(slots))
        return self._arms.optimistic(
            u_hat,
            slots,
            zeta=self._radius(slots),
            kind=self.optimism,
            map_radius=lambda: self._map_radii(x, slots),
            moving=self._z_blocks,
        )

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """Line 5: w_hat_a by ridge regression on the z that was observed."""
        u = self._arms.stack(x, z)[0]
        self._arms.learn(slot, u, reward)

    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray:
        """Line 6: phi_hat learns (x, z); what it predicted before is returned."""
        z_hat = self._predict(x, slot)
        self.context_map.update(x, self._id_of(slot), z)
        return z_hat

    def _radius(self, slots: IntArray) -> FloatArray:
        """Line 7: zeta_{t,a}, for each arm; the map keeps its own."""
        return self._arms.radius(slots)

    def _predict(self, x: FloatArray, slot: int) -> FloatArray:
        z_hat: FloatArray = self._predictions(x, np.array([slot]))[0]
        return z_hat

    def _predictions(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """phi_hat(x), a row a slot, checked: the map may be anyone's."""
        rows = self.context_map.predict(x, self._ids_of(slots))
        return matrix("context_map.predict(x)", rows, len(slots), self.dim_z)

    def _map_radii(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """e at x, an entry a slot, checked."""
        e = vector("context_map.radius(x)", self.context_map.radius(x, self._ids_of(slots)), len(slots))
        if e.min() < 0.0:
            raise InvalidInput(f"context_map.radius(x) is {e.min():g}, wanted at least 0")
        return e

    def _try_row(self, x: FloatArray, slot: int) -> None:
        self._predict(x, slot)

    def _impute(self, x: FloatArray, slot: int) -> FloatArray:
        return self._predict(x, slot)

    def _why_not_merge(self) -> str | None:
        if self.missing_z == "impute":
            return "an imputed z depends on the map as it was at the time"
        if isinstance(self.context_map, Merges) and self.context_map.order_free:
            return super()._why_not_merge()
        return f"its map, {type(self.context_map).__name__}, is not made of sums"
