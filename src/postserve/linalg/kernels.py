"""The only Numba code: what runs once a round. `reference.py` says the same in plain numpy.

Sums may be reassociated, which lets them vectorise; nothing else of IEEE arithmetic is relaxed,
so scaling inputs by powers of two still scales results exactly.
"""

import numpy as np
from numba import njit

from postserve.types import FloatArray, IntArray

SUMS_MAY_REORDER = {"reassoc", "contract"}


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def project(
    inverse: FloatArray,
    weights: FloatArray,
    models: IntArray,
    U: FloatArray,
    means: FloatArray,
    squares: FloatArray,
) -> None:
    """means[i, o] = w_o·u_i and squares[i] = u_i^T A^{-1} u_i for row i under models[i]."""
    rows, dim = U.shape
    for i in range(rows):
        P = inverse[models[i]]
        u = U[i]
        square = 0.0
        for j in range(dim):
            v = 0.0
            row = P[j]
            for k in range(dim):
                v += row[k] * u[k]
            square += v * u[j]
        squares[i] = max(square, 0.0)
        for o in range(weights.shape[1]):
            w = weights[models[i], o]
            mean = 0.0
            for k in range(dim):
                mean += w[k] * u[k]
            means[i, o] = mean


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def average(weights: FloatArray, models: IntArray, U: FloatArray, means: FloatArray) -> None:
    """means[i, o] = w_o·u_i for row i under models[i]: `project` without its squares."""
    rows, dim = U.shape
    for i in range(rows):
        u = U[i]
        for o in range(weights.shape[1]):
            w = weights[models[i], o]
            mean = 0.0
            for k in range(dim):
                mean += w[k] * u[k]
            means[i, o] = mean


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
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
    rows, dim = U.shape
    t = np.empty(dim)
    for i in range(rows):
        P = inverse[models[i]]
        u = U[i]
        own = 0.0
        for j in range(dim):
            v = 0.0
            row = P[j]
            for k in range(dim):
                v += row[k] * u[k]
            own += v * u[j]
            t[j] = ridge[j] * v
        shared = 0.0
        for j in range(dim):
            v = 0.0
            row = shared_inverse[j]
            for k in range(dim):
                v += row[k] * t[k]
            shared += v * t[j]
        squares[i] = max(own, 0.0) + max(shared, 0.0)
        for o in range(weights.shape[1]):
            w = weights[models[i], o]
            m = shared_weights[o]
            mean = 0.0
            for k in range(dim):
                mean += w[k] * u[k] + m[k] * t[k]
            means[i, o] = mean


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def solve(inverse: FloatArray, models: IntArray, U: FloatArray, V: FloatArray) -> None:
    """V[i] = A^{-1} u_i for row i under models[i]."""
    rows, dim = U.shape
    for i in range(rows):
        P = inverse[models[i]]
        u = U[i]
        for j in range(dim):
            v = 0.0
            row = P[j]
            for k in range(dim):
                v += row[k] * u[k]
            V[i, j] = v


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_row(gram: FloatArray, moment: FloatArray, squares: FloatArray, u: FloatArray, y: FloatArray) -> None:
    """gram += u u^T, moment_o += y_o u, squares_o += y_o²: the sums, which are the truth."""
    dim = u.shape[0]
    for j in range(dim):
        row = gram[j]
        for k in range(dim):
            row[k] += u[j] * u[k]
    for o in range(y.shape[0]):
        squares[o] += y[o] * y[o]
        row = moment[o]
        for k in range(dim):
            row[k] += y[o] * u[k]


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def rank_one(inverse: FloatArray, weights: FloatArray, u: FloatArray, y: FloatArray, v: FloatArray) -> float:
    """Sherman-Morrison: the cache after one more row; returns q = u^T A^{-1} u from before it."""
    dim = u.shape[0]
    q = 0.0
    for j in range(dim):
        row = inverse[j]
        total = 0.0
        for k in range(dim):
            total += row[k] * u[k]
        v[j] = total
        q += total * u[j]
    gain = 1.0 / (1.0 + q)
    for j in range(dim):
        row = inverse[j]
        for k in range(dim):
            row[k] -= gain * (v[j] * v[k])  # this grouping keeps the inverse exactly symmetric
    for o in range(y.shape[0]):
        w = weights[o]
        error = y[o]
        for k in range(dim):
            error -= w[k] * u[k]
        for k in range(dim):
            w[k] += gain * error * v[k]
    return q


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def learn(
    gram: FloatArray,
    moment: FloatArray,
    squares: FloatArray,
    inverse: FloatArray,
    weights: FloatArray,
    model: int,
    u: FloatArray,
    y: FloatArray,
    v: FloatArray,
) -> float:
    """One more row of one model: its sums by `add_row`, its cache by `rank_one`, whose q it returns."""
    add_row(gram[model], moment[model], squares[model], u, y)
    return rank_one(inverse[model], weights[model], u, y, v)


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def cholesky_inverse(matrix: FloatArray, root: FloatArray, inverse: FloatArray) -> float:
    """inverse = A^{-1} and root = L^{-1}, A = L L^T; returns log det A, NaN where A is not positive.

    Unpivoted, so that scaling coordinates by powers of two scales results exactly; in one thread,
    since at these sizes a threaded LAPACK waits for its threads longer than it computes. `matrix`
    becomes L in its lower half.
    """
    dim = matrix.shape[0]
    log_det = 0.0
    for j in range(dim):
        for i in range(j, dim):
            total = matrix[i, j]
            for k in range(j):
                total -= matrix[i, k] * matrix[j, k]
            if i == j:
                if not total > 0.0:
                    return np.nan
                matrix[j, j] = np.sqrt(total)
                log_det += np.log(total)
            else:
                matrix[i, j] = total / matrix[j, j]
    for i in range(dim):
        row = root[i]
        row[:] = 0.0
        for k in range(i):
            factor = matrix[i, k]
            for j in range(k + 1):
                row[j] -= factor * root[k, j]
        scale = 1.0 / matrix[i, i]
        for j in range(i):
            row[j] *= scale
        row[i] = scale
    inverse[:] = 0.0
    for k in range(dim):
        row = root[k]
        for i in range(k + 1):
            factor = row[i]
            for j in range(i + 1):
                inverse[i, j] += factor * row[j]
    for i in range(dim):
        for j in range(i):
            inverse[j, i] = inverse[i, j]
    return log_det
