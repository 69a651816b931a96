"""The evidence's sums over blocks of the inverses and weights of ridge regressions."""

import numpy as np
from numba import njit

from postserve.types import BoolArray, FloatArray, IntArray

SUMS_MAY_REORDER = {"reassoc", "contract"}
"""Which lets sums vectorise; nothing else of IEEE arithmetic is relaxed."""


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def dot_between(a: FloatArray, b: FloatArray, start: int, stop: int) -> float:
    """a·b from start to stop; slices take long to compile, so only this kernel has them."""
    total, part, other = 0.0, a[start:stop], b[start:stop]
    for k in range(part.shape[0]):
        total += part[k] * other[k]
    return total


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_blocks(
    P: FloatArray,
    m: FloatArray,
    edges: IntArray,
    trace: FloatArray,
    frobenius: FloatArray,
    norm: FloatArray,
    cross: FloatArray,
) -> None:
    """Add tr_j(P), ||P_ij||²_F, ||m_oj||² and m_oi^T P_ij m_oj of blocks i, j between the edges."""
    n, outputs = edges.shape[0] - 1, m.shape[0]
    for i in range(n):
        for row in range(edges[i], edges[i + 1]):
            trace[i] += P[row, row]
            for o in range(outputs):
                norm[o, i] += m[o, row] * m[o, row]
            for j in range(n):
                frobenius[i, j] += dot_between(P[row], P[row], edges[j], edges[j + 1])
                for o in range(outputs):
                    cross[o, i, j] += m[o, row] * dot_between(P[row], m[o], edges[j], edges[j + 1])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_row_blocks(
    starts: IntArray,
    U: FloatArray,
    Y: FloatArray,
    ridge: FloatArray,
    edges: IntArray,
    max_loss: float,
    G: FloatArray,
    C: FloatArray,
    m: FloatArray,
    along: FloatArray,
    lost: BoolArray,
    residual: FloatArray,
    trace: FloatArray,
    frobenius: FloatArray,
    norm: FloatArray,
    cross: FloatArray,
) -> float:
    """`add_blocks` of models that have only rows; those of model k begin at starts[k].

    With g and c as in `models.Storage`, P = Lambda^{-1} - sum g g^T and m = sum c g; the residual is sum c².
    Returns the sum of log det A - log det Lambda. A model whose rows lose more digits than `max_loss` allows
    is only marked as lost. G, C, m and along are scratch.
    """
    n, outputs, dim = edges.shape[0] - 1, Y.shape[1], U.shape[1]
    first_edge, last_edge = edges[0], edges[n]
    log_det = 0.0
    for model in range(starts.shape[0] - 1):
        first, last = starts[model], starts[model + 1]
        loss, own_log_det = 0.0, 0.0
        for row in range(first, last):
            u, g, c = U[row], G[row], C[row]
            for k in range(dim):
                g[k] = u[k] / ridge[k]
            for o in range(outputs):
                c[o] = Y[row, o]
            for before in range(first, row):
                by = dot_between(G[before], u, first_edge, last_edge)
                for k in range(dim):
                    g[k] -= by * G[before, k]
                for o in range(outputs):
                    c[o] -= by * C[before, o]
            q = max(dot_between(g, u, first_edge, last_edge), 0.0)
            root = 1.0 / np.sqrt(1.0 + q)
            for k in range(dim):
                g[k] *= root
            for o in range(outputs):
                c[o] *= root
            loss += q
            own_log_det += np.log1p(q)
        lost[model] = not loss <= max_loss
        if lost[model]:
            continue
        log_det += own_log_det
        for o in range(outputs):
            for k in range(dim):
                m[o, k] = 0.0
        for row in range(first, last):
            for o in range(outputs):
                residual[o] += C[row, o] * C[row, o]
                for k in range(dim):
                    m[o, k] += C[row, o] * G[row, k]
        for i in range(n):
            low, high = edges[i], edges[i + 1]
            prior = 1.0 / ridge[low]
            trace[i] += (high - low) * prior
            frobenius[i, i] += (high - low) * prior * prior
            for o in range(outputs):
                square_of_m = dot_between(m[o], m[o], low, high)
                norm[o, i] += square_of_m
                cross[o, i, i] += prior * square_of_m
        for row in range(first, last):
            for other in range(first, row + 1):
                twice = 1.0 if other == row else 2.0
                for i in range(n):
                    along[other, i] = dot_between(G[row], G[other], edges[i], edges[i + 1])
                for i in range(n):
                    for j in range(n):
                        frobenius[i, j] += twice * along[other, i] * along[other, j]
            for i in range(n):
                trace[i] -= along[row, i]
                frobenius[i, i] -= 2.0 / ridge[edges[i]] * along[row, i]
            for o in range(outputs):
                for i in range(n):
                    along[row, i] = dot_between(G[row], m[o], edges[i], edges[i + 1])
                for i in range(n):
                    for j in range(n):
                        cross[o, i, j] -= along[row, i] * along[row, j]
    return log_det
