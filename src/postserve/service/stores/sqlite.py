"""The log in an SQLite file: one process writes, and what it has answered for is on the disk."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw

from postserve.service.events import Event, Logged, decode, encode
from postserve.service.stores import Saved, StoreError

SCHEMA = 1
TABLES = """
CREATE TABLE events (seq INTEGER PRIMARY KEY, id TEXT NOT NULL, body TEXT NOT NULL);
CREATE INDEX events_by_id ON events (id) WHERE id <> '';
CREATE TABLE waits (id TEXT PRIMARY KEY, due REAL NOT NULL) WITHOUT ROWID;
CREATE INDEX waits_by_due ON waits (due);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, digest TEXT NOT NULL, content BLOB NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""
BUSY_MS = 10_000
"""How long a statement waits for another process, such as one that makes a backup."""


class SqliteStore:
    """One file, with its journal beside it; each thread has a connection of its own."""

    def __init__(self, path: str | Path, *, synchronous: str = "FULL", vfs: str | None = None) -> None:
        self.path = str(path)
        self._synchronous, self._vfs = synchronous, vfs
        self._threads = threading.local()
        self._open: list[apsw.Connection] = []
        self._lock = threading.Lock()
        try:
            self._migrate()
        except apsw.Error as error:
            raise StoreError(f"{path} cannot be used ({error}), wanted a log of this service") from error

    @property
    def _connection(self) -> apsw.Connection:
        found: apsw.Connection | None = getattr(self._threads, "connection", None)
        if found is None:
            found = apsw.Connection(self.path, vfs=self._vfs)
            found.set_busy_timeout(BUSY_MS)
            found.execute("PRAGMA journal_mode = WAL")
            found.execute(f"PRAGMA synchronous = {self._synchronous}")
            self._threads.connection = found
            with self._lock:
                self._open.append(found)
        return found

    def _migrate(self) -> None:
        db = self._connection
        with _immediate(db):
            version = _value(db, "PRAGMA user_version")
            if version > SCHEMA:
                raise StoreError(f"{self.path} has version {version}, wanted at most {SCHEMA}")
            if version == 0:
                for statement in TABLES.strip().split(";\n"):
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextmanager
    def transaction(self) -> Iterator["SqliteTransaction"]:
        """As `Store.transaction`: SQLite lets one writer in at a time."""
        db = self._connection
        with _immediate(db):
            yield SqliteTransaction(db)

    def events_of(self, ids: Iterable[str], before: int | None = None) -> dict[str, list[Event]]:
        """As `Store.events_of`."""
        return _events_of(self._connection, ids, before)

    def read(self, after: int, most: int) -> list[Logged]:
        """As `Store.read`."""
        query = "SELECT seq, body FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        rows: Iterable[Any] = self._connection.execute(query, (after, most)).fetchall()
        return [Logged(seq, decode(body)) for seq, body in rows]

    def last(self) -> int:
        """As `Store.last`."""
        return int(_value(self._connection, "SELECT coalesce(max(seq), 0) FROM events"))

    def due(self, now: float, most: int) -> list[str]:
        """As `Store.due`."""
        query = "SELECT id FROM waits WHERE due <= ? ORDER BY due LIMIT ?"
        return [name for (name,) in self._connection.execute(query, (now, most))]

    def save(self, saved: Saved) -> None:
        """As `Store.save`."""
        self._write("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", tuple(saved))

    def snapshots(self) -> list[tuple[int, str]]:
        """As `Store.snapshots`."""
        return list(self._connection.execute("SELECT seq, digest FROM snapshots ORDER BY seq"))

    def snapshot(self, seq: int) -> Saved | None:
        """As `Store.snapshot`."""
        query = "SELECT seq, digest, content FROM snapshots WHERE seq = ?"
        row = self._connection.execute(query, (seq,)).fetchone()
        return None if row is None else Saved(*row)

    def drop_snapshot(self, seq: int) -> None:
        """As `Store.drop_snapshot`."""
        self._write("DELETE FROM snapshots WHERE seq = ?", (seq,))

    def setting(self, name: str) -> str | None:
        """As `Store.setting`."""
        found = _value(self._connection, "SELECT value FROM settings WHERE name = ?", (name,))
        return None if found is None else str(found)

    def set_setting(self, name: str, value: str) -> None:
        """As `Store.set_setting`."""
        self._write("INSERT OR REPLACE INTO settings VALUES (?, ?)", (name, value))

    def backup(self, path: str | Path) -> None:
        """Copy the whole log to another file, while this one is in use."""
        target = apsw.Connection(str(path))
        with target.backup("main", self._connection, "main") as copy:
            while not copy.done:
                copy.step(1_000)
        target.close()

    def close(self) -> None:
        """As `Store.close`; no thread may use the store any more."""
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()

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
    query = "SELECT body FROM events WHERE id = ? AND id <> ''"
    query += " ORDER BY seq" if before is None else " AND seq < ? ORDER BY seq"
    rest = () if before is None else (before,)
    return {name: [decode(body) for (body,) in db.execute(query, (name, *rest))] for name in ids}


def _value(db: apsw.Connection, query: str, values: tuple[Any, ...] = ()) -> Any:
    row = db.execute(query, values).fetchone()
    return None if row is None else row[0]
