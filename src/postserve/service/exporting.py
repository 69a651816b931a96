"""The log as others read it: rounds in the schema of `postserve.data.log`, or the events as they are.

A round is a decision that was served: one that is deferred and not activated is none. Its reward is the one
that counts, and null until that is settled: the first, or, once the wait is over, the last, the sum or the
default. All is read up to the event that was the last one when the export began.
"""

import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from postserve.data.finding import extra
from postserve.data.log.dsjson import line_of, moment
from postserve.data.log.schema import X, Z, kinds
from postserve.errors import InvalidInput
from postserve.service.engine import BEGAN, first_model
from postserve.service.experiment import Experiment, Field
from postserve.service.log.events import ArmAdded, Decided, Event, Logged, encode
from postserve.service.log.rounds import Round
from postserve.service.log.stores import BASE, Store
from postserve.service.model.learner import newest
from postserve.validation import one_of

READ = 5_000
"""Events that are in memory at once."""
ROWS = 20_000
"""Rounds that are."""
PIECE = 2**18
"""Bytes that are sent at once."""
FORMATS = {
    "parquet": "application/vnd.apache.parquet",
    "dsjson": "application/x-ndjson",
    "events": "application/x-ndjson",
}
"""What can be written, and its type on the wire."""


class Span(NamedTuple):
    """A part of the log: what is after a place or time and before another."""

    after: int = 0
    before: float = math.inf
    since: float = -math.inf
    until: float = math.inf

    def has(self, seq: int, event: Event) -> bool:
        """Whether an event is in it."""
        return self.after < seq < self.before and self.since < event.time < self.until


def span(after: str | None = None, before: str | None = None) -> Span:
    """A part of the log by places, which are whole numbers, or by times in ISO 8601.

    >>> span("17", "2026-01-01T12:00Z")
    Span(after=17, before=inf, since=-inf, until=1767268800.0)
    """
    places: dict[str, Any] = {}
    for name, time_name, text in (("after", "since", after), ("before", "until", before)):
        if text is None:
            continue
        if text.isascii() and text.isdecimal() and len(text) < 19:
            places[name] = int(text)
            continue
        try:
            places[time_name] = _seconds(text)
        except ValueError as error:
            wanted = "a place in the log such as 1200, or a time such as 2026-01-31T12:00Z"
            raise InvalidInput(f"{name} is {text!r:.60}, wanted {wanted}") from error
    return Span(**places)


def _seconds(text: str) -> float:
    try:
        found = moment(text.replace(" ", "+"))  # a plus sign means a space in addresses
    except OverflowError as error:
        raise ValueError(str(error)) from error
    assert found is not None
    return found.timestamp()


def exported(
    experiment: Experiment, store: Store, form: str = "parquet", part: Span | None = None
) -> Iterator[bytes]:
    """`write_log` in pieces, once all of it is in a temporary file, which goes away by itself."""
    with ExitStack() as opened:
        file = opened.enter_context(tempfile.TemporaryFile(prefix="postserve-"))
        write_log(file, experiment, store, form, part)
        file.seek(0)
        opened.pop_all()
    return _pieces(file)


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE):
            yield piece


def write_log(
    file: BinaryIO, experiment: Experiment, store: Store, form: str = "parquet", part: Span | None = None
) -> None:
    """Write what the log has now; at no moment more than some thousand rounds are in memory."""
    one_of("format", form, tuple(FORMATS))
    last, part = store.last(), Span() if part is None else part
    if form == "events":
        if not part.after:
            base = b'"base":%d,' % int(store.setting(BASE) or 0)  # what was dropped is older
            began = (store.setting(BEGAN) or "{}").encode()
            file.write(b'{"seq":0,"kind":"began",' + base + began[1:] + b"\n")
        for seq, event in _events(store, last, part):
            file.write(b'{"seq":%d,' % seq + encode(event)[1:] + b"\n")
        return
    rows = rounds(store, last, part)
    if form == "dsjson":
        for row in rows:
            file.write(json.dumps(line_of(row, ())).encode() + b"\n")
    else:
        _write_parquet(file, rows, experiment, arms_of(experiment, store))


def rounds(store: Store, last: int, part: Span) -> Iterator[dict[str, Any]]:
    """The rounds of the decisions in a part of the log, as they are after the event at `last`."""
    latest = -math.inf  # the order of the log is the truth, whatever the clocks said
    events = _events(store, last, part)
    while some := list(islice(events, READ)):
        names = [event.id for _, event in some if isinstance(event, Decided)]
        known = store.events_of(names, before=last + 1)
        for name in names:
            row = _row(known[name])
            if row is not None:
                latest = max(latest, row["time"])
                times = {"time": latest, "z_time": row["z_time"], "reward_time": row["reward_time"]}
                yield {**row, **{name: _moment(seconds) for name, seconds in times.items()}}


def _row(events: Sequence[Event]) -> dict[str, Any] | None:
    """A decision and what came of it, with times in seconds; None if it was not served."""
    known, z_time, reward_time = Round(), None, None
    for event in events:
        before, known = known, known.after(event)
        if known.z != before.z:
            z_time = event.time if known.z else None
        if known.reward != before.reward:
            reward_time = None if known.reward is None else event.time
    decided = known.decided
    if decided is None or not known.active or known.erased:
        return None
    return {
        "decision_id": decided.id,
        "time": decided.time,
        "arm": decided.arm,
        "eligible": list(decided.eligible),
        "propensity": decided.propensity,
        "propensities": list(decided.propensities),
        "z_time": z_time,
        "reward": known.reward,
        "reward_time": reward_time,
        "model_version": decided.version,
        **{X + name: value for name, value in decided.x.items()},
        **{Z + name: value for name, value in known.z.items()},
    }


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)


def _events(store: Store, last: int, part: Span) -> Iterator[Logged]:
    at = part.after
    while at < last and (some := store.read(at, READ)):
        at = some[-1].seq
        yield from (one for one in some if one.seq <= last and part.has(*one))


def arms_of(experiment: Experiment, store: Store) -> list[str]:
    """All arms that there ever were, by their numbers in the model."""
    model = newest(store, first_model(experiment, store))
    events = (event for _, event in _events(store, store.last(), Span(model.seq)))
    return list(dict.fromkeys([*model.arms, *(event.arm for event in events if isinstance(event, ArmAdded))]))


def _write_parquet(
    file: BinaryIO, rows: Iterable[Mapping[str, Any]], experiment: Experiment, arms: list[str]
) -> None:
    """In parts, then in one; the order of the arms is kept with their column, so that models find theirs."""
    pl = extra("polars")
    kind_of = kinds()
    for prefix, fields in ((X, experiment.x), (Z, experiment.z)):
        kind_of |= {prefix + name: _kind(field) for name, field in fields.items()}
    rows = iter(rows)
    parts: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="postserve-") as folder:
        while (some := list(islice(rows, ROWS))) or not parts:
            parts.append(Path(folder, f"{len(parts):06d}.parquet"))
            pl.DataFrame(some, schema=kind_of, infer_schema_length=None).write_parquet(parts[-1])
        whole = pl.scan_parquet(parts, glob=False).with_columns(pl.col("arm").cast(pl.Enum(arms)))
        whole.sink_parquet(file)


def _kind(field: Field) -> Any:
    pl = extra("polars")
    return pl.Float64 if field == "number" else pl.String
