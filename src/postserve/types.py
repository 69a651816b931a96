"""Types that several rooms use, and the shapes of arrays, documented once.

=============  ====================  ==================================================
array          shape                 meaning
=============  ====================  ==================================================
``x``          ``(dim_x,)``          pre-serving context, known when an arm is chosen;
                                     ``(k, dim_x)`` with one context per arm
``z``          ``(dim_z,)``          post-serving context, known after it was served
``u``          ``(dim_u,)``          an arm's regressor, for poLinUCB ``(x, z)``
``z_hat``      ``(dim_z,)``          ``phi_hat(x)``, the prediction of ``z``
``X``, ``Z``   ``(n, dim)``          a batch, one row per round
``arms``       ``(k,)`` of int       arm ids, which are never reused
=============  ====================  ==================================================
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

Context: TypeAlias = npt.ArrayLike | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""x or z as policies take it: numbers, in one row or one row per arm; with features, named values too."""

Ridge: TypeAlias = Literal["evidence"] | float | Sequence[float]
"""A ridge: learnt from the evidence, one number, or one number per block."""

Intercept: TypeAlias = Literal["auto", "level"] | bool
"""A common level with intercepts around it, a constant in u, or neither; "auto" follows the ridge."""
ArmRadius: TypeAlias = Literal["posterior", "determinant", "closed_form"] | float
Exploration: TypeAlias = Literal["auto"] | float
MapRadius: TypeAlias = Literal["posterior", "determinant", "assumption"] | float
Model: TypeAlias = Literal["disjoint", "shared", "hybrid"]
Optimism: TypeAlias = Literal["plugin", "posterior", "joint", "bound"]
MissingZ: TypeAlias = Literal["raise", "impute", "drop"]


class _ArmAndPropensity(NamedTuple):
    arm: int
    propensity: float


class Decision(_ArmAndPropensity):
    """The arm to serve, and the probability with which it was chosen: a pair.

    `version` says which version of the policy chose it, if that counts its changes.
    """

    version: int | None = None


class Decisions(NamedTuple):
    """One decision per row of a batch: ids and probabilities, both of shape ``(n,)``."""

    arms: IntArray
    propensities: FloatArray


class Ball(NamedTuple):
    """The confidence set of phi(x) for each arm: centre, one row per arm or one vector for all, and radius.

    With `axes`, one row per arm or one for all, it is an ellipsoid: coordinate j of z has the half-axis
    ``radius·axes[j]``.
    """

    z_hat: FloatArray
    radius: FloatArray
    axes: FloatArray | None = None


class Prior(NamedTuple):
    """The prior in force: the noise variance of each output, and lambda of each block of u.

    The prior variance of a weight in block j is ``tau_j² = noise_variance / ridge[j]``; where columns have
    their own units, divided by the column's mean square.
    """

    noise_variance: FloatArray
    ridge: Mapping[str, float]


class Rounds(NamedTuple):
    """A block of rounds as potential outcomes: what every arm would have given.

    ``x`` is ``(n, dim_x)``, or ``(n, k, dim_x)`` with one context per arm; ``z`` is ``(n, dim_z)``, or
    ``(n, k, dim_z)`` if it depends on the arm. ``rewards`` and ``means`` are ``(n, k)``, the means being
    taken at ``phi(x)``, never at the realised z. The k columns are all arms in their order or, if only some
    can be served, those of ``arms``: ``(n, k)`` ids, rising in each row.
    """

    x: FloatArray
    z: FloatArray
    rewards: FloatArray
    means: FloatArray
    arms: IntArray | None = None
