"""The probabilities with which arms were served, in any form in which people have them, checked."""

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from postserve.data.columns import Column, level_name, numbers
from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray

Propensity: TypeAlias = str | float | Mapping[Any, float] | Sequence[float] | FloatArray
SURE = 5.0
"""Standard errors beyond which a difference is not due to chance."""
ROUNDED, EVEN = 0.005, 0.1
"""How far one propensity for all may be from an even share: rounding to two digits, and a tenth of it."""


def propensities_of(
    propensity: Propensity,
    columns: Mapping[str, Column],
    rows: IntArray,
    ids: IntArray,
    names: Sequence[str],
) -> FloatArray:
    """The probability of each row's arm; `columns` are those of the table, of which `rows` are used."""
    if isinstance(propensity, Mapping):
        found = _of_arms(propensity, names)[ids]
        title = "propensity"
    elif isinstance(propensity, str):
        title = f"propensity column {propensity!r}"
        found = numbers(title, columns[propensity], rows)
    elif isinstance(propensity, Real | np.bool_):
        return _even(propensity, ids, names)
    else:
        title, table = "propensity", len(next(iter(columns.values())))
        try:
            given = np.asarray(propensity)
        except ValueError as error:
            raise InvalidInput(
                f"propensity is no list of numbers ({error!s:.60}), wanted one per row"
            ) from error
        if given.shape != (table,):
            got = f"propensity is a {type(propensity).__name__} of shape {given.shape}"
            wanted = f"a column, a number, a mapping from arms, or one number per row ({table},)"
            raise InvalidInput(f"{got}, wanted {wanted}")
        found = numbers(title, given, rows)
    for i in np.flatnonzero((found <= 0.0) | (found > 1.0))[:1]:
        wanted = "a probability above 0 and at most 1"
        raise InvalidInput(f"{title} has {found[i]:g} at row {rows[i]}, wanted {wanted}")
    _check_shares(title, found, ids, names)
    return found


def _of_arms(given: Mapping[Any, float], names: Sequence[str]) -> FloatArray:
    """The probability of each arm, from a mapping."""
    by_name = {level_name(arm): chance for arm, chance in given.items()}
    unknown = [name for name in by_name if name not in names]
    lacking = [name for name in names if name not in by_name]
    if unknown or lacking:
        got = f"propensity has no arm {lacking[0]!r}" if lacking else f"propensity has an arm {unknown[0]!r}"
        raise InvalidInput(f"{got}, wanted each of {', '.join(names)}")
    found = np.array([by_name[name] for name in names])
    if found.dtype.kind not in "fiu":
        raise InvalidInput(f"propensity is {given!r:.60}, wanted numbers by arm")
    if abs(float(found.sum()) - 1.0) > ROUNDED * len(names):
        raise InvalidInput(f"propensity has probabilities that sum to {found.sum():g}, wanted 1")
    return found.astype(np.float64)


def _check_shares(title: str, found: FloatArray, ids: IntArray, names: Sequence[str]) -> None:
    """Refuse what the log contradicts: an arm's rows, each counted by 1/p, are about all rows."""
    for arm, name in enumerate(names):
        counted = np.where(ids == arm, 1.0 / found, 0.0)
        error, mean = counted.std() / np.sqrt(len(found)), float(counted.mean())
        if abs(mean - 1.0) > SURE * error + 1e-9:
            what = "small" if mean > 1.0 else "large"
            raise InvalidInput(
                f"{title} is too {what} for arm {name!r}: its rows, each counted by 1/p, are {mean:.2f} "
                "times all rows, wanted about 1: the probability of the arm that was served, in each row"
            )


def _even(propensity: Any, ids: IntArray, names: Sequence[str]) -> FloatArray:
    """One number for all: arms were equally likely."""
    n, n_arms = len(ids), len(names)
    share = 1.0 / n_arms
    number = not isinstance(propensity, bool | np.bool_)
    if not number or not abs(float(propensity) - share) <= min(ROUNDED + 1e-12, EVEN * share):
        raise InvalidInput(
            f"propensity is {propensity!r} with {n_arms} arms, wanted {share:.3g} where they were "
            "equally likely, and else a column"
        )
    served = np.bincount(ids, minlength=n_arms) / n
    odd = int(np.abs(served - share).argmax())
    if abs(served[odd] - share) > SURE * np.sqrt(share * (1.0 - share) / n):
        raise InvalidInput(
            f"propensity is {share:.3g} for all, but arm {names[odd]!r} was served in {served[odd]:.1%} of "
            f"{n:,} rows, wanted a column where arms were not equally likely"
        )
    return np.full(n, share)
