"""Matrix products by panels of four rows, and what is made of them: Cholesky's factorisation, and a network.

At these sizes a threaded BLAS waits for its threads longer than it computes.
"""

import numpy as np
from numba import njit

from postserve.types import FloatArray

SUMS_MAY_REORDER = {"reassoc", "contract"}
"""Which lets sums vectorise; nothing else of IEEE arithmetic is relaxed."""

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


# The network of `NetworkMap`: relu between two layers, its inputs and outputs in running deviations.

ADAM_MEAN, ADAM_SQUARE, ADAM_EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba's usual constants
FAR = 10.0  # further out, in deviations, the scale itself is in doubt

Layers = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""The hidden weights and bias of a network, and those of its output."""


@njit(cache=True, error_model="numpy")
def move(n: FloatArray, there: FloatArray) -> None:
    """n = there; as a loop, which compiles in a fraction of the time that n[:] = there takes."""
    for i in range(n.shape[0]):
        n[i] = there[i]


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
