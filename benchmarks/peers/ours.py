"""postserve: LinUCB, ridge 1, radius 1, its sums exact, its choices with propensities."""

from typing import Any

import numpy as np

from postserve import LinUCB


class Ours:
    """select -> Decision."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.policy = LinUCB(n_arms, dim, ridge=1.0, arm_radius=1.0)
        self.rng = np.random.default_rng(0)

    def select(self, x: Any) -> int:
        return self.policy.select(x, self.rng).arm

    def update(self, x: Any, arm: int, reward: float) -> None:
        self.policy.update(x, arm, None, reward)


make = Ours
