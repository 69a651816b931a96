"""Readers that another thread lets in between two effects of one commit see a whole version all the same."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.attack.threads import ARMS, POLICIES, X, Z, equal, scores

from postserve import BestMap, BestPolicy, PerArmMap, PoLinUCB, RidgeMap, StagedMap
from postserve.conformance.tools import learnt
from postserve.errors import InvalidInput

PROBE = np.array([0.5, -1.0, 2.0])
LONG_ENOUGH = 0.3
"""Seconds in which a reader that does not wait for the end of a commit has read."""


class LetsReadersIn:
    """Called in a commit: another thread reads, and what it has read by then, or later, is kept."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read, self.found = read, []  # type: ignore[var-annotated]
        self.reader = threading.Thread(target=lambda: self.found.append(self.read()))

    def __call__(self) -> None:
        self.reader.start()
        self.reader.join(LONG_ENOUGH)

    def result(self) -> Any:
        self.reader.join(60.0)
        return self.found[0]


def taught(kind: Any = PoLinUCB) -> Any:
    policy, rng = kind(3, RidgeMap(3, 2)), np.random.default_rng(0)
    for i in range(60):
        x = rng.standard_normal(3)
        z = x[:2] ** 2 + rng.standard_normal(2)
        policy.update(x, i % 3, z, float(z.sum() + i % 3 + rng.standard_normal()))
    return policy


def read(policy: Any) -> list[float]:
    found = [*scores(policy, PROBE).values(), *policy.context_map.predict(PROBE)[0]]
    return [float(each) for each in found]


class Pausing(PoLinUCB):
    """Readers come after the map has learnt and before the arm has."""

    pause: Any = None

    def _observe(self, x: Any, slot: int, z: Any) -> Any:
        z_hat = super()._observe(x, slot, z)
        if self.pause is not None:
            self._work.append(self.pause)
        return z_hat


@pytest.mark.parametrize("what", [lambda policy: list(scores(policy, PROBE).values()), read])
def test_between_the_map_and_the_arm(what: Any) -> None:
    policy = taught(Pausing)
    before, pause = what(policy), LetsReadersIn(lambda: what(policy))
    policy.pause = pause
    policy.update(PROBE, 1, [3.0, 1.0], 9.0)
    policy.pause = None
    assert pause.result() == what(policy) != before


def test_between_the_members_of_a_policy() -> None:
    policy, rng = BestPolicy(3, RidgeMap(3, 2)), np.random.default_rng(0)
    for i in range(40):
        policy.update(rng.standard_normal(3), i % 3, rng.standard_normal(2), float(i % 5))
    members: list[Any] = list(policy._members.values())
    for member in members:
        pause = LetsReadersIn(lambda: list(scores(policy, PROBE).values()))
        credit = member._credit

        def later(*args: Any, credit: Any = credit, pause: Any = pause) -> None:
            credit(*args)
            policy._work.append(pause)

        member._credit = later
        policy.update(PROBE, 1, [3.0, 1.0], 9.0)
        del member._credit
        assert pause.result() == list(scores(policy, PROBE).values())


class Failing(RidgeMap):
    """A map that cannot learn."""

    def update(self, x: Any, arm: int, z: Any) -> None:
        raise ArithmeticError("no")


NESTED: dict[str, Any] = {
    "own": lambda: Failing(3, 2),
    "per arm": lambda: PerArmMap(Failing(3, 2)),
    "best": lambda: BestMap([RidgeMap(3, 2), Failing(3, 2)]),
    "staged": lambda: StagedMap([Failing(3, 2)]),
    "best of per arm": lambda: BestMap([RidgeMap(3, 2), PerArmMap(Failing(3, 2))]),
    "per arm of best": lambda: PerArmMap(BestMap([RidgeMap(3, 2), Failing(3, 2)])),
    "best of staged": lambda: BestMap([RidgeMap(3, 2), StagedMap([Failing(3, 2)])]),
}


def guards(phi_hat: Any) -> list[Any]:
    within = [part for part in phi_hat._changed_within() if hasattr(part, "_guard")]
    return [phi_hat._guard, *(guard for part in within for guard in guards(part))]


@pytest.mark.parametrize("name", NESTED)
def test_a_map_that_fails_changes_nothing_and_keeps_nobody_waiting(name: str) -> None:
    policy, phi_hat = PoLinUCB(3, NESTED[name]()), NESTED[name]()
    for learner, arguments in ((policy, ([3.0, 1.0], 9.0)), (phi_hat, ([3.0, 1.0],))):
        before = learnt(learner)
        with pytest.raises((ArithmeticError, InvalidInput)):
            learner.update(PROBE, 0, *arguments)
        after = learnt(learner)
        assert all(np.array_equal(before[key], after[key]) for key in before)
    found = [policy._guard, *guards(policy.context_map), *guards(phi_hat)]
    assert [guard.begun for guard in found] == [guard.version for guard in found]


def test_a_reading_within_a_reading_does_not_wait_for_itself() -> None:
    policy: Any = PoLinUCB(2, StagedMap([RidgeMap(3, 1), RidgeMap(4, 1)]))
    phi_hat, guard = policy.context_map, policy.context_map._guard
    guard.begun += 1  # as in the middle of a commit
    reader = threading.Thread(target=lambda: phi_hat.radius(PROBE), daemon=True)
    reader.start()
    reader.join(LONG_ENOUGH)
    assert reader.is_alive()  # it waits for the end
    guard.version = guard.begun
    reader.join(60.0)
    assert not reader.is_alive()


@pytest.mark.parametrize("name", [name for name in POLICIES if name != "EpsilonGreedy"])  # it wraps one
def test_what_is_prepared_changes_nothing(name: str) -> None:
    """Nor does a copy that is made meanwhile show it: models get another form as their rows become many."""
    policy, rng = POLICIES[name](), np.random.default_rng(0)
    for i in range(80):
        x, z = rng.standard_normal(X), rng.standard_normal(Z)
        before = learnt(policy)
        policy._update(x, i % ARMS, z, float(z.sum()))
        assert equal(learnt(policy), before)
        policy._apply()
        assert not equal(learnt(policy), before)
