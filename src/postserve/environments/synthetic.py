"""The paper's synthetic environments: polynomial, periodic and linear phi, or your own."""

from typing import Unpack

from postserve.context_maps.features import Features
from postserve.environments.linear_rewards import LinearRewards, RewardSettings, unit_weights
from postserve.environments.noise import Noise
from postserve.environments.phi import Phi, make_phi


class SyntheticEnvironment(LinearRewards):
    """r_a = x·theta_a + z·beta_a + eta, z = phi(x) + eps, phi(x) = scale W^T h(x).

    x is uniform on [-10, 10]^dim_x, theta_a and beta_a on unit spheres, W is N(0, 1/dim_x). The first
    argument names h, or is your own phi, a function of a batch (n, dim_x) that gives (n, dim_z); it is
    multiplied by `scale` (10 for a named h, else 1). `z_noise` and `reward_noise` (by default 0.1) are the
    deviations of Gaussian eps and eta, or functions (rng, shape) that draw them with mean 0. With
    `reward_from` "phi" (by default "z") the reward has phi(x) in place of z (figure 4). `features`, by
    default h, are meant for maps. `seed` determines the truth; rounds are drawn from the generator given to
    `rounds`.

    >>> import numpy as np
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
        features: Features | None = None,
        seed: int = 0,
        **reward: Unpack[RewardSettings],
    ) -> None:
        rng, theta, beta = unit_weights(seed, n_arms, dim_x, dim_z)
        made = make_phi(phi, theta.shape[1], beta.shape[1], scale=scale, rng=rng, features=features)
        super().__init__(theta, beta, made, z_noise=z_noise, **reward)
