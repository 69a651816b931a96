"""river 0.26.1: bandit.LinUCBDisjoint, with a width of one standard deviation (alpha = beta = 1).

A context is a dict, made outside the clock.
"""

from typing import Any

from river.bandit import LinUCBDisjoint


class River:
    """Arms by id."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.policy, self.arms = LinUCBDisjoint(alpha=1.0, beta=1.0, seed=0), list(range(n_arms))

    def context(self, x: Any) -> Any:
        return dict(enumerate(x.tolist()))

    def select(self, features: Any) -> int:
        arm: int = self.policy.pull(self.arms, context=features)
        return arm

    def update(self, features: Any, arm: int, reward: float) -> None:
        self.policy.update(arm, features, reward)


make = River
