"""The common part of environments with linear rewards: all but their weights and phi."""

from typing import Literal, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

from postserve.environments.noise import Noise, check_noise, draw_noise
from postserve.environments.phi import HALF_WIDTH, MadePhi
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import generator, integer, matrix, one_of, vector

RewardFrom: TypeAlias = Literal["z", "phi"]

BLOCK_ENTRIES = 2**21
"""Entries of x and z that are drawn at once by environments with one context per row: 16 MB."""


class RewardSettings(TypedDict, total=False):
    """Settings that every environment passes on to `LinearRewards`, which has their defaults."""

    reward_noise: Noise
    reward_from: RewardFrom


class LinearRewards:
    """r_a = x·theta_a + z·beta_a + eta, z = phi(x) + eps, x uniform on [-10, 10]^dim_x.

    `theta` and `beta` have one row per arm. A subclass may override `_contexts`, which draws x. With
    `reward_from` "phi" the reward has no noise of z, r_a = x·theta_a + phi(x)·beta_a + eta, as in the paper's
    figure 4; its mean is the same. `features` of x, in which phi is linear, are meant for maps, or None.
    """

    def __init__(
        self,
        theta: FloatArray,
        beta: FloatArray,
        phi: MadePhi,
        *,
        z_noise: Noise,
        reward_noise: Noise = 0.1,
        reward_from: RewardFrom = "z",
    ) -> None:
        self.theta, self.beta = theta, beta
        self.n_arms, self.dim_x, self.dim_z = len(theta), int(theta.shape[1]), int(beta.shape[1])
        self._phi, self.scale, self.features = phi
        self.z_noise = check_noise("z_noise", z_noise, self.dim_z)
        self.reward_noise = check_noise("reward_noise", reward_noise, 1)
        self.reward_from = one_of("reward_from", reward_from, ("z", "phi"))

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x]."""
        return np.asarray(self._phi(self._checked(x)[None])[0])

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """x·theta_a + phi(x)·beta_a of each arm."""
        X = self._checked(x)[None]
        return np.asarray(self._means(X, self._phi(X), None)[0])

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rounds as potential outcomes, with one eta per round for all arms."""
        n, rng = integer("n", n, least=0), generator(rng)
        arms = self._eligible(n, rng)
        x = self._contexts(n, rng)
        phi = self._phi(x)
        rows = phi.reshape(-1, self.dim_z)
        z = phi + draw_noise("z_noise", self.z_noise, rng, rows.shape).reshape(phi.shape)
        eta = draw_noise("reward_noise", self.reward_noise, rng, (n, 1))
        means = self._means(x, phi, arms)
        rewards = self._rewards(x, z, arms) if self.reward_from == "z" else means
        return Rounds(x, z, rewards + eta, means, arms)

    def _checked(self, x: npt.ArrayLike) -> FloatArray:
        return vector("x", x, self.dim_x)

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(n, self.dim_x))

    def _eligible(self, n: int, rng: np.random.Generator) -> IntArray | None:
        """The arms of each round, (n, k) in rising order; None if all can be served."""
        return None

    def _rewards(self, X: FloatArray, Z: FloatArray, arms: IntArray | None) -> FloatArray:
        """Rewards without eta; arms as `_eligible` gives them."""
        return np.asarray(X @ self.theta.T + Z @ self.beta.T)

    def _means(self, X: FloatArray, phi: FloatArray, arms: IntArray | None) -> FloatArray:
        return self._rewards(X, phi, arms)


class LinearRowRewards(LinearRewards):
    """r_i = x_i·theta + z_i·beta + eta, z_i = phi(x_i) + eps_i: each row of a round has its own x and z.

    Rows are all arms, the eligible ones, or candidates, for which `theta` and `beta` have one row. x is
    uniform on [-10, 10]^dim_x, independently for each row. `phi` and `means` take any number of rows.
    """

    _n_rows: int
    """The number of rows of a round; subclasses set it."""

    @property
    def rounds_at_once(self) -> int:
        """The number of rounds to draw in one block, so that it fits in memory; at most 1,000."""
        return max(1, min(1000, BLOCK_ENTRIES // (self._n_rows * (self.dim_x + self.dim_z))))

    def _checked(self, x: npt.ArrayLike) -> FloatArray:
        return matrix("x", x, None, self.dim_x)

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(n, self._n_rows, self.dim_x))

    def _rewards(self, X: FloatArray, Z: FloatArray, arms: IntArray | None) -> FloatArray:
        theta, beta = (weights if arms is None else weights[arms] for weights in (self.theta, self.beta))
        return np.asarray(np.einsum("...d,...d->...", X, theta) + np.einsum("...d,...d->...", Z, beta))


def unit_weights(
    seed: int, n: int, dim_x: int, dim_z: int
) -> tuple[np.random.Generator, FloatArray, FloatArray]:
    """A generator of this seed, and theta and beta drawn from it: n rows, uniform on unit spheres."""
    rng = np.random.default_rng(integer("seed", seed, least=0))
    theta = on_sphere(rng, integer("n_arms", n, least=1), integer("dim_x", dim_x, least=1))
    return rng, theta, on_sphere(rng, n, integer("dim_z", dim_z, least=1))


def on_sphere(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    """n points, uniform on the unit sphere."""
    points = rng.standard_normal((n, dim))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True))
