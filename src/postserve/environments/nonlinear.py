"""Rewards linear in features of x and of z: the paper's feature mappings."""

from collections.abc import Callable
from functools import partial
from typing import Unpack

import numpy as np
import numpy.typing as npt

from postserve.environments.linear_rewards import LinearRewards, RewardSettings, unit_weights
from postserve.environments.phi import PhiName, linear, make_phi, named, polynomial
from postserve.types import FloatArray, IntArray
from postserve.validation import integer, number, vector


def x_and_square(x: FloatArray) -> FloatArray:
    """(x, x²), each of mean 0 and deviation 1; of one x, or of a batch."""
    return np.concatenate([linear(x), polynomial(x)], axis=-1)


class NonlinearEnvironment(LinearRewards):
    """r_a = pi_x(x)·theta_a + pi_z(z)·beta_a + eta, z = phi(x) + eps: linear in features only.

    `x_features`, pi_x(x) = (x, x²), and `z_features`, pi_z(z) = (z, z²), are standardised. eps is Gaussian of
    deviation `z_noise`, so that

        E[pi_z(z)|x] = pi_z(phi(x)) + (0, z_noise²/(sqrt(2) scale²)),

    which is `expected_z_features`; means are taken there. `phi` stays E[z|x] = scale W^T h(x), and `features`
    are 1, h(x) and the products of its entries, in which both expectations are linear; `map_features` are the
    same of pi_x(x), for the map of a policy that has `x_features`. The rest is as in `SyntheticEnvironment`.

    >>> env = NonlinearEnvironment("linear", dim_x=3, dim_z=2)
    >>> rounds = env.rounds(5, np.random.default_rng(0))
    >>> rounds.x.shape, rounds.z.shape, env.x_features(rounds.x[0]).shape, env.z_features(rounds.z[0]).shape
    ((5, 3), (5, 2), (6,), (4,))
    """

    def __init__(
        self,
        phi: PhiName = "linear",
        *,
        dim_x: int = 5,
        dim_z: int = 3,
        n_arms: int = 5,
        scale: float = 10.0,
        z_noise: float = 1.0,
        seed: int = 0,
        **reward: Unpack[RewardSettings],
    ) -> None:
        h = named(phi)
        dim_x, dim_z = integer("dim_x", dim_x, least=1), integer("dim_z", dim_z, least=1)
        z_noise, scale = number("z_noise", z_noise, least=0.0), number("scale", scale, least=1e-50)
        rng, theta, beta = unit_weights(seed, n_arms, 2 * dim_x, 2 * dim_z)
        made = make_phi(phi, dim_x, dim_z, scale=scale, rng=rng)
        super().__init__(theta, beta, made, z_noise=z_noise, **reward)
        self.dim_x, self.dim_z = dim_x, dim_z  # of x and z themselves, not of their features
        self.x_features = x_and_square
        self.z_features = partial(_z_and_square, self.scale)
        self.features = partial(_with_products, h)
        self.map_features = partial(_of_pi_x, self.features)
        # E[z²|x] is phi(x)² plus the variance of the noise.
        self._lift = np.repeat([0.0, z_noise**2 / (np.sqrt(2.0) * self.scale**2)], dim_z)

    def expected_z_features(self, x: npt.ArrayLike) -> FloatArray:
        """E[pi_z(z)|x] of one x: what a map learns from z's features."""
        return np.asarray(self._expected(self._phi(vector("x", x, self.dim_x)[None]))[0])

    def _expected(self, phi: FloatArray) -> FloatArray:
        return np.asarray(self.z_features(phi) + self._lift)

    def _rewards(self, X: FloatArray, Z: FloatArray, arms: IntArray | None) -> FloatArray:
        return np.asarray(self.x_features(X) @ self.theta.T + self.z_features(Z) @ self.beta.T)

    def _means(self, X: FloatArray, phi: FloatArray, arms: IntArray | None) -> FloatArray:
        return np.asarray(self.x_features(X) @ self.theta.T + self._expected(phi) @ self.beta.T)


# Functions, not closures, since environments are pickled.


def _z_and_square(scale: float, z: FloatArray) -> FloatArray:
    """(z, z²), each of mean and deviation about 0 and 1; of one z, or of a batch."""
    unit = np.asarray(z) / scale
    return np.concatenate([unit, (unit**2 - 1.0) / np.sqrt(2.0)], axis=-1)


def _with_products(h: Callable[[FloatArray], FloatArray], x: FloatArray) -> FloatArray:
    """1, h(x) and the products of its entries, of one x."""
    entries = h(x)
    products = np.outer(entries, entries)[np.triu_indices(len(entries))]
    return np.concatenate([np.ones(1), entries, products])


def _of_pi_x(features: Callable[[FloatArray], FloatArray], pi_x: FloatArray) -> FloatArray:
    """The features of x, given pi_x(x) = (x, x²), standardised."""
    unit = float(linear(np.ones(1))[0])
    return features(pi_x[: len(pi_x) // 2] / unit)
