"""phi of a given smoothness: a Weierstrass series, for the paper's Hölder classes."""

from functools import partial
from typing import Unpack

import numpy as np

from postserve.environments.linear_rewards import LinearRewards, RewardSettings, on_sphere, unit_weights
from postserve.environments.noise import Noise
from postserve.environments.phi import MadePhi
from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import integer, number

MANTISSA = 52
"""Digits of a double: finer waves than 2^52 change between neighbouring doubles, and amplitudes below 2^-52
of the first change nothing."""
MOST_LEVELS = 1000


class HolderEnvironment(LinearRewards):
    """r_a = x·theta_a + z·beta_a + eta, z = phi(x) + eps, phi Hölder of exponent b exactly.

    phi_j(x) = scale c sum_k 2^{-kb} cos(pi (2^k v_jk·x + p_jk)), k = 0, 1, …

    with x uniform on [-1, 1]^dim_x, b the `smoothness`, directions v_jk uniform on the unit sphere, phases
    p_jk uniform, and c such that the deviation of phi_j is about `scale`. This is a dyadic decomposition,
    with one wave of frequency 2^k and height 2^{-kb} each, so phi is in the Hölder-Zygmund class of order b
    exactly. For b < 1 that is |phi(x) - phi(y)| <= C |x - y|^b; for any b that is not whole, the derivatives
    of order floor(b) have exponent b - floor(b); for whole b there is a factor log(1/|x - y|). `levels` is
    the number of waves, by default as many as doubles resolve. The rest is as in `SyntheticEnvironment`.

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
        levels: int | None = None,
        seed: int = 0,
        **reward: Unpack[RewardSettings],
    ) -> None:
        self.smoothness = number("smoothness", smoothness, above=0.0)
        visible = 1 + min(MANTISSA, int(MANTISSA / self.smoothness))
        self.levels = visible if levels is None else integer("levels", levels, least=1)
        if self.levels > MOST_LEVELS:
            raise InvalidInput(f"levels is {levels}, wanted at most {MOST_LEVELS}: 2^levels must be finite")
        scale = number("scale", scale, least=0.0)
        rng, theta, beta = unit_weights(seed, n_arms, dim_x, dim_z)
        shape = self.levels, beta.shape[1], theta.shape[1]
        frequencies = np.asarray(2.0 ** np.arange(self.levels), dtype=np.float64)
        heights = frequencies**-self.smoothness
        heights = scale * heights / np.sqrt(0.5 * (heights**2).sum())
        directions = on_sphere(rng, shape[0] * shape[1], shape[2]).reshape(shape)
        phases = rng.uniform(0.0, 2.0, size=shape[:2])
        waves = partial(_sum_of_waves, frequencies, heights, directions, phases)
        super().__init__(theta, beta, MadePhi(waves, scale, features=None), z_noise=z_noise, **reward)

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1.0, 1.0, size=(n, self.dim_x))


def _sum_of_waves(
    frequencies: FloatArray, heights: FloatArray, directions: FloatArray, phases: FloatArray, X: FloatArray
) -> FloatArray:
    """phi of a batch; a function, not a closure, since environments are pickled."""
    phi = np.zeros((len(X), phases.shape[1]))
    for frequency, height, each, phase in zip(frequencies, heights, directions, phases, strict=True):
        along = np.zeros_like(phi)
        # Coordinate by coordinate: a matrix product rounds differently from batch to batch, and the finest
        # waves would show it.
        for coordinate, part in zip(X.T, each.T, strict=True):
            along += coordinate[:, None] * part
        turns = 0.5 * frequency * along
        turns -= np.rint(turns)  # exact, as powers of two are
        phi += height * np.cos(np.pi * (2.0 * turns + phase))
    return phi
