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


PANEL = 4  # rows eliminated at once: sixteen products for every eight numbers read
LANES = 8  # numbers to a vector register, at most: rows of that many need no scalar leftovers


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def invert_block(work: FloatArray, first: int, block: FloatArray) -> float:
    """block = (L^{-1})^T of the PANEL rows and columns from `first`; returns log det, or NaN."""
    log_det = 0.0
    for i in range(PANEL):
        row = work[first + i, first:]
        for j in range(i):
            total = row[j]
            for k in range(j):
                total -= block[k, i] * block[k, j]
            block[j, i] = total * block[j, j]  # whose diagonal is inverted already
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


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
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


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_product(
    out: FloatArray, start: int, stop: int, factors: FloatArray, rows: FloatArray, sign: float, lower: bool
) -> None:
    """out[i] += sign * sum_k factors[k, i] rows[k] for start <= i < stop; `lower`: no further than out[i, i].

    Four rows of `out` by four of `rows` at once, hence all but the columns in fours, and these, where
    `lower`, in whole vectors.
    """
    for i in range(start, stop, PANEL):
        size = i // LANES * LANES + LANES if lower else out.shape[1]
        a, b, c, d = out[i], out[i + 1], out[i + 2], out[i + 3]
        for k in range(0, rows.shape[0], PANEL):
            at_0, at_1, at_2, at_3 = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
            a0, a1, a2, a3 = sign * at_0[i], sign * at_1[i], sign * at_2[i], sign * at_3[i]
            b0, b1, b2, b3 = sign * at_0[i + 1], sign * at_1[i + 1], sign * at_2[i + 1], sign * at_3[i + 1]
            c0, c1, c2, c3 = sign * at_0[i + 2], sign * at_1[i + 2], sign * at_2[i + 2], sign * at_3[i + 2]
            d0, d1, d2, d3 = sign * at_0[i + 3], sign * at_1[i + 3], sign * at_2[i + 3], sign * at_3[i + 3]
            for j in range(size):
                x0, x1, x2, x3 = rows[k, j], rows[k + 1, j], rows[k + 2, j], rows[k + 3, j]
                a[j] += a0 * x0 + a1 * x1 + a2 * x2 + a3 * x3
                b[j] += b0 * x0 + b1 * x1 + b2 * x2 + b3 * x3
                c[j] += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3
                d[j] += d0 * x0 + d1 * x1 + d2 * x2 + d3 * x3


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def cholesky_inverse(matrix: FloatArray, root: FloatArray, inverse: FloatArray) -> float:
    """inverse = A^{-1} and root = L^{-1}, A = L L^T; returns log det A, NaN where A is not positive.

    Unpivoted, so that scaling coordinates by powers of two scales results exactly; in one thread,
    since at these sizes a threaded LAPACK waits for its threads longer than it computes. Only the
    lower half of `matrix` is read.

    Panel by panel, eliminating below it turns [A | I] into [L^T | L^{-1}]. Of a row in `work`, the
    columns up to the panel are of L^{-1} and the later ones are what is left of A, which is padded
    by ones on its diagonal to whole vectors.
    """
    dim = matrix.shape[0]
    padded = (dim + LANES - 1) // LANES * LANES
    # one allocation, which malloc keeps for the next call: of two, it hands one back to the system
    scratch, block = np.zeros((2 * padded + 2 * PANEL, padded)), np.empty((PANEL, PANEL))
    work, product = scratch[:padded], scratch[padded : 2 * padded]
    before, panel = scratch[2 * padded : 2 * padded + PANEL], scratch[2 * padded + PANEL :]
    for i in range(padded):
        work[i, i] = 1.0
    for i in range(dim):
        row = work[i]
        for j in range(i + 1):
            row[j] = matrix[i, j]
    log_det = 0.0
    for first in range(0, padded, PANEL):
        last = first + PANEL
        log_det += invert_block(work, first, block)
        if np.isnan(log_det):
            return np.nan
        take_panel(work, first, before)
        for r in range(PANEL):
            for j in range(padded):
                panel[r, j] = 0.0
        add_product(panel, 0, PANEL, block, before, 1.0, False)
        add_product(product, 0, last, panel, panel, 1.0, True)  # the rows of L^{-1}, times themselves
        add_product(work, last, padded, panel, panel, -1.0, True)
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


# Optimism, one arm at a time.  No sum is reordered here: an arm's score has the same bits wherever the
# compiler inlines it, so that equal arms tie, and no score is above its bound.

EPS = float(np.finfo(np.float64).eps)
CLIMBS = 8  # to come near a maximum
POLISHES = 60  # a cap: three or so reach the last digit, unless maxima nearly merge
QL_STEPS = 60  # a cap: two or so make an eigenvalue
LIKELY_STARTS = 6  # b, c and the widest axis, both ways
PROVED = 8.0 * EPS  # of a gain of at most one
SPHERE_ROWS = 8  # of scratch: b, c, the diagonal of L, the best point, a point, the next, and two gradients


@njit(cache=True, error_model="numpy")
def plugin_score(mean: float, width: float, arm_radius: float) -> float:
    """The reward of an arm at its most optimistic w, at the predicted z."""
    return mean + arm_radius * width


@njit(cache=True, error_model="numpy")
def score_of(lowest: float, reward: float, gain: float) -> float:
    """What a gain in units of `reward` makes of the lowest score."""
    return lowest + reward * gain


@njit(cache=True, error_model="numpy")
def or_one(divisor: float) -> float:
    """Divide nothing by nothing to nothing."""
    return divisor if divisor > 0.0 else 1.0


@njit(cache=True, error_model="numpy")
def dot(x: FloatArray, y: FloatArray) -> float:
    """x·y."""
    total = 0.0
    for i in range(x.shape[0]):
        total += x[i] * y[i]
    return total


@njit(cache=True, error_model="numpy")
def make_unit(x: FloatArray) -> None:
    """x / ||x||, in place; a zero stays one."""
    norm = or_one(np.sqrt(dot(x, x)))
    for i in range(x.shape[0]):
        x[i] /= norm


@njit(cache=True, error_model="numpy")
def move(n: FloatArray, there: FloatArray) -> None:
    """n = there; as a loop, which compiles in a fraction of the time that n[:] = there takes."""
    for i in range(n.shape[0]):
        n[i] = there[i]


@njit(cache=True, error_model="numpy")
def units_of(
    width: float, arm_radius: float, map_radius: float, beta: FloatArray, block: FloatArray
) -> tuple[float, float]:
    """What moving z by e is worth in reward, at most, and in variance: the trace of e² M."""
    dim = beta.shape[0]
    trace = 0.0
    for i in range(dim):
        trace += block[i, i]
    # so that w, a multiple of its root, stays finite as e vanishes
    variance = max(map_radius * map_radius * trace, EPS**4 * (width * width))
    return map_radius * np.sqrt(dot(beta, beta)) + arm_radius * np.sqrt(variance), variance


@njit(cache=True, error_model="numpy")
def tridiagonalise(
    matrix: FloatArray, b: FloatArray, c: FloatArray, diagonal: FloatArray, beside: FloatArray, v: FloatArray
) -> None:
    """Householder's reflections of a symmetric matrix; b and c are reflected with it.

    No axes are kept: turning b and c along costs a square, the axes themselves would cost a cube.
    """
    dim = matrix.shape[0]
    image = diagonal  # its entries below k are settled, those above still free
    for k in range(dim - 1):
        below = 0.0
        for i in range(k + 2, dim):
            below += matrix[k, i] * matrix[k, i]
        diagonal[k], beside[k] = matrix[k, k], matrix[k, k + 1]
        if below == 0.0:
            continue
        head = matrix[k, k + 1]
        length = np.sqrt(head * head + below)
        beside[k] = -length if head > 0.0 else length
        for i in range(k + 1, dim):
            v[i] = matrix[k, i]
            image[i] = 0.0
        v[k + 1] = head - beside[k]
        twice = 2.0 / (v[k + 1] * v[k + 1] + below)
        along_b = along_c = 0.0
        for i in range(k + 1, dim):
            along_b += v[i] * b[i]
            along_c += v[i] * c[i]
            for j in range(k + 1, dim):
                image[j] += matrix[i, j] * v[i]
        along = 0.0
        for i in range(k + 1, dim):
            b[i] -= twice * along_b * v[i]
            c[i] -= twice * along_c * v[i]
            along += v[i] * image[i]
        for i in range(k + 1, dim):
            image[i] = twice * (image[i] - twice * along / 2.0 * v[i])
        for i in range(k + 1, dim):
            for j in range(k + 1, dim):
                matrix[i, j] -= v[i] * image[j] + image[i] * v[j]
    diagonal[dim - 1] = matrix[dim - 1, dim - 1]


@njit(cache=True, error_model="numpy")
def diagonalise(diagonal: FloatArray, beside: FloatArray, b: FloatArray, c: FloatArray) -> None:
    """Francis' implicit QL steps, until nothing stands beside the diagonal; b and c turn with it."""
    dim = diagonal.shape[0]
    beside[dim - 1] = 0.0
    for first in range(dim):
        for _ in range(QL_STEPS):
            last = first
            while abs(beside[last]) > EPS * (abs(diagonal[last]) + abs(diagonal[min(last + 1, dim - 1)])):
                last += 1
            if last == first:
                break
            slant = (diagonal[first + 1] - diagonal[first]) / (2.0 * beside[first])
            reach = np.sqrt(slant * slant + 1.0)
            ahead = (
                diagonal[last]
                - diagonal[first]
                + beside[first] / (slant + (reach if slant >= 0.0 else -reach))
            )
            sine = cosine = 1.0
            shift = 0.0
            for i in range(last - 1, first - 1, -1):
                across, along = sine * beside[i], cosine * beside[i]
                reach = np.sqrt(across * across + ahead * ahead)
                beside[i + 1] = reach
                if reach == 0.0:  # the block has come apart: look for the next
                    diagonal[i + 1] -= shift
                    break
                sine, cosine = across / reach, ahead / reach
                ahead = diagonal[i + 1] - shift
                turned = (diagonal[i] - ahead) * sine + 2.0 * cosine * along
                shift = sine * turned
                diagonal[i + 1] = ahead + shift
                ahead = cosine * turned - along
                b[i], b[i + 1] = cosine * b[i] - sine * b[i + 1], sine * b[i] + cosine * b[i + 1]
                c[i], c[i + 1] = cosine * c[i] - sine * c[i + 1], sine * c[i] + cosine * c[i + 1]
            if reach != 0.0:
                diagonal[first] -= shift
                beside[first] = ahead
            beside[last] = 0.0


@njit(cache=True, error_model="numpy")
def on_sphere(
    width: float,
    arm_radius: float,
    map_radius: float,
    beta: FloatArray,
    cross: FloatArray,
    block: FloatArray,
    work: FloatArray,
    matrix: FloatArray,
) -> tuple[float, float, float]:
    """Rows of `work`: b, c and the diagonal of L, ascending; returns reward, t and w.

    Every unit is divided out first: what follows never sees one.
    """
    b, c, diagonal = work[0], work[1], work[2]
    dim = beta.shape[0]
    reward, variance = units_of(width, arm_radius, map_radius, beta, block)
    t, w = arm_radius * np.sqrt(variance) / or_one(reward), width / np.sqrt(or_one(variance))
    reward, variance = or_one(reward), or_one(variance)
    for i in range(dim):
        b[i] = map_radius * beta[i] / reward
        c[i] = map_radius * cross[i] / variance
        for j in range(dim):
            matrix[i, j] = map_radius * map_radius * block[i, j] / variance
    tridiagonalise(matrix, b, c, diagonal, work[3], work[4])
    diagonalise(diagonal, work[3], b, c)
    for i in range(dim):  # sort by insertion
        here, its_b, its_c = max(diagonal[i], 0.0), b[i], c[i]
        j = i
        while j > 0 and diagonal[j - 1] > here:
            diagonal[j], b[j], c[j] = diagonal[j - 1], b[j - 1], c[j - 1]
            j -= 1
        diagonal[j], b[j], c[j] = here, its_b, its_c
    return reward, t, w


@njit(cache=True, error_model="numpy")
def largest_gain(t: float, b: FloatArray, diagonal: FloatArray) -> float:
    """``||b|| + t sqrt(L_max)``: both parts at their best, which need not be at one point."""
    gain: float = np.sqrt(dot(b, b)) + t * np.sqrt(diagonal[-1])
    return gain


@njit(cache=True, error_model="numpy")
def variance_change(w: float, c: FloatArray, diagonal: FloatArray, n: FloatArray) -> float:
    """``q(n) - w^2``."""
    change = 0.0
    for i in range(n.shape[0]):
        change += n[i] * (2.0 * c[i] + diagonal[i] * n[i])
    return max(change, -(w * w))


@njit(cache=True, error_model="numpy")
def gain_at(t: float, w: float, b: FloatArray, c: FloatArray, diagonal: FloatArray, n: FloatArray) -> float:
    """``b.n + t (sqrt(q) - w)``, the difference as ``(q - w^2) / (sqrt(q) + w)``, uncancelled."""
    change = variance_change(w, c, diagonal, n)
    return dot(b, n) + t * change / or_one(np.sqrt(w * w + change) + w)


@njit(cache=True, error_model="numpy")
def climb(
    t: float,
    w: float,
    b: FloatArray,
    c: FloatArray,
    diagonal: FloatArray,
    n: FloatArray,
    there: FloatArray,
) -> None:
    """Maximise the tangent plane, which no convex function is below: this only climbs."""
    s = t / max(np.sqrt(w * w + variance_change(w, c, diagonal, n)), EPS)
    for i in range(n.shape[0]):
        there[i] = b[i] + s * (c[i] + diagonal[i] * n[i])
    make_unit(there)


@njit(cache=True, error_model="numpy")
def leap(
    t: float,
    w: float,
    b: FloatArray,
    c: FloatArray,
    diagonal: FloatArray,
    n: FloatArray,
    stride: float,
    there: FloatArray,
    gradient: FloatArray,
    g: FloatArray,
) -> None:
    """Newton's step ``h``: ``H h = gradient - k n`` and ``h.n = 0``, with ``H = mu I - s L + s g g'``.

    ``H`` is inverted as diagonal plus rank one; where it is singular the step is worthless, and
    not taken.  Near a saddle Newton heads down, and is turned about.
    """
    root = max(np.sqrt(w * w + variance_change(w, c, diagonal, n)), EPS)
    s = t / root
    mu = 0.0
    for i in range(n.shape[0]):
        g[i] = (c[i] + diagonal[i] * n[i]) / root
        gradient[i] = b[i] + t * g[i]
        mu += gradient[i] * n[i]
    gg = gx = gn = nx = nn = 0.0  # products of g, the gradient x and n, by the inverse of mu I - s L
    for i in range(n.shape[0]):
        inverse = 1.0 / (mu - s * diagonal[i])
        there[i] = inverse
        gg += inverse * g[i] * g[i]
        gx += inverse * g[i] * gradient[i]
        gn += inverse * g[i] * n[i]
        nx += inverse * n[i] * gradient[i]
        nn += inverse * n[i] * n[i]
    factor = s / (1.0 + s * gg)
    k = (nx - factor * gx * gn) / (nn - factor * gn * gn)
    along_g = factor * (gx - k * gn)
    slope = 0.0
    for i in range(n.shape[0]):
        there[i] *= gradient[i] - k * n[i] - along_g * g[i]
        slope += there[i] * gradient[i]
    if slope < 0.0:
        stride = -stride
    for i in range(n.shape[0]):
        there[i] = n[i] + stride * there[i]
    make_unit(there)


@njit(cache=True, error_model="numpy")
def polish(
    t: float,
    w: float,
    b: FloatArray,
    c: FloatArray,
    diagonal: FloatArray,
    n: FloatArray,
    there: FloatArray,
    gradient: FloatArray,
    g: FloatArray,
) -> float:
    """Climb and leap for as long as n rises by more than rounding; returns its gain."""
    gain, stride = gain_at(t, w, b, c, diagonal, n), 1.0
    for _ in range(POLISHES):
        rising = False
        climb(t, w, b, c, diagonal, n, there)
        gain_there = gain_at(t, w, b, c, diagonal, there)
        if gain_there > gain + 4.0 * EPS * abs(gain):
            move(n, there)
            gain, rising = gain_there, True
        leap(t, w, b, c, diagonal, n, stride, there, gradient, g)
        gain_there = gain_at(t, w, b, c, diagonal, there)
        if gain_there > gain + 4.0 * EPS * abs(gain):
            move(n, there)
            gain, rising = gain_there, True
            stride = min(2.0 * stride, 1.0)
        else:  # too far leaves a curved ridge: shorten the next
            stride /= 2.0
        if not rising:
            break
    return gain


@njit(cache=True, error_model="numpy")
def upper_bound(
    t: float, w: float, b: FloatArray, c: FloatArray, diagonal: FloatArray, n: FloatArray
) -> float:
    """No gain is above this, and the best one, where it needs no luck, reaches it at its own n.

    ``t sqrt(q) <= (s q + t^2/s)/2`` with ``s = t/sqrt(q(n))`` leaves a trust-region problem, whose
    dual ``(m + sum a^2/(m - s L))/2`` bounds it for every ``m > s L_max``; ``m`` is that of ``n``.
    """
    change = variance_change(w, c, diagonal, n)
    root = np.sqrt(w * w + change)
    s, off = t / max(root, EPS), change / or_one(root + w)
    m = 0.0
    for i in range(n.shape[0]):
        m += n[i] * (b[i] + s * (c[i] + diagonal[i] * n[i]))
    m = max(m, s * diagonal[-1] * (1.0 + 4.0 * EPS))
    inner = m
    for i in range(n.shape[0]):
        a = b[i] + s * c[i]
        inner += a * a / (m - s * diagonal[i])
    upper: float = (s * off * off + inner) / 2.0
    return upper


@njit(cache=True, error_model="numpy")
def set_start(k: int, b: FloatArray, c: FloatArray, n: FloatArray) -> None:
    """Both ways along b, c and each axis, the widest first, as no climb leaves a plane of symmetry."""
    line, dim = k // 2, n.shape[0]
    for i in range(dim):
        n[i] = b[i] if line == 0 else c[i] if line == 1 else 0.0
    if line > 1:
        n[dim + 1 - line] = 1.0
    make_unit(n)
    if k % 2 == 1:
        for i in range(dim):
            n[i] = -n[i]


@njit(cache=True, error_model="numpy")
def best_gain(t: float, w: float, work: FloatArray) -> float:
    """The largest gain: where the likeliest starts lead, if `upper_bound` proves it, or else all of them."""
    b, c, diagonal, best, n, there = work[0], work[1], work[2], work[3], work[4], work[5]
    gradient, g = work[6], work[7]
    most, gain = largest_gain(t, b, diagonal), -np.inf
    if not most > 0.0:
        return 0.0
    for k in range(LIKELY_STARTS):
        set_start(k, b, c, n)
        climb(t, w, b, c, diagonal, n, there)
        gain_there = gain_at(t, w, b, c, diagonal, there)
        if gain_there > gain:
            move(best, there)
            gain = gain_there
    gain = polish(t, w, b, c, diagonal, best, there, gradient, g)
    if not upper_bound(t, w, b, c, diagonal, best) <= gain + PROVED:
        for k in range(2 * (2 + b.shape[0])):
            set_start(k, b, c, n)
            for _ in range(CLIMBS // 2):
                climb(t, w, b, c, diagonal, n, there)
                climb(t, w, b, c, diagonal, there, n)
            gain = max(gain, polish(t, w, b, c, diagonal, n, there, gradient, g))
    return min(max(gain, 0.0), most)


@njit(cache=True, error_model="numpy")
def joint_score(
    mean: float,
    width: float,
    arm_radius: float,
    map_radius: float,
    beta: FloatArray,
    cross: FloatArray,
    block: FloatArray,
    work: FloatArray,
    matrix: FloatArray,
) -> float:
    """The largest reward of one arm over z and w."""
    reward, t, w = on_sphere(width, arm_radius, map_radius, beta, cross, block, work, matrix)
    return score_of(plugin_score(mean, width, arm_radius), reward, best_gain(t, w, work))


@njit(cache=True, error_model="numpy")
def joint_scores(
    mean: FloatArray,
    width: FloatArray,
    arm_radius: FloatArray,
    map_radius: FloatArray,
    beta: FloatArray,
    cross: FloatArray,
    block: FloatArray,
    scores: FloatArray,
) -> None:
    """`joint_score` of every arm."""
    dim = beta.shape[1]
    work, matrix = np.empty((SPHERE_ROWS, dim)), np.empty((dim, dim))
    for k in range(mean.shape[0]):
        scores[k] = joint_score(
            mean[k], width[k], arm_radius[k], map_radius[k], beta[k], cross[k], block[k], work, matrix
        )


@njit(cache=True, error_model="numpy")
def contender_scores(
    mean: FloatArray,
    width: FloatArray,
    arm_radius: FloatArray,
    map_radius: FloatArray,
    beta: FloatArray,
    cross: FloatArray,
    block: FloatArray,
    scores: FloatArray,
) -> None:
    """`joint_score` where two or more arms may exceed the best `plugin_score`, and that one elsewhere."""
    arms, dim = beta.shape
    work, matrix = np.empty((SPHERE_ROWS, dim)), np.empty((dim, dim))
    rival = -np.inf
    for k in range(arms):
        scores[k] = plugin_score(mean[k], width[k], arm_radius[k])
        rival = max(rival, scores[k])
    first, several = -1, False  # the first contender waits for a second
    for k in range(arms):
        # the trace instead of the largest eigenvalue spares most arms their eigenvalues
        reward, _ = units_of(width[k], arm_radius[k], map_radius[k], beta[k], block[k])
        if score_of(scores[k], reward, 1.0 + PROVED) < rival:
            continue
        reward, t, w = on_sphere(
            width[k], arm_radius[k], map_radius[k], beta[k], cross[k], block[k], work, matrix
        )
        if score_of(scores[k], reward, largest_gain(t, work[0], work[2])) < rival:
            continue
        if first < 0:
            first = k
        else:
            several = True
            scores[k] = score_of(scores[k], reward, best_gain(t, w, work))
    if several:
        k = first
        scores[k] = joint_score(
            mean[k], width[k], arm_radius[k], map_radius[k], beta[k], cross[k], block[k], work, matrix
        )


@njit(cache=True, error_model="numpy")
def bound_scores(
    mean: FloatArray,
    width: FloatArray,
    arm_radius: FloatArray,
    map_radius: FloatArray,
    beta: FloatArray,
    cross: FloatArray,
    block: FloatArray,
    scores: FloatArray,
) -> None:
    """What no `joint_score` is above: the gain in mean and the gain in width, each at its largest."""
    dim = beta.shape[1]
    work, matrix = np.empty((SPHERE_ROWS, dim)), np.empty((dim, dim))
    for k in range(mean.shape[0]):
        reward, t, _ = on_sphere(
            width[k], arm_radius[k], map_radius[k], beta[k], cross[k], block[k], work, matrix
        )
        lowest = plugin_score(mean[k], width[k], arm_radius[k])
        scores[k] = score_of(lowest, reward, largest_gain(t, work[0], work[2]))


@njit(cache=True, error_model="numpy")
def on_spheres(
    width: FloatArray,
    arm_radius: FloatArray,
    map_radius: FloatArray,
    beta: FloatArray,
    cross: FloatArray,
    block: FloatArray,
    reward: FloatArray,
    t: FloatArray,
    w: FloatArray,
    b: FloatArray,
    c: FloatArray,
    diagonal: FloatArray,
) -> None:
    """`on_sphere` of every arm, a row each."""
    dim = beta.shape[1]
    work, matrix = np.empty((SPHERE_ROWS, dim)), np.empty((dim, dim))
    for k in range(width.shape[0]):
        reward[k], t[k], w[k] = on_sphere(
            width[k], arm_radius[k], map_radius[k], beta[k], cross[k], block[k], work, matrix
        )
        move(b[k], work[0])
        move(c[k], work[1])
        move(diagonal[k], work[2])


# The network of `NetworkMap`: relu between two layers, its inputs and outputs in running deviations.

ADAM_MEAN, ADAM_SQUARE, ADAM_EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba's usual constants
FAR = 10.0  # further out, in deviations, the scale itself is in doubt

Layers = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""The hidden weights and bias of a network, and those of its output."""


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def learn_scale(moments: FloatArray, value: FloatArray) -> None:
    """Welford's recursion; the rows of `moments` are the count, the mean and the squared deviations."""
    for i in range(value.shape[0]):
        moments[0, i] += 1.0
        off = value[i] - moments[1, i]
        moments[1, i] += off / moments[0, i]
        moments[2, i] += off * (value[i] - moments[1, i])


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def deviation_of(moments: FloatArray, i: int) -> float:
    """The standard deviation of coordinate i, or one where it is constant and says nothing."""
    variance = moments[2, i] / max(moments[0, i], 1.0)
    deviation: float = np.sqrt(variance) if variance > 0.0 else 1.0
    return deviation


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def standardised(value: float, mean: float, deviation: float) -> float:
    """In deviations from the mean, at most FAR of them."""
    return min(max((value - mean) / deviation, -FAR), FAR)


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def network_predict(
    X: FloatArray,
    x_moments: FloatArray,
    z_moments: FloatArray,
    parameters: Layers,
    Z: FloatArray,
) -> None:
    """Z[i] = V^T relu(W^T x_i + c) + d of parameters W, c, V and d, x_i and Z[i] in their own units."""
    hidden_weights, hidden_bias, output_weights, output_bias = parameters
    dim_x, units = hidden_weights.shape
    hidden = np.empty(units)
    for i in range(X.shape[0]):
        for h in range(units):
            hidden[h] = hidden_bias[h]
        for k in range(dim_x):
            x = standardised(X[i, k], x_moments[1, k], deviation_of(x_moments, k))
            row = hidden_weights[k]
            for h in range(units):
                hidden[h] += x * row[h]
        out = Z[i]
        for o in range(out.shape[0]):
            out[o] = output_bias[o]
        for h in range(units):
            active = max(hidden[h], 0.0)
            row = output_weights[h]
            for o in range(out.shape[0]):
                out[o] += active * row[o]
        for o in range(out.shape[0]):
            out[o] = out[o] * deviation_of(z_moments, o) + z_moments[1, o]


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def network_train(
    X: FloatArray,
    Z: FloatArray,
    x_moments: FloatArray,
    z_moments: FloatArray,
    parameters: Layers,
    means: Layers,
    squares: Layers,
    learning_rate: float,
    count: int,
) -> None:
    """Adam's steps on the mean squared error of each batch X[s], Z[s], after `count` steps before.

    Zeros pad what `add_product` wants in fours.
    """
    hidden_weights, hidden_bias, output_weights, output_bias = parameters
    steps, batch, dim_x = X.shape
    dim_z, units = Z.shape[2], hidden_bias.shape[0]
    rows, inputs, outputs = in_fours(batch), in_fours(dim_x), in_fours(dim_z)
    x, x_turned = np.zeros((rows, inputs)), np.zeros((inputs, rows))
    z, z_turned = np.zeros((rows, outputs)), np.zeros((outputs, rows))
    weights, weights_turned = np.zeros((inputs, units)), np.zeros((outputs, units))
    hidden, by_hidden = np.zeros((rows, units)), np.zeros((rows, units))
    by_output, by_output_turned = np.zeros((rows, outputs)), np.zeros((outputs, rows))
    by_weights, by_weights_turned = np.zeros((inputs, units)), np.zeros((outputs, units))
    by_output_weights = np.zeros((units, dim_z))
    by_hidden_bias, by_output_bias = np.zeros(units), np.zeros(dim_z)
    for step in range(steps):
        standardise(X[step], x_moments, x, x_turned)
        standardise(Z[step], z_moments, z, z_turned)
        for k in range(dim_x):
            move(weights[k], hidden_weights[k])
        turn(output_weights, weights_turned)
        activate(x_turned, weights, hidden_bias, hidden)
        for o in range(dim_z):
            for b in range(0, rows, PANEL):
                four_dots(hidden, b, weights_turned[o], by_output_turned[o])
            by_output_bias[o] = 0.0
            for b in range(batch):
                off = 2.0 * (by_output_turned[o, b] + output_bias[o] - z_turned[o, b]) / batch
                by_output[b, o] = by_output_turned[o, b] = off
                by_output_bias[o] += off
            for b in range(batch, rows):
                by_output_turned[o, b] = 0.0
        set_product(by_hidden, by_output_turned, weights_turned)
        only_active(by_hidden, hidden, by_hidden_bias)
        set_product(by_weights, x, by_hidden)
        set_product(by_weights_turned, by_output, hidden)
        turn(by_weights_turned[:dim_z], by_output_weights)
        rate = learning_rate / (1.0 - ADAM_MEAN ** (count + step + 1))
        share = 1.0 / (1.0 - ADAM_SQUARE ** (count + step + 1))
        for k in range(dim_x):
            adam(hidden_weights[k], by_weights[k], means[0][k], squares[0][k], rate, share)
        adam(hidden_bias, by_hidden_bias, means[1], squares[1], rate, share)
        adam(
            output_weights.ravel(),
            by_output_weights.ravel(),
            means[2].ravel(),
            squares[2].ravel(),
            rate,
            share,
        )
        adam(output_bias, by_output_bias, means[3], squares[3], rate, share)


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def standardise(values: FloatArray, moments: FloatArray, out: FloatArray, turned: FloatArray) -> None:
    """`standardised` of every value, and the same turned about."""
    dim = values.shape[1]
    mean, deviation = moments[1], np.empty(dim)
    for k in range(dim):
        deviation[k] = deviation_of(moments, k)
    for b in range(values.shape[0]):
        row, its_values = out[b], values[b]
        for k in range(dim):
            row[k] = standardised(its_values[k], mean[k], deviation[k])
        for k in range(dim):
            turned[k, b] = row[k]


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def four_dots(rows: FloatArray, i: int, factor: FloatArray, out: FloatArray) -> None:
    """out[i + r] = rows[i + r]·factor, for PANEL r."""
    a, b, c, d = rows[i], rows[i + 1], rows[i + 2], rows[i + 3]
    to_a = to_b = to_c = to_d = 0.0
    for h in range(factor.shape[0]):
        to_a += a[h] * factor[h]
        to_b += b[h] * factor[h]
        to_c += c[h] * factor[h]
        to_d += d[h] * factor[h]
    out[i], out[i + 1], out[i + 2], out[i + 3] = to_a, to_b, to_c, to_d


@njit(cache=True, error_model="numpy")
def in_fours(size: int) -> int:
    """The next multiple of PANEL."""
    return (size + PANEL - 1) // PANEL * PANEL


@njit(cache=True, error_model="numpy")
def turn(rows: FloatArray, out: FloatArray) -> None:
    """out = rows^T, as far as the rows go."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[j, i] = rows[i, j]


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def activate(x_turned: FloatArray, weights: FloatArray, bias: FloatArray, hidden: FloatArray) -> None:
    """hidden = relu(x W + c)."""
    for b in range(hidden.shape[0]):
        move(hidden[b], bias)
    add_product(hidden, 0, hidden.shape[0], x_turned, weights, 1.0, False)
    for b in range(hidden.shape[0]):
        row = hidden[b]
        for h in range(bias.shape[0]):
            row[h] = max(row[h], 0.0)


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def only_active(by_hidden: FloatArray, hidden: FloatArray, total: FloatArray) -> None:
    """What passes a relu is what is active; `total` is the sum of the rows."""
    for h in range(total.shape[0]):
        total[h] = 0.0
    for b in range(hidden.shape[0]):
        row, active = by_hidden[b], hidden[b]
        for h in range(total.shape[0]):
            row[h] = row[h] if active[h] > 0.0 else 0.0
            total[h] += row[h]


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def set_product(out: FloatArray, factors: FloatArray, rows: FloatArray) -> None:
    """out = factors^T rows."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
    add_product(out, 0, out.shape[0], factors, rows, 1.0, False)


@njit(cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def adam(
    parameters: FloatArray,
    gradient: FloatArray,
    mean: FloatArray,
    square: FloatArray,
    rate: float,
    share: float,
) -> None:
    """One step along the running mean of gradients over the root of that of their squares."""
    for i in range(parameters.shape[0]):
        g = gradient[i]
        mean[i] += (1.0 - ADAM_MEAN) * (g - mean[i])
        square[i] += (1.0 - ADAM_SQUARE) * (g * g - square[i])
        parameters[i] -= rate * mean[i] / (np.sqrt(square[i] * share) + ADAM_EPSILON)
