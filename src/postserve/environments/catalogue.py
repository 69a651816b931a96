"""A catalogue: many similar arms, some of which can be served in each round."""

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import numpy.typing as npt

from postserve.environments.linear_rewards import BLOCK_ENTRIES, LinearRowRewards, RewardSettings, on_sphere
from postserve.environments.noise import Noise
from postserve.environments.phi import Phi, make_phi
from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray
from postserve.validation import arm_ids, integer, matrix, number


class CatalogueEnvironment(LinearRowRewards):
    """r_a = x_a·theta_a + z_a·beta_a + eta with weights that are shared except for a part of each arm's own.

    theta_a = theta_0 + own·delta_a, and likewise beta_a, the parts being uniform on unit spheres; with `own`
    0 all arms are equal. phi(x) = scale W^T h(x) is the same for all. In each round `n_eligible` random arms,
    `Rounds.arms`, can be served, and x and z have one row per eligible arm. `phi` takes any number of rows,
    `means` one row per arm, of all arms or of `arms`. The rest is as in `SyntheticEnvironment`.

    >>> env = CatalogueEnvironment("linear", dim_x=4, dim_z=2, n_arms=30, n_eligible=3)
    >>> rounds = env.rounds(5, np.random.default_rng(0))
    >>> rounds.x.shape, rounds.rewards.shape, rounds.arms.shape
    ((5, 3, 4), (5, 3), (5, 3))
    >>> np.allclose(env.means(rounds.x[0], arms=rounds.arms[0]), rounds.means[0])
    True
    """

    def __init__(
        self,
        phi: Phi,
        *,
        dim_x: int = 20,
        dim_z: int = 5,
        n_arms: int = 100,
        n_eligible: int = 10,
        own: float = 0.3,
        scale: float | None = None,
        z_noise: Noise = 1.0,
        seed: int = 0,
        **reward: Unpack[RewardSettings],
    ) -> None:
        rng = np.random.default_rng(integer("seed", seed, least=0))
        n_arms, dim_x = integer("n_arms", n_arms, least=1), integer("dim_x", dim_x, least=1)
        dim_z = integer("dim_z", dim_z, least=1)
        self.own = number("own", own, least=0.0)
        self.n_eligible = self._n_rows = integer("n_eligible", n_eligible, least=1)
        if self.n_eligible > n_arms:
            raise InvalidInput(f"n_eligible is {n_eligible}, wanted at most {n_arms}, the number of arms")
        dims = dim_x, dim_z
        theta, beta = (on_sphere(rng, 1, dim) + self.own * on_sphere(rng, n_arms, dim) for dim in dims)
        made = make_phi(phi, dim_x, dim_z, scale=scale, rng=rng)
        super().__init__(theta, beta, made, z_noise=z_noise, **reward)

    @property
    def rounds_at_once(self) -> int:
        """As for rows, with room to draw the eligible arms."""
        return max(1, min(super().rounds_at_once, BLOCK_ENTRIES // self.n_arms))

    def means(self, x: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray:
        """x·theta_a + phi(x)·beta_a of all arms, or of `arms`; x has one row per arm, in their order."""
        ids = np.arange(self.n_arms) if arms is None else arm_ids("arms", arms)
        if not 0 <= ids.min() <= ids.max() < self.n_arms:
            raise InvalidInput(f"arms is {arms!r}, wanted ids of 0 to {self.n_arms - 1}")
        X = matrix("x", x, len(ids), self.dim_x)[None]
        return np.asarray(self._rewards(X, self._phi(X), ids[None])[0])

    def _eligible(self, n: int, rng: np.random.Generator) -> IntArray:
        shuffled = rng.random((n, self.n_arms)).argsort(axis=1)
        return np.sort(shuffled[:, : self.n_eligible], axis=1).astype(np.int64)
