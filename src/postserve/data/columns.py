"""Columns of a table as checked arrays; errors name the first bad row."""

import io
import math
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from decimal import Decimal
from difflib import get_close_matches
from functools import partial
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.data.finding import PathLike, extra, read_checked
from postserve.errors import InvalidInput
from postserve.types import BoolArray, FloatArray, IntArray
from postserve.validation import MAX_NORM, refuse_masked

Column = npt.NDArray[Any]
MISSING = ("", "NA", "NaN", "nan", "null", "NULL")
"""Texts that count as missing in a CSV file."""
KIND_OF_NUMBERS = "biuf"
MOST_DIGITS = 300
"""Of whole numbers that are written out, whatever type they came in; no float has more than 309."""
NUMBER = (Real, Decimal, np.bool_)  # as most of numpy's are, but not its complex ones


def columns_of(frame: Any, names: Sequence[str]) -> dict[str, Column]:
    """The named columns of a pandas or polars table, a mapping, or a CSV or Parquet file."""
    if isinstance(frame, str | os.PathLike):
        frame = _read(Path(frame))
    if hasattr(frame, "collect"):
        try:
            frame = frame.collect()
        except Exception as error:  # a lazy table does its work here
            raise InvalidInput(f"frame cannot be collected ({error!s:.200}), wanted one that can") from error
    if not hasattr(frame, "columns") and not isinstance(frame, Mapping):
        raise InvalidInput(
            f"frame is a {type(frame).__name__}, wanted a pandas or polars table, a mapping of columns, "
            "or the path of a .csv or .parquet file"
        )
    there = list(getattr(frame, "columns", frame))
    for name in names:
        if there.count(name) != 1:
            near = get_close_matches(name, map(str, there), n=1)
            hint = f" (there is {near[0]!r})" if near and near[0] != name else ""
            listed = ", ".join(map(str, there[:20])) + (", …" if len(there) > 20 else "")
            raise InvalidInput(
                f"the table has {there.count(name) or 'no'} column{'s' * (name in there)} {name!r}{hint}, "
                f"wanted one; its columns are {listed}"
            )
    found = {name: _array(name, frame[name]) for name in names}
    length = len(found[names[0]])
    for name, column in found.items():
        if len(column) != length:
            raise InvalidInput(f"column {name!r} has {len(column)} rows, wanted {length} as {names[0]!r} has")
    return found


def checked_table(
    name: str, path: PathLike | None, rows: int, types: Mapping[str, str], *, separator: str = ","
) -> Any:
    """A set's CSV file as a polars table, checked for its columns, types and number of rows."""
    content = io.BytesIO(read_checked(name, path))
    pl = extra("polars")
    try:
        table = pl.read_csv(content, separator=separator, infer_schema_length=None, null_values=["NA"])
    except pl.exceptions.PolarsError as error:
        raise InvalidInput(f"{name} cannot be read ({error}), wanted {len(types)} columns") from error
    for column, wanted in types.items():
        if column not in table.columns:
            raise InvalidInput(f"{name} has no column {column!r}, wanted {', '.join(types)}")
        if str(table[column].dtype) != wanted:
            raise InvalidInput(f"{name} has {table[column].dtype} in column {column!r}, wanted {wanted}")
    if len(table) != rows:
        raise InvalidInput(f"{name} has {len(table):,} rows, wanted {rows:,}")
    return table


def numbers(
    title: str, column: Column, rows: IntArray, *, missing: bool = False, hint: str = ""
) -> FloatArray:
    """These rows of a column as finite floats, or NaN if they may be missing; `title` is for messages."""
    values = column[rows]
    if column.dtype.kind in KIND_OF_NUMBERS:
        with np.errstate(over="ignore"):  # infinity is refused below
            found = values.astype(np.float64)
    else:
        listed = values.tolist()
        bad = [i for i, value in enumerate(listed) if not (isinstance(value, NUMBER) or is_gap(value))]
        if bad:
            # If one row of a file is not a number, its whole column is read as text: report the first row
            # that is plainly not a number, if there is one.
            all_texts = len(bad) == len([value for value in listed if not is_gap(value)])
            meant = (i for i in bad if all_texts and not _says_number(listed[i]))
            i = next(meant, bad[0])
            raise InvalidInput(f"{title} has {listed[i]!r:.60} at row {rows[i]}, wanted a number{hint}")
        found = np.array([_as_float(value) for value in listed])
    wrong = np.flatnonzero(~(np.abs(found) <= MAX_NORM) & ~(np.isnan(found) & missing))
    if len(wrong):
        first = found[wrong[0]]
        got = "no value" if np.isnan(first) else f"{first:g}"
        wanted = "a finite number" if not np.isfinite(first) else f"a magnitude of at most {MAX_NORM:g}"
        raise InvalidInput(f"{title} has {got} at row {rows[wrong[0]]}, wanted {wanted}")
    return found


def number_of(title: str, value: Any) -> float:
    """One value as a finite float, as `numbers` would convert it."""
    if type(value) is float and abs(value) <= MAX_NORM:
        return value
    if not isinstance(value, NUMBER):
        raise InvalidInput(f"{title} has {value!r:.60}, wanted a number")
    found = _as_float(value)
    if not abs(found) <= MAX_NORM:
        raise InvalidInput(f"{title} has {value!r:.60}, wanted a finite number of at most {MAX_NORM:g}")
    return found


def gaps_in(columns: Mapping[str, Column], rows: IntArray | None = None) -> str:
    """Where values are missing, in words: how many in each column, and the first; empty if none is."""
    found = []
    for name, column in columns.items():
        missing = missing_in(column)
        lost = np.flatnonzero(missing) if rows is None else rows[missing[rows]]
        if len(lost):
            times = "1 row" if len(lost) == 1 else f"{len(lost):,} rows"
            found.append(f"{name!r} in {times} (first at row {lost[0]})")
    return ", ".join(found)


def missing_in(column: Column) -> BoolArray:
    """Which rows of a column have no value."""
    if column.dtype.kind in KIND_OF_NUMBERS:
        return np.isnan(column) if column.dtype.kind == "f" else np.zeros(len(column), dtype=np.bool_)
    return np.array([is_gap(value) for value in column.tolist()], dtype=np.bool_)


def categories_of(title: str, column: Column, rows: IntArray, what: str = "a category") -> list[Any]:
    """These rows of a column as they are: texts, numbers or gaps."""
    found: list[Any] = column[rows].tolist()
    for row, value in zip(rows, found, strict=True):
        if not _has_hash(value):
            raise InvalidInput(f"{title} has {value!r:.60} at row {row}, wanted {what}: a text or a number")
    return found


def refuse_constant(title: str, values: npt.NDArray[Any], rows: IntArray, hint: str = "") -> None:
    """Refuse a constant column, which cannot be standardised."""
    if len(values) and (values == values[0]).all():
        got = f"{title} has {values[0]} in every row, from row {rows[0]} on"
        raise InvalidInput(f"{got}, wanted one that varies{hint}")


def is_missing(value: Any) -> bool:
    """Whether a cell is missing, in any library's spelling."""
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError, ArithmeticError):  # from pandas.NA, and from a signalling NaN
        return True


def is_gap(value: Any) -> bool:
    """Whether a cell is missing, or an empty text."""
    return is_missing(value) or (isinstance(value, str) and not value)


def level_name(value: Any) -> str:
    """A category, or an arm, as text; a whole number has no decimal point, whatever type it came in."""
    if isinstance(value, float | np.floating):
        return str(int(value)) if float(value).is_integer() else str(value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() < MOST_DIGITS:
        return str(int(value)) if value == int(value) else str(value)
    return str(value)


def _has_hash(value: Any) -> bool:
    """Whether a cell can be one of several: not all that are called Hashable can."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _as_float(value: Any) -> float:
    try:
        return math.nan if is_gap(value) else float(value)
    except (OverflowError, ValueError):  # 10**400 is too large, as infinity is
        return math.inf


def _says_number(value: Any) -> bool:
    """Whether a text is a number as files write it."""
    try:
        return isinstance(value, str) and math.isfinite(float(value)) and value[:1] not in " +"
    except ValueError:
        return False


def _array(name: str, column: Any) -> Column:
    """A column as an array; texts and missing values as objects."""
    refuse_masked(f"column {name!r}", column)
    if hasattr(column, "null_count") and column.null_count():  # polars would turn whole numbers into floats
        column = column.to_list()
    if hasattr(column, "to_numpy"):
        try:
            array = np.asarray(column.to_numpy())
        except Exception:  # numpy has no integers of 128 bits, for example
            array = _array_of_list(name, column)
    else:
        array = column if isinstance(column, np.ndarray) else _array_of_list(name, column)
    if array.ndim != 1:
        raise InvalidInput(f"column {name!r} has shape {array.shape}, wanted one value per row")
    return array


def _array_of_list(name: str, column: Any) -> Column:
    if isinstance(column, str | bytes | Mapping | Set) or not isinstance(column, Iterable):
        raise InvalidInput(f"column {name!r} is {column!r:.60}, wanted one value per row")
    listed = list(column)
    there = {type(value) for value in listed}
    if there <= {int, float} or there == {bool}:  # numpy would make numbers of truth values among numbers
        too_large = any(type(value) is int and abs(value) >= 2**63 for value in listed)
        return np.asarray(listed, dtype=object if too_large else None)
    objects = np.empty(len(listed), dtype=object)
    objects[:] = listed
    return objects


def _read(path: Path) -> Any:
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}, wanted a .csv or .parquet file")
    pl = extra("polars")
    readers = {
        ".parquet": partial(pl.read_parquet, glob=False),
        ".csv": partial(pl.read_csv, glob=False, infer_schema_length=None, null_values=list(MISSING)),
    }
    read = readers.get(path.suffix.lower())
    if read is None:
        raise InvalidInput(f"{path} ends in {path.suffix!r}, wanted .csv or .parquet")
    try:
        return read(path)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # polars panics on damaged files, which is no Exception
        raise InvalidInput(
            f"{path} cannot be read ({error!s:.200}), wanted a whole {path.suffix} file"
            + (", with commas" if path.suffix.lower() == ".csv" else "")
        ) from error
