"""RobustPoLinUCB: poLinUCB that lets the evidence decide how far to trust linearity in z."""

from postserve.errors import InvalidInput
from postserve.policies.polinucb import PoLinUCB
from postserve.types import FloatArray


class RobustPoLinUCB(PoLinUCB):
    """Arms regress on (x, z, phi_hat(x)), phi_hat from before z was learnt; scored at (x, phi_hat, phi_hat).

    With evidence each block has its own variance: if rewards are linear in z, the third block's nearly
    vanishes and this is nearly poLinUCB; if not, it learns from the prediction as LinUCB(phi_hat) does.
    Beyond the paper. `credit` needs the prediction that `observe` returned; the options are those of
    `PoLinUCB`, the second number of a pair for `ridge` being for both z and phi_hat.

    >>> import numpy as np
    >>> from postserve import RidgeMap
    >>> policy = RobustPoLinUCB(n_arms=2, context_map=RidgeMap(dim_x=1, dim_z=1))
    >>> for x in (1.0, 2.0, 3.0, 4.0):
    ...     for arm, beta in enumerate((0.5, -0.5)):
    ...         policy.update([x], arm, [2 * x], reward=beta * 2 * x)
    >>> policy.select([5.0], np.random.default_rng(0))
    Decision(arm=0, propensity=1.0)
    """

    _z_blocks = ("z", "z_hat")  # both move together with z when optimism does
    _argmax_scores = PoLinUCB._argmax_scores

    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        """w_hat_a by least squares on what was observed and on what had been predicted."""
        if z_hat is None:
            raise InvalidInput("z_hat is None, wanted the prediction that observe() returned")
        self._work += self._arms.prepare(slot, x, z, z_hat, reward=reward)

    def _row(self, x: FloatArray, z: FloatArray, z_hat: FloatArray | None) -> FloatArray:
        assert z_hat is not None  # the map predicted it
        row: FloatArray = self._arms.stack(x, z, z_hat)[0]
        return row

    def _why_not_merge(self) -> str | None:
        return "what its arms learnt depends on the map as it was at the time, wanted a PoLinUCB"
