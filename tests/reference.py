"""What the kernels compute, in plain numpy on full matrices, for reading and for testing them against."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.linalg.kernels.joint import Candidates
from postserve.linalg.kernels.models import CACHE, COLD, FIRST_ROW, NOBODY, PREVIOUS, Storage
from postserve.optimism import plugin
from postserve.types import FloatArray, IntArray

EPS = float(np.finfo(np.float64).eps)
CLIMBS = 8  # to come near a maximum
HALVINGS = 52  # of an interval, to the last digit
POLISHES = 60  # a cap: three or so reach the last digit, unless maxima nearly merge
ADAM_MEAN, ADAM_SQUARE, ADAM_EPSILON = 0.9, 0.999, 1e-8  # Kingma and Ba's usual constants
FAR = 10.0  # further out, in deviations, the scale itself is in doubt

Layers = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
"""The hidden weights and bias of a network, and those of its output."""


def full(storage: Storage, plane: int) -> tuple[FloatArray, FloatArray]:
    """Gram and moment, or A^{-1} and weights, of all models in whichever form: (K, d, d), (K, outputs, d)."""
    dim, outputs = len(storage.prior), storage.vectors.shape[2]
    start = np.diag(storage.prior) if plane == CACHE else np.zeros((dim, dim))
    matrices = np.repeat(start[None], len(storage.place), axis=0)
    vectors = np.zeros((len(storage.place), outputs, dim))
    for model, place in enumerate(storage.place.tolist()):
        if place > COLD:
            lower = np.zeros((dim, dim))
            lower[np.tril_indices(dim)] = storage.symmetric[plane, place]
            matrices[model] = np.tril(lower) + np.tril(lower, -1).T
            vectors[model] = storage.vectors[plane, place]
        row = FIRST_ROW - place
        while row > NOBODY:
            u, y = storage.rows[plane, row], storage.values[plane, row]
            matrices[model] += (-1.0 if plane == CACHE else 1.0) * np.outer(u, u)
            vectors[model] += np.outer(y, u)
            row = int(storage.links[row, PREVIOUS])
    return matrices, vectors


def project(
    inverse: FloatArray, weights: FloatArray, models: IntArray, U: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """w_o·u_i and u_i^T A^{-1} u_i for row i under models[i]."""
    means = np.vecdot(weights[models], U[:, None])
    return means, np.maximum(np.vecdot(solve(inverse, models, U), U), 0.0)


def solve(inverse: FloatArray, models: IntArray, U: FloatArray) -> FloatArray:
    """A^{-1} u_i for row i under models[i]."""
    return np.asarray(np.matvec(inverse[models], U))


def add_shared_level(
    ridge: FloatArray,
    shared_inverse: FloatArray,
    shared_weights: FloatArray,
    U: FloatArray,
    V: FloatArray,
    means: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """With t = Lambda v, v = A^{-1} u: means + m_o·t and u·v + t^T A_0^{-1} t."""
    T = ridge * V
    own, shared = np.vecdot(U, V), np.vecdot(T @ shared_inverse, T)
    return means + T @ shared_weights.T, np.maximum(own, 0.0) + np.maximum(shared, 0.0)


def rank_one(inverse: FloatArray, weights: FloatArray, u: FloatArray, y: FloatArray) -> float:
    """Sherman-Morrison: the cache after one more row; returns q = u^T A^{-1} u from before it."""
    v = inverse @ u
    q = float(u @ v)
    inverse -= np.outer(v, v) / (1.0 + q)
    weights += np.outer(y - weights @ u, v) / (1.0 + q)
    return q


def blocks(
    P: FloatArray, m: FloatArray, edges: IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """tr_j(P), ||P_ij||²_F, ||m_oj||² and m_oi^T P_ij m_oj of the blocks between the edges."""
    starts = edges[:-1]

    def pairs(values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(np.add.reduceat(values, starts, axis=-1), starts, axis=-2))

    weighted = P * m[:, :, None] * m[:, None, :]
    return (
        np.add.reduceat(np.diagonal(P), starts),
        pairs(P**2),
        np.add.reduceat(m**2, starts, axis=-1),
        pairs(weighted),
    )


def cholesky_inverse(matrix: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """log det A, NaN where A is not positive, root = L^{-1} and inverse = A^{-1}, A = L L^T."""
    try:
        lower = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return np.nan, np.empty_like(matrix), np.empty_like(matrix)
    root = np.tril(np.linalg.inv(lower))
    return 2.0 * float(np.log(np.diagonal(lower)).sum()), root, root.T @ root


def joint_scores(scores: FloatArray, *arrays: FloatArray) -> None:
    """scores = mean + zeta sqrt(q0) + the largest gain on the sphere: climbs from every start, polished."""
    arms = Candidates(*arrays)
    sphere = _on_sphere(arms)
    scores[:] = plugin(*arms[:3]) + (sphere.reward * _best_gain(sphere))[:, 0]


def contender_scores(scores: FloatArray, *arrays: FloatArray) -> None:
    """As `joint_scores` where two or more have bound >= the best plugin score, else that score."""
    arms = Candidates(*arrays)
    sphere = _on_sphere(arms)
    scores[:] = plugin(*arms[:3])
    most = scores + (sphere.reward * _largest_gain(sphere))[:, 0]
    contends = np.flatnonzero(most >= scores.max(initial=-np.inf))
    if len(contends) > 1:
        rest = _only(sphere, contends)
        scores[contends] += (rest.reward * _best_gain(rest))[:, 0]


def bound_scores(scores: FloatArray, *arrays: FloatArray) -> None:
    """scores = mean + zeta sqrt(q0) + e (||beta|| + zeta sqrt(lambda_max(M)))."""
    arms = Candidates(*arrays)
    sphere = _on_sphere(arms)
    scores[:] = plugin(*arms[:3]) + (sphere.reward * _largest_gain(sphere))[:, 0]


def certificate(arms: Candidates) -> FloatArray:
    """Bound `joint` from above by ``zeta sqrt(q) <= (s q + zeta^2/s)/2``, whatever ``s > 0``.

    Each ``s = zeta/v`` leaves a trust-region problem; the bound is convex in ``s``, hence least
    where ``v``, a guess of ``sqrt(q)``, is what the solution of that problem confirms.

    >>> arm = Candidates(*map(np.array, ([0.], [1.], [1.], [1.], [[-.5]], [[.5]], [[[.3]]])))
    >>> certificate(arm).round(3)
    array([1.15])
    """
    sphere = _on_sphere(arms)
    _, t, w, b, c, diagonal = sphere
    top = diagonal[..., -1]
    reach = np.sqrt(top)  # |sqrt(q) - w| is no more
    low, high = np.maximum(w - reach, np.sqrt(EPS) * (w + reach)), w + reach
    for _ in range(HALVINGS):
        v = (low + high) / 2
        s = (t / _or_one(v))[..., None]
        _, n = _trust_region(b + s * c, s * diagonal)
        # what n lacks of norm one, in the hard case, lies along the top axis
        change = _dot(n, 2 * c + diagonal * n) + top * (1 - _dot(n, n))
        above = change > (v - w) * (v + w)
        low, high = np.where(above, v, low), np.where(above, high, v)
    s = t / _or_one(high)
    inner, _ = _trust_region(b + s[..., None] * c, s[..., None] * diagonal)
    return plugin(*arms[:3]) + (sphere.reward * (s * (w - high) ** 2 / 2 + inner))[:, 0]


class _Sphere(NamedTuple):
    """The gain over `plugin`, ``b.n + t (sqrt(w^2 + 2 c.n + n'Ln) - w)`` on ``||n|| = 1``.

    A gain of one is worth ``reward``; ``L`` is diagonal, of trace one.  The axis after that of the
    arms is for the points ``n`` of an arm.
    """

    reward: FloatArray  # (K, 1)
    t: FloatArray  # (K, 1)
    w: FloatArray  # (K, 1)
    b: FloatArray  # (K, 1, dim_z)
    c: FloatArray  # (K, 1, dim_z)
    diagonal: FloatArray  # (K, 1, dim_z), ascending


def _on_sphere(arms: Candidates) -> _Sphere:
    """Divide every unit out, and only then call LAPACK, which need not scale to the last digit."""
    e, width = arms.map_radius[:, None], arms.width[:, None]
    slope, cross, block = e * arms.beta, e * arms.cross, (e * e)[..., None] * arms.block
    variance = np.trace(block, axis1=1, axis2=2)[:, None]
    variance = np.maximum(variance, EPS**4 * width**2)  # w stays finite as e vanishes
    doubt = arms.arm_radius[:, None] * np.sqrt(variance)
    reward, variance = _or_one(_norm(slope)[:, None] + doubt), _or_one(variance)
    diagonal, basis = np.linalg.eigh(block / variance[..., None])
    return _Sphere(
        reward=reward,
        t=doubt / reward,
        w=width / np.sqrt(variance),
        b=(slope / reward)[:, None] @ basis,
        c=(cross / variance)[:, None] @ basis,
        diagonal=np.maximum(diagonal, 0.0)[:, None],
    )


def _only(sphere: _Sphere, arms: npt.NDArray[np.intp]) -> _Sphere:
    return _Sphere(*(field[arms] for field in sphere))


def _largest_gain(sphere: _Sphere) -> FloatArray:
    return _norm(sphere.b) + sphere.t * np.sqrt(sphere.diagonal[..., -1])


def _best_gain(sphere: _Sphere) -> FloatArray:
    """Climb from every start, then polish an arm for as long as one of its points still rises."""
    n, rest = _starts(sphere), sphere
    for _ in range(CLIMBS):
        n = _climb(sphere, n)
    gain, stride = _gain(sphere, n), np.ones(n.shape[:-1])
    best, arms = np.zeros_like(sphere.reward), np.arange(len(gain))
    for _ in range(POLISHES):
        n, gain, climbed = _rise(rest, n, gain, _climb(rest, n))
        n, gain, leapt = _rise(rest, n, gain, _newton(rest, n, stride))
        # a leap too far leaves a curved ridge: shorten the next
        stride = np.where(leapt, np.minimum(2 * stride, 1.0), stride / 2)
        best[arms] = gain.max(axis=1, keepdims=True)
        rising = np.flatnonzero((climbed | leapt).any(axis=1))
        if not rising.size:
            break
        n, gain, stride, arms = n[rising], gain[rising], stride[rising], arms[rising]
        rest = _only(rest, rising)
    return np.minimum(np.maximum(best, 0.0), _largest_gain(sphere))


def _starts(sphere: _Sphere) -> FloatArray:
    """Both ways along ``b``, ``c`` and each axis, as no climb leaves a plane of symmetry."""
    arms, _, dim = sphere.b.shape
    axes = np.broadcast_to(np.eye(dim), (arms, dim, dim))
    lines = np.concatenate([axes, _unit(sphere.b), _unit(sphere.c)], axis=1)
    return np.concatenate([lines, -lines], axis=1)


def _rise(
    sphere: _Sphere, n: FloatArray, gain: FloatArray, there: FloatArray
) -> tuple[FloatArray, FloatArray, npt.NDArray[np.bool_]]:
    """Move the points that gain by it, by more than rounding."""
    gain_there = _gain(sphere, there)
    better = gain_there > gain + 4 * EPS * np.abs(gain)
    return np.where(better[..., None], there, n), np.where(better, gain_there, gain), better


def _gain(sphere: _Sphere, n: FloatArray) -> FloatArray:
    change, root = _variance(sphere, n)  # sqrt(q) - w = (q - w^2) / (sqrt(q) + w), uncancelled
    return _dot(sphere.b, n) + sphere.t * change / _or_one(root + sphere.w)


def _variance(sphere: _Sphere, n: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``q(n) - w^2`` and ``sqrt(q(n))``."""
    change = np.maximum(_dot(n, 2 * sphere.c + sphere.diagonal * n), -(sphere.w**2))
    return change, np.sqrt(sphere.w**2 + change)


def _gradient(sphere: _Sphere, n: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The gradients of the gain and of ``sqrt(q)``, and ``s = t / sqrt(q)``."""
    root = np.maximum(_variance(sphere, n)[1], EPS)[..., None]
    g = (sphere.c + sphere.diagonal * n) / root
    return sphere.b + sphere.t[..., None] * g, g, sphere.t[..., None] / root


def _climb(sphere: _Sphere, n: FloatArray) -> FloatArray:
    """Maximise the tangent plane, which no convex function is below: this only climbs."""
    return _unit(_gradient(sphere, n)[0])


def _newton(sphere: _Sphere, n: FloatArray, stride: FloatArray) -> FloatArray:
    """Step by ``h``: ``H h = gradient - k n`` and ``h.n = 0``, with ``H = mu I - s L + s g g'``.

    ``H`` is inverted as diagonal plus rank one; where it is singular the step is worthless, and
    not taken.  Near a saddle Newton heads down, and is turned about.
    """
    gradient, g, s = _gradient(sphere, n)
    with np.errstate(all="ignore"):
        inverse = 1 / (_dot(gradient, n)[..., None] - s * sphere.diagonal)
        image = inverse * g
        factor = s / (1 + s * _dot(g, image)[..., None])

        def solve(x: FloatArray) -> FloatArray:
            return inverse * x - factor * _dot(image, x)[..., None] * image

        free, normal = solve(gradient), solve(n)
        h = free - (_dot(n, free) / _dot(n, normal))[..., None] * normal
        there = _unit(n + (stride * np.sign(_dot(gradient, h)))[..., None] * h)
    return np.where(np.isfinite(there), there, 0.0)


def _trust_region(a: FloatArray, diagonal: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``max_{||n|| = 1} a.n + n'Ln/2``, by its dual ``min_{m > L_max} (m + sum a^2/(m - L))/2``.

    ``||n|| = 1`` for ``n = a/(m - L)`` gives ``m``, or in the hard case ``m`` tends to ``L_max``:
    bisection does either, and its upper end never undercuts the maximum.
    """
    depth = diagonal[..., -1:] - diagonal
    low, high = np.abs(a[..., -1:]), _norm(a)[..., None]
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        outside = _norm(a / _or_one(middle + depth))[..., None] > 1
        low, high = np.where(outside, middle, low), np.where(outside, high, middle)
    n = a / _or_one(high + depth)
    return (diagonal[..., -1] + high[..., 0] + _dot(a, n)) / 2, n


def _dot(x: FloatArray, y: FloatArray) -> FloatArray:
    product: FloatArray = np.vecdot(x, y)
    return product


def _norm(x: FloatArray) -> FloatArray:
    return np.sqrt(_dot(x, x))


def _unit(x: FloatArray) -> FloatArray:
    return x / _or_one(_norm(x))[..., None]


def _or_one(divisor: FloatArray) -> FloatArray:
    """A divisor that makes 0/0 count as 0."""
    return np.where(divisor > 0, divisor, 1.0)


def learn_scale(moments: FloatArray, value: FloatArray) -> None:
    """Welford's recursion; the rows of `moments` are the count, the mean and the squared deviations."""
    count, mean, squares = moments
    count += 1.0
    off = value - mean
    mean += off / count
    squares += off * (value - mean)


def network_predict(
    X: FloatArray,
    x_moments: FloatArray,
    z_moments: FloatArray,
    parameters: Layers,
    Z: FloatArray,
) -> None:
    """Z[i] = V^T relu(W^T x_i + c) + d of parameters W, c, V and d, x_i and Z[i] in their own units."""
    hidden_weights, hidden_bias, output_weights, output_bias = parameters
    hidden = np.maximum(_standardised(X, x_moments) @ hidden_weights + hidden_bias, 0.0)
    Z[:] = (hidden @ output_weights + output_bias) * _deviation(z_moments) + z_moments[1]


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
    """Adam's steps on the mean squared error of each batch X[s], Z[s], after `count` steps before."""
    hidden_weights, hidden_bias, output_weights, output_bias = parameters
    for step in range(len(X)):
        x, z = _standardised(X[step], x_moments), _standardised(Z[step], z_moments)
        hidden = np.maximum(x @ hidden_weights + hidden_bias, 0.0)
        by_output = 2.0 * (hidden @ output_weights + output_bias - z) / len(x)
        by_hidden = (by_output @ output_weights.T) * (hidden > 0.0)
        gradients = (x.T @ by_hidden, by_hidden.sum(axis=0), hidden.T @ by_output, by_output.sum(axis=0))
        rate = learning_rate / (1.0 - ADAM_MEAN ** (count + step + 1))
        correction = 1.0 - ADAM_SQUARE ** (count + step + 1)
        for value, g, mean, square in zip(parameters, gradients, means, squares, strict=True):
            mean += (1.0 - ADAM_MEAN) * (g - mean)
            square += (1.0 - ADAM_SQUARE) * (g * g - square)
            value -= rate * mean / (np.sqrt(square / correction) + ADAM_EPSILON)


def _standardised(rows: FloatArray, moments: FloatArray) -> FloatArray:
    return np.asarray(np.clip((rows - moments[1]) / _deviation(moments), -FAR, FAR))


def _deviation(moments: FloatArray) -> FloatArray:
    count, _, squares = moments
    deviation = np.sqrt(squares / np.maximum(count, 1.0))
    return np.where(deviation > 0.0, deviation, 1.0)  # a constant coordinate says nothing
