"""MABWiser 2.7.4: MAB with LearningPolicy.LinUCB(alpha=1, l2_lambda=1).

It must be fitted before it predicts; one row of zeros teaches it nothing.
"""

from typing import Any

import numpy as np
from mabwiser.mab import MAB, LearningPolicy


class MABWiser:
    """A context is a row."""

    def __init__(self, n_arms: int, dim: int) -> None:
        self.mab = MAB(list(range(n_arms)), LearningPolicy.LinUCB(alpha=1.0, l2_lambda=1.0))
        self.mab.fit([0], [0.0], np.zeros((1, dim)))

    def context(self, x: Any) -> Any:
        return x[None]

    def select(self, row: Any) -> int:
        arm: int = self.mab.predict(row)
        return arm

    def update(self, row: Any, arm: int, reward: float) -> None:
        self.mab.partial_fit([arm], [reward], row)


make = MABWiser
