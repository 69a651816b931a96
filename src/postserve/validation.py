"""Checks at the public edges; behind them every array is float64, finite and of the right shape."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from operator import ge, gt, le, lt
from typing import Any, TypeVar, cast

import numpy as np
from scipy.linalg.blas import ddot  # four times as fast as np.vdot; neither warns on overflow

from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray, Intercept, Ridge

MAX_NORM = 1e50
"""Longest vector accepted: its square, times any number of rounds, stays far from overflow."""

_MAX_SQUARE = MAX_NORM**2
_FLOAT64 = np.dtype(np.float64)

T = TypeVar("T")


def plain_vector_check(dim: int | None) -> Callable[[Any], Any]:
    """A quick test for the common case: a valid vector of length dim that needs no conversion."""
    return partial(_is_plain, (dim,))


def _is_plain(shape: tuple[int | None], value: Any) -> Any:
    return (
        type(value) is np.ndarray
        and value.dtype is _FLOAT64
        and value.shape == shape
        and value.flags.carray  # contiguous, aligned and not read-only, as kernels were compiled for
        and ddot(value, value) <= _MAX_SQUARE  # false for NaN, infinite and too long
    )


def vector(name: str, value: Any, dim: int | None) -> FloatArray:
    """A finite float64 vector of length dim (of any length where dim is None)."""
    return shaped(name, value, (dim,))


def matrix(name: str, value: Any, rows: int | None, columns: int | None) -> FloatArray:
    """A finite float64 matrix; None leaves a side free."""
    return shaped(name, value, (rows, columns))


def shaped(name: str, value: Any, shape: tuple[int | None, ...]) -> FloatArray:
    """A finite float64 array of that shape; None leaves a side free."""
    array = _floats(name, value)
    if array.shape != shape and not fits(array.shape, shape):
        wanted = ", ".join("n" if side is None else str(side) for side in shape)
        raise InvalidInput(f"{name} has shape {array.shape}, wanted ({wanted}{',' * (len(shape) == 1)})")
    _check_finite(name, array)
    return array


def fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    """Whether a shape is the wanted one; None leaves a side free."""
    sides = zip(shape, wanted, strict=False)
    return len(shape) == len(wanted) and all(free in (None, side) for side, free in sides)


def context(name: str, value: Any, dim: int | None, arms: int | None) -> FloatArray:
    """A finite vector of length dim, or a matrix with one such row per arm; None leaves a side free."""
    array = _floats(name, value)
    right = array.ndim in (1, 2) and dim in (None, array.shape[-1])
    if not right or (array.ndim == 2 and arms not in (None, len(array))):
        length = "m" if dim is None else dim
        wanted = f"({length},)" if arms is not None else f"(n, {length})"
        if arms is not None and array.ndim == 2:
            wanted += f", or ({arms}, {length}): one row per arm"
        raise InvalidInput(f"{name} has shape {array.shape}, wanted {wanted}")
    _check_finite(name, array)
    return array


def number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
) -> float:
    """A finite float within the limits that are given."""
    value = _without_shape(value)
    result = _finite(name, value)
    if isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} is {value!r}, wanted a number")
    limits = (("above", above, gt), ("at least", least, ge), ("below", below, lt), ("at most", most, le))
    given = [(word, limit, holds) for word, limit, holds in limits if limit is not None]
    if not all(holds(result, limit) for _, limit, holds in given):
        wanted = " and ".join(f"{word} {limit:g}" for word, limit, _ in given)
        raise InvalidInput(f"{name} is {result:g}, wanted a number {wanted}")
    return _refuse_huge(name, result)


def scales(name: str, value: Any, dim: int | None) -> FloatArray:
    """Numbers of at least 0, one per output, from one number or `dim` of them (None: any number)."""
    if isinstance(value, Real | np.bool_):
        value = [number(name, value)] * (1 if dim is None else dim)
    found = vector(name, value, dim).copy()
    if not len(found) or (found < 0.0).any():
        raise InvalidInput(f"{name} is {value!r}, wanted numbers of at least 0")
    return found


def reward_value(value: Any) -> float:
    """A finite reward; True and False are 1 and 0."""
    if type(value) is float and -MAX_NORM <= value <= MAX_NORM:
        return value
    return _refuse_huge("reward", _finite("reward", _without_shape(value)))


def integer(name: str, value: Any, *, least: int) -> int:
    """An int (numpy's too, but no bool and no float) of at least `least`."""
    if type(value) is int and least <= value < 2**62:
        return value
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= int(value) < 2**62:
        raise InvalidInput(f"{name} is {value!r}, wanted a whole number of at least {least}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """A bool."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} is {value!r}, wanted True or False")
    return bool(value)


def text(name: str, value: Any) -> str:
    """A non-empty str."""
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{name} is {value!r:.60}, wanted a non-empty str")
    return value


def one_of(name: str, value: T, options: Sequence[T]) -> T:
    """One of the named options."""
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        raise InvalidInput(f"{name} is {value!r}, wanted one of {', '.join(map(repr, options))}")
    return value


def one_of_or_number(name: str, value: Any, options: Sequence[str], **limits: float) -> Any:
    """One of the named options, or a number within the limits."""
    if isinstance(value, str) and value in options:
        return value
    try:
        return number(name, value, **limits)
    except InvalidInput as error:
        raise InvalidInput(f"{error}, or {' or '.join(map(repr, options))}") from error


def generator(rng: Any) -> np.random.Generator:
    """A numpy random generator."""
    if not isinstance(rng, np.random.Generator):
        raise InvalidInput(f"rng is a {type(rng).__name__}, wanted a numpy.random.Generator")
    return rng


def whole_numbers(name: str, value: Any) -> IntArray:
    """A one-dimensional array of whole numbers."""
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError, OverflowError):
        array = np.empty((0, 0))
    if np.ma.is_masked(value) or array.ndim != 1 or (array.dtype.kind not in "iu" and array.shape != (0,)):
        kind = f" of dtype {array.dtype}" if array.ndim == 1 else ""
        raise InvalidInput(f"{name} is {value!r:.60}{kind}, wanted a sequence of arm ids, whole numbers")
    return array.astype(np.int64)


def arm_ids(name: str, value: Any) -> IntArray:
    """A non-empty array of whole numbers without repetitions."""
    array = whole_numbers(name, value)
    if not len(array):
        raise InvalidInput(f"{name} is empty, wanted at least one arm id")
    ordered = array if (np.diff(array) > 0).all() else np.sort(array)
    twice = ordered[1:][np.diff(ordered) == 0]
    if len(twice):
        raise InvalidInput(f"{name} has {twice[0]} more than once, wanted each arm once")
    return array


@contextmanager
def errors_as_invalid_input(got: str, wanted: str) -> Iterator[None]:
    """Errors raised inside, by a user's function or file, become InvalidInput."""
    try:
        yield
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(f"{got} ({type(error).__name__}: {error}), wanted {wanted}") from error


def refuse_masked(name: str, value: Any) -> None:
    """Refuse an array with masked entries."""
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise InvalidInput(f"{name} has masked entries, wanted all of them")


def _without_shape(value: Any) -> Any:
    """The entry of an array of shape (); anything else as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _finite(name: str, value: Any) -> float:
    if type(value) is not float and not isinstance(value, Real | Decimal | np.bool_):
        raise InvalidInput(f"{name} is {value!r:.60}, wanted a finite number")
    try:
        result = float(value)
    except (OverflowError, ValueError):  # a Decimal may be a signalling NaN
        result = math.inf
    if not math.isfinite(result):
        raise InvalidInput(f"{name} is {value!r:.60}, wanted a finite number")
    return result


def _refuse_huge(name: str, value: float) -> float:
    if abs(value) > MAX_NORM:
        raise InvalidInput(f"{name} is {value:g}, wanted a magnitude of at most {MAX_NORM:g}")
    return value


def _floats(name: str, value: Any) -> FloatArray:
    if type(value) is np.ndarray and value.dtype == np.float64 and value.flags.carray:
        return value
    refuse_masked(name, value)
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InvalidInput(f"{name} is not an array ({error}), wanted numbers") from error
    if array.dtype.kind not in "fiub":
        raise InvalidInput(f"{name} has dtype {array.dtype}, wanted real numbers")
    return array.astype(np.float64, order="C")  # a copy, which is not read-only


def _check_finite(name: str, array: FloatArray) -> None:
    # One sum of squares detects NaN, infinity and too long a vector; vdot overflows without a warning.
    flat = array.reshape(-1)
    if np.vdot(flat, flat) <= _MAX_SQUARE:
        return
    bad = np.flatnonzero(~np.isfinite(flat))
    if len(bad):
        at = [int(i) for i in np.unravel_index(bad[0], array.shape)]
        raise InvalidInput(f"{name} has {flat[bad[0]]} at {at}, wanted finite numbers")
    largest = np.abs(flat).max()
    raise InvalidInput(f"{name} has entries up to {largest:.3g}, wanted a norm of at most {MAX_NORM:g}")


def intercept_option(value: Any) -> Intercept:
    """A checked `intercept`."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if value not in ("auto", "level"):
        raise InvalidInput(f"intercept is {value!r}, wanted 'auto', 'level', True or False")
    return cast(Intercept, value)


def has_level(what: str, radius: object, intercept: Intercept, ridge: Ridge) -> bool:
    """Whether outputs have a common level that is integrated out; `what` names the radius.

    The theory's radii know no level, and a numeric ridge gives it no prior.
    """
    theory = radius in ("determinant", "closed_form", "assumption")
    possible = isinstance(ridge, str) and not theory
    if intercept == "level" and not possible:
        got = f"{what} is {radius!r}" if theory else f"ridge is {ridge!r}"
        raise InvalidInput(f"intercept is 'level' and {got}, wanted ridge='evidence' and no theory's radius")
    return intercept == "level" or (intercept == "auto" and possible)
