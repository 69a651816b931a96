"""A log of decisions, larger than memory if need be."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from postserve.data.columns import is_gap, level_name
from postserve.data.encoder import Encoder, Gaps
from postserve.data.finding import PathLike, as_path, extra
from postserve.data.log.schema import X, Z, check, collected, in_schema, reading, reading_rows
from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.files import whole_file
from postserve.types import BoolArray, FloatArray
from postserve.validation import errors_as_invalid_input, integer

ROWS = 100_000
"""Rounds in memory at once."""


class DecisionLog:
    """Rounds in the schema of `postserve.data.log.schema`, as a lazy polars frame.

    `DecisionLog.read` takes Parquet files, `DecisionLog.of` a table. Nothing is read before it is needed, and
    then piece by piece. `rounds` are what policies see: x and z encoded, arms by number.

    >>> log = DecisionLog.of({"decision_id": ["a", "b"], "x.age": [31, 54], "z.minutes": [3.0, None],
    ...                       "arm": ["mail", "call"], "propensity": [0.5, 0.5], "reward": [1.0, None]})
    >>> len(log), log.x_names, log.arm_names
    (2, ['age'], ('call', 'mail'))
    >>> next(log.rounds()).arms
    array([1, 0])
    """

    def __init__(self, frame: Any) -> None:
        arms = frame.collect_schema().get("arm")
        self.frame = in_schema(frame)
        names = self.frame.collect_schema().names()
        self.x_names = [name.removeprefix(X) for name in names if name.startswith(X)]
        self.z_names = [name.removeprefix(Z) for name in names if name.startswith(Z)]
        self._arm_names: tuple[str, ...] | None = None
        if arms == extra("polars").Enum:
            self._arm_names = tuple(arms.categories)

    @classmethod
    def of(cls, table: Any) -> "DecisionLog":
        """A log from a table with the schema's columns: polars, pandas, or a mapping; it is checked.

        In columns of pandas, NaN is a gap, as it is there.
        """
        pl = extra("polars")
        if isinstance(table, str | os.PathLike):
            got = f"table is {table!r:.60}, a text or a path"
            raise InvalidInput(f"{got}, wanted polars, pandas or a mapping; DecisionLog.read is for files")
        with errors_as_invalid_input("the table cannot be read", "columns of one length, and one type each"):
            if isinstance(table, Mapping) or _is_of_pandas(table):
                table = pl.DataFrame([_series(name, each) for name, each in table.items()])
            log = cls(table if isinstance(table, pl.LazyFrame) else pl.DataFrame(table).lazy())
            log.check()
        return log

    @classmethod
    def read(cls, path: PathLike) -> "DecisionLog":
        """The log in a Parquet file, or in all Parquet files of a folder, in the order of their names."""
        pl, place = extra("polars"), as_path("path", path)
        files = sorted(place.glob("*.parquet")) if os.path.isdir(place) else [place]
        if not files or not all(os.path.isfile(file) for file in files):
            raise InvalidInput(f"there is no log at {place}, wanted a Parquet file, or a folder of them")
        first, *others = map(_columns_of, files)
        # polars would tell when it comes to the file, in the middle of a pass
        for file, there in zip(files[1:], others, strict=True):
            if other := dict(set(there.items()) ^ set(first.items())):
                got = f"{file} differs from {files[0]} in column {min(other)!r}"
                raise InvalidInput(f"{got}, wanted equal columns")
        return cls(pl.scan_parquet(files, glob=False))

    def check(self) -> None:
        """Raise for the first row that breaks the schema."""
        check(self.frame)

    def write(self, path: PathLike) -> None:
        """Write one Parquet file, whole or not at all, after a check of every row."""
        self.check()
        with whole_file(as_path("path", path)) as file, reading_rows():
            self.frame.sink_parquet(file)

    def __repr__(self) -> str:
        sides = [
            f"{side}: {', '.join(names[:5])}{', …' * (len(names) > 5)}"
            for side, names in (("x", self.x_names), ("z", self.z_names))
            if names
        ]
        return f"DecisionLog({'; '.join(sides)})"

    def __len__(self) -> int:
        pl = extra("polars")
        return int(collected(self.frame.select(pl.len())).item())

    @property
    def arm_names(self) -> tuple[str, ...]:
        """The arms that were served or eligible, in rising order; numbers by their size.

        Where `arm` is a polars Enum, its categories in their order: the log says which arms there are.
        """
        if self._arm_names is None:
            pl = extra("polars")
            eligible = self.frame.select(pl.col("eligible").explode().alias("arm"))
            both = pl.concat([self.frame.select("arm"), eligible]).unique().drop_nulls()
            names: list[str] = collected(both)["arm"].to_list()
            numbered = all(name.isdecimal() for name in names)
            # Decimal, as int refuses thousands of digits.
            self._arm_names = tuple(sorted(names, key=lambda name: (Decimal(name) if numbered else 0, name)))
        return self._arm_names

    def pieces(self, rows: int = ROWS) -> Iterator[Any]:
        """The log as polars frames of at most so many rows, in order."""
        integer("rows", rows, least=1)
        start = 0
        while len(piece := collected(self.frame.slice(start, rows), engine="auto")):
            yield piece
            start += len(piece)

    def encoders(
        self, *, categories: Sequence[str] | None = None, gaps: Gaps = "impute"
    ) -> tuple[Encoder, Encoder]:
        """How x and z become numbers, learnt from the whole log; by default texts are categories."""
        sides = []
        for prefix, names in ((X, self.x_names), (Z, self.z_names)):
            chosen = (
                self._texts(prefix, names) if categories is None else [n for n in categories if n in names]
            )
            sides.append(self._fit(prefix, names, chosen, gaps))
        return sides[0], sides[1]

    def rounds(
        self,
        x_encoder: Encoder | None = None,
        z_encoder: Encoder | None = None,
        *,
        arm_names: Sequence[str] | None = None,
        rows: int = ROWS,
    ) -> Iterator[LoggedRounds]:
        """The log as policies see it, piece by piece; encoders and arms are by default learnt from all of it.

        A z of which a part is missing is missing, and so is that of a log that has no columns of z.
        """
        if x_encoder is None or z_encoder is None:
            own = self.encoders()
            x_encoder, z_encoder = x_encoder or own[0], z_encoder or own[1].without_marks()
        _require_columns(X, x_encoder, self.x_names)
        if self.z_names:
            _require_columns(Z, z_encoder, self.z_names)
        arms = self.arm_names if arm_names is None else tuple(arm_names)
        ids = {name: i for i, name in enumerate(arms)}
        done = 0
        for piece in self.pieces(rows):
            yield _encoded(piece, ids, x_encoder, z_encoder, done)
            done += len(piece)

    def delays(self) -> tuple[FloatArray, FloatArray]:
        """After how many rounds z and the reward of each came, by the log's times, for `evaluate`.

        What came at a time is known to the first round that was decided then or later. What has no time, or
        one before its decision, came at once.
        """
        pl, names = extra("polars"), ["time", "z_time", "reward_time"]
        found = collected(self.frame.select(pl.col(names).to_physical()))
        decided = found["time"].to_numpy()
        wrong = found["time"].is_null() | (found["time"].diff() < 0).fill_null(False)
        if wrong.any():
            got = f"column 'time' is null, or before the one above it, at row {wrong.arg_true()[0]}"
            raise InvalidInput(f"{got}, wanted rounds in the order of their times")
        sides, rows = [], np.arange(len(found))
        for name in names[1:]:
            known_to = np.searchsorted(decided, found[name].fill_null(found["time"]).to_numpy())
            sides.append(np.maximum(known_to - rows, 0).astype(np.float64))
        return sides[0], sides[1]

    def _texts(self, prefix: str, names: Sequence[str]) -> list[str]:
        pl, there = extra("polars"), self.frame.collect_schema()
        return [name for name in names if there[prefix + name] in (pl.String, pl.Boolean, pl.Categorical)]

    def _fit(self, prefix: str, names: Sequence[str], categories: Sequence[str], gaps: Gaps) -> Encoder:
        """An encoder from one pass over the log."""
        pl = extra("polars")
        if not names:
            return Encoder([])
        parts = []
        for name in names:
            column = pl.col(prefix + name)
            if name in categories:
                parts.append(column.value_counts(sort=False).implode().alias(name))
            else:
                parts.append(
                    pl.struct(column.mean().alias("mean"), column.null_count().alias("lost")).alias(name)
                )
        found = collected(self.frame.select(*parts)).row(0, named=True)
        return Encoder([_settings(name, prefix, found[name], name in categories, gaps) for name in names])


def _columns_of(file: Path) -> Mapping[str, Any]:
    """The names and types of a Parquet file's columns."""
    wanted = "a whole Parquet file; a table becomes one by DecisionLog.of(pandas.read_csv(…)).write(…)"
    with reading(str(file), wanted):
        schema: Mapping[str, Any] = extra("polars").scan_parquet(file, glob=False).collect_schema()
    return schema


def _is_of_pandas(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "pandas"


def _series(name: str, column: Any) -> Any:
    """A column of a table, read by itself so that errors can name it."""
    try:
        return extra("polars").Series(name, _readable(column))
    except Exception as error:  # the first line says what is wrong, others what to change in a call of polars
        why = str(error).partition("\n")[0]
        raise InvalidInput(
            f"column {name!r:.60} cannot be read ({why}), wanted values of one type"
        ) from error


def _readable(column: Any) -> Any:
    """A column as polars reads it: it leaves numpy's objects as they are, and needs pyarrow for pandas'."""
    if _is_of_pandas(column):
        pl, kind = extra("polars"), getattr(column.dtype, "kind", "O")
        if kind == "M":
            return pl.Series(column.to_numpy(dtype="datetime64[us]"))  # in UTC, if it has a zone
        if isinstance(column.dtype, np.dtype) and kind in "biuf":
            return pl.Series(column.to_numpy(), nan_to_null=True)
        return [None if gap else each for each, gap in zip(column, column.isna(), strict=True)]
    return column.tolist() if isinstance(column, np.ndarray) else column


def _settings(name: str, prefix: str, found: Any, category: bool, gaps: Gaps) -> list[Any]:
    if not category:
        lost, summary = found["lost"], [name, found["mean"] or 0.0]
    else:
        counts = Counter[str]()  # levels are named as encoders name the values of a row
        for row in found:
            value = row[prefix + name]
            counts["" if is_gap(value) else level_name(value)] += row["count"]
        lost = counts.pop("", 0)
        total, levels = sum(counts.values()), sorted(counts)
        summary = [name, levels, [counts[level] / total for level in levels]]
    if gaps == "raise" and lost:
        raise InvalidInput(
            f"column {prefix + name!r} has gaps in {lost:,} rows, wanted none, or gaps='impute'"
        )
    return [*summary, "refused" if gaps == "raise" else "flagged" if lost else "filled"]


def _require_columns(prefix: str, encoder: Encoder, names: Sequence[str]) -> None:
    """Raise if the log lacks a column that an encoder was fitted on."""
    if lacking := [name for name in encoder.inputs if name not in names]:
        got = f"the log has no column {prefix + lacking[0]!r}, which its encoder takes"
        wanted = ", ".join(prefix + name for name in encoder.inputs)
        raise InvalidInput(f"{got}, wanted {wanted}; or policies that learnt without it")


def _encoded(
    piece: Any, ids: Mapping[str, int], x_encoder: Encoder, z_encoder: Encoder, done: int
) -> LoggedRounds:
    """One piece of a log as policies see it."""
    sides = []
    for prefix, encoder in ((X, x_encoder), (Z, z_encoder)):
        names = [prefix + name for name in encoder.inputs]
        lost = _lost(piece, names) if prefix == Z and names else np.zeros(len(piece), dtype=bool)
        side = np.full((len(piece), len(encoder.names)), np.nan)
        if names and not lost.all():
            there = piece.filter(~lost)
            side[~lost] = encoder.table({name: there[prefix + name] for name in encoder.inputs})
        sides.append(side)
    unknown = [name for name in piece["arm"].unique().to_list() if name not in ids]
    if unknown:
        row = done + piece["arm"].to_list().index(unknown[0])
        raise InvalidInput(f"column 'arm' has {unknown[0]!r} at row {row}, wanted one of {', '.join(ids)}")
    return LoggedRounds(
        x=sides[0],
        z=sides[1],
        arms=piece["arm"].replace_strict(ids).to_numpy(),
        rewards=piece["reward"].fill_null(np.nan).to_numpy(),
        propensities=piece["propensity"].to_numpy(),
        eligible=_eligible(piece, ids, done),
        all_propensities=_all_propensities(piece, ids),
        arm_names=list(ids),
        x_names=x_encoder.names,
        z_names=z_encoder.names,
        x_encoder=x_encoder,
        z_encoder=z_encoder,
    )


def _eligible(piece: Any, ids: Mapping[str, int], done: int) -> BoolArray | None:
    """Which arms could be served in each row; where the log does not say so, all."""
    pl = extra("polars")
    listed = piece.select("eligible").with_row_index("row").filter(pl.col("eligible").list.len() > 0)
    if not len(listed):
        return None
    pairs = listed.explode("eligible")
    unknown = pairs.filter(~pl.col("eligible").is_in(list(ids)))
    if len(unknown):
        row, name = unknown.row(0)
        got = f"column 'eligible' has {name!r} at row {done + row}"
        raise InvalidInput(f"{got}, wanted some of {', '.join(ids)}")
    found = np.ones((len(piece), len(ids)), dtype=bool)
    found[listed["row"].to_numpy()] = False
    found[pairs["row"].to_numpy(), pairs["eligible"].replace_strict(ids).to_numpy()] = True
    return found


def _all_propensities(piece: Any, ids: Mapping[str, int]) -> FloatArray | None:
    """The probability of each arm, and NaN in rows in which these are not known."""
    pl, names = extra("polars"), ["eligible", "propensities"]
    listed = piece.select(names).with_row_index("row").filter(pl.col("propensities").list.len() > 0)
    if not len(listed):
        return None
    with errors_as_invalid_input("column 'propensities' cannot be read", "one per eligible arm"):
        pairs = listed.explode(names)
    found = np.full((len(piece), len(ids)), np.nan)
    found[listed["row"].to_numpy()] = 0.0
    at = pairs["row"].to_numpy(), pairs["eligible"].replace_strict(ids).to_numpy()
    found[at] = pairs["propensities"].to_numpy()
    return found


def _lost(piece: Any, names: Sequence[str]) -> BoolArray:
    """The rows in which one of these columns has no value, or is not there."""
    pl = extra("polars")
    if not set(names) <= set(piece.columns):
        return np.ones(len(piece), dtype=bool)
    return np.asarray(piece.select(pl.any_horizontal(pl.col(names).is_null())).to_series().to_numpy())
