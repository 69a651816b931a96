"""The paper's proposition 2: one context per arm, and one phi per arm or one for all."""

from functools import partial
from typing import Literal, TypeAlias, Unpack

import numpy.typing as npt

from postserve.environments.linear_rewards import LinearRowRewards, RewardSettings, unit_weights
from postserve.environments.noise import Noise
from postserve.environments.phi import Phi, make_phi, make_phis
from postserve.types import FloatArray
from postserve.validation import matrix, one_of

Maps: TypeAlias = Literal["separate", "shared"]


class ActionDependentEnvironment(LinearRowRewards):
    """r_a = x_a·theta_a + z_a·beta_a + eta, z_a = phi_a(x_a) + eps_a: each round, each arm has its own x.

    phi_a(x) = scale W_a^T h(x), with one W_a per arm (`maps` "separate") or one W for all ("shared"; then phi
    may be your own function). Only the served arm's z is seen. `phi` and `means` take one row per arm. The
    rest is as in `SyntheticEnvironment`.

    >>> import numpy as np
    >>> env = ActionDependentEnvironment("linear", dim_x=4, dim_z=2, n_arms=3)
    >>> rounds = env.rounds(5, np.random.default_rng(0))
    >>> rounds.x.shape, rounds.z.shape, rounds.rewards.shape
    ((5, 3, 4), (5, 3, 2), (5, 3))
    >>> env.phi(np.ones((3, 4))).shape
    (3, 2)
    """

    def __init__(
        self,
        phi: Phi,
        *,
        maps: Maps = "separate",
        dim_x: int = 20,
        dim_z: int = 5,
        n_arms: int = 10,
        scale: float | None = None,
        z_noise: Noise = 1.0,
        seed: int = 0,
        **reward: Unpack[RewardSettings],
    ) -> None:
        self.maps: Maps = one_of("maps", maps, ("separate", "shared"))
        rng, theta, beta = unit_weights(seed, n_arms, dim_x, dim_z)
        make = make_phi if self.maps == "shared" else partial(make_phis, n=len(theta))
        made = make(phi, theta.shape[1], beta.shape[1], scale=scale, rng=rng)
        super().__init__(theta, beta, made, z_noise=z_noise, **reward)
        self._n_rows = self.n_arms

    def _checked(self, x: npt.ArrayLike) -> FloatArray:
        return matrix("x", x, self.n_arms, self.dim_x)
