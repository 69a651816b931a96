"""phi(x) = scale W^T h(x) with a named h, or your own function."""

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.context_maps.features import Features, count_features
from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import errors_as_invalid_input, matrix, number, one_of

HALF_WIDTH = 10.0
"""x is uniform on [-10, 10] in each direction."""


def polynomial(x: FloatArray) -> FloatArray:
    """x², standardised for x uniform on [-10, 10]."""
    return np.asarray((x**2 - HALF_WIDTH**2 / 3.0) / (HALF_WIDTH**2 * np.sqrt(4.0 / 45.0)))


def periodic(x: FloatArray) -> FloatArray:
    """sqrt(2) cos(x)."""
    return np.asarray(np.sqrt(2.0) * np.cos(x))


def linear(x: FloatArray) -> FloatArray:
    """x, standardised for x uniform on [-10, 10]."""
    return np.asarray(x / (HALF_WIDTH / np.sqrt(3.0)))


PhiName: TypeAlias = Literal["polynomial", "periodic", "linear"]
Phi: TypeAlias = PhiName | Callable[[FloatArray], npt.ArrayLike]
FEATURES = {h.__name__: h for h in (polynomial, periodic, linear)}


class MadePhi(NamedTuple):
    """phi as a function of rows (…, dim_x) that gives (…, dim_z), with its scale and features."""

    of: Callable[[FloatArray], FloatArray]
    scale: float
    features: Features | None


def make_phi(
    phi: Phi,
    dim_x: int,
    dim_z: int,
    *,
    scale: float | None,
    rng: np.random.Generator,
    features: Features | None = None,
) -> MadePhi:
    """Check, and for a named h draw W, N(0, 1/dim_x); `features` are h by default."""
    scale = _scale(scale, 1.0 if callable(phi) else 10.0)
    if features is not None:
        count_features(features, dim_x)
    if callable(phi):
        own = partial(_own, phi, scale, dim_z)
        X = np.linspace(-HALF_WIDTH, HALF_WIDTH, 3 * dim_x).reshape(3, dim_x)
        wanted = f"a function that gives one of shape (3, {dim_z})"
        with errors_as_invalid_input(f"phi fails on a batch of shape {X.shape}", wanted):
            own(X)  # so that errors are raised now, not in mid-run
        return MadePhi(partial(_of_rows, own), scale, features)
    h = named(phi)
    mixed = partial(_mixed, h, scale, mixing(rng, dim_x, dim_z))
    return MadePhi(partial(_of_rows, mixed), scale, h if features is None else features)


def make_phis(
    phi: Phi, dim_x: int, dim_z: int, *, n: int, scale: float | None, rng: np.random.Generator
) -> MadePhi:
    """n maps with one named h, each with its own W, as a function of rows (…, n, dim_x)."""
    if callable(phi):
        raise InvalidInput(f"phi is {phi!r}, wanted a name: a function is one map for all arms")
    h, scale = named(phi), _scale(scale, 10.0)
    return MadePhi(partial(_mixed_apart, h, scale, mixing(rng, n, dim_x, dim_z)), scale, h)


def named(phi: str) -> Callable[[FloatArray], FloatArray]:
    """h by its name."""
    return FEATURES[one_of("phi", phi, tuple(FEATURES))]


def mixing(rng: np.random.Generator, *shape: int) -> FloatArray:
    """W, or a stack of them, of deviation 1/sqrt(dim_x), so that W^T h(x) is about as large as h."""
    return np.asarray(rng.standard_normal(shape) / np.sqrt(shape[-2]))


def _scale(scale: float | None, usual: float) -> float:
    return usual if scale is None else number("scale", scale, least=0.0)


# Functions, not closures, since environments are pickled.


def _of_rows(phi: Callable[[FloatArray], FloatArray], X: FloatArray) -> FloatArray:
    """phi of every row of (…, dim_x), as one batch."""
    flat = phi(X.reshape(-1, X.shape[-1]))
    return flat.reshape(*X.shape[:-1], flat.shape[1])


def _mixed(h: Callable[[FloatArray], FloatArray], scale: float, W: FloatArray, X: FloatArray) -> FloatArray:
    return np.asarray(scale * h(X) @ W)


def _mixed_apart(
    h: Callable[[FloatArray], FloatArray], scale: float, W: FloatArray, X: FloatArray
) -> FloatArray:
    apart = np.matmul(h(X).swapaxes(0, 1), W)  # one product per arm, of all its rounds
    return np.asarray(scale * apart.swapaxes(0, 1))


def _own(phi: Callable[[FloatArray], npt.ArrayLike], scale: float, dim_z: int, X: FloatArray) -> FloatArray:
    return scale * matrix("phi(X)", phi(X.copy()), len(X), dim_z)  # a copy: phi may work in place
