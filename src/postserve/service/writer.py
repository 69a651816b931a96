"""The one way into the log: requests are committed in groups, and answered only then."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple

from postserve.errors import PostserveError
from postserve.service.events import Event
from postserve.service.requests import Conflict, Request, Rules
from postserve.service.rounds import Round, round_of
from postserve.service.stores import Store

GROUP = 256
"""Requests in one commit, at most."""

log = logging.getLogger("postserve.service")


class Overloaded(PostserveError):
    """More requests wait than the service takes."""


class Unavailable(PostserveError):
    """The store could not commit; whether the request was kept is not known, and it may be repeated."""


class Answer(NamedTuple):
    """The round after a request was committed, and whether it changed anything."""

    round: Round
    changed: bool


class _Waiting(NamedTuple):
    request: Request
    future: "Future[Answer]"


class Writer:
    """A thread that commits what was submitted, in the order in which it came."""

    def __init__(
        self,
        store: Store,
        rules: Rules,
        most_waiting: int,
        committed: Callable[[int], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store, self.rules, self._most_waiting = store, rules, most_waiting
        self._committed, self._clock = committed, clock
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

    def submit(self, request: Request) -> "Future[Answer]":
        """Commit a request."""
        if self.waiting >= self._most_waiting:
            raise Overloaded(f"{self.waiting} requests wait, wanted fewer than {self._most_waiting}")
        future: Future[Answer] = Future()
        self._queue.put(_Waiting(request, future))
        return future

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
        """One transaction for all of them; each is refused for itself, or all wait in vain together."""
        try:
            answers, last = self._transact([each.request for each in group])
        except Exception as error:
            log.exception("a commit failed")
            wanted = "a store that can be written to; the request may be repeated"
            failed = Unavailable(f"the store failed ({type(error).__name__}: {error}), wanted {wanted}")
            for each in group:
                each.future.set_exception(failed)
            return
        if last is not None:
            self._committed(last)
        for each, answer in zip(group, answers, strict=True):
            if isinstance(answer, Answer):
                each.future.set_result(answer)
            else:
                each.future.set_exception(answer)

    def _transact(self, requests: list[Request]) -> tuple[list[Answer | Conflict], int | None]:
        answers: list[Answer | Conflict] = []
        events: list[Event] = []
        changed: set[str] = set()
        last, now, rules = None, self._clock(), self.rules
        with self._store.transaction() as transaction:
            histories = transaction.events_of({each.id for each in requests if each.id})
            rounds = {"": Round(), **{name: round_of(each) for name, each in histories.items()}}
            for request in requests:
                try:
                    new = request.events(rounds[request.id], rules, now)
                except Conflict as refused:
                    answers.append(refused)
                    continue
                for event in new:
                    rounds[request.id] = rounds[request.id].after(event)
                    changed.add(request.id)
                events += new
                answers.append(Answer(rounds[request.id], bool(new)))
            if events:
                last = transaction.append(events)
                wait = rules.feedback.longest_wait
                changed.discard("")
                transaction.wait({name: rounds[name].next_due(rules.z_names, wait) for name in changed})
        return answers, last
