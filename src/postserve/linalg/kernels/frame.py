"""Sums of products of rows, as they are from another origin."""

import numpy as np
from numba import njit

from postserve.types import FloatArray

POSSIBLE = 1e-6
"""By how much rounding may let |S_ij| exceed the root of S_ii S_jj."""


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def move_grams(grams: FloatArray, delta: FloatArray, last: FloatArray, most: FloatArray) -> None:
    """Take delta from the rows whose products each gram sums; the last column of a row is its constant.

    `last` and `most` are scratch arrays.
    """
    dim = len(delta)
    for k in range(grams.shape[0]):
        gram = grams[k]
        n = gram[dim - 1, dim - 1]
        for j in range(dim):
            last[j] = gram[dim - 1, j]
        for i in range(dim):
            row, d, s = gram[i], delta[i], last[i]
            for j in range(dim):
                row[j] = row[j] - d * last[j] - s * delta[j] + n * (d * delta[j])
        bound_gram(gram, most)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def bound_gram(gram: FloatArray, most: FloatArray) -> None:
    """Make entries that no rows can have the nearest that some can; `most` is a scratch array."""
    dim = len(most)
    for i in range(dim):
        most[i] = np.sqrt(max(gram[i, i], 0.0)) * (1.0 + POSSIBLE)
    for i in range(dim):
        row = gram[i]
        for j in range(dim):
            limit = most[i] * most[j]
            row[j] = min(max(row[j], -limit), limit)
