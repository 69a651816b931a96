"""The evidence: sums over blocks of the inverses and weights of ridge regressions, and its derivatives.

Blocks and outputs are few, so that in numpy each line would cost more than its numbers.
"""

import numpy as np
from numba import njit

from postserve.types import BoolArray, FloatArray, IntArray

SUMS_MAY_REORDER = {"reassoc", "contract"}
"""Which lets sums vectorise; nothing else of IEEE arithmetic is relaxed."""
CENTRE_NOISE = 0.01
"""p0: the noise is a hundredth of an output's unit; blocks share 1 equally, unless they have `parts`."""
SD_NOISE, SD_BLOCK = 3.0, 2.0
LOG_FLOOR = float(np.log(1e-8))
"""The least log sigma², in units of v_r: noiseless rewards drive it to minus infinity."""
SMALLEST_LEVEL = 1e-14
"""A floor on A_0 for each round, of which it is a difference."""


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def dot_between(a: FloatArray, b: FloatArray, start: int, stop: int) -> float:
    """a·b from start to stop; slices take long to compile, so only this kernel has them."""
    total, part, other = 0.0, a[start:stop], b[start:stop]
    for k in range(part.shape[0]):
        total += part[k] * other[k]
    return total


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_blocks(
    inverses: FloatArray,
    weights: FloatArray,
    moments: FloatArray,
    squares: FloatArray,
    edges: IntArray,
    residual: FloatArray,
    trace: FloatArray,
    frobenius: FloatArray,
    norm: FloatArray,
    cross: FloatArray,
) -> None:
    """Add rho - b·m, tr_j(P), ||P_ij||²_F, ||m_oj||² and m_oi^T P_ij m_oj of each model.

    Blocks i and j lie between the edges.
    """
    n, outputs, dim = edges.shape[0] - 1, weights.shape[1], weights.shape[2]
    for model in range(inverses.shape[0]):
        P, m = inverses[model], weights[model]
        for o in range(outputs):
            residual[o] += squares[model, o] - dot_between(moments[model, o], m[o], 0, dim)
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


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def integrate_level(
    outputs: int,
    rounds: float,
    residual: FloatArray,
    trace: FloatArray,
    frobenius: FloatArray,
    norm: FloatArray,
    cross: FloatArray,
) -> float:
    """Integrate the level out, given the sums of the outputs y, 1 and y + 1; returns log A_0.

    With g the weights of the output 1: the level is m = c/A_0, the weights are w - m g, and their covariance
    P + g g^T/A_0, in units of sigma². All of it is quadratic in the output, so that what y + 1 has more than
    y and 1 is twice the mixed term. The sums of y are replaced; those of the others are spent.
    """
    n = trace.shape[0]
    A_0 = max(residual[outputs], SMALLEST_LEVEL * rounds)
    norm_g, cross_g = norm[outputs], cross[outputs]
    for o in range(outputs):
        both = outputs + 1 + o
        c = 0.5 * (residual[both] - residual[o] - residual[outputs])
        m = c / A_0
        residual[o] -= m * c
        along = norm[both]  # g_j·(w - m g)_j
        for j in range(n):
            mixed = 0.5 * (norm[both, j] - norm[o, j] - norm_g[j])
            norm[o, j] = max(norm[o, j] - m * (2.0 * mixed - m * norm_g[j]), 0.0)
            along[j] = mixed - m * norm_g[j]
        for i in range(n):
            for j in range(n):
                mixed = 0.5 * (cross[both, i, j] - cross[o, i, j] - cross_g[i, j])
                cross[o, i, j] += along[i] * along[j] / A_0 - m * (2.0 * mixed - m * cross_g[i, j])
    for i in range(n):
        trace[i] += norm_g[i] / A_0
        for j in range(n):
            frobenius[i, j] += (2.0 * cross_g[i, j] + norm_g[i] * norm_g[j] / A_0) / A_0
    return float(np.log(A_0))


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def best_noise(Q: float, degrees: float, stiffness: float, pull: float) -> float:
    """The minimum over log sigma² for fixed lambda: convex in one number, without factorisation."""
    share = Q / degrees
    s = max(np.log(share), LOG_FLOOR) if share > 0.0 else LOG_FLOOR
    for _ in range(100):
        excess = 0.5 * Q * np.exp(-s)
        step = -(0.5 * degrees - excess + stiffness * s - pull) / (excess + stiffness)
        s = max(s + min(max(step, -1.0), 1.0), LOG_FLOOR)
        if abs(step) <= 1e-13 * max(abs(s), 1.0) or (s == LOG_FLOOR and step < 0.0):
            break
    return s


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def differentiate(
    log_ridge: FloatArray,
    log_tau2_centre: FloatArray,
    n_weights: IntArray,
    degrees: float,
    log_det: float,
    residual: FloatArray,
    trace: FloatArray,
    frobenius: FloatArray,
    norm: FloatArray,
    cross: FloatArray,
    log_noise: FloatArray,
    gradient: FloatArray,
    hessian: FloatArray,
    noise_slope: FloatArray,
) -> float:
    """The objective at log lambda with the best log sigma², from `evidence.Posterior`.

    Fills the last four arguments, which are zero before: that log sigma², the gradient and the Hessian in log
    lambda, and the slope of the best log sigma² in log lambda.
    """
    outputs, n = log_noise.shape[0], log_ridge.shape[0]
    stiffness = SD_NOISE**-2 + n * SD_BLOCK**-2
    pull = SD_NOISE**-2 * np.log(CENTRE_NOISE) + SD_BLOCK**-2 * (log_ridge + log_tau2_centre).sum()
    ridge = np.exp(log_ridge)
    twice_value = outputs * log_det
    for i in range(n):
        gradient[i] = 0.5 * outputs * (ridge[i] * trace[i] - n_weights[i])
        hessian[i, i] = 0.5 * outputs * ridge[i] * trace[i] + outputs / SD_BLOCK**2
        for j in range(n):
            hessian[i, j] -= 0.5 * outputs * ridge[i] * ridge[j] * frobenius[i, j]
    for o in range(outputs):
        Q = max(residual[o], 0.0)
        log_noise[o] = best_noise(Q, degrees, stiffness, pull)
        precision = np.exp(-log_noise[o])
        off_noise = (log_noise[o] - np.log(CENTRE_NOISE)) / SD_NOISE
        twice_value += degrees * log_noise[o] + Q * precision + off_noise**2
        # The best sigma² follows lambda, which lowers the curvature (a Schur complement).
        moves = log_noise[o] > LOG_FLOOR
        curvature = 0.5 * Q * precision + stiffness
        for i in range(n):
            off_tau2 = (log_noise[o] - log_ridge[i] - log_tau2_centre[i]) / SD_BLOCK
            shrink = ridge[i] * norm[o, i] * precision
            twice_value += off_tau2**2
            gradient[i] += 0.5 * shrink - off_tau2 / SD_BLOCK
            hessian[i, i] += 0.5 * shrink
            noise_slope[o, i] = (0.5 * shrink + SD_BLOCK**-2) / curvature if moves else 0.0
        for i in range(n):
            for j in range(n):
                hessian[i, j] -= precision * ridge[i] * ridge[j] * cross[o, i, j]
                hessian[i, j] -= curvature * noise_slope[o, i] * noise_slope[o, j]
    return float(0.5 * twice_value)
