"""phi of a given smoothness: a Weierstrass series, for the paper's Hölder classes."""

import numpy as np

from postserve.environments.linear_rewards import LinearRewards, RewardFrom, on_sphere
from postserve.environments.noise import Noise
from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import integer, number

MANTISSA = 52
"""Digits of a double: finer waves than 2^52 change between neighbouring doubles, and amplitudes
below 2^-52 of the first change nothing."""

MOST_LEVELS = 1000


class HolderEnvironment(LinearRewards):
    """r_a = x·theta_a + z·beta_a + eta, z = phi(x) + eps, phi Hölder of exponent b and no more.

    phi_j(x) = scale c sum_k 2^{-kb} cos(pi (2^k v_jk·x + p_jk)), k = 0, 1, …

    with x uniform on [-1, 1]^dim_x, b the `smoothness`, directions v_jk uniform on the unit sphere,
    phases p_jk uniform, and c such that the deviation of phi_j is about `scale`. The waves are a
    dyadic decomposition of phi into one of frequency 2^k and height 2^{-kb} each, so phi is in the
    Hölder-Zygmund class of order b exactly. For b below 1 that is |phi(x) - phi(y)| <= C |x - y|^b;
    for any b that is not whole, the derivatives of order floor(b) have exponent b - floor(b); for
    whole b a factor log(1/|x - y|) comes with it. `levels` is the number of waves: as many as
    doubles can see unless given. The rest is as in `SyntheticEnvironment`.

    >>> env = HolderEnvironment(0.5, seed=0)
    >>> def rise(h):
    ...     return np.mean([abs(env.phi([x + h]) - env.phi([x])) for x in np.arange(200) / 200])
    >>> round(float(np.log2(rise(2**-5) / rise(2**-25))) / 20, 1)
    0.5
    """

    def __init__(
        self,
        smoothness: float,
        *,
        dim_x: int = 1,
        dim_z: int = 1,
        n_arms: int = 5,
        scale: float = 1.0,
        z_noise: Noise = 0.3,
        reward_noise: Noise = 0.1,
        reward_from: RewardFrom = "z",
        levels: int | None = None,
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
        self.smoothness = number("smoothness", smoothness, above=0.0)
        self.scale = number("scale", scale, least=0.0)
        visible = 1 + min(MANTISSA, int(MANTISSA / self.smoothness))
        self.levels = visible if levels is None else integer("levels", levels, least=1)
        if self.levels > MOST_LEVELS:
            raise InvalidInput(f"levels is {levels}, wanted at most {MOST_LEVELS}: 2^levels is a number")
        self._frequency = 2.0 ** np.arange(self.levels)
        height = self._frequency**-self.smoothness
        self._height = self.scale * height / np.sqrt(0.5 * (height**2).sum())
        directions = on_sphere(rng, self.levels * self.dim_z, self.dim_x)
        self._directions = directions.reshape(self.levels, self.dim_z, self.dim_x)
        self._phase = rng.uniform(0.0, 2.0, size=(self.levels, self.dim_z))

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1.0, 1.0, size=(n, self.dim_x))

    def _phi(self, X: FloatArray) -> FloatArray:
        phi = np.zeros((len(X), self.dim_z))
        waves = zip(self._frequency, self._height, self._directions, self._phase, strict=True)
        for frequency, height, directions, phase in waves:
            along = np.zeros_like(phi)
            # One coordinate after the other: a matrix product rounds differently from batch to batch,
            # which the finest waves would show.
            for coordinate, part in zip(X.T, directions.T, strict=True):
                along += coordinate[:, None] * part
            turns = 0.5 * frequency * along
            turns -= np.rint(turns)  # exact, as powers of two are
            phi += height * np.cos(np.pi * (2.0 * turns + phase))
        return phi
