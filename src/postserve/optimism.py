"""Optimistic scores, one per arm: Algorithm 1, line 3.

A score is the largest reward over the post-serving contexts ``z`` within ``e`` of ``phi_hat(x)``
and the weights in the arm's ellipsoid.  The weights have a closed form: with ``d = z - phi_hat(x)``

    score = mean + max_{||d|| <= e} [ beta.d + zeta sqrt(q(d)) ],   q(d) = q0 + 2 c.d + d'Md

The bracket is convex in ``d``, so its maximum lies on the sphere ``||d|| = e``.  It is sought in
the eigenbasis of ``M`` and free of units: those of the rewards and of ``z`` cannot sway a choice.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.types import FloatArray

_EPS = float(np.finfo(np.float64).eps)
_CLIMBS = 8  # to come near a maximum
_POLISHES = 60  # a cap: three or so reach the last digit, unless maxima nearly merge
_HALVINGS = 52  # of an interval, to the last digit


class Candidates(NamedTuple):
    """What line 3 of Algorithm 1 knows of each of ``K`` arms."""

    mean: FloatArray  # (K,) u_hat . w_hat
    width: FloatArray  # (K,) sqrt(q0), q0 = u_hat' A^-1 u_hat
    arm_radius: FloatArray  # (K,) zeta
    map_radius: FloatArray  # (K,) e
    beta: FloatArray  # (K, dim_z) z-block of w_hat
    cross: FloatArray  # (K, dim_z) c, the z-block of A^-1 u_hat
    block: FloatArray  # (K, dim_z, dim_z) M, the z-block of A^-1


def plugin(mean: FloatArray, width: FloatArray, arm_radius: FloatArray) -> FloatArray:
    """Score each arm at ``z = phi_hat(x)``: ``mean + zeta sqrt(q0)``.

    >>> plugin(np.array([1.0]), np.array([0.5]), np.array([2.0]))
    array([2.])
    """
    return mean + arm_radius * width


def bound(candidates: Candidates) -> FloatArray:
    """Bound `joint` from above by ``plugin + e (||beta|| + zeta sqrt(lambda_max(M)))``.

    >>> arm = Candidates(*map(np.array, ([0.], [1.], [1.], [1.], [[-.5]], [[.5]], [[[.25]]])))
    >>> bound(arm)
    array([2.])
    """
    sphere = _on_sphere(candidates)
    return _scores(candidates, sphere, _largest_gain(sphere))


def joint(candidates: Candidates) -> FloatArray:
    """Maximise over ``z`` and ``w``: ``mean + max_{||d|| <= e} [beta.d + zeta sqrt(q(d))]``.

    >>> arm = Candidates(*map(np.array, ([0.], [1.], [1.], [1.], [[-.5]], [[.5]], [[[.3]]])))
    >>> joint(arm).round(3)  # the better of d = 1 and d = -1
    array([1.048])
    """
    sphere = _on_sphere(candidates)
    return _scores(candidates, sphere, _best_gain(sphere))


def joint_contenders(candidates: Candidates) -> FloatArray:
    """Score as `joint` where two or more have ``bound >= max plugin``, else as `plugin`.

    The argmax and its ties are those of `joint`: others cannot win, and one alone has won.

    >>> three = [0., 9., 9.], [1.] * 3, [1.] * 3, [1.] * 3, [[-.5]] * 3, [[.5]] * 3, [[[.3]]] * 3
    >>> joint_contenders(Candidates(*map(np.array, three))).round(3)
    array([ 1.   , 10.048, 10.048])
    """
    sphere = _on_sphere(candidates)
    gain = np.zeros_like(sphere.reward)
    rival = _scores(candidates, sphere, gain).max(initial=-np.inf)
    contends = np.flatnonzero(_scores(candidates, sphere, _largest_gain(sphere)) >= rival)
    if len(contends) > 1:
        gain[contends] = _best_gain(_only(sphere, contends))
    return _scores(candidates, sphere, gain)


def certificate(candidates: Candidates) -> FloatArray:
    """Bound `joint` from above by ``zeta sqrt(q) <= (s q + zeta^2/s)/2``, whatever ``s > 0``.

    Each ``s = zeta/v`` leaves a trust-region problem; the bound is convex in ``s``, hence least
    where ``v``, a guess of ``sqrt(q)``, is what the solution of that problem confirms.

    >>> arm = Candidates(*map(np.array, ([0.], [1.], [1.], [1.], [[-.5]], [[.5]], [[[.3]]])))
    >>> certificate(arm).round(3)
    array([1.15])
    """
    sphere = _on_sphere(candidates)
    _, t, w, b, c, diagonal = sphere
    top = diagonal[..., -1]
    reach = np.sqrt(top)  # |sqrt(q) - w| is no more
    low, high = np.maximum(w - reach, np.sqrt(_EPS) * (w + reach)), w + reach
    for _ in range(_HALVINGS):
        v = (low + high) / 2
        s = (t / _or_one(v))[..., None]
        _, n = _trust_region(b + s * c, s * diagonal)
        # what n lacks of norm one, in the hard case, lies along the top axis
        change = _dot(n, 2 * c + diagonal * n) + top * (1 - _dot(n, n))
        above = change > (v - w) * (v + w)
        low, high = np.where(above, v, low), np.where(above, high, v)
    s = t / _or_one(high)
    inner, _ = _trust_region(b + s[..., None] * c, s[..., None] * diagonal)
    return _scores(candidates, sphere, s * (w - high) ** 2 / 2 + inner)


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


def _on_sphere(candidates: Candidates) -> _Sphere:
    """Divide every unit out, and only then call LAPACK, which need not scale to the last digit."""
    _, width, arm_radius, map_radius, beta, cross, block = candidates
    e = map_radius[:, None]
    slope, cross, block = e * beta, e * cross, (e * e)[..., None] * block
    variance = np.trace(block, axis1=1, axis2=2)[:, None]
    variance = np.maximum(variance, _EPS**4 * width[:, None] ** 2)  # w stays finite as e vanishes
    doubt = arm_radius[:, None] * np.sqrt(variance)
    reward, variance = _or_one(_norm(slope)[:, None] + doubt), _or_one(variance)
    diagonal, basis = np.linalg.eigh(block / variance[..., None])
    return _Sphere(
        reward=reward,
        t=doubt / reward,
        w=width[:, None] / np.sqrt(variance),
        b=(slope / reward)[:, None] @ basis,
        c=(cross / variance)[:, None] @ basis,
        diagonal=np.maximum(diagonal, 0.0)[:, None],
    )


def _only(sphere: _Sphere, arms: npt.NDArray[np.intp]) -> _Sphere:
    return _Sphere(*(field[arms] for field in sphere))


def _scores(candidates: Candidates, sphere: _Sphere, gain: FloatArray) -> FloatArray:
    lowest = plugin(candidates.mean, candidates.width, candidates.arm_radius)
    return lowest + (sphere.reward * gain)[:, 0]


def _largest_gain(sphere: _Sphere) -> FloatArray:
    return _norm(sphere.b) + sphere.t * np.sqrt(sphere.diagonal[..., -1])


def _best_gain(sphere: _Sphere) -> FloatArray:
    """Climb from every start, then polish an arm for as long as one of its points still rises."""
    n, rest = _starts(sphere), sphere
    for _ in range(_CLIMBS):
        n = _climb(sphere, n)
    gain, stride = _gain(sphere, n), np.ones(n.shape[:-1])
    best, arms = np.zeros_like(sphere.reward), np.arange(len(gain))
    for _ in range(_POLISHES):
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
    better = gain_there > gain + 4 * _EPS * np.abs(gain)
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
    root = np.maximum(_variance(sphere, n)[1], _EPS)[..., None]
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
    for _ in range(_HALVINGS):
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
    """Divide nothing by nothing to nothing."""
    return np.where(divisor > 0, divisor, 1.0)
