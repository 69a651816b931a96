"""A log that is lost with its process: for tests and trials."""

import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from postserve.service.log.events import Event, Logged
from postserve.service.log.stores import BASE, Saved, Unshared


class MemoryStore(Unshared):
    """Everything in lists and dictionaries."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._events: list[Event | None] = []  # None where one was dropped
        self._places: dict[str, list[int]] = defaultdict(list)
        self._dues: dict[str, float] = {}
        self._saved: dict[int, Saved] = {}
        self._settings: dict[str, str] = {}
        self._gone: set[str] = set()

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
            places = {name: [seq for seq in self._places.get(name, ()) if seq < end] for name in ids}
            return {name: [event for _, event in self._at(found)] for name, found in places.items()}

    def _at(self, places: Iterable[int]) -> Iterator[Logged]:
        for seq in places:
            if (event := self._events[seq - 1]) is not None:
                yield Logged(seq, event)

    def read(self, after: int, most: int) -> list[Logged]:
        """As `Store.read`."""
        with self._lock:
            return list(islice(self._at(range(after + 1, len(self._events) + 1)), most))

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

    def drop_snapshot(self, seq: int, unless: str) -> None:
        """As `Store.drop_snapshot`."""
        with self._lock:
            if unless not in self._settings:
                self._saved.pop(seq, None)

    def setting(self, name: str, default: str | None = None) -> str | None:
        """As `Store.setting`."""
        if default is not None:
            return self._settings.setdefault(name, default)
        return self._settings.get(name)

    def set_setting(self, name: str, value: str) -> None:
        """As `Store.set_setting`."""
        with self._lock:
            self._settings[name] = value

    def finished(self, upto: int, most: int) -> list[str]:
        """As `Store.finished`."""
        with self._lock:
            found = (
                name
                for name, places in self._places.items()
                if places and places[-1] <= upto and name not in self._dues
            )
            return list(islice(found, most))

    def drop(self, ids: Iterable[str], base: int) -> None:
        """As `Store.drop`."""
        with self._lock:
            for name in ids:
                if (places := self._places.get(name)) and places[-1] <= base:
                    for seq in places:
                        self._events[seq - 1] = None
                    self._gone.add(name)
                    self._dues.pop(name, None)
                    del self._places[name]
            self._settings[BASE] = str(max(base, int(self._settings.get(BASE, 0))))

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

    def gone(self, ids: Iterable[str]) -> set[str]:
        """As `Transaction.gone`."""
        return self._store._gone.intersection(ids)

    def append(self, events: Sequence[Event]) -> int:
        """As `Transaction.append`."""
        self.added += events
        return self._store.last() + len(self.added)

    def wait(self, dues: dict[str, float | None]) -> None:
        """As `Transaction.wait`."""
        self.dues.update(dues)
