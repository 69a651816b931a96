"""The paper's synthetic environments: polynomial, periodic and linear phi."""

from typing import Literal

import numpy as np
import numpy.typing as npt

from postserve.types import FloatArray, Rounds
from postserve.validation import generator, integer, number, one_of, vector

Kind = Literal["polynomial", "periodic", "linear"]
HALF_WIDTH = 10.0


def polynomial(x: FloatArray) -> FloatArray:
    """x², standardised for x uniform on [-10, 10]."""
    return np.asarray((x**2 - HALF_WIDTH**2 / 3.0) / (HALF_WIDTH**2 * np.sqrt(4.0 / 45.0)))


def periodic(x: FloatArray) -> FloatArray:
    """sqrt(2) cos(x)."""
    return np.asarray(np.sqrt(2.0) * np.cos(x))


def linear(x: FloatArray) -> FloatArray:
    """x, standardised for x uniform on [-10, 10]."""
    return np.asarray(x / (HALF_WIDTH / np.sqrt(3.0)))


FEATURES = {"polynomial": polynomial, "periodic": periodic, "linear": linear}


class SyntheticEnvironment:
    """r_a = x·theta_a + z·beta_a + eta, z = phi(x) + eps, phi(x) = scale W^T h(x).

    x is uniform on [-10, 10]^dim_x, theta_a and beta_a on unit spheres, W is N(0, 1/dim_x), eps and
    eta are Gaussian of deviation `z_noise` and `reward_noise`; `features` is h. The truth is drawn
    from `seed`, the rounds from the generator they are asked with.

    >>> env = SyntheticEnvironment("polynomial", dim_x=20, dim_z=3, n_arms=4, seed=0)
    >>> rounds = env.rounds(5, np.random.default_rng(0))
    >>> rounds.x.shape, rounds.z.shape, rounds.rewards.shape
    ((5, 20), (5, 3), (5, 4))
    """

    def __init__(
        self,
        kind: Kind,
        *,
        dim_x: int = 100,
        dim_z: int = 5,
        n_arms: int = 10,
        scale: float = 10.0,
        z_noise: float = 1.0,
        reward_noise: float = 0.1,
        seed: int = 0,
    ) -> None:
        self.kind = one_of("kind", kind, tuple(FEATURES))
        self.dim_x = integer("dim_x", dim_x, least=1)
        self.dim_z = integer("dim_z", dim_z, least=1)
        self.n_arms = integer("n_arms", n_arms, least=1)
        self.scale = number("scale", scale, least=0.0)
        self.z_noise = number("z_noise", z_noise, least=0.0)
        self.reward_noise = number("reward_noise", reward_noise, least=0.0)
        self.features = FEATURES[self.kind]
        rng = np.random.default_rng(integer("seed", seed, least=0))
        self.theta = _on_sphere(rng, self.n_arms, self.dim_x)
        self.beta = _on_sphere(rng, self.n_arms, self.dim_z)
        self._W = rng.standard_normal((self.dim_x, self.dim_z)) / np.sqrt(self.dim_x)

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x]."""
        phi: FloatArray = self._phi(vector("x", x, self.dim_x)[None])[0]
        return phi

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """x·theta_a + phi(x)·beta_a of each arm."""
        means: FloatArray = self._means(vector("x", x, self.dim_x)[None])[0]
        return means

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rounds as potential outcomes; one eta a round, whichever arm is served."""
        n, rng = integer("n", n, least=0), generator(rng)
        x = rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(n, self.dim_x))
        phi = self._phi(x)
        z = phi + self.z_noise * rng.standard_normal((n, self.dim_z))
        eta = self.reward_noise * rng.standard_normal((n, 1))
        return Rounds(x, z, x @ self.theta.T + z @ self.beta.T + eta, self._means(x))

    def _phi(self, X: FloatArray) -> FloatArray:
        return np.asarray(self.scale * self.features(X) @ self._W)

    def _means(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.theta.T + self._phi(X) @ self.beta.T)


def _on_sphere(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    points = rng.standard_normal((n, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
