"""Factor a positive definite matrix, in spite of rounding."""

from typing import NamedTuple

import numpy as np

from postserve.linalg.kernels import cholesky as kernels
from postserve.linalg.kernels.cholesky import LANES, PANEL
from postserve.types import FloatArray

EPS = float(np.finfo(np.float64).eps)
AT_ONCE = 2**14
"""Numbers in the matrices that are factorised at once: with their roots they should stay in the cache."""


class Factor(NamedTuple):
    """A^{-1}, A^{-1} b for each right-hand side b, log det A, and L^{-1} of A = L L^T."""

    inverse: FloatArray
    solution: FloatArray
    log_det: float
    root: FloatArray


class Factors(NamedTuple):
    """The parts of the factors of several matrices but for their roots, each along the first axis."""

    inverse: FloatArray
    solution: FloatArray
    log_det: FloatArray


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


def factorise_all(grams: FloatArray, ridge: FloatArray, rights: FloatArray) -> Factors:
    """`factorise` each gram with its right-hand sides, in one call of a kernel.

    >>> factorise_all(np.full((2, 1, 1), 3.0), np.array([1.0]), np.array([[[8.0]], [[4.0]]])).solution
    array([[[2.]],
    <BLANKLINE>
           [[1.]]])
    """
    n, dim = len(grams), len(ridge)
    inverses, solutions, log_dets = np.empty((n, dim, dim)), np.zeros(rights.shape), np.zeros(n)
    if not n or not dim:  # without dimensions all inputs are 0
        return Factors(inverses, solutions, log_dets)
    at_once = max(1, min(n, AT_ONCE // (dim * dim)))
    scratch, buffers = _scratch(dim), np.empty((2, at_once, dim, dim))
    for start in range(0, n, at_once):
        some = slice(start, start + at_once)
        matrices, roots = buffers[:, : len(grams[some])]
        matrices[:] = grams[some]
        matrices.reshape(-1, dim * dim)[:, :: dim + 1] += ridge
        kernels.cholesky_inverses(matrices, *scratch, roots, inverses[some], log_dets[some])
        roots[np.isnan(log_dets[some])] = 0.0
        solutions[some] = (rights[some] @ roots.mT) @ roots
    for i in np.flatnonzero(np.isnan(log_dets)):
        inverses[i], solutions[i], log_dets[i], _ = factorise(grams[i], ridge, rights[i])
    return Factors(inverses, solutions, log_dets)


def cholesky_inverse(matrix: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """log det A, L^{-1} and A^{-1} of A = L L^T; log det is NaN where A is not positive definite.

    >>> cholesky_inverse(np.array([[4.0]]))[1:]
    (array([[0.5]]), array([[0.25]]))
    """
    dim = len(matrix)
    if dim == 0:  # a hybrid's shared weights where all inputs are 0
        return 0.0, np.empty((0, 0)), np.empty((0, 0))
    root, inverse = np.empty((dim, dim)), np.empty((dim, dim))
    return kernels.cholesky_inverse(matrix, *_scratch(dim), root, inverse), root, inverse


def _scratch(dim: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]:
    """The scratch arrays of the kernels, all zero."""
    padded = -(-dim // LANES) * LANES
    # one allocation, which malloc keeps for the next call; of two it would return one to the system
    scratch = np.zeros((2 * padded + 3 * PANEL, padded))
    work, product, panels = scratch[:padded], scratch[padded : 2 * padded], scratch[2 * padded :]
    before, panel, rest = panels[:PANEL], panels[PANEL : 2 * PANEL], panels[2 * PANEL :]
    return work, product, before, panel, rest.reshape(-1)[: PANEL * PANEL].reshape(PANEL, PANEL)
