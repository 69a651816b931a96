"""What environments with linear rewards have in common: all but where x and phi come from."""

from abc import ABC, abstractmethod
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.context_maps.features import Features
from postserve.environments.noise import Noise, check_noise, draw_noise
from postserve.environments.phi import HALF_WIDTH
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import generator, integer, matrix, one_of, vector

RewardFrom: TypeAlias = Literal["z", "phi"]

BLOCK_ENTRIES = 2**21
"""Entries of x and z that worlds with a context a row want to be drawn at once: 16 MB."""


class LinearRewards(ABC):
    """r_a = x·theta_a + z·beta_a + eta, z = phi(x) + eps; subclasses draw x and know phi.

    With `reward_from` "phi" the reward is noiseless in z: r_a = x·theta_a + phi(x)·beta_a + eta, as
    in the paper's figure 4. Its mean is the same.
    """

    features: Features | None = None
    """Features of x in which phi is linear, for maps to be given, where there are any."""

    def __init__(
        self,
        theta: FloatArray,
        beta: FloatArray,
        *,
        z_noise: Noise,
        reward_noise: Noise,
        reward_from: RewardFrom,
    ) -> None:
        self.theta = theta
        self.beta = beta
        self.n_arms, self.dim_x = theta.shape
        self.dim_z = beta.shape[1]
        self.z_noise = check_noise("z_noise", z_noise, self.dim_z)
        self.reward_noise = check_noise("reward_noise", reward_noise, 1)
        self.reward_from = one_of("reward_from", reward_from, ("z", "phi"))

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x]."""
        phi: FloatArray = self._phi(vector("x", x, self.dim_x)[None])[0]
        return phi

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """x·theta_a + phi(x)·beta_a of each arm."""
        X = vector("x", x, self.dim_x)[None]
        means: FloatArray = self._means(X, self._phi(X))[0]
        return means

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rounds as potential outcomes; one eta a round, whichever arm is served."""
        n, rng = integer("n", n, least=0), generator(rng)
        x = self._contexts(n, rng)
        phi = self._phi(x)
        z = phi + draw_noise("z_noise", self.z_noise, rng, (n, self.dim_z))
        eta = draw_noise("reward_noise", self.reward_noise, rng, (n, 1))
        means = self._means(x, phi)
        return Rounds(x, z, (self._rewards(x, z) if self.reward_from == "z" else means) + eta, means)

    def _rewards(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return np.asarray(X @ self.theta.T + Z @ self.beta.T)

    def _means(self, X: FloatArray, phi: FloatArray) -> FloatArray:
        return self._rewards(X, phi)

    @abstractmethod
    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray: ...

    @abstractmethod
    def _phi(self, X: FloatArray) -> FloatArray: ...


class LinearRowRewards(ABC):
    """r_i = x_i·theta + z_i·beta + eta, z_i = phi(x_i) + eps_i: each row of a round has its own x and z.

    Rows are the arms, those of them that are eligible, or candidates. x is uniform on
    [-10, 10]^dim_x, independently for each row. `theta` and `beta` have one row an arm, or one for
    all candidates; subclasses know phi, and which arms are eligible.
    """

    features: Features | None = None
    """Features of x in which phi is linear, for maps to be given, where there are any."""

    def __init__(
        self,
        theta: FloatArray,
        beta: FloatArray,
        *,
        n_rows: int,
        z_noise: Noise,
        reward_noise: Noise,
        reward_from: RewardFrom,
    ) -> None:
        self.theta = theta
        self.beta = beta
        self.n_arms = len(theta)
        self.dim_x, self.dim_z = theta.shape[1], beta.shape[1]
        self.z_noise = check_noise("z_noise", z_noise, self.dim_z)
        self.reward_noise = check_noise("reward_noise", reward_noise, 1)
        self.reward_from = one_of("reward_from", reward_from, ("z", "phi"))
        self._n_rows = n_rows

    @property
    def rounds_at_once(self) -> int:
        """How many rounds are a block that fits into any memory; at most 1,000."""
        entries: int = self._n_rows * (self.dim_x + self.dim_z)
        return max(1, min(1000, BLOCK_ENTRIES // entries))

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x] of each row."""
        phi: FloatArray = self._phi(self._rows(x)[None])[0]
        return phi

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """x·theta + phi(x)·beta of each row."""
        X = self._rows(x)[None]
        means: FloatArray = self._rewards(X, self._phi(X), None)[0]
        return means

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rounds as potential outcomes; one eta a round, whichever row is served."""
        n, rng = integer("n", n, least=0), generator(rng)
        arms = self._eligible(n, rng)
        x = rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(n, self._n_rows, self.dim_x))
        phi = self._phi(x)
        z = phi + draw_noise("z_noise", self.z_noise, rng, (n * self._n_rows, self.dim_z)).reshape(phi.shape)
        eta = draw_noise("reward_noise", self.reward_noise, rng, (n, 1))
        means = self._rewards(x, phi, arms)
        rewards = (self._rewards(x, z, arms) if self.reward_from == "z" else means) + eta
        return Rounds(x, z, rewards, means, arms)

    def _rows(self, x: npt.ArrayLike) -> FloatArray:
        """One row an arm; where rows are candidates, any number of them."""
        return matrix("x", x, self.n_arms, self.dim_x)

    def _rewards(self, X: FloatArray, Z: FloatArray, arms: IntArray | None) -> FloatArray:
        """Of rows (n, k, dim) that belong to `arms`, or, where None, to all arms in their order."""
        theta, beta = (weights if arms is None else weights[arms] for weights in (self.theta, self.beta))
        along: FloatArray = np.einsum("...d,...d->...", X, theta) + np.einsum("...d,...d->...", Z, beta)
        return along

    def _eligible(self, n: int, rng: np.random.Generator) -> IntArray | None:
        """The arms of each round, (n, k) in rising order; None where it is all of them."""
        return None

    @abstractmethod
    def _phi(self, X: FloatArray) -> FloatArray:
        """Of rows (n, k, dim_x), (n, k, dim_z)."""


def on_sphere(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """n points, uniform on the unit sphere."""
    points = rng.standard_normal((n, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
