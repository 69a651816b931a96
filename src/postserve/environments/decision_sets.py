"""The paper's proposition 3, linear stochastic bandits: candidates that are new in each round."""

import numpy as np
import numpy.typing as npt

from postserve.environments.linear_rewards import LinearRowRewards, RewardFrom, on_sphere
from postserve.environments.noise import Noise
from postserve.environments.phi import Phi, make_phi, of_rows
from postserve.types import FloatArray
from postserve.validation import integer, matrix


class DecisionSetEnvironment(LinearRowRewards):
    """r = x·theta + z·beta + eta, z = phi(x) + eps, x one of a round's fresh candidates.

    There is one theta, one beta and one phi(x) = scale W^T h(x); what is chosen is a row of the
    round's set, and rows mean nothing from one round to the next. `n_arms` is the number of rows.
    `phi` and `means` take any number of rows. The rest is as in `SyntheticEnvironment`.

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
        reward_noise: Noise = 0.1,
        reward_from: RewardFrom = "z",
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(integer("seed", seed, least=0))
        dim_x, dim_z = integer("dim_x", dim_x, least=1), integer("dim_z", dim_z, least=1)
        self.n_candidates = integer("n_candidates", n_candidates, least=1)
        super().__init__(
            on_sphere(rng, 1, dim_x),
            on_sphere(rng, 1, dim_z),
            n_rows=self.n_candidates,
            z_noise=z_noise,
            reward_noise=reward_noise,
            reward_from=reward_from,
        )
        self.n_arms = self.n_candidates
        made = make_phi(phi, dim_x=dim_x, dim_z=dim_z, scale=scale, rng=rng)
        self._phi_of, self.scale, self.features = made

    def _rows(self, x: npt.ArrayLike) -> FloatArray:
        return matrix("x", x, None, self.dim_x)

    def _phi(self, X: FloatArray) -> FloatArray:
        return of_rows(self._phi_of, X)
