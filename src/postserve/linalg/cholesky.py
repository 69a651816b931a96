"""Factor a positive definite matrix, in spite of rounding."""

from typing import NamedTuple

import numpy as np

from postserve.linalg.kernels import cholesky as kernels
from postserve.linalg.kernels.cholesky import LANES, PANEL
from postserve.types import FloatArray

EPS = float(np.finfo(np.float64).eps)


class Factor(NamedTuple):
    """A^{-1}, A^{-1} b for each right-hand side b, log det A, and L^{-1} of A = L L^T."""

    inverse: FloatArray
    solution: FloatArray
    log_det: float
    root: FloatArray


def factorise(gram: FloatArray, ridge: FloatArray, right: FloatArray) -> Factor:
    """Factor A = gram + diag(ridge); `right` has one right-hand side per row.

    If rounding made the matrix indefinite, its diagonal is raised by the smallest relative amount that mends
    it: in those directions the matrix is below its own rounding error.

    >>> factorise(np.array([[3.0]]), np.array([1.0]), np.array([[8.0]])).solution
    array([[2.]])
    """
    dim, log_det, lift = len(ridge), np.nan, 0.0
    while np.isnan(log_det):
        if not lift < 8.0 * max(dim, 1):  # more than enough for any gram with |S_ij|² <= S_ii S_jj
            raise ArithmeticError("the gram is not positive semi-definite, wanted a sum of u u^T")
        matrix = gram.copy()
        matrix.flat[:: dim + 1] = (np.diagonal(gram) + ridge) * (1.0 + lift)
        log_det, root, inverse = cholesky_inverse(matrix)
        lift = max(EPS, 4.0 * lift)
    return Factor(inverse, (right @ root.T) @ root, log_det, root)


def cholesky_inverse(matrix: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """log det A, L^{-1} and A^{-1} of A = L L^T; log det is NaN where A is not positive definite.

    >>> cholesky_inverse(np.array([[4.0]]))[1:]
    (array([[0.5]]), array([[0.25]]))
    """
    dim = len(matrix)
    if dim == 0:  # a hybrid's shared weights where all inputs are 0
        return 0.0, np.empty((0, 0)), np.empty((0, 0))
    padded = -(-dim // LANES) * LANES
    # one allocation, which malloc keeps for the next call; of two it would return one to the system
    scratch = np.zeros((2 * padded + 3 * PANEL, padded))
    work, product, panels = scratch[:padded], scratch[padded : 2 * padded], scratch[2 * padded :]
    before, panel = panels[:PANEL], panels[PANEL : 2 * PANEL]
    block = panels[2 * PANEL :].reshape(-1)[: PANEL * PANEL].reshape(PANEL, PANEL)
    root, inverse = np.empty((dim, dim)), np.empty((dim, dim))
    log_det = kernels.cholesky_inverse(matrix, work, product, before, panel, block, root, inverse)
    return log_det, root, inverse
