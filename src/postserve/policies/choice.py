"""From scores to a choice: the best arm, ties broken at random, and the probability of it."""

import numpy as np

from postserve.linalg.kernels import models as kernels
from postserve.types import FloatArray


def choose(scores: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """Index of the best score and its propensity; rng is asked only where scores tie.

    >>> choose(np.array([1.0, 3.0, 2.0]), np.random.default_rng(0))
    (1, 1.0)
    """
    best, ties = kernels.best(scores)
    if ties == 1:
        return best, 1.0
    if ties == 0:
        raise ArithmeticError("a score is NaN, wanted numbers")
    return kernels.nth(scores, scores[best], int(rng.random() * ties)), 1.0 / ties


def draw(chances: FloatArray, rng: np.random.Generator) -> tuple[int, float]:
    """An index drawn with these probabilities, and its own.

    >>> draw(np.array([0.0, 1.0]), np.random.default_rng(0))
    (1, 1.0)
    """
    ends = np.cumsum(chances)
    # Scaling by the last end, not by 1, keeps rounding from falling off the edge.
    index = int(np.searchsorted(ends, rng.random() * ends[-1], side="right"))
    return index, float(chances[index])


def distribution(scores: FloatArray) -> FloatArray:
    """The probability with which `choose` takes each index.

    >>> distribution(np.array([3.0, 3.0, 2.0]))
    array([0.5, 0.5, 0. ])
    """
    best = scores == scores.max()
    return np.asarray(best / best.sum())
