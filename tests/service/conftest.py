"""Stores of every kind, for all tests of the service."""

import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.service.databases import running

from postserve.service.log.stores import Store
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.postgres import PostgresStore
from postserve.service.log.stores.sqlite import SqliteStore

Make = Callable[[], Store]


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server, one for all processes of a run; it survives them all, and need not sync."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    with running(Path(tempfile.gettempdir()) / f"postserve-{run}") as server:
        with psycopg.connect(server.address, autocommit=True) as db:
            db.execute("ALTER SYSTEM SET fsync = off")
            db.execute("SELECT pg_reload_conf()")
        yield server.address


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes a store: the same log each time, unless it is in memory."""
    made: list[Store] = []
    schema = f"test_{uuid.uuid4().hex}"

    def make_one() -> Store:
        if request.param == "memory":
            made.append(MemoryStore())
        elif request.param == "sqlite":
            made.append(SqliteStore(tmp_path / "log.sqlite"))
        else:
            made.append(PostgresStore(request.getfixturevalue("postgres"), schema))
        return made[-1]

    yield make_one
    for store in made:
        store.close()
