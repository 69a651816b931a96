"""What policies take for x and z: numbers, or anything that features turn into numbers.

The models see pi(x) and pi(z), as in the paper's "Linear bandits with feature mappings". Named inputs, a
mapping or a row of a DataFrame, need a transformer that was fitted on a DataFrame (a ColumnTransformer, or
a pipeline that begins with one), or a callable that takes a mapping.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import numpy as np

from postserve.context_maps.features import Features, check_callable, is_transformer, probe, raw_rows
from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import context, matrix, plain_vector_check, refuse_masked, vector

FRAMES = ("pandas", "polars")
"""A named row becomes a frame of the first of these that is installed."""


class Inputs:
    """One of a policy's inputs: its name, its length as the models see it, and its features if any.

    A length of None is free: the input is ignored.

    >>> Inputs("x", 2, lambda row: [row["age"], row["age"] ** 2]).one({"age": 3.0})
    array([3., 9.])
    """

    def __init__(self, name: str, dim: int | None, features: Features | None = None) -> None:
        self.name = name
        self.dim = dim
        self.features = features
        self.label = name if features is None else f"{name}_features({name})"
        """What messages call it."""
        self.is_ready = plain_vector_check(dim if features is None else -1)  # no vector is that long
        """Whether a value can be used as it is, without conversion or checks."""
        if features is not None:
            check_callable(f"{name}_features", features)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Inputs":
        return self  # nothing of it ever changes

    def one(self, value: Any) -> FloatArray:
        """One x, or one z, as the models see it."""
        if self.is_ready(value):
            return cast(FloatArray, value)
        if self.features is None:
            return vector(self.name, self._without_names(value), self.dim)
        return vector(self.label, self._features_of([value])[0], self.dim)

    def has_gaps(self, value: Any) -> bool:
        """Whether some entries are NaN, and others are not: a part of what the models see.

        Of a row of names, whether some that an encoder needs are not there.
        """
        if self.dim is None or self.is_ready(value):
            return False
        if self.features is not None:
            is_part = getattr(self.features, "is_part", None)
            return is_part is not None and bool(is_part(value))
        try:
            array = np.asarray(value)
        except (ValueError, TypeError, RuntimeError):  # no array, which is refused as any other z is
            return False
        if array.ndim != 1 or array.dtype.kind != "f":
            return False
        missing = np.isnan(array)
        return bool(missing.any() and not missing.all())

    def part(self, value: Any) -> FloatArray:
        """A value with gaps, checked where it has none."""
        if self.features is not None:
            value = cast(Any, self.features).part(value)
        refuse_masked(self.name, value)
        missing = np.isnan(np.asarray(value, dtype=np.float64))
        filled = vector(self.name, np.where(missing, 0.0, value), self.dim)
        return np.where(missing, np.nan, filled)

    def one_or_rows(self, value: Any, arms: int | None) -> FloatArray:
        """One for all arms, (dim,), or one row per arm, (arms, dim); None leaves their number free."""
        if self.features is None:
            return context(self.name, self._without_names(value), self.dim, arms)
        if not is_many(value) or (_is_frame(value) and len(value) == 1 and arms is not None):
            return self.one(value)
        return context(self.label, self._features_of(value), self.dim, arms)

    def many(self, value: Any, n: int | None) -> FloatArray:
        """One per row of a batch, (n, dim); an empty list is a batch of none."""
        sides = _sides(value)
        if self.features is None:
            rows = np.empty((0, self.dim or 0)) if sides == (0,) else self._without_names(value)
            return matrix(self.name.upper(), rows, n, self.dim)
        nothing = sides[:1] == (0,)  # which transformers refuse
        return matrix(
            self.label, np.empty((0, self.dim or 0)) if nothing else self._features_of(value), n, self.dim
        )

    def rounds(self, value: Any, arms: int | None) -> Iterable[FloatArray]:
        """A batch of what `one_or_rows` takes: its first axis is that of the rounds."""
        if isinstance(value, np.ndarray) and value.ndim == 3:
            rounds, rows, columns = value.shape
            flat = self.many(value.reshape(rounds * rows, columns), None)
            return flat.reshape(rounds, rows, flat.shape[1])
        if isinstance(value, np.ndarray) and value.ndim == 2 and value.dtype.kind in "fiub":
            return self.many(value, None)
        rounds = value if _is_frame(value) or isinstance(value, np.ndarray) else list(each_round(value))
        if _is_frame(value) or not any(map(is_many, each_round(rounds))):
            return self.many(rounds, None)
        return [self.one_or_rows(rows, arms) for rows in rounds]

    def probe(self) -> FloatArray:
        """The features of one fixed input, to compare them by on loading."""
        return probe(self.features, getattr(self.features, "n_features_in_", self.dim or 0))

    def _without_names(self, value: Any) -> Any:
        """Numbers as they are; names are refused, unless the input is ignored."""
        if self.dim is None and _has_names(value):
            return np.zeros((len(value), 0) if is_many(value) else 0)
        first = value[0] if isinstance(value, list | tuple) and value else value
        if isinstance(first, Mapping):  # a Series or a frame of numbers is an array, too
            raise InvalidInput(f"{self.name} has names, wanted numbers, or {self.name}_features for names")
        return value

    def _features_of(self, values: Any) -> FloatArray:
        """The features of every row, as an array that is still to be checked."""
        features: Any = self.features
        try:
            if is_transformer(features):
                return np.asarray(raw_rows(features, self._table(values)))
            return np.array([features(row) for row in self._rows(values)])
        except InvalidInput:
            raise
        except Exception as error:
            got = f"{self.name}_features failed on {self.name} ({type(error).__name__}: {error})"
            raise InvalidInput(f"{got}, wanted an {self.name} that they accept") from error

    def _table(self, values: Any) -> Any:
        """Rows for a transformer: a frame if they have names, else an array."""
        if isinstance(values, np.ndarray) and values.ndim == 2 and values.dtype.kind in "fiub":
            refuse_masked(self.name, values)
            return values.astype(np.float64)
        fitted_on = [str(name) for name in getattr(self.features, "feature_names_in_", ())]
        if _is_frame(values):
            return values[[name for name in fitted_on if name in values.columns]] if fitted_on else values
        rows = list(self._rows(values))
        if not any(isinstance(row, Mapping) for row in rows):
            return np.array(rows)
        if not fitted_on:
            raise InvalidInput(f"{self.name} has names, wanted {self.name}_features fitted on a DataFrame")
        names = [name for name in fitted_on if name in rows[0]]
        for i, row in enumerate(rows):
            if missing := [name for name in names or fitted_on if name not in row]:
                got = ", ".join(missing) + (f" in row {i}" if len(rows) > 1 else "")
                raise InvalidInput(f"{self.name} has no {got}, wanted {', '.join(fitted_on)}")
        return self._frame(names, rows)

    def _frame(self, names: list[str], rows: list[Any]) -> Any:
        for library in FRAMES:
            try:
                frames = import_module(library)
            except ImportError:
                continue
            return frames.DataFrame({name: [row[name] for row in rows] for name in names})
        raise InvalidInput(f"{self.name} has names, wanted {' or '.join(FRAMES)} to be installed")

    def _rows(self, values: Any) -> Iterator[Any]:
        """Copies of the rows: named ones as mappings, others as arrays."""
        for row in _frame_rows(values) if _is_frame(values) else values:
            if _is_frame(row):
                if len(row) != 1:
                    raise InvalidInput(f"{self.name} has {len(row)} rows, wanted one")
                yield next(_frame_rows(row))
            else:
                yield dict(row) if hasattr(row, "keys") else self._numbers(row)

    def _numbers(self, row: Any) -> FloatArray:
        """A row of numbers, finite or not: only its features must be finite."""
        refuse_masked(self.name, row)
        array = np.asarray(row)
        if array.ndim != 1 or array.dtype.kind not in "fiub":
            got = f"{self.name} has shape {array.shape} and dtype {array.dtype}"
            raise InvalidInput(f"{got}, wanted numbers in a row, or names with values")
        return array.astype(np.float64)


def each_round(values: Any) -> Iterator[Any]:
    """The rounds of a batch: one x, or one set of rows, at a time."""
    if _is_frame(values):
        return _frame_rows(values)
    no_rows = isinstance(values, str | Mapping) or getattr(values, "ndim", 1) == 0
    if no_rows or not isinstance(values, Iterable):
        raise InvalidInput(f"X is {values!r:.60}, wanted one x per row")
    return iter(values)


def _frame_rows(frame: Any) -> Iterator[dict[str, Any]]:
    names = [str(name) for name in frame.columns]
    columns = [frame[name].to_numpy() for name in frame.columns]
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _sides(value: Any) -> tuple[int, ...]:
    """The shape of an array or a frame, and the length of a sequence; () for anything else."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return (len(value),)
    return tuple(getattr(value, "shape", ()))


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "shape")


def _has_names(value: Any) -> bool:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
        return _has_names(value[0])
    return _is_frame(value) or hasattr(value, "keys")


def is_many(value: Any) -> bool:
    """Whether rows, and not one row, were given."""
    if _is_frame(value):
        return True
    if hasattr(value, "keys"):
        return False
    if not isinstance(value, Sequence) or isinstance(value, str):
        return bool(getattr(value, "ndim", 1) > 1)
    first = value[0] if len(value) else 0.0
    rows = isinstance(first, Mapping | Sequence | np.ndarray) and not isinstance(first, str)
    return rows or _is_frame(first)
