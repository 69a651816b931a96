"""Assumption 1 for maps that have no posterior of their own."""

import numpy as np

from postserve import confidence
from postserve.linalg.ridge import one_regression
from postserve.state import Arrays, Stored
from postserve.types import FloatArray
from postserve.validation import number


class Learnability:
    """e = C0 (||x||²_{X^{-1}})^map_rate log(t/delta), X = ridge I + sum x x^T.

    C0 is the root mean square of the errors the map made at each x before it learnt its z.
    """

    def __init__(
        self, dim_x: int, dim_z: int, *, ridge: float, map_rate: float, delta: float, radius_scale: float
    ) -> None:
        self.ridge = number("ridge", ridge, above=0.0)
        self.map_rate = number("map_rate", map_rate, above=0.0, most=0.5)
        self.delta = number("delta", delta, above=0.0, below=1.0)
        self.radius_scale = number("radius_scale", radius_scale, least=0.0)
        self._errors = one_regression({"x": dim_x}, n_outputs=dim_z, ridge=self.ridge)

    def learn(self, x: FloatArray, error: FloatArray) -> None:
        """Take note of an error z - phi_hat(x) made before z was learnt."""
        self._errors.update(0, x, error)

    def radius(self, X: FloatArray) -> FloatArray:
        """e at every row; zero while nothing is known of z's scale."""
        pairs = float(self._errors.pulls[0])
        noise = np.sqrt(self._errors.squares[0] / max(pairs, 1.0))
        width = self._errors.project(X).widths
        return self.radius_scale * confidence.map_radius_assumption(
            width=width, pairs=pairs, noise_scale=noise, delta=self.delta, map_rate=self.map_rate
        )

    def forget(self, keep: float) -> None:
        """Weigh down the errors and the contexts seen so far."""
        self._errors.forget(keep)

    def arrays(self) -> Arrays:
        """The sums and their cache."""
        return {f"learnability_{name}": array for name, array in self._errors.arrays().items()}

    def restore(self, stored: Stored) -> None:
        """Take back what `arrays` gave."""
        self._errors.restore(stored.below("learnability_"), 1)
