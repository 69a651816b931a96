"""coba 8.1.0: LinUCBLearner(alpha=1, features=["ax"]), the actions being one-hot.

It has one model for all actions, so separate weights for each arm need (n_arms·dim)² numbers: 8.8 MB on
a, 33 GB on c, which is left out. A context is a list, made outside the clock.
"""

from typing import Any

from coba.learners import LinUCBLearner

MOST = 5000
"""Of n_arms·dim, beyond which the matrix is not made."""


class Coba:
    """Actions are one-hot tuples."""

    def __init__(self, n_arms: int, dim: int) -> None:
        if n_arms * dim > MOST:
            gb = 8e-9 * (n_arms * dim) ** 2
            raise MemoryError(f"one model for all actions: a matrix of {gb:.0f} GB")
        self.learner = LinUCBLearner(alpha=1.0, features=["ax"])
        self.actions = [tuple(int(i == j) for j in range(n_arms)) for i in range(n_arms)]
        self.arm_of = {action: i for i, action in enumerate(self.actions)}

    def context(self, x: Any) -> Any:
        return x.tolist()

    def select(self, values: Any) -> int:
        action, self.chance = self.learner.predict(values, self.actions)[:2]
        return self.arm_of[action]

    def update(self, values: Any, arm: int, reward: float) -> None:
        self.learner.learn(values, self.actions[arm], reward, self.chance)


make = Coba
