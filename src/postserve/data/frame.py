"""Any table as logged rounds: pandas, polars, Parquet or CSV, with every column checked."""

from collections.abc import Hashable, Sequence, Set
from numbers import Real
from typing import Any, Literal

import numpy as np

from postserve.data.columns import Column, columns_of, labels, numbers, refuse_constant
from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.types import FloatArray, IntArray
from postserve.validation import one_of

SURE = 5.0
"""Standard errors beyond which a difference is not due to chance."""
ROUNDED, EVEN = 0.005, 0.1
"""How far one propensity for all may be from an even share: rounding to two digits, and a tenth of it."""


def from_frame(
    frame: Any,
    *,
    x: str | Sequence[str],
    z: str | Sequence[str] = (),
    arm: str,
    reward: str,
    propensity: str | float,
    arms: Sequence[Hashable] | None = None,
    categories: str | Sequence[str] = (),
    missing_reward: Literal["raise", "drop", "keep"] = "raise",
) -> LoggedRounds:
    """Rounds from the columns of a table; errors name the first row that cannot be used.

    `frame` is a pandas or polars table, a mapping of columns, or the path of a Parquet or CSV file. `x`, `z`,
    `arm` and `reward` name columns; so does `propensity`, or it is a number if all arms were equally likely.
    `arms` are the possible values of the arm's column, in the order of their ids; by default those that
    occur, sorted. Columns of x or z named in `categories` become indicators, one column per value (one column
    for two values). Rows without a reward raise, are dropped, or are kept: their z can still teach phi. Rows
    are counted from 0, without a file's header.

    >>> table = {"age": [31, 54, 40], "visits": [2, 0, 1], "ad": ["a", "b", "a"], "won": [1, 0, 0]}
    >>> log = from_frame(table, x="age", z="visits", arm="ad", reward="won", propensity=0.5)
    >>> log.arms.tolist(), log.arm_names
    ([0, 1, 0], ('a', 'b'))
    >>> from_frame({**table, "age": [31, "?", 40]}, x="age", arm="ad", reward="won", propensity=0.5)
    Traceback (most recent call last):
    postserve.errors.InvalidInput: x column 'age' has '?' at row 1, wanted a number; or name it in categories
    """
    one_of("missing_reward", missing_reward, ("raise", "drop", "keep"))
    x, z, categories = (_listed(*each) for each in (("x", x), ("z", z), ("categories", categories)))
    if not x:
        raise InvalidInput("x names no column, wanted at least one")
    chance = [propensity] if isinstance(propensity, str) else []
    _refuse_twice({"x": x, "z": z, "arm": [arm], "reward": [reward], "propensity": chance})
    stray = [name for name in categories if name not in (*x, *z)]
    if stray:
        raise InvalidInput(f"categories has {stray[0]!r}, wanted columns of x or z")

    columns = columns_of(frame, [*x, *z, arm, reward, *chance])
    rewards, rows = _rewards(reward, columns[reward], missing_reward)
    ids, arm_names = _arm_ids(arm, columns[arm], rows, arms)
    (x_names, X), (z_names, Z) = (
        _side(kind, [(name, columns[name]) for name in names], categories, rows)
        for kind, names in (("x", x), ("z", z))
    )
    return LoggedRounds(
        x=X,
        z=Z,
        arms=ids,
        rewards=rewards,
        propensities=_propensities(propensity, columns, rows, ids, arm_names),
        arm_names=arm_names,
        x_names=x_names,
        z_names=z_names,
    )


def _rewards(name: str, column: Column, missing: str) -> tuple[FloatArray, IntArray]:
    """The rewards and the numbers of the rows that are used."""
    title, rows = f"reward column {name!r}", np.arange(len(column))
    found = numbers(title, column, rows, missing=True)
    lost = np.flatnonzero(np.isnan(found))
    if len(lost) and missing == "raise":
        raise InvalidInput(
            f"{title} has no value at row {lost[0]}, and {len(lost)} times in all, wanted a number, "
            "or missing_reward='drop' or 'keep'"
        )
    seen = np.flatnonzero(~np.isnan(found))
    if len(seen) < 2:
        raise InvalidInput(f"{title} has a value in {len(seen)} of {len(found)} rows, wanted at least 2")
    refuse_constant(title, found[seen], seen)
    return (found[seen], seen) if missing == "drop" else (found, rows)


def _side(
    kind: str, columns: Sequence[tuple[str, Column]], categories: Sequence[str], rows: IntArray
) -> tuple[list[str], FloatArray]:
    """The columns of x or of z, side by side, with their names."""
    names: list[str] = []
    values: list[FloatArray] = []
    for name, column in columns:
        title = f"{kind} column {name!r}"
        if name in categories:
            texts = np.array([str(value) for value in labels(title, column, rows, "a category")])
            refuse_constant(title, texts, rows)
            levels = sorted(set(texts.tolist()))
            shown = levels[1:] if len(levels) == 2 else levels  # for two levels one column is enough
            names += [f"{name}={level}" for level in shown]
            values += [(texts == level).astype(np.float64) for level in shown]
        else:
            found = numbers(title, column, rows, hint="; or name it in categories")
            hint = "; leave it out: policies have an intercept" if kind == "x" else ""
            refuse_constant(title, found, rows, hint)
            names.append(name)
            values.append(found)
    return names, np.column_stack(values) if values else np.empty((len(rows), 0))


def _arm_ids(
    name: str, column: Column, rows: IntArray, arms: Sequence[Hashable] | None
) -> tuple[IntArray, list[str]]:
    title = f"arm column {name!r}"
    served = labels(title, column, rows, "an arm")
    known = _in_order(served) if arms is None else _listed("arms", arms)
    if not known or not all(isinstance(label, Hashable) for label in known) or isinstance(arms, Set):
        raise InvalidInput(f"arms is {arms!r:.60}, wanted a list of the values that {title} may have")
    ids = {label: i for i, label in enumerate(known)}
    if len(ids) < len(known) or len({str(label) for label in known}) < len(known):
        raise InvalidInput(f"arms is {known!r:.200}, wanted each once, with different names")
    listed = ", ".join(repr(label) for label in known)
    for row, label in zip(rows, served, strict=True):
        if label not in ids:
            raise InvalidInput(f"{title} has {label!r} at row {row}, wanted one of {listed}")
    there = set(served)
    idle = [label for label in known if label not in there]
    if idle:
        raise InvalidInput(f"arms has {idle[0]!r}, which {title} never has, wanted arms that were served")
    if len(known) < 2:
        raise InvalidInput(f"{title} has {listed} in every row, from row {rows[0]} on, wanted 2 arms or more")
    return np.array([ids[label] for label in served], dtype=np.int64), [str(label) for label in known]


def _propensities(
    propensity: str | float, columns: dict[str, Column], rows: IntArray, ids: IntArray, names: Sequence[str]
) -> FloatArray:
    """Probabilities, checked against the log: an arm's rows, each counted by 1/p, are at most all rows."""
    n, n_arms = len(rows), len(names)
    if isinstance(propensity, str):
        title = f"propensity column {propensity!r}"
        found = numbers(title, columns[propensity], rows)
        for i in np.flatnonzero((found <= 0.0) | (found > 1.0))[:1]:
            wanted = "a probability above 0 and at most 1"
            raise InvalidInput(f"{title} has {found[i]:g} at row {rows[i]}, wanted {wanted}")
        for arm, name in enumerate(names):
            counted = np.where(ids == arm, 1.0 / found, 0.0)
            if counted.mean() > 1.0 + SURE * counted.std() / np.sqrt(n) + 1e-9:
                raise InvalidInput(
                    f"{title} is too small for arm {name!r}: its rows, each counted by 1/p, are "
                    f"{counted.mean():.2f} times all rows, wanted about 1 at most"
                )
        return found
    number = isinstance(propensity, Real) and not isinstance(propensity, bool)
    share = 1.0 / n_arms
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


def _refuse_twice(roles: dict[str, list[Any]]) -> None:
    """Refuse a column in two roles: it is a leak (the reward in x), or a mistake."""
    seen: dict[str, str] = {}
    for role, name in ((role, name) for role, names in roles.items() for name in names):
        if not isinstance(name, str):
            raise InvalidInput(f"{role} is {name!r}, wanted the name of a column")
        if name in seen:
            raise InvalidInput(f"column {name!r} is in {seen[name]} and in {role}, wanted it in one place")
        seen[name] = role


def _listed(name: str, value: Any) -> list[Any]:
    if isinstance(value, str):
        return [value]
    try:
        return list(value)
    except TypeError:
        raise InvalidInput(f"{name} is {value!r}, wanted a list of them") from None


def _in_order(served: Sequence[Any]) -> list[Any]:
    distinct = dict.fromkeys(served)
    try:
        return sorted(distinct)
    except TypeError:  # numbers and texts in one column
        return sorted(distinct, key=lambda label: (type(label).__name__, str(label)))
