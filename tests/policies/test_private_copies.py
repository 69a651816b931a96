"""Many verbs on one private copy do what they do one by one on the policy, and cost one copy."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from tests.attack.states import is_same

from postserve import (
    BestPolicy,
    EpsilonGreedy,
    HybridMap,
    InvalidInput,
    LinUCB,
    PoLinTS,
    PoLinUCB,
    RidgeMap,
    StagedMap,
)
from postserve.conformance.tools import same, snapshot
from postserve.context_maps.base import SharedMap
from postserve.state import out_of_sight, private

DIM_X, DIM_Z, ARMS, NAN = 3, 2, 3, np.nan
POLICIES: dict[str, Callable[[], Any]] = {
    "LinUCB": lambda: LinUCB(ARMS, DIM_X),
    "LinUCB-ridge": lambda: LinUCB(ARMS, DIM_X, ridge=1.0),
    "LinUCB-hybrid": lambda: LinUCB(ARMS, DIM_X, model="hybrid"),
    "RidgeMap": lambda: PoLinUCB(ARMS, RidgeMap(DIM_X, DIM_Z), missing_z="impute"),
    "HybridMap": lambda: PoLinUCB(
        ARMS, HybridMap(DIM_X, DIM_Z), model="hybrid", optimism="posterior", missing_z="impute"
    ),
    "StagedMap": lambda: PoLinUCB(
        ARMS, StagedMap([HybridMap(DIM_X, 1), RidgeMap(DIM_X + 1, 1)]), missing_z="impute"
    ),
    "PoLinTS": lambda: PoLinTS(ARMS, RidgeMap(DIM_X, DIM_Z), missing_z="drop"),
    "EpsilonGreedy": lambda: EpsilonGreedy(PoLinUCB(ARMS, RidgeMap(DIM_X, DIM_Z), missing_z="impute")),
    "BestPolicy": lambda: BestPolicy(ARMS, RidgeMap(DIM_X, DIM_Z), missing_z="impute"),
}
Verb = Callable[[Any], Any]


def story(seed: int, announced: str) -> Iterator[Verb]:
    """Rounds at few different x, whose feedback comes in every way; if they are not announced, at once."""
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(4, DIM_X))
    for t in range(60):
        x, arm = places[rng.integers(4)], int(rng.integers(ARMS))
        z = x[:DIM_Z] + rng.normal(size=DIM_Z)
        reward = float(z.sum() + rng.normal())
        yield from feedback(t % 6, x, arm, z, reward, announced, f"round {t}")
        if t == 30:
            yield lambda policy: policy.forget(arms=0.9)
        if t == 40:
            yield lambda policy: policy.refit_prior()
        if t == 50:
            yield lambda policy: policy.remove_arm(policy.add_arm())


def feedback(way: int, x: Any, arm: int, z: Any, reward: float, announced: str, name: str) -> Iterator[Verb]:
    """One round's, in one of six ways."""
    of: dict[str, Any] = {"round_id": name} if announced == "by id" else {}
    if announced:
        yield lambda policy: policy.expect(x, arm, **of)
    if way == 0 and announced:
        yield lambda policy: policy.withdraw(x, arm, **of)
    elif way == 1 and announced:
        yield lambda policy: policy.observe(x, arm, [z[0], NAN], **of)
    elif way == 2 and announced:
        yield lambda policy: policy.observe(x, arm, z, **of)
        yield lambda policy: policy.credit(x, arm, None, reward, **of)
    elif way == 3:
        yield lambda policy: policy.update(x, arm, None, reward, **of)
    elif way == 4:
        yield lambda policy: policy.update_batch([x], [arm], [z], [reward])
    else:
        yield lambda policy: policy.update(x, arm, z, reward, **of)


def tried(policy: Any, verb: Verb) -> str:
    """What a verb says; a refusal is one of its answers."""
    try:
        return repr(verb(policy))
    except InvalidInput as error:
        return str(error)


@pytest.mark.parametrize("announced", ["", "by x and arm", "by id"])
@pytest.mark.parametrize("name", POLICIES)
def test_verbs_on_a_private_copy_do_what_they_do_on_the_policy(name: str, announced: str) -> None:
    one_by_one = POLICIES[name]()
    twin = private(one_by_one)
    for i, verb in enumerate(story(0, announced)):
        assert tried(twin, verb) == tried(one_by_one, verb), i
        assert is_same(one_by_one, twin), i
        assert one_by_one.version == twin.version, i
    assert is_same(copy.deepcopy(one_by_one), copy.deepcopy(twin))


@pytest.mark.parametrize("announced", ["by x and arm", "by id"])
@pytest.mark.parametrize("name", POLICIES)
def test_what_a_private_copy_refuses_changes_nothing(name: str, announced: str) -> None:
    policy = POLICIES[name]()
    for verb in story(1, "by id"):
        tried(policy, verb)
    twin = private(policy)
    for verb in story(2, announced):
        before = snapshot(twin)
        try:
            verb(twin)
        except InvalidInput:
            assert same(before, snapshot(twin))
    bad: list[Verb] = [
        lambda twin: twin.expect([1.0], 0),
        lambda twin: twin.observe(np.ones(DIM_X), 99, np.ones(DIM_Z)),
        lambda twin: twin.credit(np.ones(DIM_X), 0, np.ones(DIM_Z), NAN),
        lambda twin: twin.withdraw(np.full(DIM_X, 7.0), 0),
        lambda twin: twin.withdraw(np.ones(DIM_X), 0, round_id="none"),
        lambda twin: twin.forget(arms=2.0),
    ]
    before = snapshot(twin)
    for verb in bad:
        with pytest.raises(InvalidInput):
            verb(twin)
        assert same(before, snapshot(twin))


class CopiedOften(SharedMap):
    """A map that counts its copies, and otherwise predicts 0."""

    copies = 0

    def _predict(self, X: Any) -> Any:
        return np.zeros((len(X), self.dim_z))

    def _radius(self, X: Any) -> Any:
        return np.ones(len(X))

    def _learn(self, x: Any, z: Any) -> None: ...

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        CopiedOften.copies += 1
        return super().__deepcopy__(memo)


def test_many_verbs_on_a_private_copy_cost_one_copy() -> None:
    policy, x, z = PoLinUCB(ARMS, CopiedOften(DIM_X, DIM_Z)), np.ones(DIM_X), np.ones(DIM_Z)
    CopiedOften.copies = 0
    twin = private(policy)
    for _ in range(5):
        twin.expect(x, 0)
        twin.expect(x, 1)
        twin.observe(x, 0, [1.0, NAN])
        twin.observe(x, 0, [1.0, 1.0])
        twin.credit(x, 0, None, 1.0)
        twin.update(x, 1, z, 1.0)
    assert CopiedOften.copies == 1
    assert policy.version == 0


def test_a_private_copy_is_always_a_new_one() -> None:
    policy = LinUCB(ARMS, DIM_X)
    first = private(policy)
    second = private(first)
    second.update(np.ones(DIM_X), 0, None, 1.0)
    assert out_of_sight(first) is first is not second
    assert (policy.version, first.version, second.version) == (0, 0, 1)
