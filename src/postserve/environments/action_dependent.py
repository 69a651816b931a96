"""The paper's proposition 2: every arm has a context of its own, and perhaps a phi of its own."""

from typing import Literal, TypeAlias

import numpy as np

from postserve.environments.linear_rewards import LinearRowRewards, RewardFrom, on_sphere
from postserve.environments.noise import Noise
from postserve.environments.phi import Phi, make_phi, make_phis, of_rows
from postserve.types import FloatArray
from postserve.validation import integer, one_of

Maps: TypeAlias = Literal["separate", "shared"]


class ActionDependentEnvironment(LinearRowRewards):
    """r_a = x_a·theta_a + z_a·beta_a + eta, z_a = phi_a(x_a) + eps_a: each round, each arm has its own x.

    phi_a(x) = scale W_a^T h(x), with a W_a for each arm (`maps` "separate") or one W for all of them
    ("shared"). With "shared", phi may be a function of one's own. What is served shows its own z
    alone. `phi` and `means` take one row an arm. The rest is as in `SyntheticEnvironment`.

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
        dim_x: int = 20,
        dim_z: int = 5,
        n_arms: int = 10,
        maps: Maps = "separate",
        scale: float | None = None,
        z_noise: Noise = 1.0,
        reward_noise: Noise = 0.1,
        reward_from: RewardFrom = "z",
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(integer("seed", seed, least=0))
        n_arms, dim_x = integer("n_arms", n_arms, least=1), integer("dim_x", dim_x, least=1)
        super().__init__(
            on_sphere(rng, n_arms, dim_x),
            on_sphere(rng, n_arms, integer("dim_z", dim_z, least=1)),
            n_rows=n_arms,
            z_noise=z_noise,
            reward_noise=reward_noise,
            reward_from=reward_from,
        )
        self.maps: Maps = one_of("maps", maps, ("separate", "shared"))
        made = (
            make_phi(phi, dim_x=dim_x, dim_z=self.dim_z, scale=scale, rng=rng)
            if self.maps == "shared"
            else make_phis(phi, n=n_arms, dim_x=dim_x, dim_z=self.dim_z, scale=scale, rng=rng)
        )
        self._phi_of, self.scale, self.features = made

    def _phi(self, X: FloatArray) -> FloatArray:
        return of_rows(self._phi_of, X) if self.maps == "shared" else self._phi_of(X)
