"""Outcomes that wait to be sent."""

import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from postserve.client.trying import encoded
from postserve.client.verbs import OutcomeResult
from postserve.errors import InvalidInput
from postserve.validation import integer, number


class Buffer:
    """What was added and not sent, and what was refused."""

    def __init__(self, size: int, seconds: float) -> None:
        self.size = integer("size", size, least=1)
        self.seconds = number("seconds", seconds, above=0.0, most=threading.TIMEOUT_MAX)
        self.events: list[Mapping[str, Any]] = []
        self.failed: list[OutcomeResult] = []
        self.closed = False

    def add(self, event: Mapping[str, Any]) -> None:
        """Take one; raises if it cannot be sent at all."""
        if self.closed:
            raise InvalidInput("the buffer is closed, wanted another one")
        self.events.append(json.loads(encoded(event)))  # a copy: callers may use theirs again

    @property
    def is_full(self) -> bool:
        """Whether it should be sent."""
        return len(self.events) >= self.size

    def close(self) -> None:
        """Take no more."""
        self.closed = True

    def taken(self) -> list[Mapping[str, Any]]:
        """All of it, to be sent."""
        events, self.events = self.events, []
        return events

    def put_back(self, events: list[Mapping[str, Any]]) -> None:
        """It could not be sent."""
        self.events = [*events, *self.events]

    def note(self, results: Iterable[OutcomeResult]) -> None:
        """Remember what was refused."""
        self.failed += [each for each in results if each.error]

    def give_up(self, error: Exception) -> None:
        """Nothing of it will be sent."""
        self.note(OutcomeResult(str(each["id"]), error="unsent", message=str(error)) for each in self.taken())
