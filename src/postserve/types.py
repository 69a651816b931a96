"""The values that travel between the rooms, and the shapes of arrays, documented once.

=============  ====================  ==================================================
array          shape                 meaning
=============  ====================  ==================================================
``x``          ``(dim_x,)``          pre-serving context, known when an arm is chosen; where arms
                                     have contexts of their own, ``(k, dim_x)``, a row an arm
``z``          ``(dim_z,)``          post-serving context, known after it was served
``u``          ``(dim_u,)``          an arm's regressor, for poLinUCB ``(x, z)``
``z_hat``      ``(dim_z,)``          ``phi_hat(x)``, the prediction of ``z``
``X``, ``Z``   ``(n, dim)``          a batch, one row a round
``arms``       ``(k,)`` of int       arm ids; an id is never given twice
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
"""x or z as policies take it: numbers, one row or a row an arm; with features, names with values too."""

Ridge: TypeAlias = Literal["evidence"] | float | Sequence[float]
"""A ridge: learnt from the evidence, one number, or one number a block."""

ArmRadius: TypeAlias = Literal["posterior", "determinant", "closed_form"] | float
MapRadius: TypeAlias = Literal["posterior", "determinant", "assumption"] | float
Model: TypeAlias = Literal["disjoint", "shared", "hybrid"]
Optimism: TypeAlias = Literal["plugin", "joint", "bound"]
MissingZ: TypeAlias = Literal["raise", "impute", "drop"]


class Decision(NamedTuple):
    """The arm to serve, and the probability with which it was chosen."""

    arm: int
    propensity: float


class Decisions(NamedTuple):
    """One decision a row of a batch: ids and probabilities, both of shape ``(n,)``."""

    arms: IntArray
    propensities: FloatArray


class Prior(NamedTuple):
    """The prior in force: the noise variance of each output, and lambda of each block of u.

    The prior variance of a weight in block j is ``tau_j² = noise_variance / ridge[j]``.
    """

    noise_variance: FloatArray
    ridge: Mapping[str, float]


class Rounds(NamedTuple):
    """A block of rounds as potential outcomes: what every arm would have given.

    ``x`` is ``(n, dim_x)`` or, where each arm has a context of its own, ``(n, k, dim_x)``; ``z`` is
    ``(n, dim_z)`` or, where it depends on what was served, ``(n, k, dim_z)``. ``rewards`` and ``means``
    are ``(n, k)``, the means being taken at ``phi(x)``, never at the realised z. The k columns are all
    arms in their order or, where only some can be served, those that ``arms`` names: ``(n, k)`` ids,
    rising in each row.
    """

    x: FloatArray
    z: FloatArray
    rewards: FloatArray
    means: FloatArray
    arms: IntArray | None = None
