"""bayesianbandits 1.5.0: a ContextualAgent of NormalRegressor(alpha=1, beta=1) arms, UpperConfidenceBound.

Its bound is a quantile of draws: 0.8413 is one standard deviation, and 1,000 draws per arm is its default.
"""

from typing import Any

from bayesianbandits import Arm, ContextualAgent, NormalRegressor, UpperConfidenceBound


class BayesianBandits:
    """A context is a row."""

    def __init__(self, n_arms: int, dim: int) -> None:
        arms = [Arm(i, learner=NormalRegressor(alpha=1.0, beta=1.0)) for i in range(n_arms)]
        self.agent = ContextualAgent(arms, UpperConfidenceBound(alpha=0.8413), random_seed=0)

    def context(self, x: Any) -> Any:
        return x[None]

    def select(self, row: Any) -> int:
        arm: int = self.agent.pull(row)[0]
        return arm

    def update(self, row: Any, arm: int, reward: float) -> None:
        self.agent.select_for_update(arm).update(row, [reward])


make = BayesianBandits
