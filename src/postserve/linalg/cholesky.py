"""Factor a positive definite matrix, whatever rounding did to it."""

from typing import NamedTuple

import numpy as np

from postserve.linalg.kernels import cholesky as kernels
from postserve.types import FloatArray

EPS = float(np.finfo(np.float64).eps)


class Factor(NamedTuple):
    """A^{-1}, A^{-1} b for each right-hand side b, log det A, and L^{-1} of A = L L^T."""

    inverse: FloatArray
    solution: FloatArray
    log_det: float
    root: FloatArray


def factorise(gram: FloatArray, ridge: FloatArray, right: FloatArray) -> Factor:
    """Factor A = gram + diag(ridge); `right` has one right-hand side a row.

    A matrix that rounding made indefinite gets the smallest relative lift of its diagonal that
    mends it: what it holds in those directions is below its own rounding error.

    >>> factorise(np.array([[3.0]]), np.array([1.0]), np.array([[8.0]])).solution
    array([[2.]])
    """
    dim = len(ridge)
    root, inverse = np.empty((dim, dim)), np.empty((dim, dim))
    log_det, lift = np.nan, 0.0
    while np.isnan(log_det):
        if not lift < 1.0:  # a lift of that size means that these are no sums of squares
            raise ArithmeticError("the gram is not positive semi-definite, wanted a sum of u u^T")
        matrix = gram.copy()
        matrix.flat[:: dim + 1] = (np.diagonal(gram) + ridge) * (1.0 + lift)
        log_det = kernels.cholesky_inverse(matrix, root, inverse)
        lift = max(EPS, 4.0 * lift)
    return Factor(inverse, (right @ root.T) @ root, log_det, root)
