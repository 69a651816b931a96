"""`postserve serve`: the experiment's file, its store, the engine, and the server around them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import uvicorn
from rich.progress import Progress
from starlette.applications import Starlette

from postserve.errors import InvalidInput
from postserve.service import access
from postserve.service.app import make_app
from postserve.service.engine import Engine
from postserve.service.experiment import Experiment, read_experiment
from postserve.service.rebuild import rebuild
from postserve.service.stores import Store
from postserve.service.stores.memory import MemoryStore
from postserve.service.stores.sqlite import SqliteStore
from postserve.terminal import say

IN_MEMORY = ":memory:"
TEMPLATE = Path(__file__).with_name("experiment.toml")
GRACE = 30
"""Seconds that requests have to end once the service is told to stop."""


def open_store(path: str, folder: Path) -> Store:
    """The store that an experiment's file names; a relative path is relative to the file."""
    return MemoryStore() if path == IN_MEMORY else SqliteStore(folder / path)


def write_template(path: Path) -> None:
    """Write an experiment's file that runs as it stands; an existing file is not replaced."""
    try:
        with path.open("xb") as file:
            file.write(TEMPLATE.read_bytes())
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
        write_template(path)
        print(f"wrote {path}; start it with: postserve serve {path}")
    else:
        serve(path)


def rebuild_and_show(path: Path, console: Any) -> bool:
    """What `postserve rebuild` does; whether all snapshots agree."""
    experiment = read_experiment(path)
    store = open_store(experiment.store.path, path.resolve().parent)
    last = store.last()
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("events", total=last)
        found = rebuild(experiment, store, lambda seq: progress.update(bar, completed=seq))
    agree = f"{found.agreeing} snapshots agree"
    if found.differs_at is not None:
        agree += f", and the one at event {found.differs_at} is the first that differs"
    say(f"{last:,} events, digest {found.model.digest[:16]}: {agree}", console)
    return found.differs_at is None


def serve(path: Path) -> None:
    """Serve an experiment until the process is told to stop (SIGTERM, or Ctrl-C)."""
    experiment = read_experiment(path)
    engine = Engine(experiment, open_store(experiment.store.path, path.resolve().parent))
    server = experiment.server
    print(describe(experiment), flush=True)
    uvicorn.run(
        app_of(engine),
        host=server.host,
        port=server.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
    )


def app_of(engine: Engine) -> Starlette:
    """The app, which starts the engine and stops it."""
    app = make_app(engine)

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        await asyncio.to_thread(engine.start)
        yield
        await asyncio.to_thread(engine.stop)

    app.router.lifespan_context = life
    return app


def describe(experiment: Experiment) -> str:
    """One line for the terminal."""
    server = experiment.server
    return f"{experiment.name}: http://{server.host}:{server.port}, log in {experiment.store.path}"
