"""The server around the app: uvicorn with bounded heads, refusals in JSON, and a stop that fails nobody."""

import asyncio
import socket
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from postserve.service.edge.wire import ErrorOut

GRACE = 10
"""Seconds that requests have to end once the service is told to stop."""
LINGER = 0.5
"""Seconds in which a connection without a request may still bring one, once the service is told to stop."""
KEEP = 75
"""Seconds in which nothing may come over a connection: longer than clients and proxies keep one."""
MOST_HEAD = 65_536
"""Bytes of a request's line and headers, unless they come all at once."""


class Protocol(HttpToolsProtocol):
    """A connection."""

    _head = 0
    """Bytes of the head that have come; negative once it is whole."""
    _heard = False
    """Something came since the last look."""
    _ends = False
    """The service stops: the next answer is the last."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to look whether something comes."""
        super().connection_made(transport)
        self.loop.call_later(KEEP, self._close_if_stuck)

    def _close_if_stuck(self) -> None:
        """Close if all of a request is awaited, or some, and nothing comes; a look is taken now and then."""
        if self.transport.is_closing():
            return
        if not self._heard and (self.cycle is None or self._head >= 0 or self.cycle.more_body):
            self.transport.close()
            return
        self._heard = False
        self.loop.call_later(KEEP, self._close_if_stuck)

    def data_received(self, data: bytes) -> None:
        """Refuse heads without an end."""
        self._heard = True
        super().data_received(data)
        if self._head >= 0:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self._refuse(431, "too_large", f"the head has more than {MOST_HEAD:,} bytes, wanted fewer")

    def on_message_begin(self) -> None:
        """The next request begins."""
        self._head = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is whole."""
        self._head = -1
        super().on_headers_complete()
        if self._ends:
            self.cycle.keep_alive = False

    def shutdown(self) -> None:
        """Answer what has come or is on its way, and close."""
        self._ends = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER, self._close_if_idle)
        else:
            self.cycle.keep_alive = False

    def _close_if_idle(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """It is not HTTP."""
        self._refuse(400, "invalid", f"{msg} Wanted HTTP/1.1")

    def _refuse(self, status: int, word: str, message: str) -> None:
        body = msgspec.json.encode(ErrorOut(error=word, message=message))
        head = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        if not self.transport.is_closing():
            self.transport.write(STATUS_LINE[status] + head.encode() + body)
            self.transport.close()


class Server(uvicorn.Server):
    """A server whose stop resets no connection that was made before."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._listening: list[socket.socket] = []

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Keep a second hold of the sockets, so that they outlive their servers for a moment."""
        await super().startup(sockets)
        for server in self.servers:
            self._listening += [
                socket.fromfd(each.fileno(), each.family, each.type) for each in server.sockets
            ]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take those connections that are made already, and no more."""
        for server in self.servers:
            server.close()
        made: list[socket.socket] = []
        for each in self._listening:
            made += _made(each)
            each.close()
        loop = asyncio.get_running_loop()
        for one in made:
            await loop.connect_accepted_socket(self._protocol, one)
        await super().shutdown(sockets)

    def _protocol(self) -> Protocol:
        return Protocol(self.config, self.server_state, self.lifespan.state)


def _made(listening: socket.socket) -> list[socket.socket]:
    """Connections that wait to be accepted."""
    listening.setblocking(False)
    found = []
    while True:
        try:
            found.append(listening.accept()[0])
        except OSError:
            return found


def server_of(app: Any, host: str, port: int) -> Server:
    """A server for the app; `run` serves until the process is told to stop."""
    return Server(
        uvicorn.Config(
            app,
            host=host,
            port=port,
            http=Protocol,
            ws="none",
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP,
            timeout_graceful_shutdown=GRACE,
        )
    )
