"""A log that is lost with its process: for tests and trials."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from postserve.service.events import Event, Logged
from postserve.service.stores import Saved


class MemoryStore:
    """Everything in lists and dictionaries."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._events: list[Event] = []
        self._places: dict[str, list[int]] = defaultdict(list)
        self._dues: dict[str, float] = {}
        self._saved: dict[int, Saved] = {}
        self._settings: dict[str, str] = {}

    @contextmanager
    def transaction(self) -> Iterator["MemoryTransaction"]:
        """Changes become visible when the block has ended."""
        with self._lock:
            one = MemoryTransaction(self)
            yield one
            for event in one.added:
                self._events.append(event)
                if event.id:
                    self._places[event.id].append(len(self._events))
            for name, due in one.dues.items():
                if due is None:
                    self._dues.pop(name, None)
                else:
                    self._dues[name] = due

    def events_of(self, ids: Iterable[str], before: int | None = None) -> dict[str, list[Event]]:
        """As `Store.events_of`."""
        with self._lock:
            end = len(self._events) + 1 if before is None else before
            return {
                name: [self._events[seq - 1] for seq in self._places.get(name, ()) if seq < end]
                for name in ids
            }

    def read(self, after: int, most: int) -> list[Logged]:
        """As `Store.read`."""
        with self._lock:
            found = self._events[after : after + most]
        return [Logged(after + 1 + i, event) for i, event in enumerate(found)]

    def last(self) -> int:
        """As `Store.last`."""
        return len(self._events)

    def due(self, now: float, most: int) -> list[str]:
        """As `Store.due`."""
        with self._lock:
            found = sorted((due, name) for name, due in self._dues.items() if due <= now)
        return [name for _, name in found[:most]]

    def save(self, saved: Saved) -> None:
        """As `Store.save`."""
        self._saved[saved.seq] = saved

    def snapshots(self) -> list[tuple[int, str]]:
        """As `Store.snapshots`."""
        return [(seq, self._saved[seq].digest) for seq in sorted(self._saved)]

    def snapshot(self, seq: int) -> Saved | None:
        """As `Store.snapshot`."""
        return self._saved.get(seq)

    def drop_snapshot(self, seq: int) -> None:
        """As `Store.drop_snapshot`."""
        self._saved.pop(seq, None)

    def setting(self, name: str) -> str | None:
        """As `Store.setting`."""
        return self._settings.get(name)

    def set_setting(self, name: str, value: str) -> None:
        """As `Store.set_setting`."""
        self._settings[name] = value

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryTransaction:
    """What a block has added so far."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self.added: list[Event] = []
        self.dues: dict[str, float | None] = {}

    def events_of(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """As `Transaction.events_of`."""
        wanted = list(ids)
        found = self._store.events_of(wanted)
        for event in self.added:
            if event.id in found:
                found[event.id].append(event)
        return found

    def append(self, events: Sequence[Event]) -> int:
        """As `Transaction.append`."""
        self.added += events
        return self._store.last() + len(self.added)

    def wait(self, dues: dict[str, float | None]) -> None:
        """As `Transaction.wait`."""
        self.dues.update(dues)
