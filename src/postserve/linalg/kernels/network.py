"""The network of `NetworkMap`: relu between two layers, inputs and outputs in running deviations.

At these sizes a threaded BLAS waits for its threads longer than it computes.
"""

import numpy as np
from numba import njit

from postserve.types import FloatArray

SUMS_MAY_REORDER = {"reassoc", "contract"}
"""Which lets sums vectorise; nothing else of IEEE arithmetic is relaxed."""

PANEL = 4  # rows that products take at once: sixteen products for every eight numbers read
ADAM_MEAN, ADAM_SQUARE, ADAM_EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba's usual constants
FAR = 10.0  # further out, in deviations, the scale itself is in doubt

Layers = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""The hidden weights and bias of a network, and those of its output."""


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def move(n: FloatArray, there: FloatArray) -> None:
    """n[:] = there, as a loop, which compiles much faster."""
    for i in range(n.shape[0]):
        n[i] = there[i]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def learn_scale(moments: FloatArray, value: FloatArray) -> None:
    """Welford's recursion; the rows of `moments` are the count, the mean and the squared deviations."""
    for i in range(value.shape[0]):
        moments[0, i] += 1.0
        off = value[i] - moments[1, i]
        moments[1, i] += off / moments[0, i]
        moments[2, i] += off * (value[i] - moments[1, i])


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def deviation_of(moments: FloatArray, i: int) -> float:
    """The standard deviation of coordinate i, or 1 if it is constant."""
    variance = moments[2, i] / max(moments[0, i], 1.0)
    deviation: float = np.sqrt(variance) if variance > 0.0 else 1.0
    return deviation


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def standardised(value: float, mean: float, deviation: float) -> float:
    """In deviations from the mean, at most FAR of them."""
    return min(max((value - mean) / deviation, -FAR), FAR)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def network_predict(
    X: FloatArray, x_moments: FloatArray, z_moments: FloatArray, parameters: Layers, Z: FloatArray
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


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
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

    Zeros pad the sides that `add_product` takes in fours.
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


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def standardise(values: FloatArray, moments: FloatArray, out: FloatArray, turned: FloatArray) -> None:
    """`standardised` of every value, and its transpose."""
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


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
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


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def in_fours(size: int) -> int:
    """The next multiple of PANEL."""
    return (size + PANEL - 1) // PANEL * PANEL


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy")
def turn(rows: FloatArray, out: FloatArray) -> None:
    """out = rows^T, in its first columns."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[j, i] = rows[i, j]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def activate(x_turned: FloatArray, weights: FloatArray, bias: FloatArray, hidden: FloatArray) -> None:
    """hidden = relu(x W + c)."""
    for b in range(hidden.shape[0]):
        move(hidden[b], bias)
    add_product(hidden, x_turned, weights)
    for b in range(hidden.shape[0]):
        row = hidden[b]
        for h in range(bias.shape[0]):
            row[h] = max(row[h], 0.0)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def only_active(by_hidden: FloatArray, hidden: FloatArray, total: FloatArray) -> None:
    """Zero the gradient of inactive units; `total` is the sum of the rows."""
    for h in range(total.shape[0]):
        total[h] = 0.0
    for b in range(hidden.shape[0]):
        row, active = by_hidden[b], hidden[b]
        for h in range(total.shape[0]):
            row[h] = row[h] if active[h] > 0.0 else 0.0
            total[h] += row[h]


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def add_product(out: FloatArray, factors: FloatArray, rows: FloatArray) -> None:
    """out += factors^T rows, four rows of each at once, so that all sides but columns come in fours."""
    for i in range(0, out.shape[0], PANEL):
        a, b, c, d = out[i], out[i + 1], out[i + 2], out[i + 3]
        for k in range(0, rows.shape[0], PANEL):
            p, q, r, s = factors[k], factors[k + 1], factors[k + 2], factors[k + 3]
            pa, pb, pc, pd = p[i], p[i + 1], p[i + 2], p[i + 3]
            qa, qb, qc, qd = q[i], q[i + 1], q[i + 2], q[i + 3]
            ra, rb, rc, rd = r[i], r[i + 1], r[i + 2], r[i + 3]
            sa, sb, sc, sd = s[i], s[i + 1], s[i + 2], s[i + 3]
            for j in range(out.shape[1]):
                x, y, z, w = rows[k, j], rows[k + 1, j], rows[k + 2, j], rows[k + 3, j]
                a[j] += pa * x + qa * y + ra * z + sa * w
                b[j] += pb * x + qb * y + rb * z + sb * w
                c[j] += pc * x + qc * y + rc * z + sc * w
                d[j] += pd * x + qd * y + rd * z + sd * w


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def set_product(out: FloatArray, factors: FloatArray, rows: FloatArray) -> None:
    """out = factors^T rows."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = 0.0
    add_product(out, factors, rows)


@njit(no_cfunc_wrapper=True, cache=True, error_model="numpy", fastmath=SUMS_MAY_REORDER)
def adam(
    parameters: FloatArray,
    gradient: FloatArray,
    mean: FloatArray,
    square: FloatArray,
    rate: float,
    share: float,
) -> None:
    """One step of Adam: the running mean of gradients over the root of the running mean of their squares."""
    for i in range(parameters.shape[0]):
        g = gradient[i]
        mean[i] += (1.0 - ADAM_MEAN) * (g - mean[i])
        square[i] += (1.0 - ADAM_SQUARE) * (g * g - square[i])
        parameters[i] -= rate * mean[i] / (np.sqrt(square[i] * share) + ADAM_EPSILON)
