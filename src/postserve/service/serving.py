"""`postserve serve`: the experiment's file, its store, the engine, and the server around them."""

import asyncio
import contextlib
import gc
import re
import signal
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from rich.progress import Progress
from starlette.applications import Starlette

from postserve.errors import InvalidInput
from postserve.files import whole_file
from postserve.service.edge import access
from postserve.service.edge.app import make_app
from postserve.service.edge.listening import server_of
from postserve.service.engine import BEGAN, Engine
from postserve.service.experiment import Experiment, read_experiment
from postserve.service.exporting import span, write_log
from postserve.service.log.replies import LoopReplies
from postserve.service.log.stores import Store
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.rebuild import rebuild
from postserve.terminal import say

IN_MEMORY = ":memory:"
SUFFIXES = {".parquet": "parquet", ".dsjson": "dsjson", ".jsonl": "events"}
"""How the name of an exported log ends, and what is written then."""
SILENCE = 5.0
"""Seconds after which a service that starts says what it does."""
TEMPLATE = Path(__file__).with_name("experiment.toml")


def open_store(experiment: Experiment, folder: Path) -> Store:
    """The store that an experiment's file names; a relative path is relative to the file."""
    path = experiment.store.path
    if path == IN_MEMORY:
        return MemoryStore()
    if not is_postgres(path):
        return SqliteStore(folder / path)
    try:
        from postserve.service.log.stores.postgres import PostgresStore
    except ModuleNotFoundError as missing:
        wanted = "pip install 'postserve[service,postgres]'"
        raise InvalidInput(f"{missing.name} is not installed, wanted: {wanted}") from missing
    return PostgresStore(path, experiment.store.schema or schema_of(experiment.name))


def is_postgres(path: str) -> bool:
    """Whether a store's path is an address of Postgres."""
    return path.startswith(("postgresql://", "postgres://"))


def schema_of(name: str) -> str:
    """The schema of an experiment's tables; of two names that give the same, the second is refused."""
    return "postserve_" + re.sub(r"[^a-z0-9]+", "_", name.lower())[:50]


def write_new(path: Path, content: bytes) -> None:
    """Write an experiment's file; an existing one is not replaced."""
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as error:
        raise InvalidInput(f"{path} is there already, wanted a name that is free") from error
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be written ({error.strerror}), wanted a folder that can"
        ) from error


def serve_or_prepare(path: Path, *, init: bool, new_key: bool) -> None:
    """What `postserve serve` does."""
    if new_key:
        key, hashed = access.new_key()
        print(f"key, which is shown only now: {key}\nfor {path}:\n")
        print(f'[[keys]]\nname = "…"\nhash = "{hashed}"\nroles = ["decide", "feedback"]')
    elif init:
        write_new(path, TEMPLATE.read_bytes())
        print(f"wrote {path}; start it with: postserve serve {path}")
    else:
        serve(path)


def rebuild_and_show(path: Path, console: Any) -> bool:
    """What `postserve rebuild` does; whether all snapshots agree."""
    experiment, store = _served(path)
    last = store.last()
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("events", total=last)
        found = rebuild(experiment, store, lambda seq: progress.update(bar, completed=seq))
    agree = f"{found.agreeing} snapshots agree"
    if found.differs_at is not None:
        agree += f", and the one at event {found.differs_at} is the first that differs"
    say(f"{last:,} events, digest {found.model.digest[:16]}: {agree}", console)
    return found.differs_at is None


def export_and_show(path: Path, target: Path, after: str | None, before: str | None, console: Any) -> None:
    """What `postserve export` does."""
    if target.suffix not in SUFFIXES:
        raise InvalidInput(f"{target} ends in {target.suffix!r}, wanted one of {', '.join(SUFFIXES)}")
    part, (experiment, store) = span(after, before), _served(path)
    try:
        with whole_file(target) as file:
            write_log(file, experiment, store, SUFFIXES[target.suffix], part)
    finally:
        store.close()
    say(f"written: {target}", console)


def _served(path: Path) -> tuple[Experiment, Store]:
    """An experiment and its log, which must have begun."""
    experiment, folder = read_experiment(path), path.resolve().parent
    where = experiment.store.path
    there = where == IN_MEMORY or is_postgres(where) or (folder / where).exists()  # opening would make a file
    store = open_store(experiment, folder) if there else None
    if store is None or store.setting(BEGAN) is None:
        if store is not None:
            store.close()
        raise InvalidInput(f"{where} has no log, wanted one that was served")
    return experiment, store


def backup(path: Path, target: Path) -> None:
    """What `postserve backup` does: copy the log of a service that may be running."""
    experiment = read_experiment(path)
    if experiment.store.path == IN_MEMORY or is_postgres(experiment.store.path):
        wanted = "an SQLite file; pg_dump makes a backup of Postgres"
        raise InvalidInput(f"the log of {experiment.name} is in no file, wanted {wanted}")
    _, store = _served(path)
    assert isinstance(store, SqliteStore)
    store.backup(target)
    store.close()
    print(f"wrote {target}")


def serve(path: Path) -> None:
    """Serve an experiment until the process is told to stop (SIGTERM, or Ctrl-C)."""
    experiment = read_experiment(path)
    server = experiment.server
    refuse_taken(server.host, server.port)
    engine = Engine(experiment, open_store(experiment, path.resolve().parent))
    starting = Starting(engine)
    print(describe(experiment), flush=True)
    with contextlib.suppress(KeyboardInterrupt):  # the signal once more, after a stop in good order
        server_of(app_of(engine, starting.begin), server.host, server.port).run()
    if starting.failure is not None:
        raise starting.failure
    print("stopped", flush=True)


def refuse_taken(host: str, port: int) -> None:
    """Raise if nobody can listen there, before anything else is done."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise InvalidInput(f"{host}:{port} cannot be used ({why}), wanted a free port in [server]") from error


class Starting:
    """Starts an engine while the service answers already that it is not ready yet."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.failure: Exception | None = None

    async def begin(self) -> None:
        """Let a thread start it."""
        self._task = asyncio.create_task(self._start())

    async def _start(self) -> None:
        late = asyncio.get_running_loop().call_later(SILENCE, self._say_what_takes_long)
        try:
            await start(self._engine)
            await asyncio.to_thread(keep_for_good)
            print(f"ready at {address_of(self._engine.experiment)}", flush=True)
        except Exception as error:
            self.failure = error
            signal.raise_signal(signal.SIGTERM)  # nothing will ever be ready
        finally:
            late.cancel()

    def _say_what_takes_long(self) -> None:
        if doing := self._engine.doing:
            print(doing, flush=True)


def keep_for_good() -> None:
    """Let the garbage collector look no more at what there is now.

    It is code for the most part. To find that nothing of it can go, each full collection would stop all
    threads for 40 ms.
    """
    gc.collect()
    gc.freeze()


async def start(engine: Engine) -> None:
    """Start an engine that hands its answers to this event loop."""
    await asyncio.to_thread(engine.start)
    engine.submit = LoopReplies(engine.writer, asyncio.get_running_loop()).submit


def app_of(engine: Engine, begin: Callable[[], Awaitable[None]] | None = None) -> Starlette:
    """The app, which starts the engine, in the way that is given, and stops it."""
    app = make_app(engine)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await (start(engine) if begin is None else begin())
        yield
        await asyncio.to_thread(engine.stop)

    app.router.lifespan_context = life
    return app


def describe(experiment: Experiment) -> str:
    """One line for the terminal."""
    path = experiment.store.path
    where = "Postgres" if is_postgres(path) else path  # an address may have a password in it
    return f"{experiment.name}: {address_of(experiment)}, log in {where}"


def address_of(experiment: Experiment) -> str:
    """Where an experiment is served."""
    return f"http://{experiment.server.host}:{experiment.server.port}"
