"""Optimistic scores, one per arm: Algorithm 1, line 3.

A score is the largest reward over the post-serving contexts ``z`` within ``e`` of ``phi_hat(x)``
and the weights in the arm's ellipsoid.  The weights have a closed form: with ``d = z - phi_hat(x)``

    score = mean + max_{||d|| <= e} [ beta.d + zeta sqrt(q(d)) ],   q(d) = q0 + 2 c.d + d'Md

The bracket is convex in ``d``, so its maximum lies on the sphere ``||d|| = e``.  The search is compiled
(`postserve.linalg.kernels.joint`); it works in the eigenbasis of ``M`` and without units, so that those of
rewards and ``z`` cannot change a choice.
"""

from collections.abc import Callable

import numpy as np

from postserve.linalg.kernels import joint as kernels
from postserve.linalg.kernels.joint import Candidates as Candidates  # re-exported
from postserve.types import FloatArray


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

    The argmax and its ties are those of `joint`: others cannot win, and a single one has won.

    >>> three = [0., 9., 9.], [1.] * 3, [1.] * 3, [1.] * 3, [[-.5]] * 3, [[.5]] * 3, [[[.3]]] * 3
    >>> joint_contenders(Candidates(*map(np.array, three))).round(3)
    array([ 1.   , 10.048, 10.048])
    """
    return _scored(kernels.contender_scores, candidates)


def _scored(kernel: Callable[..., None], candidates: Candidates) -> FloatArray:
    """The scores of these arms by a kernel, which is compiled for contiguous arrays only."""
    scores = np.empty(len(candidates.mean))
    kernel(scores, *[np.ascontiguousarray(field, np.float64) for field in candidates])
    return scores
