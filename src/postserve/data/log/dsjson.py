"""Vowpal Wabbit's decision-service JSON: one decision per line.

Its context is nested, and its arms are the entries of ``_multi``, counted from 1. There is no place for z:
it is under ``_z``, which Vowpal Wabbit ignores.
"""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from postserve.data.finding import PathLike, as_path
from postserve.data.log.decisions import DecisionLog
from postserve.data.log.schema import X, Z
from postserve.errors import InvalidInput
from postserve.files import whole_file

MULTI, LABEL = "_multi", "id"
"""The arms of a context, and where an arm has its name."""


def from_dsjson(path: PathLike) -> DecisionLog:
    """The decisions in a file of dsjson; an arm without an ``id`` is named by its number.

    Names within names are joined by dots, and lists are numbered. Rewards are costs with the sign changed.
    """
    place = as_path("path", path)
    try:
        lines = place.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{place} cannot be read ({error}), wanted a file of dsjson") from error
    rows = [_row(f"{place}, line {i}", line) for i, line in enumerate(lines, 1) if line.strip()]
    if not rows:
        raise InvalidInput(f"{place} has no decision, wanted one per line")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return DecisionLog.of({name: [row.get(name) for row in rows] for name in names})


def to_dsjson(log: DecisionLog, path: PathLike) -> None:
    """Write a log as dsjson, whole or not at all."""
    arms = log.arm_names
    with whole_file(as_path("path", path)) as file:
        for piece in log.pieces():
            for row in piece.iter_rows(named=True):
                file.write(json.dumps(_event(row, arms)).encode() + b"\n")


def _row(where: str, line: str) -> dict[str, Any]:
    """A line as a row of the schema."""
    try:
        event = json.loads(line)
        context, chosen, chances = dict(event["c"]), list(event["a"]), list(event["p"])
        arms = [_arm(action, i) for i, action in enumerate(context.pop(MULTI), 1)]
        row = {
            "decision_id": str(event["EventId"]),
            "time": _moment(event.get("Timestamp")),
            "arm": arms[chosen[0] - 1],
            "eligible": [arms[i - 1] for i in chosen],
            "propensity": float(event.get("_label_probability", chances[0])),
            "propensities": [float(chance) for chance in chances],
            "reward": -float(event["_label_cost"]) if "_label_cost" in event else None,
            "reward_time": _moment(event.get("_reward_time")),
            "z_time": _moment(event.get("_z_time")),
            "model_version": event.get("_model_version"),
        }
    except (KeyError, TypeError, ValueError, IndexError) as error:
        got = f"{where} is no decision ({type(error).__name__}: {error!s:.60})"
        raise InvalidInput(f"{got}, wanted EventId, a, p, c with {MULTI}, and _label_cost") from error
    row |= {X + name: value for name, value in _flat(context)}
    return row | {Z + name: value for name, value in (event.get("_z") or {}).items()}


def _moment(text: str | None) -> datetime | None:
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


def _event(row: Mapping[str, Any], all_arms: tuple[str, ...]) -> dict[str, Any]:
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
