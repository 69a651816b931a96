"""Raw rows, by the names of their values, as the numbers that models see.

An encoder is fitted once, on a table, and then encodes tables and single rows alike, to the bit: what a
replay learns from and what a service is asked are the same numbers. It is saved with the policy that has it
as `x_features` or `z_features`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from postserve.data.columns import (
    Column,
    categories_of,
    columns_of,
    gaps_in,
    is_gap,
    level_name,
    number_of,
    numbers,
)
from postserve.errors import InvalidInput
from postserve.state import Persistent
from postserve.types import FloatArray, IntArray
from postserve.validation import MAX_NORM, one_of

Gaps: TypeAlias = Literal["raise", "impute"]
REFUSED, FILLED, FLAGGED = "refused", "filled", "flagged"
"""What becomes of a gap: an error, the column's mean, or the mean and a 1 in a column of its own."""
GAPS = (REFUSED, FILLED, FLAGGED)
YES, NO = ("True", "true", "1"), ("False", "false", "0")
"""How truth values are written; where a column had nothing else, all of these are understood."""


class Number:
    """A column of numbers: its mean, which fills gaps."""

    def __init__(self, name: str, mean: float, gaps: str) -> None:
        self.name, self.mean, self.gaps = name, mean, gaps
        self.names = [name, f"{name} missing"] if gaps == FLAGGED else [name]
        """What it is encoded as."""

    def one(self, value: Any) -> list[float]:
        """One value, encoded."""
        if type(value) is float and -MAX_NORM <= value <= MAX_NORM:  # the common case
            return [value, 0.0] if self.gaps == FLAGGED else [value]
        missing = is_gap(value)
        if missing and self.gaps == REFUSED:
            _refuse_gap(self.name, "a number")
        found = self.mean if missing else number_of(f"column {self.name!r}", value)
        return [found, float(missing)] if self.gaps == FLAGGED else [found]

    def many(self, title: str, column: Column, rows: IntArray) -> FloatArray:
        """These rows of a table's column, encoded."""
        found = numbers(title, column, rows, missing=True)
        missing = np.isnan(found)
        found = np.where(missing, self.mean, found)
        return np.column_stack([found, missing]) if self.gaps == FLAGGED else found[:, None]


class Category:
    """A column of categories: those that were seen, each with its share, which stands for any other one."""

    def __init__(self, name: str, levels: list[str], shares: list[float], gaps: str) -> None:
        self.name, self.gaps = name, gaps
        shown = slice(1 if len(levels) == 2 else 0, None)  # of two levels, one says all
        marks, mark = ([f"{name} missing"], [0.0]) if gaps == FLAGGED else ([], [])
        self.names = [*(f"{name}={level}" for level in levels[shown]), *marks]
        """What it is encoded as."""
        self._known = {level: [*(float(level == each) for each in levels[shown]), *mark] for level in levels}
        if set(levels) <= {*YES, *NO}:
            for names in (YES, NO):
                said = [self._known[level] for level in levels if level in names]
                self._known |= dict.fromkeys(names, said[0]) if len(said) == 1 else {}
        self._unknown = [*shares[shown], *mark]
        self._missing = [*shares[shown], *([1.0] if mark else [])]

    def one(self, value: Any) -> list[float]:
        """One value, encoded."""
        if level := _level(value):
            return self._known.get(level, self._unknown)
        if self.gaps == REFUSED:
            _refuse_gap(self.name, "a category")
        return self._missing

    def many(self, title: str, column: Column, rows: IntArray) -> FloatArray:
        """These rows of a table's column, encoded."""
        levels = [_level(value) for value in categories_of(title, column, rows)]
        each = {level: self.one(level) for level in set(levels)}
        return np.array([each[level] for level in levels], dtype=np.float64).reshape(len(levels), -1)


class Encoder(Persistent):
    """Rows of named values as numbers; `Encoder.fit` makes one from a table.

    Numbers stay as they are. A column of categories becomes indicators, one per category (one in all if there
    are two); a category that the table did not have is encoded as the shares of those it had, which is what
    is known of it. Gaps are refused, or with ``gaps="impute"`` filled with the column's mean or the
    categories' shares, and marked in a column of their own where the table had gaps. Names that the table
    did not have are ignored, if there are others. Where a column had truth values, 1 and 0 are such, too. A
    row that is encoded already, as an array, stays as it is.

    >>> table = {"age": [31, 54, 40], "plan": ["free", "full", "free"], "city": ["Ulm", "Bonn", "Kiel"]}
    >>> encoder = Encoder.fit(table, ["age", "plan"], categories=["plan"])
    >>> encoder.names
    ('age', 'plan=full')
    >>> encoder({"age": 20, "plan": "full"})
    array([20.,  1.])
    >>> encoder({"age": 20, "plan": "trial"})  # never seen: a third of the plans were full
    array([20.        ,  0.33333333])
    >>> encoder({"plan": "full"})
    Traceback (most recent call last):
    postserve.errors.InvalidInput: column 'age' has no value, wanted a number; or an encoder that imputes
    """

    def __init__(self, columns: Sequence[Sequence[Any]]) -> None:
        if not isinstance(columns, Sequence):
            raise InvalidInput(
                f"columns is {columns!r:.60}, wanted a list of columns, as `Encoder.fit` makes it"
            )
        self._columns = [_column(column) for column in columns]
        if len(set(self.inputs)) < len(columns):
            raise InvalidInput(f"columns are named {', '.join(self.inputs):.60}, wanted each name once")
        self.columns = [list(column) for column in columns]
        self.names = tuple(name for column in self._columns for name in column.names)
        """The names of the numbers."""

    @classmethod
    def fit(
        cls, frame: Any, names: Sequence[str], *, categories: Sequence[str] = (), gaps: Gaps = "raise"
    ) -> "Encoder":
        """Learn from the named columns of a table, as `from_frame` takes it, how to encode them."""
        one_of("gaps", gaps, ("raise", "impute"))
        if stray := [name for name in categories if name not in names]:
            raise InvalidInput(f"categories has {stray[0]!r}, wanted some of {', '.join(names)}")
        columns = columns_of(frame, names)
        if gaps == "raise" and (found := gaps_in(columns)):
            raise InvalidInput(f"there are gaps: {found}, wanted none, or gaps='impute'")
        return cls.fit_columns(columns, names, categories, gaps)

    @classmethod
    def fit_columns(
        cls,
        columns: Mapping[str, Column],
        names: Sequence[str],
        categories: Sequence[str],
        gaps: Gaps,
        rows: IntArray | None = None,
        kind: str = "",
    ) -> "Encoder":
        """`fit` on these rows of columns that were taken from a table; `kind` is for messages."""
        fitted = []
        for name in names:
            title = f"{kind} column {name!r}".lstrip()
            at = np.arange(len(columns[name])) if rows is None else rows
            fitted.append((name, *_fitted(title, columns[name], at, name in categories, gaps)))
        return cls(fitted)

    def __call__(self, row: Any) -> FloatArray:
        """One row, encoded: a mapping from names to values."""
        if isinstance(row, np.ndarray) and row.ndim == 1 and len(row) == len(self.names):
            return row
        if not isinstance(row, Mapping):
            raise InvalidInput(f"a row is {row!r:.60}, wanted a mapping from {', '.join(self.inputs)}")
        if row and not any(column.name in row for column in self._columns):
            got = ", ".join(map(str, list(row)[:5]))
            raise InvalidInput(f"a row has {got:.60}, wanted some of {', '.join(self.inputs)}")
        found: list[float] = []
        for column in self._columns:
            found += column.one(row.get(column.name))
        return np.array(found)

    def is_part(self, row: Any) -> bool:
        """Whether a row has some of the values that must be there, and not all of them."""
        if not isinstance(row, Mapping):
            return False
        needed = self.without_gaps
        lacking = sum(is_gap(row.get(name)) for name in needed)
        return lacking > 0 and any(not is_gap(row.get(name)) for name in self.inputs)

    def part(self, row: Mapping[str, Any]) -> FloatArray:
        """A part of a row, encoded, with NaN for values that must be there and are not there yet.

        >>> encoder = Encoder([["week", 0.0, "refused"], ["month", 0.0, "refused"]])
        >>> encoder.part({"week": 3.0})
        array([ 3., nan])
        """
        found: list[float] = []
        for column in self._columns:
            value = row.get(column.name)
            lacking = column.gaps == REFUSED and is_gap(value)
            found += [np.nan] * len(column.names) if lacking else column.one(value)
        return np.array(found)

    def table(self, frame: Any) -> FloatArray:
        """All rows of a table, encoded: (rows, names)."""
        columns = columns_of(frame, self.inputs)
        if found := gaps_in({name: columns[name] for name in self.without_gaps}):
            raise InvalidInput(f"there are gaps: {found}, wanted none, or an encoder that imputes")
        return self.encoded(columns, np.arange(len(columns[self.inputs[0]])))

    def encoded(self, columns: Mapping[str, Column], rows: IntArray, kind: str = "") -> FloatArray:
        """These rows of columns that were taken from a table, encoded; `kind` is for messages."""
        parts = [
            column.many(f"{kind} column {column.name!r}".lstrip(), columns[column.name], rows)
            for column in self._columns
        ]
        return np.ascontiguousarray(np.concatenate(parts, axis=1))

    def place(self, name: str) -> slice:
        """Where the numbers of a raw value are."""
        start = 0
        for column in self._columns:
            if column.name == name:
                return slice(start, start + len(column.names))
            start += len(column.names)
        raise InvalidInput(f"there is no column {name!r}, wanted one of {', '.join(self.inputs)}")

    def without_marks(self) -> "Encoder":
        """The same, with gaps filled and not marked."""
        marked = {FLAGGED: FILLED}
        return Encoder([[*column[:-1], marked.get(column[-1], column[-1])] for column in self.columns])

    def get_feature_names_out(self, _given: Any = None) -> tuple[str, ...]:
        """`names`, under the name that scikit-learn's transformers have for them."""
        return self.names

    @property
    def inputs(self) -> list[str]:
        """The names of the raw values."""
        return [column.name for column in self._columns]

    @property
    def without_gaps(self) -> list[str]:
        """The names of raw values that must be there."""
        return [column.name for column in self._columns if column.gaps == REFUSED]


def _level(value: Any) -> str:
    """The name of a category, empty for a gap: 1 and True are equal, but they are not the same category."""
    if type(value) is str:  # the common case
        return value
    return "" if is_gap(value) else level_name(value)


def _refuse_gap(name: str, wanted: str) -> None:
    raise InvalidInput(f"column {name!r} has no value, wanted {wanted}; or an encoder that imputes")


def _column(column: Any) -> Number | Category:
    """A column from its settings, checked: they may come from a file."""
    match column:
        case [str(), float() | int() as mean, str(gaps)] if gaps in GAPS and np.isfinite(mean):
            return Number(*column)
        case [str(), [*levels], [*shares], str(gaps)] if gaps in GAPS and len(levels) == len(shares):
            if all(isinstance(level, str) for level in levels) and np.isfinite(shares).all():
                return Category(*column)
    raise InvalidInput(
        f"columns has {column!r:.60}, wanted [name, mean, gaps] or [name, levels, shares, gaps]"
    )


def _fitted(title: str, column: Column, rows: IntArray, category: bool, gaps: Gaps) -> tuple[Any, ...]:
    """The settings of a column: what was seen in it."""
    if not category:
        found = numbers(title, column, rows, missing=True, hint="; or name it in categories")
        there = found[~np.isnan(found)]
        mean = float(there.mean()) if len(there) else 0.0
        return mean, _gaps(gaps, len(there) < len(found))
    counts = Counter(map(_level, categories_of(title, column, rows)))
    lost = counts.pop("", 0)
    seen, levels = counts.total(), sorted(counts)
    return levels, [counts[level] / seen for level in levels], _gaps(gaps, lost > 0)


def _gaps(gaps: Gaps, had_some: bool) -> str:
    if gaps == "raise":
        return REFUSED
    return FLAGGED if had_some else FILLED
