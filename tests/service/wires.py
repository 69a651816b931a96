"""A service on loopback in this process, and connections to it that send any bytes."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from postserve.service.edge.listening import server_of
from postserve.service.engine import Engine
from postserve.service.experiment import Experiment
from postserve.service.log.stores import Store
from postserve.service.serving import app_of

PATIENCE = 300.0
"""Seconds that a busy machine may take to start a process, or to answer."""


class Got(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """A connection that is kept, and made again once the server has closed it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._socket: socket.socket | None = None
        self._rest = b""

    def ask(self, method: str, path: str, body: Any = None, headers: str = "") -> Got:
        """One request and its answer; `body` is JSON unless it is bytes."""
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {len(content)}\r\n\r\n"
        return self.send(head.encode() + content)

    def send(self, request: bytes) -> Got:
        """Any bytes, and the answer."""
        with suppress(BrokenPipeError, ConnectionResetError):  # what was answered before can still be read
            self.open().sendall(request)
        return self.read()

    def open(self) -> socket.socket:
        if self._socket is None:
            self._socket, self._rest = socket.create_connection(("127.0.0.1", self.port), PATIENCE), b""
        return self._socket

    def read(self) -> Got:
        """The next answer; raises `ConnectionError` if there is none."""
        try:
            got = self._read()
        except BaseException:
            self.close()
            raise
        if got.headers.get("connection") == "close":
            self.close()
        return got

    def _read(self) -> Got:
        data = self._rest
        while b"\r\n\r\n" not in data:
            data += self._receive()
        head, _, data = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers["content-length"])
        while len(data) < length:
            data += self._receive()
        self._rest = data[length:]
        return Got(int(first.split()[1]), headers, data[:length])

    def _receive(self) -> bytes:
        found = self.open().recv(1 << 16)
        if not found:
            raise ConnectionError("the server closed the connection without an answer")
        return found

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


@contextmanager
def serving(one: Experiment, store: Store) -> Iterator[tuple[int, Engine]]:
    """A service in a thread, on a free port, that is told to stop in the end."""
    engine = Engine(one, store, seed=0)
    server = server_of(app_of(engine), "127.0.0.1", 0)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + PATIENCE
    while not server.started:
        assert thread.is_alive()
        assert time.monotonic() < end, "the service did not start"
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1], engine
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()
