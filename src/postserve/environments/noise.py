"""Noise of mean 0: Gaussian of a given deviation, or drawn by your own function."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.types import FloatArray
from postserve.validation import errors_as_invalid_input, matrix, number

Shape: TypeAlias = tuple[int, int]
Noise: TypeAlias = float | Callable[[np.random.Generator, Shape], npt.ArrayLike]
"""A deviation, or a function that draws an array of a given shape from a given generator."""


def check_noise(name: str, noise: Noise, dim: int) -> Noise:
    """A deviation of at least 0, or a function, which is tried on three rows.

    >>> check_noise("z_noise", lambda rng, shape: rng.laplace(size=3), 2)
    Traceback (most recent call last):
    postserve.errors.InvalidInput: z_noise(rng, (3, 2)) has shape (3,), wanted (3, 2)
    """
    if not callable(noise):
        return number(name, noise, least=0.0)
    shape = (3, dim)
    wanted = "a number or a function of a generator and a shape"
    with errors_as_invalid_input(f"{name} fails on (rng, {shape})", wanted):
        drawn = noise(np.random.default_rng(0), shape)
    matrix(f"{name}(rng, {shape})", drawn, *shape)
    return noise


def draw_noise(name: str, noise: Noise, rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Noise of that shape, checked if a function drew it."""
    if callable(noise):
        return matrix(f"{name}(rng, {shape})", noise(rng, shape), *shape)
    return np.asarray(noise * rng.standard_normal(shape))
