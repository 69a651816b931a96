"""The paper's synthetic environments: polynomial, periodic and linear phi, or one's own."""

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.context_maps.features import Features, count_features
from postserve.environments.linear_rewards import LinearRewards, RewardFrom, on_sphere
from postserve.environments.noise import Noise
from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import integer, matrix, number, one_of

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
Phi: TypeAlias = Literal["polynomial", "periodic", "linear"] | Callable[[FloatArray], npt.ArrayLike]


class SyntheticEnvironment(LinearRewards):
    """r_a = x·theta_a + z·beta_a + eta, z = phi(x) + eps, phi(x) = scale W^T h(x).

    x is uniform on [-10, 10]^dim_x, theta_a and beta_a on unit spheres, W is N(0, 1/dim_x). The
    first argument names h, or is a phi of one's own, a function of a batch (n, dim_x) that gives
    (n, dim_z), times `scale` (10 for the named ones, else 1). `z_noise` and `reward_noise` are the
    deviations of Gaussian eps and eta, or functions (rng, shape) that draw them with mean 0. With
    `reward_from` "phi" the reward has phi(x) in place of z (figure 4). `features`: what maps are to
    be given, h unless told otherwise. The truth is drawn from `seed`, the rounds from the generator
    they are asked with.

    >>> env = SyntheticEnvironment("polynomial", dim_x=20, dim_z=3, n_arms=4, seed=0)
    >>> rounds = env.rounds(5, np.random.default_rng(0))
    >>> rounds.x.shape, rounds.z.shape, rounds.rewards.shape
    ((5, 20), (5, 3), (5, 4))
    >>> SyntheticEnvironment(lambda X: abs(X), dim_x=2, dim_z=2).phi([3.0, -4.0])
    array([3., 4.])
    """

    def __init__(
        self,
        phi: Phi,
        *,
        dim_x: int = 100,
        dim_z: int = 5,
        n_arms: int = 10,
        scale: float | None = None,
        z_noise: Noise = 1.0,
        reward_noise: Noise = 0.1,
        reward_from: RewardFrom = "z",
        features: Features | None = None,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(integer("seed", seed, least=0))
        n_arms, dim_x = integer("n_arms", n_arms, least=1), integer("dim_x", dim_x, least=1)
        super().__init__(
            on_sphere(rng, n_arms, dim_x),
            on_sphere(rng, n_arms, integer("dim_z", dim_z, least=1)),
            z_noise=z_noise,
            reward_noise=reward_noise,
            reward_from=reward_from,
        )
        usual = 1.0 if callable(phi) else 10.0
        self.scale = usual if scale is None else number("scale", scale, least=0.0)
        self.features = features
        if features is not None:
            count_features(features, self.dim_x)
        if callable(phi):
            self._phi_of = partial(_own, phi, self.scale, self.dim_z)
            _try(self._phi_of, self.dim_x, self.dim_z)
        else:
            h = FEATURES[one_of("phi", phi, tuple(FEATURES))]
            W = rng.standard_normal((self.dim_x, self.dim_z)) / np.sqrt(self.dim_x)
            self._phi_of = partial(_mixed, h, self.scale, W)
            self.features = h if features is None else features

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(n, self.dim_x))

    def _phi(self, X: FloatArray) -> FloatArray:
        return self._phi_of(X)


# Functions, not closures: environments travel between processes.


def _mixed(h: Callable[[FloatArray], FloatArray], scale: float, W: FloatArray, X: FloatArray) -> FloatArray:
    return np.asarray(scale * h(X) @ W)


def _own(phi: Callable[[FloatArray], npt.ArrayLike], scale: float, dim_z: int, X: FloatArray) -> FloatArray:
    return scale * matrix("phi(X)", phi(X.copy()), len(X), dim_z)  # a copy: phi may work in place


def _try(phi: Callable[[FloatArray], FloatArray], dim_x: int, dim_z: int) -> None:
    """Ask phi at three rows, to say now and not in mid-run what is wrong with it."""
    X = np.linspace(-HALF_WIDTH, HALF_WIDTH, 3 * dim_x).reshape(3, dim_x)
    try:
        phi(X)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"phi fails on a batch of shape {X.shape} ({type(error).__name__}: {error}), "
            f"wanted a function that gives one of shape (3, {dim_z})"
        ) from error
