"""Vowpal Wabbit's decision-service JSON: one decision per line.

Its context is nested, and its arms are the entries of ``_multi``, counted from 1. There is no place for z:
it is under ``_z``, which Vowpal Wabbit ignores.
"""

import atexit
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from postserve.data.finding import PathLike, as_path, extra
from postserve.data.log.decisions import ROWS, DecisionLog
from postserve.data.log.schema import X, Z, kinds
from postserve.errors import InvalidInput
from postserve.files import whole_file
from postserve.validation import errors_as_invalid_input

MULTI, LABEL = "_multi", "id"
"""The arms of a context, and where an arm has its name."""


def from_dsjson(path: PathLike) -> DecisionLog:
    """The decisions in a file of dsjson; an arm without an ``id`` is named by its number.

    Names within names are joined by dots, and lists are numbered. Rewards are costs with the sign changed.
    The file is read once, piece by piece, and may be larger than memory: it is kept as Parquet in a temporary
    folder until the program ends.
    """
    pl, place = extra("polars"), as_path("path", path)
    folder = TemporaryDirectory(prefix="postserve-")
    try:
        whole = Path(folder.name, "log.parquet")
        parts = [pl.scan_parquet(part, glob=False) for part in _as_parquet(place, Path(folder.name))]
        if not parts:
            raise InvalidInput(f"{place} has no decision, wanted one per line")
        DecisionLog(pl.concat(parts, how="diagonal_relaxed")).write(whole)
    except BaseException:
        folder.cleanup()
        raise
    atexit.register(folder.cleanup)  # not before: frames may be made from the log until then
    for part in Path(folder.name).glob("part*"):
        part.unlink()
    return DecisionLog.read(whole)


def to_dsjson(log: DecisionLog, path: PathLike) -> None:
    """Write a log as dsjson, whole or not at all."""
    if MULTI in log.x_names:
        got = f"the log has a column {X + MULTI!r}, and dsjson has its arms under {MULTI}"
        raise InvalidInput(f"{got}, wanted another name")
    arms = log.arm_names
    with whole_file(as_path("path", path)) as file:
        for piece in log.pieces():
            for row in piece.iter_rows(named=True):
                file.write(json.dumps(line_of(row, arms)).encode() + b"\n")


def _as_parquet(place: Path, folder: Path) -> Iterator[Path]:
    """The rows of the schema in files of as many as are in memory at once; names may differ among files."""
    pl, types = extra("polars"), kinds()
    kind_of: dict[str, tuple[str, int]] = {}
    for number, rows in enumerate(_pieces(_rows(place, kind_of))):
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [row.get(name) for row in rows] for name in names}
        for name, values in columns.items():
            if name not in types and any(isinstance(value, float) for value in values):
                columns[name] = [None if value is None else float(value) for value in values]
        part = folder / f"part{number:06d}.parquet"
        with errors_as_invalid_input(f"{place} cannot be read", "numbers, texts and truth values"):
            overrides = {name: kind for name, kind in types.items() if name in columns}
            pl.DataFrame(columns, schema_overrides=overrides).write_parquet(part)
        yield part


def _rows(place: Path, kind_of: dict[str, tuple[str, int]]) -> Iterator[dict[str, Any]]:
    """Line by line; `kind_of` learns the kind of each name's values, and the line of the first."""
    try:
        with place.open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    row = _row(f"{place}, line {number}", line)
                    for name, value in row.items():
                        _refuse_other_kind(place, number, name, value, kind_of)
                    yield row
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{place} cannot be read ({error}), wanted a file of dsjson") from error


def _refuse_other_kind(
    place: Path, number: int, name: str, value: Any, kind_of: dict[str, tuple[str, int]]
) -> None:
    if value is None or not name.startswith((X, Z)):
        return
    kind = "a truth value" if isinstance(value, bool) else "a text" if isinstance(value, str) else "a number"
    before, first = kind_of.setdefault(name, (kind, number))
    if kind != before:
        got = f"{place}, line {number} has {name!r} as {kind}, {value!r:.60}"
        raise InvalidInput(f"{got}, wanted {before} as in line {first}")


def _pieces(rows: Iterator[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    while piece := list(islice(rows, ROWS)):
        yield piece


def _row(where: str, line: str) -> dict[str, Any]:
    """A line as a row of the schema."""
    try:
        event = json.loads(line)
        context, chosen, chances = dict(event["c"]), list(event["a"]), list(event["p"])
        arms = [_arm(action, i) for i, action in enumerate(context.pop(MULTI), 1)]
        if min(chosen) < 1:
            raise IndexError(f"a has {min(chosen)}, and counts from 1")
        row = {
            "decision_id": str(event["EventId"]),
            "time": moment(event.get("Timestamp")),
            "arm": arms[chosen[0] - 1],
            "eligible": [arms[i - 1] for i in chosen],
            "propensity": float(event.get("_label_probability", chances[0])),
            "propensities": [float(chance) for chance in chances],
            "reward": -float(event["_label_cost"]) if "_label_cost" in event else None,
            "reward_time": moment(event.get("_reward_time")),
            "z_time": moment(event.get("_z_time")),
            "model_version": event.get("_model_version"),
        }
        row |= {X + name: value for name, value in _flat(context)}
        return row | {Z + name: value for name, value in _flat(dict(event.get("_z") or {}))}
    except (LookupError, AttributeError, TypeError, ValueError, ArithmeticError, RecursionError) as error:
        got = f"{where} is no decision ({type(error).__name__}: {error!s:.60})"
        raise InvalidInput(f"{got}, wanted EventId, a, p, c with {MULTI}, and _label_cost") from error


def moment(text: str | None) -> datetime | None:
    """A time in UTC, in which times without a zone are."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def _arm(action: Any, number: int) -> str:
    return str(action[LABEL]) if isinstance(action, Mapping) and LABEL in action else str(number)


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in nested mappings and lists, by their joined names."""
    if isinstance(value, Mapping | list):
        pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, part in pairs:
            yield from _flat(part, f"{name}.{key}" if name else str(key))
    else:
        yield name, value


def line_of(row: Mapping[str, Any], all_arms: tuple[str, ...]) -> dict[str, Any]:
    """A row of the schema as a line."""
    arms = list(row["eligible"] or all_arms)
    first = arms.index(row["arm"])
    order = [first, *(i for i in range(len(arms)) if i != first)]
    chances = row["propensities"] or _rest(row["propensity"], len(arms), first)
    context = {name.removeprefix(X): value for name, value in row.items() if name.startswith(X)}
    z = {name.removeprefix(Z): value for name, value in row.items() if name.startswith(Z)}
    event = {
        "_label_probability": row["propensity"],
        "_label_Action": first + 1,
        "_labelIndex": first,
        "Version": "1",
        "EventId": row["decision_id"],
        "a": [i + 1 for i in order],
        "c": {**context, MULTI: [{LABEL: arm} for arm in arms]},
        "p": [chances[i] for i in order],
        "_z": z,
        "_model_version": row["model_version"],
    }
    if row["reward"] is not None:
        event["_label_cost"] = -row["reward"]
    for name, key in (("time", "Timestamp"), ("z_time", "_z_time"), ("reward_time", "_reward_time")):
        if row[name] is not None:
            event[key] = row[name].isoformat()
    return event


def _rest(propensity: float, n: int, first: int) -> list[float]:
    """Unknown probabilities of the arms that were not served: equal shares of the rest."""
    others = (1.0 - propensity) / max(n - 1, 1)
    return [propensity if i == first else others for i in range(n)]
