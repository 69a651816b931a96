"""The reference of every ratio: LinUCB as a careful user would write it, in numpy alone."""

from typing import Any

import numpy as np

LARGE = 2**24
"""Bytes."""


class NumpyLinUCB:
    """Ridge 1, radius 1. All inverses are stacked, so that a select is one product of a matrix and a vector.

    select: the (n_arms·dim, dim) stack times x, then n_arms dot products and n_arms means. The product is
    BLAS's, or einsum's where the stack outgrows the caches (c): there BLAS took twice as long.
    update: Sherman-Morrison on the arm's inverse, then its weights anew, as inverse times moment.
    """

    def __init__(self, n_arms: int, dim: int) -> None:
        self.inverse = np.repeat(np.eye(dim)[None], n_arms, axis=0)
        self.weights = np.zeros((n_arms, dim))
        self.moment = np.zeros((n_arms, dim))
        self.large = self.inverse.nbytes > LARGE

    def select(self, u: Any) -> int:
        n_arms, dim = self.weights.shape
        stack = self.inverse.reshape(-1, dim)
        solved = (np.einsum("ij,j->i", stack, u) if self.large else stack @ u).reshape(n_arms, dim)
        return int((self.weights @ u + np.sqrt(solved @ u)).argmax())

    def update(self, u: Any, arm: int, reward: float) -> None:
        solved = self.inverse[arm] @ u
        self.inverse[arm] -= np.outer(solved, solved) / (1.0 + u @ solved)
        self.moment[arm] += reward * u
        self.weights[arm] = self.inverse[arm] @ self.moment[arm]


class NumpyPoLinUCB:
    """The same on (x, z), with recursive least squares for phi: x -> z. A context is the pair (x, z)."""

    def __init__(self, n_arms: int, dim_x: int, dim_z: int) -> None:
        self.arms = NumpyLinUCB(n_arms, dim_x + dim_z)
        self.P, self.Phi = np.eye(dim_x), np.zeros((dim_x, dim_z))

    def select(self, context: Any) -> int:
        x = context[0]
        return self.arms.select(np.concatenate([x, x @ self.Phi]))

    def update(self, context: Any, arm: int, reward: float) -> None:
        x, z = context
        solved = self.P @ x
        gain = solved / (1.0 + x @ solved)
        self.Phi += np.outer(gain, z - x @ self.Phi)
        self.P -= np.outer(gain, solved)
        self.arms.update(np.concatenate([x, z]), arm, reward)
