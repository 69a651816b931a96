"""Few and many arms, dimensions and noises: automatic exploration against constants."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import product

import numpy as np

from postserve.environments.linear_rewards import LinearRewards
from postserve.environments.phi import MadePhi
from postserve.experiments import contenders as c
from postserve.experiments.statistics import Interval
from postserve.experiments.study import Study
from postserve.types import FloatArray
from postserve.validation import one_of

ARMS, NOISES = (2, 10, 50, 200), (0.1, 0.3, 1.0)
CONTEXTS = {"one x": 1, "x in 5 dimensions": 5, "x in 20 dimensions": 20}
CONSTANTS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
AUTO = "auto"
LEAST = 0.01
"""A mean regret below it counts as this: two seeds may have none."""
CONSTANT_NAMES = [f"{constant:g} sd" for constant in CONSTANTS]
"""As so many posterior standard deviations."""


class ManyArms(LinearRewards):
    """r_a = x·theta_a + eta with theta_a ~ N(0, I), so that the means of the arms are about N(0, 1).

    `contexts` is a key of CONTEXTS: with "one x", x is always 1, and otherwise N(0, I/dim). z is always 0.

    >>> ManyArms("one x", n_arms=3, noise=0.1, seed=0).rounds(2, np.random.default_rng(0)).x
    array([[1.],
           [1.]])
    """

    def __init__(self, contexts: str, *, n_arms: int, noise: float, seed: int) -> None:
        self.contexts = one_of("contexts", contexts, tuple(CONTEXTS))
        rng, dim = np.random.default_rng([seed, n_arms]), CONTEXTS[contexts]
        no_phi = MadePhi(_zero, scale=1.0, features=None)
        theta, beta = rng.standard_normal((n_arms, dim)), np.zeros((n_arms, 1))
        super().__init__(theta, beta, no_phi, z_noise=0.0, reward_noise=noise)

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        if self.dim_x == 1:
            return np.ones((n, 1))
        return rng.standard_normal((n, self.dim_x)) / math.sqrt(self.dim_x)


def _zero(X: FloatArray) -> FloatArray:
    return np.zeros((*X.shape[:-1], 1))


def worlds(
    arms: Sequence[int] = ARMS, contexts: Iterable[str] = CONTEXTS
) -> dict[str, Callable[[int], ManyArms]]:
    """By name, each a function of the seed."""
    return {
        f"{n} arms, {x}, noise {noise:g}": partial(_world, x, n, noise)
        for n, x, noise in product(arms, contexts, NOISES)
    }


def _world(contexts: str, n_arms: int, noise: float, seed: int) -> ManyArms:
    return ManyArms(contexts, n_arms=n_arms, noise=noise, seed=seed)


def settings(contender: c.Contender) -> list[c.Contender]:
    """A contender with each constant and with automatic exploration."""
    constants = zip(CONSTANT_NAMES, CONSTANTS, strict=True)
    found = [contender.with_options(name, exploration=constant) for name, constant in constants]
    return [*found, contender.with_options(AUTO)]


def slices(places: Sequence[str]) -> dict[str, list[str]]:
    """The worlds with each number of arms, each kind of contexts and each noise, and all of them.

    >>> slices(["2 arms, one x, noise 1", "9 arms, one x, noise 1"])["9 arms"]
    ['9 arms, one x, noise 1']
    """
    columns = zip(*(place.split(", ") for place in places), strict=True)
    names = [name for column in columns for name in dict.fromkeys(column)]
    found = {name: [place for place in places if name in place.split(", ")] for name in names}
    return {**found, "all": list(places)}


def ratio(study: Study, places: Sequence[str], setting: str, other: str = AUTO) -> Interval:
    """Mean regret over another setting's, the geometric mean over worlds, with two jackknife errors.

    With few arms a run may have no regret at all: seeds are averaged before logarithms are taken.
    """
    finals = np.array([[study.final(place, name) for place in places] for name in (setting, other)])
    n = finals.shape[-1]
    means = finals.mean(axis=-1, keepdims=True)
    without_one = (n * means - finals) / (n - 1)
    error = math.sqrt((n - 1) * float(np.var(_log_ratio(without_one))))
    centre = math.exp(float(_log_ratio(means)[0]))
    return Interval(centre, centre * math.exp(-2.0 * error), centre * math.exp(2.0 * error))


def _log_ratio(regrets: FloatArray) -> FloatArray:
    """The mean over worlds, (setting, world, …) -> (…)."""
    one, other = np.maximum(regrets, LEAST)
    return np.asarray(np.log(one / other).mean(axis=0))


def over_best_constant(study: Study, places: Sequence[str]) -> dict[str, float]:
    """In each world, mean regret with automatic exploration over that of the constant that is best there."""

    def mean(place: str, name: str) -> float:
        return max(LEAST, float(study.final(place, name).mean()))

    return {place: mean(place, AUTO) / min(mean(place, name) for name in CONSTANT_NAMES) for place in places}
