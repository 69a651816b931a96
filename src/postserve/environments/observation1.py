"""The paper's Observation 1: without post-serving contexts, regret is linear."""

import numpy as np

from postserve.environments.linear_rewards import LinearRewards
from postserve.environments.phi import MadePhi
from postserve.types import FloatArray
from postserve.validation import number

CONTEXTS = np.array([-3.0, -1.0, 1.0])


def squared(x: FloatArray) -> FloatArray:
    """x²; not a ufunc, which a study could not recognise when it is resumed."""
    return np.asarray(x**2)


def with_square(x: FloatArray) -> FloatArray:
    """(x, x²), of one x or of a batch."""
    return np.concatenate([x, squared(x)], axis=-1)


class Observation1(LinearRewards):
    """r_1 = x + z/2 + eta, r_2 = -x - z/2 + eta, z = x² + eps, x uniform on {-3, -1, 1}.

    The means x + x²/2 are 3/2, -1/2 and 3/2: the better arm changes twice along x, so a policy that is linear
    in x stays wrong at one of the three; one that is linear in (x, phi_hat(x)) does not, if the map has x²
    among its `features`. `z_noise` and `reward_noise` are deviations.

    >>> env = Observation1()
    >>> [env.means([x]).tolist() for x in (-3.0, -1.0, 1.0)]
    [[1.5, -1.5], [-0.5, 0.5], [1.5, -1.5]]
    """

    def __init__(self, *, z_noise: float = 0.0, reward_noise: float = 0.0) -> None:
        super().__init__(
            np.array([[1.0], [-1.0]]),
            np.array([[0.5], [-0.5]]),
            MadePhi(squared, scale=1.0, features=with_square),
            z_noise=number("z_noise", z_noise, least=0.0),
            reward_noise=number("reward_noise", reward_noise, least=0.0),
        )

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return np.asarray(CONTEXTS[rng.integers(len(CONTEXTS), size=(n, 1))])
