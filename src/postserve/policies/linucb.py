"""LinUCB on x alone (Li et al. 2010): the baseline that ignores follow-ups."""

from typing import Unpack

from postserve.context_maps.features import Features
from postserve.policies.arms import ArmModels, ArmOptions, check_options
from postserve.policies.choosing import ChoosesFromX
from postserve.policies.linear import LinearPolicy
from postserve.steps import fast_path
from postserve.types import FloatArray, IntArray
from postserve.validation import integer


class LinUCB(ChoosesFromX, LinearPolicy):
    """Arms regress on x and are scored at x; z is ignored and may be None.

    One context per arm, decision sets (`n_arms` None), `x_features` (`dim_x` is then their number) and the
    options are as in `PoLinUCB`, except that `ridge` cannot be a pair.

    >>> import numpy as np
    >>> policy = LinUCB(n_arms=2, dim_x=1)
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     for arm, theta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, None, reward=theta * x)
    >>> policy.select([5.0], np.random.default_rng(0))
    Decision(arm=0, propensity=1.0)
    """

    _copied_by_reference = ("x_features",)

    def __init__(
        self,
        n_arms: int | None,
        dim_x: int,
        *,
        x_features: Features | None = None,
        **options: Unpack[ArmOptions],
    ) -> None:
        dim_x = integer("dim_x", dim_x, least=1)
        super().__init__(n_arms, dim_x, dim_z=None, x_features=x_features)
        check_options(self, options)
        self._arms = ArmModels(n_arms, {"x": dim_x}, **options)

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        """x·w_hat_a + zeta ||x||_{A_a^{-1}}."""
        return self._arms.score(self._arms.stack(x), slots, self._arms.radius(slots))

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        self._work += self._arms.prepare(slot, x, reward=reward)

    def _row(self, x: FloatArray, z: FloatArray, z_hat: FloatArray | None) -> FloatArray:
        row: FloatArray = self._arms.stack(x)[0]
        return row

    # Fast paths: many rounds at once, and no step that does nothing

    @fast_path
    def _update(self, x: FloatArray, slot: int, z: FloatArray | None, reward: float) -> None:
        self._work += self._arms.prepare(slot, x, reward=reward)

    @fast_path
    def _argmax_scores(self, X: FloatArray, slots: IntArray) -> IntArray:
        return self._arms.argmax_scores(self._arms.stack(X), slots, self._arms.radius(slots))

    @fast_path
    def _update_batch(
        self, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
    ) -> None:
        self._work += self._arms.prepare_batch(slots, self._arms.stack(X), rewards)
