"""Open Bandit Pipeline (obp) 0.4.1: policy.LinUCB(epsilon=1), one action per round, updated every round."""

from typing import Any

from obp.policy import LinUCB


class Obp:
    """A context is a row."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.policy = LinUCB(dim=dim, n_actions=n_arms, len_list=1, batch_size=1, epsilon=1.0, random_state=0)

    def context(self, x: Any) -> Any:
        return x[None]

    def select(self, row: Any) -> int:
        return int(self.policy.select_action(row)[0])

    def update(self, row: Any, arm: int, reward: float) -> None:
        self.policy.update_params(arm, reward, row)


make = Obp
