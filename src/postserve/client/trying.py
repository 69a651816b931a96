"""How a request is tried until it is answered: the same for every client, and without one.

A flow is a generator: it yields what is to be done, a call or a wait, is sent what came of it, and returns
its result. So all decisions are made once, here and in `verbs.py`, and a client only sends and sleeps.
"""

import json
import random
from collections.abc import Generator, Mapping
from email.utils import parsedate_to_datetime
from typing import Any, BinaryIO, NamedTuple, TypeAlias, TypeVar

from postserve.errors import (
    InvalidInput,
    ServiceConflict,
    ServiceError,
    ServiceForbidden,
    ServiceInvalidInput,
    ServiceNotFound,
    ServiceUnavailable,
)

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.1, 5.0
"""Seconds: waits double from the first to the longest, each at random up to that."""
AGAIN = (429, 503)
ERRORS: dict[int, type[ServiceError]] = {
    401: ServiceForbidden,
    403: ServiceForbidden,
    404: ServiceNotFound,
    409: ServiceConflict,
    413: ServiceInvalidInput,
    422: ServiceInvalidInput,
    429: ServiceUnavailable,
    503: ServiceUnavailable,
}


class Call(NamedTuple):
    """A request; an answer that is a file goes `into` one."""

    method: str
    path: str
    body: bytes | None = None
    into: BinaryIO | None = None


class Wait(NamedTuple):
    """Do nothing for some seconds."""

    seconds: float


class Answer(NamedTuple):
    """What came back; `status` is 0 if nothing did, and `content` then says why."""

    status: int
    content: bytes
    headers: Mapping[str, str] = {}


class Done(NamedTuple):
    """What came of a step, nothing of a wait, and when, by a clock that never goes back."""

    now: float
    answer: Answer = Answer(0, b"")
    took: float = 0.0
    """Seconds."""


class Patience(NamedTuple):
    """How often, and for how many seconds, a request is tried."""

    tries: int
    seconds: float


Flow: TypeAlias = Generator[Call | Wait, Done, T]


def encoded(body: Mapping[str, Any]) -> bytes:
    """JSON, with numpy's numbers as numbers.

    >>> encoded({"id": "d", "key": None})
    b'{"id":"d"}'
    """
    there = {name: value for name, value in body.items() if value is not None}
    try:
        return json.dumps(there, allow_nan=False, separators=(",", ":"), default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the request is not JSON ({error}), wanted finite numbers and texts") from error


def _plain(value: Any) -> Any:
    if getattr(value, "shape", None) != ():
        raise TypeError(f"{value!r:.60} of type {type(value).__name__}")
    return value.item()


def tried(call: Call, patience: Patience) -> Flow[Answer]:
    """Ask until there is an answer; what is refused is raised, and so is patience that is at its end.

    Every verb may be repeated: a decision has its id before it is first asked for, and the log knows what it
    has got before.
    """
    start: float | None = None
    for number in range(patience.tries):
        now, answer, took = yield call
        start = now - took if start is None else start
        if answer.status in (200, 202):
            return answer
        if answer.status not in (0, *AGAIN):
            break
        wait = _wait(number, answer)
        if number + 1 == patience.tries or now + wait - start > patience.seconds:
            break
        yield Wait(wait)
    raise _error(answer)


def _wait(number: int, answer: Answer) -> float:
    """At random, so that clients that were refused together do not come back together."""
    wait = random.uniform(0.0, min(LONGEST_WAIT, FIRST_WAIT * 2.0**number))
    asked = answer.headers.get("retry-after", "")
    return wait + (float(asked) if asked.isascii() and asked.isdecimal() else _until(asked, answer))


def _until(asked: str, answer: Answer) -> float:
    """The seconds to a date, by the clock of whoever answered."""
    try:
        then, now = parsedate_to_datetime(asked), parsedate_to_datetime(answer.headers.get("date", ""))
        return max((then - now).total_seconds(), 0.0)
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _error(answer: Answer) -> ServiceError:
    """The service's own words, where they are its own."""
    if answer.status == 0:
        wanted = "a service that answers; the request may be repeated"
        text = answer.content.decode("utf-8", "replace")
        return ServiceUnavailable(f"the service could not be reached ({text}), wanted {wanted}")
    kind = ERRORS.get(answer.status, ServiceError)
    try:
        return kind(str(json.loads(answer.content)["message"]), answer.status)
    except (ValueError, TypeError, KeyError):
        return kind(f"the service answered with status {answer.status}, wanted 200", answer.status)
