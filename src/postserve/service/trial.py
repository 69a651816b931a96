"""A service in this process, for trials and tests: its log is lost at the end."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import uvicorn

from postserve.service.engine import Engine
from postserve.service.experiment import parse_experiment
from postserve.service.log.stores import Store
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.serving import TEMPLATE, app_of


@contextlib.contextmanager
def trial(experiment: str | None = None, store: Store | None = None) -> Iterator[str]:
    r"""Serve an experiment, by default that of `postserve serve --init`, at the URL that it gives.

    >>> import urllib.request
    >>> with trial() as url:
    ...     urllib.request.urlopen(f"{url}/livez").read()
    b'{"status":"alive"}\n'
    """
    text = TEMPLATE.read_text(encoding="utf-8") if experiment is None else experiment
    engine = Engine(parse_experiment(text), MemoryStore() if store is None else store)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app_of(engine), log_level="warning", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            while thread.is_alive() and not server.started:
                thread.join(0.01)
            if not server.started:
                raise RuntimeError("the service did not start, wanted one that does: see its log")
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
