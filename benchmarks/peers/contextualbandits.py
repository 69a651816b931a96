"""contextualbandits 0.3.30: LinUCB(alpha=1, lambda_=1), no intercept, and without its prior for new arms."""

from typing import Any

import numpy as np
from contextualbandits.online import LinUCB


class ContextualBandits:
    """A context is a row."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.policy = LinUCB(
            n_arms, alpha=1.0, lambda_=1.0, fit_intercept=False, beta_prior=None, random_state=1, njobs=1
        )
        self.policy.partial_fit(np.zeros((1, dim)), np.zeros(1, dtype=int), np.zeros(1))

    def context(self, x: Any) -> Any:
        return x[None]

    def select(self, row: Any) -> int:
        return int(self.policy.predict(row)[0])

    def update(self, row: Any, arm: int, reward: float) -> None:
        self.policy.partial_fit(row, np.array([arm]), np.array([reward]))


make = ContextualBandits
