"""Optimistic scores, one per arm: Algorithm 1, line 3.

A score is the largest reward over the post-serving contexts ``z`` within ``e`` of ``phi_hat(x)``
and the weights in the arm's ellipsoid.  The weights have a closed form: with ``d = z - phi_hat(x)``

    score = mean + max_{||d|| <= e} [ beta.d + zeta sqrt(q(d)) ],   q(d) = q0 + 2 c.d + d'Md

The bracket is convex in ``d``, so its maximum lies on the sphere ``||d|| = e``.  It is sought in
the eigenbasis of ``M`` and free of units: those of the rewards and of ``z`` cannot sway a choice.
The search is compiled; `postserve.linalg.reference` has it in plain numpy.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from postserve.linalg.kernels import joint as kernels
from postserve.types import FloatArray

_EPS = float(np.finfo(np.float64).eps)
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
    return _scored(kernels.bound_scores, candidates)


def joint(candidates: Candidates) -> FloatArray:
    """Maximise over ``z`` and ``w``: ``mean + max_{||d|| <= e} [beta.d + zeta sqrt(q(d))]``.

    >>> arm = Candidates(*map(np.array, ([0.], [1.], [1.], [1.], [[-.5]], [[.5]], [[[.3]]])))
    >>> joint(arm).round(3)  # the better of d = 1 and d = -1
    array([1.048])
    """
    return _scored(kernels.joint_scores, candidates)


def joint_contenders(candidates: Candidates) -> FloatArray:
    """Score as `joint` where two or more have ``bound >= max plugin``, else as `plugin`.

    The argmax and its ties are those of `joint`: others cannot win, and one alone has won.

    >>> three = [0., 9., 9.], [1.] * 3, [1.] * 3, [1.] * 3, [[-.5]] * 3, [[.5]] * 3, [[[.3]]] * 3
    >>> joint_contenders(Candidates(*map(np.array, three))).round(3)
    array([ 1.   , 10.048, 10.048])
    """
    return _scored(kernels.contender_scores, candidates)


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


def _scored(kernel: Callable[..., None], candidates: Candidates) -> FloatArray:
    fields = _contiguous(candidates)
    scores = np.empty(len(fields[0]))
    kernel(*fields, scores)
    return scores


def _contiguous(candidates: Candidates) -> list[FloatArray]:
    """Kernels are compiled for such arrays alone."""
    return [
        field
        if field.flags.c_contiguous and field.dtype == np.float64
        else np.ascontiguousarray(field, np.float64)
        for field in candidates
    ]


def _on_sphere(candidates: Candidates) -> _Sphere:
    fields = _contiguous(candidates)[1:]
    shape = candidates.beta.shape
    scalars, vectors = np.empty((3, *shape[:1])), np.empty((3, *shape))
    kernels.on_spheres(*fields, *scalars, *vectors)
    return _Sphere(*scalars[:, :, None], *vectors[:, :, None])


def _scores(candidates: Candidates, sphere: _Sphere, gain: FloatArray) -> FloatArray:
    lowest = plugin(candidates.mean, candidates.width, candidates.arm_radius)
    return lowest + (sphere.reward * gain)[:, 0]


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


def _or_one(divisor: FloatArray) -> FloatArray:
    """Divide nothing by nothing to nothing."""
    return np.where(divisor > 0, divisor, 1.0)
