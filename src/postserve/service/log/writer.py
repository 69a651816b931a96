"""The one way into the log: requests are committed in groups, and answered only then."""

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from postserve.errors import InvalidInput, PostserveError
from postserve.service.log.events import Event
from postserve.service.log.replies import Answer, Reply, ThreadReply
from postserve.service.log.requests import Conflict, Erase, Expire, Request, Rules
from postserve.service.log.rounds import Round, round_of
from postserve.service.log.stores import Store

GROUP = 256
"""Requests in one commit, at most."""

log = logging.getLogger("postserve.service")


class Overloaded(PostserveError):
    """More requests wait than the service takes."""


class Unavailable(PostserveError):
    """The store could not commit; whether the request was kept is not known, and it may be repeated."""


class _Waiting(NamedTuple):
    request: Request
    reply: Reply


class Writer:
    """A thread that commits what was submitted, in the order in which it came."""

    def __init__(
        self,
        store: Store,
        rules: Rules,
        most_waiting: int,
        committed: Callable[[int, list[Event]], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self.rules, self._most_waiting = store, rules, most_waiting
        self._committed, self._clock = committed, clock
        self.after_commit: list[Callable[[], None]] = []
        """What is called when all answers of a commit were given."""
        self._queue: queue.SimpleQueue[_Waiting | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="postserve-writer", daemon=True)

    def start(self) -> None:
        """Begin to commit."""
        self._thread.start()

    def stop(self) -> None:
        """Commit all that was submitted, and end."""
        self._queue.put(None)
        self._thread.join()

    @property
    def waiting(self) -> int:
        """How many requests wait for their commit."""
        return self._queue.qsize()

    def submit(self, request: Request, *, own: bool = False) -> "Future[Answer]":
        """Commit a request; the service's own are never refused."""
        reply = ThreadReply()
        self.put(request, reply, own=own)
        return reply.future

    def put(self, request: Request, reply: Reply, *, own: bool = False) -> None:
        """Commit a request, and give the answer to a reply."""
        if not own and self.waiting >= self._most_waiting:
            raise Overloaded(f"{self.waiting} requests wait, wanted fewer than {self._most_waiting}")
        self._queue.put(_Waiting(request, reply))

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            group, ends = [first], False
            while len(group) < GROUP and not self._queue.empty():
                following = self._queue.get()
                if following is None:
                    ends = True
                    break
                group.append(following)
            self._commit(group)
            if ends:
                return

    def _commit(self, group: list[_Waiting]) -> None:
        """One transaction for all of them; each is refused for itself, or all wait in vain together.

        Who has gone away meanwhile is left out.
        """
        group = [each for each in group if each.reply.begin()]
        answers: Sequence[Answer | Exception]
        try:
            answers, events, last = self._transact([each.request for each in group])
        except Exception as error:
            log.exception("a commit failed")
            wanted = "a store that can be written to; the request may be repeated"
            failed = Unavailable(f"the store failed ({type(error).__name__}), wanted {wanted}")
            answers, events, last = [failed] * len(group), [], None
        if last is not None:
            self._committed(last, events)
        for each, answer in zip(group, answers, strict=True):
            each.reply.give(answer)
        for call in self.after_commit:
            call()

    def _transact(self, requests: list[Request]) -> tuple[list[Answer | Exception], list[Event], int | None]:
        answers: list[Answer | Exception] = []
        events: list[Event] = []
        changed: set[str] = set()
        last, now, rules = None, self._clock(), self.rules
        with self._store.transaction() as transaction:
            histories = transaction.events_of({each.id for each in requests if each.id})
            rounds = {"": Round(), **{name: round_of(each) for name, each in histories.items()}}
            gone = transaction.gone(name for name, each in histories.items() if not each)
            for request in requests:
                try:
                    is_gone = request.id in gone or rounds[request.id].erased
                    if is_gone and not isinstance(request, Erase):
                        got = f"decision {request.id!r:.60} was erased, or was dropped with old ones"
                        raise Conflict(f"{got}, wanted another id")
                    new = request.events(rounds[request.id], rules, now)
                except (Conflict, InvalidInput) as refused:
                    answers.append(refused)
                    continue
                for event in new:
                    rounds[request.id] = rounds[request.id].after(event)
                if new or isinstance(request, Expire):  # whose wait may have become longer since
                    changed.add(request.id)
                events += new
                answers.append(Answer(rounds[request.id], bool(new)))
            if events:
                last = transaction.append(events)
            wait = rules.feedback.longest_wait
            changed.discard("")
            transaction.wait({name: rounds[name].next_due(rules.z_names, wait) for name in changed})
        return answers, events, last
