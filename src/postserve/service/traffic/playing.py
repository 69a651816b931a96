"""Visitors, and feedback that comes late, in parts, twice, out of order or never."""

import heapq
import itertools
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from postserve.client import Client
from postserve.client.verbs import OutcomeResult, ServedDecision
from postserve.errors import ServiceError
from postserve.service.traffic.worlds import World

AT_ONCE = 8
"""Decisions that are asked for at the same time."""


class Habits(NamedTuple):
    """How feedback comes; shares are between 0 and 1."""

    delay: float = 20.0
    """Rounds until a piece of feedback comes, on average; in no order."""
    parts: float = 0.3
    """The share of z that comes field by field."""
    lost: float = 0.05
    """The share of pieces that never come."""
    twice: float = 0.1
    """The share of requests that are sent again later."""
    deferred: float = 0.1
    """The share of decisions that count once they are activated."""


class Played(NamedTuple):
    """What happened in a round."""

    arm: str
    reward: float | None
    best: bool | None
    """Whether it was the best arm; None if nobody knows."""


class Traffic:
    """What was sent and what came of it, so far."""

    def __init__(self, world: World, client: Client, habits: Habits, seed: int) -> None:
        self._world, self._client, self._habits = world, client, habits
        self._rng, self._run = np.random.default_rng(seed), uuid.uuid4().hex[:8]
        self._waiting: list[tuple[float, int, dict[str, Any]]] = []
        self._order = itertools.count()
        self.rounds: list[Played] = []
        self.requests, self.outcomes, self.repeated = 0, 0, 0
        self.errors: Counter[str] = Counter()
        """By what the service said."""
        self.seconds = 0.0

    def play(self, rounds: int, progress: Callable[[int], None] = lambda done: None) -> None:
        """Send visitors and their feedback, some at a time; what is still out at the end comes then.

        An interrupt ends it there.
        """
        arms, began = [arm for arm, there in self._client.arms().items() if there], time.monotonic()
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                while len(self.rounds) < rounds:
                    here = range(len(self.rounds), min(len(self.rounds) + AT_ONCE, rounds))
                    visits = [(f"{self._run}-{i}", self._visit(arms)) for i in here]
                    for (name, visit), decision in zip(visits, pool.map(self._decide, visits), strict=True):
                        self._serve(name, visit, decision)
                    self._send(len(self.rounds))
                    progress(len(self.rounds))
            self._send(math.inf)
        except KeyboardInterrupt:
            pass
        finally:
            self.seconds += time.monotonic() - began

    def _visit(self, arms: list[str]) -> dict[str, Any]:
        """A request for a decision."""
        x, deferred = self._world.visitor(self._rng), self._happens(self._habits.deferred)
        return {"x": x, "best": self._world.best(x, arms), "deferred": deferred}

    def _decide(self, visit: tuple[str, Mapping[str, Any]]) -> ServedDecision | ServiceError:
        name, asked = visit
        try:
            return self._client.decide(asked["x"], id=name, deferred=asked["deferred"])
        except ServiceError as error:
            return error

    def _serve(self, name: str, visit: Mapping[str, Any], decision: ServedDecision | ServiceError) -> None:
        """Put what follows a decision on its way."""
        self.requests += 1
        if isinstance(decision, ServiceError):
            self.errors[type(decision).__name__] += 1
            self.rounds.append(Played("", None, None))
            return
        z, reward = self._world.feedback(visit["x"], decision.arm, self._rng)
        best = None if visit["best"] is None else decision.arm == visit["best"]
        self.rounds.append(Played(decision.arm, reward, best))
        pieces: list[dict[str, Any]] = [{"activate": True}] if visit["deferred"] else []
        if z and self._happens(self._habits.parts):
            pieces += [{"z": {field: value}} for field, value in z.items()]
        elif z:
            pieces.append({"z": z})
        if reward is not None:
            pieces.append({"reward": reward, "key": "1"})
        for piece in pieces:
            if not self._happens(self._habits.lost):
                for _ in range(1 + self._happens(self._habits.twice)):
                    due = len(self.rounds) + self._rng.exponential(self._habits.delay)
                    heapq.heappush(self._waiting, (due, next(self._order), {"id": name, **piece}))
        if self._happens(self._habits.twice):
            again = self._decide((name, visit))
            self.requests += 1
            if isinstance(again, ServiceError) or again.arm != decision.arm:
                self.errors["another answer to the same id"] += 1

    def _send(self, now: float) -> None:
        """What is due by now, in one request."""
        due = list(self._due(now))
        if not due:
            return
        self.requests += 1
        self.outcomes += len(due)
        try:
            self._note(self._client.outcomes(due))
        except ServiceError as error:
            self.errors[type(error).__name__] += 1

    def _due(self, now: float) -> Iterator[dict[str, Any]]:
        while self._waiting and self._waiting[0][0] <= now:
            yield heapq.heappop(self._waiting)[2]

    def _note(self, results: list[OutcomeResult]) -> None:
        self.errors.update(each.error for each in results if each.error)
        self.repeated += sum(each.repeated for each in results)

    def _happens(self, share: float) -> bool:
        return bool(self._rng.random() < share)
