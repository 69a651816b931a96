"""The log in Postgres: several processes serve from it, and one of them learns."""

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from postserve.service.log.events import Event, Logged, encode
from postserve.service.log.stores import BASE, Saved, StoreError, next_step, read_event, trace_of

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]

STEPS = [
    """
CREATE TABLE versions (version integer PRIMARY KEY);
CREATE TABLE events (seq bigint PRIMARY KEY, id text COLLATE "C" NOT NULL, body text NOT NULL);
CREATE INDEX events_by_id ON events (id, seq) WHERE id <> '';
CREATE TABLE waits (id text COLLATE "C" PRIMARY KEY, due double precision NOT NULL);
CREATE INDEX waits_by_due ON waits (due);
CREATE TABLE snapshots (seq bigint PRIMARY KEY, digest text NOT NULL, content bytea NOT NULL);
CREATE TABLE settings (name text COLLATE "C" PRIMARY KEY, value text NOT NULL);
""",
    """
CREATE TABLE published (one boolean PRIMARY KEY CHECK (one), seq bigint NOT NULL, digest text NOT NULL,
    content bytea NOT NULL);
CREATE TABLE gone (trace bytea PRIMARY KEY);
""",
]
"""What makes each version of the tables from the one before; never changed, only added to."""
REACH = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""How soon a server that does not answer is given up; an address may say otherwise."""
SESSION = """
SET search_path TO {};
SET default_transaction_isolation = 'read committed';
SET synchronous_commit = on;
SET idle_in_transaction_session_timeout = '10s';
SET lock_timeout = '20s';
SET tcp_keepalives_idle = 5;
SET tcp_keepalives_interval = 2;
SET tcp_keepalives_count = 3
"""
"""The server lets go of a process that stopped in the middle of a transaction, or whose machine is gone:
other writers wait for it, and no longer than this."""
APPEND = """
WITH added AS (
    INSERT INTO events SELECT coalesce((SELECT max(seq) FROM events), 0) + place, id, body
    FROM unnest(%s::text[], %s::text[]) WITH ORDINALITY AS new (id, body, place) RETURNING seq
)
SELECT max(seq) FROM added
"""
FINISHED = """
SELECT DISTINCT id FROM events
WHERE seq <= %s AND id <> '' AND NOT EXISTS (SELECT 1 FROM waits WHERE waits.id = events.id)
  AND NOT EXISTS (SELECT 1 FROM events AS l WHERE l.id = events.id AND l.seq > %s AND l.id <> '')
LIMIT %s
"""
ENDED = "SELECT id FROM events WHERE id = ANY(%s::text[]) AND id <> '' GROUP BY id HAVING max(seq) <= %s"
SET_BASE = """
INSERT INTO settings VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET value = greatest(settings.value::bigint, excluded.value::bigint)::text
"""
SAVE = """
INSERT INTO snapshots VALUES (%s, %s, %s)
ON CONFLICT (seq) DO UPDATE SET digest = excluded.digest, content = excluded.content
"""
PUBLISH = """
INSERT INTO published VALUES (true, %s, %s, %s)
ON CONFLICT (one) DO UPDATE SET seq = excluded.seq, digest = excluded.digest, content = excluded.content
WHERE published.seq < excluded.seq
"""


class PostgresStore:
    """A schema of its own in a database; each thread has a connection of its own.

    A connection that was cut is made anew: what was under way raises `StoreError`, and the next call works.
    """

    shared = True

    def __init__(self, address: str, schema: str) -> None:
        self._address, self.schema = _address(address), schema
        self._writers, self._leaders = _lock_number(schema, "writers"), _lock_number(schema, "leaders")
        self._threads = threading.local()
        self._open: list[Connection] = []
        self._lock = threading.Lock()
        self._leading = threading.Lock()
        self._leader: Connection | None = None
        self._elected = False
        try:
            self._migrate()
        except BaseException:
            self.close()
            raise

    def _connect(self) -> Connection:
        made = psycopg.connect(autocommit=True, **self._address)
        made.execute(sql.SQL(SESSION).format(sql.Identifier(self.schema)))
        with self._lock:
            self._open = [each for each in self._open if not each.closed] + [made]
        return made

    @property
    def _connection(self) -> Connection:
        found: Connection | None = getattr(self._threads, "connection", None)
        if found is None or found.closed:
            found = self._threads.connection = self._connect()
        return found

    def _run(self, query: str, values: Sequence[Any] | None = None, *, binary: bool = False) -> Cursor:
        """One statement that may be repeated: if the connection was cut before, on a new one."""
        with _in_words():
            db = self._connection
            try:
                return db.execute(query, values, binary=binary)
            except psycopg.Error:
                if not db.closed:
                    raise
            return self._connection.execute(query, values, binary=binary)

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction; others begin once it is over, so that places are in the order of commits."""
        self._run("BEGIN")
        db = self._connection
        with _in_words():
            try:
                db.execute(f"SELECT pg_advisory_xact_lock({self._writers})")
                yield db
                db.commit()
            except BaseException:
                with suppress(psycopg.Error):  # which says nothing new
                    db.rollback()
                raise

    def _migrate(self) -> None:
        statements = [""]
        while statements:
            with self._writing() as db:
                if (encoding := _value(db, "SHOW server_encoding")) != "UTF8":
                    raise StoreError(f"the database has the encoding {encoding}, wanted UTF8")
                if _value(db, "SELECT to_regnamespace(%s)", (self.schema,)) is None:
                    db.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(self.schema)))
                known = _value(db, "SELECT to_regclass('versions')") is not None
                version = _value(db, "SELECT max(version) FROM versions") if known else 0
                statements = next_step(STEPS, version, f"schema {self.schema}")
                for statement in statements:
                    db.execute(statement)
                if statements:
                    db.execute("INSERT INTO versions VALUES (%s)", (version + 1,))

    @contextmanager
    def transaction(self) -> Iterator["PostgresTransaction"]:
        """As `Store.transaction`."""
        with self._writing() as db:
            yield PostgresTransaction(db)

    def events_of(self, ids: Iterable[str], before: int | None = None) -> dict[str, list[Event]]:
        """As `Store.events_of`."""
        wanted = list(ids)
        return _by_id(wanted, self._run(*_events_of(wanted, before)))

    def read(self, after: int, most: int) -> list[Logged]:
        """As `Store.read`."""
        query = "SELECT seq, body FROM events WHERE seq > %s ORDER BY seq LIMIT %s"
        return [
            Logged(seq, read_event(body, f"event {seq}")) for seq, body in self._run(query, (after, most))
        ]

    def last(self) -> int:
        """As `Store.last`."""
        ((found,),) = self._run("SELECT coalesce(max(seq), 0) FROM events")
        return int(found)

    def due(self, now: float, most: int) -> list[str]:
        """As `Store.due`."""
        query = "SELECT id FROM waits WHERE due <= %s ORDER BY due LIMIT %s"
        return [name for (name,) in self._run(query, (now, most))]

    def save(self, saved: Saved) -> None:
        """As `Store.save`."""
        if self._elected:  # over the connection that has the lock: who has lost it saves nothing
            self._as_leader(SAVE, saved)
        else:
            self._run(SAVE, saved)

    def snapshots(self) -> list[tuple[int, str]]:
        """As `Store.snapshots`."""
        return [(seq, digest) for seq, digest in self._run("SELECT seq, digest FROM snapshots ORDER BY seq")]

    def snapshot(self, seq: int) -> Saved | None:
        """As `Store.snapshot`."""
        return self._saved("SELECT seq, digest, content FROM snapshots WHERE seq = %s", seq)

    def _saved(self, query: str, seq: int) -> Saved | None:
        row = self._run(query, (seq,), binary=True).fetchone()
        return None if row is None else Saved(*row)

    def drop_snapshot(self, seq: int, unless: str) -> None:
        """As `Store.drop_snapshot`."""
        kept = "EXISTS (SELECT 1 FROM settings WHERE name = %s)"
        with self._writing() as db:  # so that no setting comes between
            db.execute(f"DELETE FROM snapshots WHERE seq = %s AND NOT {kept}", (seq, unless))

    def setting(self, name: str, default: str | None = None) -> str | None:
        """As `Store.setting`."""
        if default is not None:
            self._run("INSERT INTO settings VALUES (%s, %s) ON CONFLICT DO NOTHING", (name, default))
        row = self._run("SELECT value FROM settings WHERE name = %s", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_setting(self, name: str, value: str) -> None:
        """As `Store.set_setting`."""
        new = "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        with self._writing() as db:
            db.execute(f"INSERT INTO settings VALUES (%s, %s) {new}", (name, value))

    def finished(self, upto: int, most: int) -> list[str]:
        """As `Store.finished`."""
        return [name for (name,) in self._run(FINISHED, (upto, upto, most))]

    def drop(self, ids: Iterable[str], base: int) -> None:
        """As `Store.drop`."""
        with self._writing() as db:
            ended = [name for (name,) in db.execute(ENDED, (list(ids), base))]
            traces = [trace_of(name) for name in ended]
            db.execute("DELETE FROM events WHERE id = ANY(%s::text[]) AND id <> ''", (ended,))
            db.execute("DELETE FROM waits WHERE id = ANY(%s::text[])", (ended,))
            db.execute("INSERT INTO gone SELECT unnest(%s::bytea[]) ON CONFLICT DO NOTHING", (traces,))
            db.execute(SET_BASE, (BASE, str(base)))

    # One of several processes learns

    def lead(self) -> bool:
        """As `Store.lead`: who leads has a lock for as long as its connection lives."""
        with self._leading, _in_words():
            if self._leader is None or self._leader.closed:
                lost, self._elected = self._elected, False
                if lost:
                    return False  # others may have led since: who leads again begins anew
                self._leader = self._connect()
            query = "SELECT true" if self._elected else f"SELECT pg_try_advisory_lock({self._leaders})"
            self._elected = bool(_value(self._leader, query))
            return self._elected

    def publish(self, saved: Saved) -> None:
        """As `Store.publish`."""
        self._as_leader(PUBLISH, saved)

    def _as_leader(self, query: str, values: Sequence[Any]) -> None:
        """A statement over the connection that has the lock, so that nobody else has it."""
        with self._leading, _in_words():
            if self._leader is None or not self._elected:
                raise StoreError("another process learns, wanted to be the one that does")
            self._leader.execute(query, values)

    def published(self, after: int) -> Saved | None:
        """As `Store.published`."""
        return self._saved("SELECT seq, digest, content FROM published WHERE seq > %s", after)

    def close(self) -> None:
        """As `Store.close`; no thread may use the store any more."""
        with self._lock:
            for connection in self._open:
                connection.close()
            self._open.clear()


class PostgresTransaction:
    """What a block of changes can do."""

    def __init__(self, db: Connection) -> None:
        self._db = db

    def events_of(self, ids: Iterable[str]) -> dict[str, list[Event]]:
        """As `Transaction.events_of`."""
        wanted = list(ids)
        return _by_id(wanted, self._db.execute(*_events_of(wanted, None)))

    def gone(self, ids: Iterable[str]) -> set[str]:
        """As `Transaction.gone`."""
        if not (traces := {trace_of(name): name for name in ids}):
            return set()
        query = "SELECT trace FROM gone WHERE trace = ANY(%s::bytea[])"
        return {traces[trace] for (trace,) in self._db.execute(query, (list(traces),))}

    def append(self, events: Sequence[Event]) -> int:
        """As `Transaction.append`."""
        rows = [event.id for event in events], [encode(event).decode() for event in events]
        return int(_value(self._db, APPEND, rows))

    def wait(self, dues: dict[str, float | None]) -> None:
        """As `Transaction.wait`."""
        over = [name for name, due in dues.items() if due is None]
        new = {name: due for name, due in dues.items() if due is not None}
        if over:
            self._db.execute("DELETE FROM waits WHERE id = ANY(%s::text[])", (over,))
        if new:
            rows = "SELECT * FROM unnest(%s::text[], %s::double precision[])"
            later = "ON CONFLICT (id) DO UPDATE SET due = excluded.due"
            self._db.execute(f"INSERT INTO waits {rows} {later}", (list(new), list(new.values())))


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        said = " ".join(str(error).split())
        raise StoreError(f"Postgres failed ({said:.300}), wanted a server that answers") from error


def _address(address: str) -> dict[str, Any]:
    """What an address says; a message about a wrong one would have its password in it."""
    try:
        return {"application_name": "postserve", **REACH, **conninfo_to_dict(address)}
    except psycopg.Error:
        wanted = "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with % for special characters"
        raise StoreError(f"store.path is no address of Postgres, wanted {wanted}") from None


def _lock_number(schema: str, purpose: str) -> int:
    """An advisory lock is a number, the same for all processes of one experiment."""
    digest = hashlib.sha256(f"postserve {schema} {purpose}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _events_of(wanted: list[str], before: int | None) -> tuple[str, Sequence[Any]]:
    query = "SELECT id, body FROM events WHERE id = ANY(%s::text[]) AND id <> ''"
    if before is None:
        return f"{query} ORDER BY seq", (wanted,)
    return f"{query} AND seq < %s ORDER BY seq", (wanted, before)


def _by_id(wanted: list[str], rows: Iterable[tuple[Any, ...]]) -> dict[str, list[Event]]:
    found: dict[str, list[Event]] = {name: [] for name in wanted}
    for name, body in rows:
        found[name].append(read_event(body, f"an event of {name!r:.60}"))
    return found


def _value(db: Connection, query: str, values: Sequence[Any] | None = None) -> Any:
    row = db.execute(query, values).fetchone()
    return None if row is None else row[0]
