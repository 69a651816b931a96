"""Any table as logged rounds: pandas, polars, Parquet or CSV, with every column checked."""

import warnings
from collections.abc import Hashable, Mapping, Sequence, Set
from typing import Any, Literal, TypeAlias

import numpy as np

from postserve.data.columns import (
    Column,
    categories_of,
    columns_of,
    gaps_in,
    level_name,
    missing_in,
    numbers,
    refuse_constant,
)
from postserve.data.encoder import Encoder
from postserve.data.follows import FollowsArm, how_z_follows
from postserve.data.propensity import Propensity, propensities_of
from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.types import BoolArray, FloatArray, IntArray
from postserve.validation import one_of

Missing: TypeAlias = Literal["raise", "drop", "impute", "keep"]
ALLOWED: dict[str, tuple[Missing, ...]] = {
    "x": ("raise", "drop", "impute"),
    "z": ("raise", "drop", "impute", "keep"),
    "arm": ("raise", "drop"),
    "reward": ("raise", "drop", "keep"),
}
"""What may become of rows with a gap in each role."""


def from_frame(
    frame: Any,
    *,
    x: str | Sequence[str],
    z: str | Sequence[str] = (),
    arm: str,
    reward: str,
    propensity: Propensity,
    arms: Sequence[Hashable] | None = None,
    categories: str | Sequence[str] = (),
    missing_x: Literal["raise", "drop", "impute"] = "raise",
    missing_z: Literal["raise", "drop", "impute", "keep"] = "raise",
    missing_arm: Literal["raise", "drop"] = "raise",
    missing_reward: Literal["raise", "drop", "keep"] = "raise",
) -> LoggedRounds:
    """Rounds from the columns of a table; errors name the columns and rows that cannot be used.

    `frame` is a pandas or polars table, a mapping of columns, or the path of a Parquet or CSV file. `x`, `z`,
    `arm` and `reward` name columns; so does `propensity`, the probability of the arm that was served, or it
    is a number if all arms were equally likely, a mapping from arms to probabilities, or one number per row.
    `arms` are the possible values of the arm's column, in the order of their ids; by default those that
    occur, sorted. Columns of x or z named in `categories` become indicators, one column per value (one column
    for two values); `x_encoder` and `z_encoder` of what is returned encode any other row alike.

    Rows with gaps raise, or are dropped. Gaps in x and z can be imputed, and marked in a column of their own
    (`Encoder`). Rows without a reward, or without a whole z, can be kept: their z, or their reward, can
    still teach. Rows are counted from 0, without a file's header.

    >>> table = {"age": [31, 54, 40], "visits": [2, 0, 1], "ad": ["a", "b", "a"], "won": [1, 0, 0]}
    >>> log = from_frame(table, x="age", z="visits", arm="ad", reward="won", propensity=0.5)
    >>> log.arms.tolist(), log.arm_names
    ([0, 1, 0], ('a', 'b'))
    >>> from_frame({**table, "age": [31, "?", 40]}, x="age", arm="ad", reward="won", propensity=0.5)
    Traceback (most recent call last):
    postserve.errors.InvalidInput: x column 'age' has '?' at row 1, wanted a number; or name it in categories
    """
    missing: dict[str, Missing] = {
        "x": missing_x,
        "z": missing_z,
        "arm": missing_arm,
        "reward": missing_reward,
    }
    for role, choice in missing.items():
        one_of(f"missing_{role}", choice, ALLOWED[role])
    x, z, categories = (_listed(*each) for each in (("x", x), ("z", z), ("categories", categories)))
    if not x:
        raise InvalidInput("x names no column, wanted at least one")
    chance = [propensity] if isinstance(propensity, str) else []
    roles = {"x": x, "z": z, "arm": [arm], "reward": [reward], "propensity": chance}
    _refuse_twice(roles)
    stray = [name for name in categories if name not in (*x, *z)]
    if stray:
        raise InvalidInput(f"categories has {stray[0]!r}, wanted columns of x or z")

    columns = columns_of(frame, [name for names in roles.values() for name in names])
    sides = {role: {name: columns[name] for name in roles[role]} for role in missing}
    lost = {role: _lost(side, len(columns[arm])) for role, side in sides.items()}
    dropped = [lost[role] for role, choice in missing.items() if choice == "drop"]
    rows = np.flatnonzero(~np.any(dropped, axis=0)) if dropped else np.arange(len(columns[arm]))
    for role in (role for role, choice in missing.items() if choice == "raise"):
        _refuse_gaps(role, gaps_in(sides[role], rows))
    if len(rows) < 2:
        raise InvalidInput(f"the table has {len(rows)} rows without gaps, wanted at least 2")

    rewards = _rewards(reward, columns[reward], rows)
    ids, arm_names = _arm_ids(arm, columns[arm], rows, arms)
    propensities = propensities_of(propensity, columns, rows, ids, arm_names)
    X, x_encoder = _side("x", x, columns, categories, rows, missing_x)
    Z, z_encoder = _side("z", z, columns, categories, rows, missing_z)
    if missing_z == "keep" and z:
        Z[lost["z"][rows]] = np.nan
    log = LoggedRounds(
        x=X,
        z=Z,
        arms=ids,
        rewards=rewards,
        propensities=propensities,
        arm_names=arm_names,
        x_names=x_encoder.names,
        z_names=z_encoder.names,
        x_encoder=x_encoder,
        z_encoder=z_encoder,
    )
    if found := how_z_follows(log):
        warnings.warn(found, FollowsArm, stacklevel=2)
    return log


def _lost(columns: Mapping[str, Column], n: int) -> BoolArray:
    """The rows in which one of these columns has no value."""
    lost = np.zeros(n, dtype=np.bool_)
    for column in columns.values():
        lost |= missing_in(column)
    return lost


def _refuse_gaps(role: str, found: str) -> None:
    """Raise if there are gaps, in words; offer what else can be done."""
    if found:
        *others, last = [f"{other!r}" for other in ALLOWED[role][1:]]
        ways = f"{', '.join(others)} or {last}" if others else last
        raise InvalidInput(f"{role} has gaps: {found}, wanted none, or missing_{role}={ways}")


def _rewards(name: str, column: Column, rows: IntArray) -> FloatArray:
    """The rewards of these rows, NaN where there is none."""
    title = f"reward column {name!r}"
    found = numbers(title, column, rows, missing=True)
    seen = np.flatnonzero(~np.isnan(found))
    if len(seen) < 2:
        raise InvalidInput(f"{title} has a value in {len(seen)} of {len(found)} rows, wanted at least 2")
    refuse_constant(title, found[seen], rows[seen])
    return found


def _side(
    kind: str,
    names: Sequence[str],
    columns: Mapping[str, Column],
    categories: Sequence[str],
    rows: IntArray,
    missing: Missing,
) -> tuple[FloatArray, Encoder]:
    """x or z, and how they were encoded."""
    gaps: Literal["raise", "impute"] = "impute" if missing in ("impute", "keep") else "raise"
    encoder = Encoder.fit_columns(columns, names, categories, gaps, rows, kind)
    if not names:
        return np.empty((len(rows), 0)), encoder
    if missing == "keep":  # gaps are no part of z then
        encoder = encoder.without_marks()
    found = encoder.encoded(columns, rows, kind)
    hint = "; leave it out: policies have an intercept" if kind == "x" else ""
    for name in names:
        values = found[:, encoder.place(name)]
        if (values == values[0]).all():
            first = columns[name][rows[0]]
            got = f"{kind} column {name!r} has {first} in every row, from row {rows[0]} on"
            raise InvalidInput(f"{got}, wanted one that varies{hint}")
    return found, encoder


def _arm_ids(
    name: str, column: Column, rows: IntArray, arms: Sequence[Hashable] | None
) -> tuple[IntArray, list[str]]:
    title = f"arm column {name!r}"
    served = categories_of(title, column, rows, "an arm")
    known = _in_order(served) if arms is None else _listed("arms", arms)
    if not known or not all(isinstance(label, Hashable) for label in known) or isinstance(arms, Set):
        raise InvalidInput(f"arms is {arms!r:.60}, wanted a list of the values that {title} may have")
    ids = {label: i for i, label in enumerate(known)}
    if len(ids) < len(known) or len({level_name(label) for label in known}) < len(known):
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
    return np.array([ids[label] for label in served], dtype=np.int64), [level_name(label) for label in known]


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
