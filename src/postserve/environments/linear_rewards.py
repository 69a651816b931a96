"""What environments with linear rewards have in common: all but where x and phi come from."""

from abc import ABC, abstractmethod
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.context_maps.features import Features
from postserve.environments.noise import Noise, check_noise, draw_noise
from postserve.types import FloatArray, Rounds
from postserve.validation import generator, integer, one_of, vector

RewardFrom: TypeAlias = Literal["z", "phi"]


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
        means: FloatArray = self._rewards(X, self._phi(X))[0]
        return means

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rounds as potential outcomes; one eta a round, whichever arm is served."""
        n, rng = integer("n", n, least=0), generator(rng)
        x = self._contexts(n, rng)
        phi = self._phi(x)
        z = phi + draw_noise("z_noise", self.z_noise, rng, (n, self.dim_z))
        eta = draw_noise("reward_noise", self.reward_noise, rng, (n, 1))
        rewards = self._rewards(x, z if self.reward_from == "z" else phi) + eta
        return Rounds(x, z, rewards, self._rewards(x, phi))

    def _rewards(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return np.asarray(X @ self.theta.T + Z @ self.beta.T)

    @abstractmethod
    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray: ...

    @abstractmethod
    def _phi(self, X: FloatArray) -> FloatArray: ...


def on_sphere(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """n points, uniform on the unit sphere."""
    points = rng.standard_normal((n, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
