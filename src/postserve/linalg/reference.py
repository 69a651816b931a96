"""The kernels in plain numpy, for reading and for testing the compiled ones against."""

import numpy as np

from postserve.types import FloatArray, IntArray


def project(
    inverse: FloatArray,
    weights: FloatArray,
    models: IntArray,
    U: FloatArray,
    means: FloatArray,
    squares: FloatArray,
) -> None:
    """means[i, o] = w_o·u_i and squares[i] = u_i^T A^{-1} u_i for row i under models[i]."""
    means[:] = np.einsum("iok,ik->io", weights[models], U)
    squares[:] = np.maximum(np.einsum("ij,ijk,ik->i", U, inverse[models], U), 0.0)


def average(weights: FloatArray, models: IntArray, U: FloatArray, means: FloatArray) -> None:
    """means[i, o] = w_o·u_i for row i under models[i]: `project` without its squares."""
    means[:] = np.einsum("iok,ik->io", weights[models], U)


def project_hybrid(
    inverse: FloatArray,
    weights: FloatArray,
    shared_inverse: FloatArray,
    shared_weights: FloatArray,
    ridge: FloatArray,
    models: IntArray,
    U: FloatArray,
    means: FloatArray,
    squares: FloatArray,
) -> None:
    """As `project` with t = Lambda A^{-1} u: w_o·u_i + m_o·t and u_i^T A^{-1} u_i + t^T A_0^{-1} t."""
    V = np.einsum("ijk,ik->ij", inverse[models], U)
    T = ridge * V
    means[:] = np.einsum("iok,ik->io", weights[models], U) + T @ shared_weights.T
    squares[:] = np.maximum(np.vecdot(U, V), 0.0) + np.maximum(np.vecdot(T @ shared_inverse, T), 0.0)


def solve(inverse: FloatArray, models: IntArray, U: FloatArray, V: FloatArray) -> None:
    """V[i] = A^{-1} u_i for row i under models[i]."""
    V[:] = np.einsum("ijk,ik->ij", inverse[models], U)


def add_row(gram: FloatArray, moment: FloatArray, squares: FloatArray, u: FloatArray, y: FloatArray) -> None:
    """gram += u u^T, moment_o += y_o u, squares_o += y_o²: the sums, which are the truth."""
    gram += np.outer(u, u)
    moment += np.outer(y, u)
    squares += y**2


def rank_one(inverse: FloatArray, weights: FloatArray, u: FloatArray, y: FloatArray, v: FloatArray) -> float:
    """Sherman-Morrison: the cache after one more row; returns q = u^T A^{-1} u from before it."""
    v[:] = inverse @ u
    q = float(u @ v)
    inverse -= np.outer(v, v) / (1.0 + q)
    weights += np.outer(y - weights @ u, v) / (1.0 + q)
    return q


def cholesky_inverse(matrix: FloatArray, root: FloatArray, inverse: FloatArray) -> float:
    """inverse = A^{-1} and root = L^{-1}, A = L L^T; returns log det A, NaN where A is not positive."""
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.nan
    root[:] = np.tril(np.linalg.inv(lower))
    inverse[:] = root.T @ root
    return 2.0 * float(np.log(np.diagonal(lower)).sum())
