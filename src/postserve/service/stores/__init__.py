"""Where the log is kept: in memory, in an SQLite file, or in Postgres, behind one small interface."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

from postserve.errors import PostserveError
from postserve.service.events import Event, Logged


class StoreError(PostserveError):
    """The store cannot be used: what it has is not what this service wrote, or it cannot be reached."""


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

    def append(self, events: Sequence[Event]) -> int:
        """Put events at the end of the log; returns the place of the last."""

    def wait(self, dues: dict[str, float | None]) -> None:
        """When these decisions are due next; None if they are not."""


class Store(Protocol):
    """A log with its waits and snapshots. All methods may be called by any thread."""

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

    def drop_snapshot(self, seq: int) -> None:
        """Forget a snapshot."""

    def setting(self, name: str) -> str | None:
        """What `set_setting` kept."""

    def set_setting(self, name: str, value: str) -> None:
        """Keep a text under a name."""

    def close(self) -> None:
        """Let go of files and connections."""
