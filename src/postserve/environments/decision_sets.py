"""The paper's proposition 3, linear stochastic bandits: new candidates in each round."""

from typing import Unpack

from postserve.environments.linear_rewards import LinearRowRewards, RewardSettings, unit_weights
from postserve.environments.noise import Noise
from postserve.environments.phi import Phi, make_phi
from postserve.validation import integer


class DecisionSetEnvironment(LinearRowRewards):
    """r = x·theta + z·beta + eta, z = phi(x) + eps, x being one of the round's candidates.

    There is one theta, one beta and one phi(x) = scale W^T h(x). An arm is a row of the round's set, and
    `n_arms` the number of rows, which are new in each round. `phi` and `means` take any number of rows. The
    rest is as in `SyntheticEnvironment`.

    >>> import numpy as np
    >>> env = DecisionSetEnvironment("polynomial", dim_x=4, dim_z=2, n_candidates=50)
    >>> rounds = env.rounds(5, np.random.default_rng(0))
    >>> rounds.x.shape, rounds.z.shape, rounds.rewards.shape
    ((5, 50, 4), (5, 50, 2), (5, 50))
    >>> env.means(np.ones((7, 4))).shape
    (7,)
    """

    def __init__(
        self,
        phi: Phi,
        *,
        dim_x: int = 20,
        dim_z: int = 5,
        n_candidates: int = 100,
        scale: float | None = None,
        z_noise: Noise = 1.0,
        seed: int = 0,
        **reward: Unpack[RewardSettings],
    ) -> None:
        self.n_candidates = self._n_rows = integer("n_candidates", n_candidates, least=1)
        rng, theta, beta = unit_weights(seed, 1, dim_x, dim_z)
        made = make_phi(phi, theta.shape[1], beta.shape[1], scale=scale, rng=rng)
        super().__init__(theta, beta, made, z_noise=z_noise, **reward)
        self.n_arms = self.n_candidates
