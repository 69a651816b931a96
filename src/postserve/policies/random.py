"""The policy that ignores all contexts."""

import numpy as np

from postserve.policies.base import BasePolicy
from postserve.policies.choosing import ChoosesFromX
from postserve.types import FloatArray, IntArray


class RandomPolicy(ChoosesFromX, BasePolicy):
    """Every eligible arm with the same probability; learns nothing.

    >>> RandomPolicy(n_arms=4).select([0.0], np.random.default_rng(0))
    Decision(arm=2, propensity=0.25)
    """

    def __init__(self, n_arms: int | None) -> None:
        super().__init__(n_arms, dim_x=None, dim_z=None)

    @property
    def scale_free(self) -> bool:
        """True: no input is used."""
        return True

    column_free = shift_free = scale_free

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        return np.zeros(len(slots))  # all tie
