"""Experiments, engines and clocks for the tests of the service."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from postserve.service.engine import Engine
from postserve.service.experiment import Experiment, parse_experiment
from postserve.service.log.replies import Answer
from postserve.service.log.stores import Store
from postserve.state import arrays_of

FILE = """
name = "lessons"
arms = ["short", "long"]
explore = 0.2
x = { age = "number", device = ["phone", "computer"] }
z = { minutes = "number", finished = ["no", "yes"] }
[feedback]
wait_for_z = "100s"
wait_for_reward = "1000s"
"""
X: dict[str, Any] = {"age": 31.0, "device": "phone"}
Z: dict[str, Any] = {"minutes": 3.0, "finished": "yes"}
MINUTE = 60.0


def experiment(more: str = "", file: str = FILE) -> Experiment:
    """The lessons, with some lines added to the last table."""
    return parse_experiment(file + more)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Play:
    """An engine whose answers are waited for."""

    def __init__(self, one: Experiment, store: Store, clock: Callable[[], float]) -> None:
        self.engine, self.clock = Engine(one, store, clock=clock, seed=0), clock
        self.engine.start()

    def done(self, future: "Future[Answer]") -> Answer:
        return future.result(timeout=120)

    def decide(self, name: str, x: dict[str, Any] | None = None, **options: Any) -> Any:
        return self.done(self.engine.decide(X if x is None else x, name=name, **options)).round.decided

    def learn(self) -> Any:
        """The policy once all is learnt."""
        assert self.engine.learner.wait_for(self.engine.store.last(), 120)
        return self.engine.model.policy


def rounds_learnt(policy: Any) -> int:
    """How many rewards the policy has learnt from."""
    return int(arrays_of(policy)["counts"][0])


@contextmanager
def playing(one: Experiment, store: Store, clock: Callable[[], float] | None = None) -> Iterator[Play]:
    """An engine that is stopped in the end."""
    play = Play(one, store, clock or Clock())
    try:
        yield play
    finally:
        play.engine.stop()
