"""Where the log is kept: in memory, in an SQLite file, or in Postgres, behind one small interface."""

import hashlib
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import msgspec

from postserve.errors import PostserveError
from postserve.service.log.events import Event, Logged, decode

BASE = "base"
"""The setting that says from which snapshot on the log is whole: before it, events were dropped."""


class StoreError(PostserveError):
    """The store cannot be used: what it has is not what this service wrote, or it cannot be reached."""


def read_event(body: str, place: str) -> Event:
    """An event as it was kept."""
    try:
        return decode(body)
    except msgspec.MsgspecError as error:
        raise StoreError(
            f"{place} cannot be read ({error}), wanted as it was written: a backup has it"
        ) from error


class Saved(NamedTuple):
    """A saved model: the last event that it has learnt, its digest, and what `Model.dump` gave."""

    seq: int
    digest: str
    content: bytes

    @property
    def state(self) -> bytes:
        """The policy alone, as a file that `postserve.load` reads."""
        return self.content.partition(b"\n")[2]


class Transaction(Protocol):
    """Changes that are kept all or not at all; no other writer comes between."""

    def events_of(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """All events of these decisions, in their order."""

    def gone(self, ids: Iterable[str]) -> set[str]:
        """Which of these decisions `Store.drop` has dropped."""

    def append(self, events: Sequence[Event]) -> int:
        """Put events at the end of the log; returns the place of the last."""

    def wait(self, dues: dict[str, float | None]) -> None:
        """When these decisions are due next; None if they are not."""


class Store(Protocol):
    """A log with its waits and snapshots. All methods may be called by any thread.

    Places begin with 1, and grow by one from each event to the next, in the order of commits: who reads up to
    a place has missed nothing before it.
    """

    shared: bool
    """Whether several processes may serve from it, of which one learns and publishes its model."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """Changes that are on the disk when the block has ended; an exception undoes them."""

    def events_of(self, ids: Iterable[str], before: int | None = None) -> dict[str, list[Event]]:
        """All events of these decisions, in their order; those at places below `before` if it is given."""

    def read(self, after: int, most: int) -> list[Logged]:
        """At most so many events that follow a place."""

    def last(self) -> int:
        """The place of the last event; 0 if there is none."""

    def due(self, now: float, most: int) -> list[str]:
        """Decisions that are due, at most so many."""

    def save(self, saved: Saved) -> None:
        """Keep a snapshot."""

    def snapshots(self) -> list[tuple[int, str]]:
        """Place and digest of every snapshot, the oldest first."""

    def snapshot(self, seq: int) -> Saved | None:
        """The snapshot at a place."""

    def drop_snapshot(self, seq: int, unless: str) -> None:
        """Forget a snapshot, unless there is a setting of this name: no setting can come between."""

    def setting(self, name: str, default: str | None = None) -> str | None:
        """The text under a name; the default, if there is one, is kept where nothing was."""

    def set_setting(self, name: str, value: str) -> None:
        """Keep a text under a name."""

    def finished(self, upto: int, most: int) -> list[str]:
        """Decisions that wait for nothing, and have no event after a place; at most so many."""

    def drop(self, ids: Iterable[str], base: int) -> None:
        """Forget the events of decisions that have none after the place `base`, but that there were some.

        The log is whole from the snapshot at `base` on.
        """

    def lead(self) -> bool:
        """Whether this process is the one that learns; it becomes the one if there is none.

        Raises `StoreError` if the store is not to be shared, and another process has it.
        """

    def publish(self, saved: Saved) -> None:
        """Let others serve a model, unless they have a later one already; only for the one that leads."""

    def published(self, after: int) -> Saved | None:
        """The model that was published, if it has learnt more than up to a place."""

    def close(self) -> None:
        """Let go of files and connections."""


class Unshared:
    """What is true of a store that one process has for itself."""

    shared = False

    def lead(self) -> bool:
        """Always."""
        return True

    def publish(self, saved: Saved) -> None:
        """There is nobody else."""

    def published(self, after: int) -> Saved | None:
        """Nobody publishes."""
        return None


def next_step(steps: Sequence[str], version: int, label: str) -> list[str]:
    """The statements that bring a store of a version to the next one; none if it is the newest."""
    if version > len(steps):
        raise StoreError(
            f"{label} has version {version}, wanted at most {len(steps)}: a newer service wrote it"
        )
    return [each for each in steps[version].split(";\n") if each.strip()] if version < len(steps) else []


def trace_of(name: str) -> bytes:
    """What is kept of a decision that was dropped: enough to know its id again, and nothing else of it."""
    return hashlib.sha256(name.encode()).digest()[:16]
