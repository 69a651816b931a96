"""The log in an SQLite file: one process writes, and what it has answered for is on the disk."""

import fcntl
import math
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import apsw

from postserve.service.log.events import Event, Logged, encode
from postserve.service.log.stores import BASE, Saved, StoreError, Unshared, next_step, read_event, trace_of

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="SqliteStore")
STEPS = [
    """
CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX events_by_id ON events (id) WHERE id <> '';
CREATE TABLE waits (id TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX waits_by_due ON waits (due);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, digest TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
""",
    """
CREATE TABLE gone (trace BLOB PRIMARY KEY) WITHOUT ROWID;
""",
]
"""What makes each version of the tables from the one before; never changed, only added to."""
FINISHED = """
SELECT DISTINCT id FROM events
WHERE seq <= ? AND id <> '' AND id NOT IN (SELECT id FROM waits)
  AND NOT EXISTS (SELECT 1 FROM events AS l WHERE l.id = events.id AND l.seq > ? AND l.id <> '')
LIMIT ?
"""
AT_ONCE = 512
"""Decisions that one statement looks for, at most."""
BUSY_MS = 10_000
"""How long a statement waits for another process, such as one that makes a backup."""


@contextmanager
def in_words_within(path: str) -> Iterator[None]:
    """A block in which what SQLite refuses is a `StoreError`."""
    try:
        yield
    except apsw.Error as error:
        wanted = "a disk with room, and a file that nobody else changes"
        raise StoreError(
            f"{path} cannot be used ({type(error).__name__}: {error}), wanted {wanted}"
        ) from error


def in_words(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """The same for a method."""

    @wraps(method)
    def verb(self: S, /, *args: P.args, **options: P.kwargs) -> R:
        with in_words_within(self.path):
            return method(self, *args, **options)

    return verb


class SqliteStore(Unshared):
    """One file, with its journal beside it; each thread has a connection of its own."""

    def __init__(self, path: str | Path, *, synchronous: str = "FULL", vfs: str | None = None) -> None:
        self.path = str(path)
        self._synchronous, self._vfs = synchronous, vfs
        self._threads = threading.local()
        self._open: list[apsw.Connection] = []
        self._lock = threading.Lock()
        self._claim: int | None = None
        try:
            self._migrate()
        except (apsw.Error, StoreError) as error:
            self.close()
            if isinstance(error, StoreError):
                raise
            raise StoreError(f"{path} cannot be used ({error}), wanted a log of this service") from error

    @property
    def _connection(self) -> apsw.Connection:
        found: apsw.Connection | None = getattr(self._threads, "connection", None)
        if found is None:
            found = apsw.Connection(self.path, vfs=self._vfs)
            found.set_busy_timeout(BUSY_MS)
            found.execute("PRAGMA journal_mode = WAL")
            found.execute(f"PRAGMA synchronous = {self._synchronous}")
            found.execute("PRAGMA secure_delete = FAST")  # what is deleted is overwritten, where that is free
            self._threads.connection = found
            with self._lock:
                self._open.append(found)
        return found

    def _migrate(self) -> None:
        db, statements = self._connection, [""]
        while statements:
            with _immediate(db):
                version = _value(db, "PRAGMA user_version")
                statements = next_step(STEPS, version, self.path)
                for statement in statements:
                    db.execute(statement)
                if statements:
                    db.execute(f"PRAGMA user_version = {version + 1}")

    def lead(self) -> bool:
        """As `Store.lead`: one process serves from a file, and has it until it ends."""
        with self._lock:
            if self._claim is None:
                # Beside the log: closing any handle of the log itself would undo the locks of SQLite.
                path = f"{os.path.realpath(self.path)}-serving"  # the same one by any other name
                claim = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                try:
                    fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError as error:
                    os.close(claim)
                    wanted = "one process per file; several can share a log in Postgres"
                    raise StoreError(f"{self.path} is served by another process, wanted {wanted}") from error
                self._claim = claim
        return True

    @contextmanager
    def transaction(self) -> Iterator["SqliteTransaction"]:
        """As `Store.transaction`: SQLite lets one writer in at a time."""
        with in_words_within(self.path), _immediate(self._connection):
            yield SqliteTransaction(self._connection)

    @in_words
    def events_of(self, ids: Iterable[str], before: int | None = None) -> dict[str, list[Event]]:
        """As `Store.events_of`."""
        return _events_of(self._connection, ids, before)

    @in_words
    def read(self, after: int, most: int) -> list[Logged]:
        """As `Store.read`."""
        query = "SELECT seq, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        rows: Iterable[Any] = self._connection.execute(query, (after, most)).fetchall()
        return [Logged(seq, read_event(body, f"event {seq}")) for seq, body in rows]

    @in_words
    def last(self) -> int:
        """As `Store.last`."""
        return int(_value(self._connection, "SELECT coalesce(max(seq), 0) FROM events"))

    @in_words
    def due(self, now: float, most: int) -> list[str]:
        """As `Store.due`."""
        query = "SELECT id FROM waits WHERE due <= ? ORDER BY due LIMIT ?"
        return [name for (name,) in self._connection.execute(query, (now, most))]

    @in_words
    def save(self, saved: Saved) -> None:
        """As `Store.save`."""
        self._write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", tuple(saved))

    @in_words
    def snapshots(self) -> list[tuple[int, str]]:
        """As `Store.snapshots`."""
        return list(self._connection.execute("SELECT seq, digest FROM snapshots ORDER BY seq"))

    @in_words
    def snapshot(self, seq: int) -> Saved | None:
        """As `Store.snapshot`."""
        query = "SELECT seq, digest, content FROM snapshots WHERE seq = ?"
        row = self._connection.execute(query, (seq,)).fetchone()
        return None if row is None else Saved(*row)

    @in_words
    def drop_snapshot(self, seq: int, unless: str) -> None:
        """As `Store.drop_snapshot`."""
        kept = "EXISTS (SELECT 1 FROM settings WHERE name = ?)"
        self._write(f"DELETE FROM snapshots WHERE seq = ? AND NOT {kept}", (seq, unless))

    @in_words
    def setting(self, name: str, default: str | None = None) -> str | None:
        """As `Store.setting`."""
        if default is not None:
            self._write("INSERT OR IGNORE INTO settings VALUES (?, ?)", (name, default))
        found = _value(self._connection, "SELECT value FROM settings WHERE name = ?", (name,))
        return None if found is None else str(found)

    @in_words
    def set_setting(self, name: str, value: str) -> None:
        """As `Store.set_setting`."""
        self._write("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    @in_words
    def finished(self, upto: int, most: int) -> list[str]:
        """As `Store.finished`."""
        return [name for (name,) in self._connection.execute(FINISHED, (upto, upto, most))]

    @in_words
    def drop(self, ids: Iterable[str], base: int) -> None:
        """As `Store.drop`; what was there is overwritten."""
        db = self._connection
        db.execute("PRAGMA secure_delete = ON")
        with _immediate(db):
            for name in ids:
                last = _value(db, "SELECT max(seq) FROM events WHERE id = ? AND id <> ''", (name,))
                if last is not None and last <= base:
                    db.execute("DELETE FROM events WHERE id = ? AND id <> ''", (name,))
                    db.execute("DELETE FROM waits WHERE id = ?", (name,))
                    db.execute("INSERT OR IGNORE INTO gone VALUES (?)", (trace_of(name),))
            before = int(_value(db, "SELECT value FROM settings WHERE name = ?", (BASE,)) or 0)
            db.execute("INSERT OR REPLACE INTO settings VALUES (?, ?)", (BASE, str(max(before, base))))

    @in_words
    def backup(self, path: str | Path) -> None:
        """Copy the whole log to another file, which must not be there yet, while this one is in use."""
        if Path(path).exists():
            raise StoreError(f"{path} is there already, wanted a name that is free")
        if not Path(path).absolute().parent.is_dir():
            raise StoreError(f"there is no folder for {path}, wanted one that exists")
        part = f"{path}.part"
        Path(part).unlink(missing_ok=True)
        target = apsw.Connection(part)
        try:
            with target.backup("main", self._connection, "main") as copy:
                copy.step(-1)  # all in one reading, which no writer disturbs
        except apsw.Error:
            Path(part).unlink()
            raise
        finally:
            target.close()
        Path(part).rename(path)

    def close(self) -> None:
        """As `Store.close`; no thread may use the store any more."""
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()
            if self._claim is not None:
                os.close(self._claim)
                self._claim = None

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with _immediate(self._connection):
            self._connection.execute(statement, values)


class SqliteTransaction:
    """What a block of changes can do."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db

    def events_of(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """As `Transaction.events_of`."""
        return _events_of(self._db, ids, None)

    def gone(self, ids: Iterable[str]) -> set[str]:
        """As `Transaction.gone`."""
        if not _value(self._db, "SELECT EXISTS (SELECT 1 FROM gone)"):
            return set()
        query = "SELECT 1 FROM gone WHERE trace = ?"
        return {name for name in ids if _value(self._db, query, (trace_of(name),)) is not None}

    def append(self, events: Sequence[Event]) -> int:
        """As `Transaction.append`."""
        rows = ((event.id, encode(event).decode()) for event in events)
        self._db.executemany("INSERT INTO events (id, body) VALUES (?, ?)", rows)
        return self._db.last_insert_rowid()

    def wait(self, dues: dict[str, float | None]) -> None:
        """As `Transaction.wait`."""
        over = ((name,) for name, due in dues.items() if due is None)
        self._db.executemany("DELETE FROM waits WHERE id = ?", over)
        new = ((name, due) for name, due in dues.items() if due is not None)
        self._db.executemany("INSERT OR REPLACE INTO waits VALUES (?, ?)", new)


@contextmanager
def _immediate(db: apsw.Connection) -> Iterator[None]:
    """A transaction that has the right to write from its beginning."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _events_of(db: apsw.Connection, ids: Iterable[str], before: int | None) -> dict[str, list[Event]]:
    """In few statements: at the end of each, the thread waits until it may go on."""
    names, end = list(dict.fromkeys(ids)), math.inf if before is None else before
    found: dict[str, list[Event]] = {name: [] for name in names}
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        wanted = ", ".join("?" * len(some))
        query = f"SELECT id, body FROM events WHERE id IN ({wanted}) AND id <> '' AND seq < ? ORDER BY seq"
        rows: Iterable[Any] = db.execute(query, (*some, end)).fetchall()
        for name, body in rows:
            found[name].append(read_event(body, f"an event of {name!r:.60}"))
    return found


def _value(db: apsw.Connection, query: str, values: tuple[Any, ...] = ()) -> Any:
    row = db.execute(query, values).fetchone()
    return None if row is None else row[0]
