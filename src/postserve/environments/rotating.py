"""Content that comes and goes: a few arms are alive at a time, and each has its own phi."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from postserve.environments.linear_rewards import on_sphere
from postserve.environments.noise import Noise, check_noise, draw_noise
from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray, Rounds
from postserve.validation import arm_ids, generator, integer, number, vector


class RotatingEnvironment:
    """r_a = x·theta_a + z_a·beta_a + eta, z_a = phi_a(x) + eps_a, with arms that enter and leave.

    `n_alive` arms can be served at a time, `Rounds.arms`; every `lifetime / n_alive` rounds the oldest leaves
    and a new one enters, up to `horizon`, where the environment ends: `rounds(n)` are its first n rounds.
    `n_arms` counts all that ever live, in the order in which they enter. x is N(0, I), one for all arms, and
    z has one row per arm that is alive: phi_a(x) = (B_0 + B_a) x + b_0 + b_a. Entries are Gaussian: those of
    B_0 have variance 1/dim_x, those of b_0 deviation 0.5, and those of the arms' own B_a and b_a deviations
    own_phi/sqrt(dim_x) and own_phi. theta_a = theta + own_weights·(unit
    vector), and likewise beta_a, with theta and beta uniform on unit spheres: with `own_weights` 0, all arms
    share how z makes the reward. `phi` and `means` take x and give one row, or entry, per arm, of all arms or
    of `arms`.

    >>> env = RotatingEnvironment(n_alive=3, lifetime=6, horizon=8, dim_x=4, dim_z=2)
    >>> rounds = env.rounds(8, np.random.default_rng(0))
    >>> rounds.arms[[0, 1, 2, 7]].tolist(), env.n_arms
    ([[0, 1, 2], [0, 1, 2], [1, 2, 3], [3, 4, 5]], 6)
    >>> rounds.x.shape, rounds.z.shape, rounds.rewards.shape
    ((8, 4), (8, 3, 2), (8, 3))
    >>> np.allclose(env.means(rounds.x[0], arms=rounds.arms[0]), rounds.means[0])
    True
    """

    def __init__(
        self,
        *,
        n_alive: int = 10,
        lifetime: int = 1000,
        horizon: int = 5000,
        dim_x: int = 5,
        dim_z: int = 4,
        own_phi: float = 0.5,
        own_weights: float = 0.0,
        z_noise: Noise = 1.0,
        reward_noise: Noise = 1.0,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(integer("seed", seed, least=0))
        self.dim_x, self.dim_z = integer("dim_x", dim_x, least=1), integer("dim_z", dim_z, least=1)
        self.n_alive = integer("n_alive", n_alive, least=1)
        self.lifetime = integer("lifetime", lifetime, least=1)
        if self.lifetime % self.n_alive:
            raise InvalidInput(f"lifetime is {lifetime}, wanted a multiple of n_alive, {n_alive}")
        self.horizon = integer("horizon", horizon, least=1)
        self.own_phi = number("own_phi", own_phi, least=0.0)
        self.own_weights = number("own_weights", own_weights, least=0.0)
        self.n_arms = self.n_alive + (self.horizon - 1) // self._stay
        self.z_noise = check_noise("z_noise", z_noise, self.dim_z)
        self.reward_noise = check_noise("reward_noise", reward_noise, 1)
        slopes = rng.standard_normal((self.n_arms + 1, self.dim_x, self.dim_z)) / np.sqrt(self.dim_x)
        offsets = rng.standard_normal((self.n_arms + 1, self.dim_z))
        self._slopes = slopes[0] + self.own_phi * slopes[1:]
        self._offsets = 0.5 * offsets[0] + self.own_phi * offsets[1:]
        self.common_theta, self.common_beta = (on_sphere(rng, 1, dim)[0] for dim in (self.dim_x, self.dim_z))
        self.theta = self.common_theta + self.own_weights * on_sphere(rng, self.n_arms, self.dim_x)
        self.beta = self.common_beta + self.own_weights * on_sphere(rng, self.n_arms, self.dim_z)

    @property
    def rounds_at_once(self) -> int:
        """All: a block begins with the first round."""
        return self.horizon

    def phi(self, x: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray:
        """E[z|x] of all arms, or of `arms`, one row each."""
        return np.asarray(self._phi(vector("x", x, self.dim_x)[None], self._ids(arms)[None])[0])

    def means(self, x: npt.ArrayLike, arms: Sequence[int] | None = None) -> FloatArray:
        """x·theta_a + phi_a(x)·beta_a of all arms, or of `arms`."""
        X, ids = vector("x", x, self.dim_x)[None], self._ids(arms)[None]
        return np.asarray(self._rewards(X, self._phi(X, ids), ids)[0])

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """The first n rounds as potential outcomes, with one eta per round for all arms."""
        n, rng = integer("n", n, least=0), generator(rng)
        if n > self.horizon:
            raise InvalidInput(f"n is {n}, wanted at most {self.horizon}, the horizon")
        arms = np.arange(n)[:, None] // self._stay + np.arange(self.n_alive)
        X = rng.standard_normal((n, self.dim_x))
        phi = self._phi(X, arms)
        off = draw_noise("z_noise", self.z_noise, rng, (n * self.n_alive, self.dim_z))
        Z = phi + off.reshape(phi.shape)
        eta = draw_noise("reward_noise", self.reward_noise, rng, (n, 1))
        return Rounds(X, Z, self._rewards(X, Z, arms) + eta, self._rewards(X, phi, arms), arms)

    @property
    def _stay(self) -> int:
        """Rounds from one entry to the next."""
        return self.lifetime // self.n_alive

    def _ids(self, arms: Sequence[int] | None) -> IntArray:
        if arms is None:
            return np.arange(self.n_arms)
        ids = arm_ids("arms", arms)
        if not 0 <= ids.min() <= ids.max() < self.n_arms:
            raise InvalidInput(f"arms is {arms!r}, wanted ids of 0 to {self.n_arms - 1}")
        return ids

    def _phi(self, X: FloatArray, ids: IntArray) -> FloatArray:
        """One block per round, one row per arm: of (n, dim_x) and (n, k), (n, k, dim_z)."""
        # Of all arms first: slopes[ids] would be one matrix per round and arm.
        of_all = np.einsum("nd,adz->naz", X, self._slopes, optimize=True) + self._offsets
        return np.asarray(np.take_along_axis(of_all, ids[..., None], axis=1))

    def _rewards(self, X: FloatArray, Z: FloatArray, ids: IntArray) -> FloatArray:
        of_x = np.take_along_axis(X @ self.theta.T, ids, axis=1)
        return np.asarray(of_x + np.einsum("nkz,nkz->nk", Z, self.beta[ids]))
