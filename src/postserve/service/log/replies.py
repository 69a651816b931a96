"""How the writer's answers come back: to a thread that waits for them, or to an event loop."""

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple, Protocol

from postserve.service.log.requests import Request
from postserve.service.log.rounds import Round

if TYPE_CHECKING:
    from postserve.service.log.writer import Writer


class Answer(NamedTuple):
    """The round after a request was committed, and whether it changed anything."""

    round: Round
    changed: bool


class Reply(Protocol):
    """Who waits for an answer."""

    def begin(self) -> bool:
        """Whether the answer is still wanted."""

    def give(self, answer: Answer | Exception) -> None:
        """The answer, or why there is none."""


class ThreadReply:
    """For a caller that waits in another thread, or not at all."""

    def __init__(self) -> None:
        self.future: Future[Answer] = Future()

    def begin(self) -> bool:
        """From here on nobody can leave any more."""
        return self.future.set_running_or_notify_cancel()

    def give(self, answer: Answer | Exception) -> None:
        """As `Reply.give`."""
        if isinstance(answer, Exception):
            self.future.set_exception(answer)
        else:
            self.future.set_result(answer)


class LoopReplies:
    """For the coroutines of one event loop, which is woken up once per commit."""

    def __init__(self, writer: "Writer", loop: asyncio.AbstractEventLoop) -> None:
        self._writer, self._loop = writer, loop
        self.given: list[tuple[asyncio.Future[Answer], Answer | Exception]] = []
        writer.after_commit.append(self._hand_over)

    def submit(self, request: Request) -> "asyncio.Future[Answer]":
        """Commit a request; to be called in the loop."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._writer.put(request, _LoopReply(future, self))
        return future

    def _hand_over(self) -> None:
        given, self.given = self.given, []
        if given and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_give_all, given)


class _LoopReply(NamedTuple):
    future: "asyncio.Future[Answer]"
    replies: LoopReplies

    def begin(self) -> bool:
        return not self.future.cancelled()

    def give(self, answer: Answer | Exception) -> None:
        self.replies.given.append((self.future, answer))


def _give_all(given: "list[tuple[asyncio.Future[Answer], Answer | Exception]]") -> None:
    for future, answer in given:
        if future.done():  # its caller has left
            continue
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
