"""A map of a user's own: the protocol and nothing more."""

from typing import Any

import numpy as np


class OwnTotal:
    """Predicts the sum of all z so far, and knows nothing of files or copies."""

    dim_x, dim_z = 2, 1

    def __init__(self) -> None:
        self.total = 0.0

    def predict(self, x: Any, arms: Any = (0,)) -> Any:
        return np.full((len(arms), 1), self.total)

    def radius(self, x: Any, arms: Any = (0,)) -> Any:
        return np.zeros(len(arms))

    def sample(self, x: Any, arms: Any, rng: Any, size: int | None = None) -> Any:
        rows = self.predict(x, arms)
        return rows if size is None else np.repeat(rows[None], size, axis=0)

    def update(self, x: Any, arm: int, z: Any) -> None:
        self.total += float(z[0])
