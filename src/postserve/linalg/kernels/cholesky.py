"""Cholesky's factorisation, by panels of four rows.

At these sizes a threaded LAPACK waits for its threads longer than it computes.
"""

import numpy as np
from numba import njit

from postserve.types import FloatArray

SUMS_MAY_REORDER = {"reassoc", "contract"}
"""Which lets sums vectorise; nothing else of IEEE arithmetic is relaxed."""

PANEL = 4  # rows eliminated at once: sixteen products for every eight numbers read
LANES = 8  # the most numbers in a vector register: rows of a multiple of it have no leftovers


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def invert_block(work: FloatArray, first: int, block: FloatArray) -> float:
    """block = (L^{-1})^T of the PANEL rows and columns from `first`; returns log det, or NaN."""
    log_det = 0.0
    for i in range(PANEL):
        row = work[first + i, first:]
        for j in range(i):
            total = row[j]
            for k in range(j):
                total -= block[k, i] * block[k, j]
            block[j, i] = total * block[j, j]  # the diagonal is inverted already
            block[i, j] = 0.0
        total = row[i]
        for k in range(i):
            total -= block[k, i] * block[k, i]
        if not total > 0.0:
            return np.nan
        log_det += np.log(total)
        block[i, i] = 1.0 / np.sqrt(total)
    for i in range(PANEL):
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total += block[k, i] * block[j, k]
            block[j, i] = -block[i, i] * total
    return log_det


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def take_panel(work: FloatArray, first: int, panel: FloatArray) -> None:
    """panel = the rows of [L^{-1} | A] from `first`; below them, their columns turn from A's to L^{-1}'s."""
    last = first + PANEL
    for r in range(PANEL):
        row = work[first + r]
        for j in range(first):
            panel[r, j] = row[j]
        for j in range(PANEL):
            panel[r, first + j] = 0.0
        panel[r, first + r] = 1.0
    for i in range(last, work.shape[0]):
        beside = work[i, first:last]
        for r in range(PANEL):
            panel[r, i] = beside[r]  # A is symmetric
            beside[r] = 0.0


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_panel(
    out: FloatArray, start: int, stop: int, factors: FloatArray, panel: FloatArray, sign: float, least: int
) -> None:
    """out[i] += sign * sum_r factors[r, i] panel[r], start <= i < stop, up to out[i, i] or `least` columns.

    Four rows of `out` at once, hence start and stop in fours, and the columns in whole vectors.
    """
    at_0, at_1, at_2, at_3 = factors[0], factors[1], factors[2], factors[3]
    for i in range(start, stop, PANEL):
        size = max(i // LANES * LANES + LANES, least)
        a, b, c, d = out[i], out[i + 1], out[i + 2], out[i + 3]
        a0, a1, a2, a3 = sign * at_0[i], sign * at_1[i], sign * at_2[i], sign * at_3[i]
        b0, b1, b2, b3 = sign * at_0[i + 1], sign * at_1[i + 1], sign * at_2[i + 1], sign * at_3[i + 1]
        c0, c1, c2, c3 = sign * at_0[i + 2], sign * at_1[i + 2], sign * at_2[i + 2], sign * at_3[i + 2]
        d0, d1, d2, d3 = sign * at_0[i + 3], sign * at_1[i + 3], sign * at_2[i + 3], sign * at_3[i + 3]
        for j in range(size):
            x0, x1, x2, x3 = panel[0, j], panel[1, j], panel[2, j], panel[3, j]
            a[j] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
            b[j] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
            c[j] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
            d[j] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def cholesky_inverse(
    matrix: FloatArray,
    work: FloatArray,
    product: FloatArray,
    before: FloatArray,
    panel: FloatArray,
    block: FloatArray,
    root: FloatArray,
    inverse: FloatArray,
) -> float:
    """inverse = A^{-1} and root = L^{-1}, A = L L^T; returns log det A, NaN where A is not positive.

    Unpivoted, so that scaling coordinates by powers of two scales results exactly. Only the lower half of
    `matrix` is read.

    Panel by panel, elimination turns [A | I] into [L^T | L^{-1}]. Of a row in `work`, the columns up to the
    panel are of L^{-1} and the later ones are the rest of A, which is padded by ones on its diagonal to whole
    vectors. `work` and `product` must be zero at first; they and the rest are scratch arrays, since
    allocating them here would double the time to compile.
    """
    dim, padded = matrix.shape[0], work.shape[0]
    for i in range(padded):
        work[i, i] = 1.0
    for i in range(dim):
        row = work[i]
        for j in range(i + 1):
            row[j] = matrix[i, j]
    log_det, top = 0.0, min(0, dim)  # for a literal 0 Numba would compile `add_panel` once more
    for first in range(0, padded, PANEL):
        last = first + PANEL
        log_det += invert_block(work, first, block)
        if np.isnan(log_det):
            return np.nan
        take_panel(work, first, before)
        for r in range(PANEL):
            for j in range(padded):
                panel[r, j] = 0.0
        add_panel(panel, top, top + PANEL, block, before, 1.0, padded)
        add_panel(product, top, last, panel, panel, 1.0, top)  # the rows of L^{-1}, times themselves
        add_panel(work, last, padded, panel, panel, -1.0, top)
        for r in range(PANEL):
            row = work[first + r]
            for j in range(last):
                row[j] = panel[r, j]
    for i in range(dim):
        for j in range(i):
            product[j, i] = product[i, j]
            work[j, i] = 0.0
    for i in range(dim):
        for j in range(dim):
            root[i, j] = work[i, j]
            inverse[i, j] = product[i, j]
    return log_det


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def cholesky_inverses(
    matrices: FloatArray,
    work: FloatArray,
    product: FloatArray,
    before: FloatArray,
    panel: FloatArray,
    block: FloatArray,
    roots: FloatArray,
    inverses: FloatArray,
    log_dets: FloatArray,
) -> None:
    """`cholesky_inverse` of each."""
    for i in range(matrices.shape[0]):
        for j in range(work.shape[0]):
            for k in range(work.shape[0]):
                work[j, k] = product[j, k] = 0.0
        log_dets[i] = cholesky_inverse(
            matrices[i], work, product, before, panel, block, roots[i], inverses[i]
        )


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def semidefinite_rows(left: FloatArray, least: FloatArray, root: FloatArray) -> int:
    """The next rows of R, R^T R = S, from what the rows before them leave of S; returns how many there are.

    `left` has the columns of S from its diagonal on. A pivot of at most `least` is 0, and has no row: the
    rows of `root` are filled from the first one on.
    """
    size, dim, rank = left.shape[0], left.shape[1], 0
    for j in range(size):
        pivot = left[j, j]
        for i in range(rank):
            pivot -= root[i, j] * root[i, j]
        if pivot > least[j]:
            row = root[rank]
            for k in range(j, dim):
                row[k] = left[j, k]
            for i in range(rank):
                before = root[i]
                by = before[j]
                for k in range(j, dim):
                    row[k] -= by * before[k]
            length = np.sqrt(pivot)
            for k in range(j):
                row[k] = 0.0
            row[j] = length
            for k in range(j + 1, dim):
                row[k] /= length
            rank += 1
    return rank
