"""The paper's synthetic environments: polynomial, periodic and linear phi, or one's own."""

import numpy as np

from postserve.context_maps.features import Features
from postserve.environments.linear_rewards import LinearRewards, RewardFrom, on_sphere
from postserve.environments.noise import Noise
from postserve.environments.phi import HALF_WIDTH, Phi, make_phi
from postserve.types import FloatArray
from postserve.validation import integer


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
        made = make_phi(phi, dim_x=self.dim_x, dim_z=self.dim_z, scale=scale, rng=rng, features=features)
        self._phi_of, self.scale, self.features = made

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-HALF_WIDTH, HALF_WIDTH, size=(n, self.dim_x))

    def _phi(self, X: FloatArray) -> FloatArray:
        return self._phi_of(X)
