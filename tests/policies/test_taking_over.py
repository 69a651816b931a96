"""The open rounds of another policy, taken over many at once: as if they had been announced one by one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from tests.policies.test_open_rounds import ARMS, DIM_X, DIM_Z, taught

from postserve import (
    BestPolicy,
    HybridMap,
    InvalidInput,
    KernelMap,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    PoLinTS,
    PoLinUCB,
    RidgeMap,
    RobustPoLinUCB,
    StagedMap,
)
from postserve.archive import digest_of
from postserve.changes import change
from postserve.policies import open_rounds
from postserve.state import content_of, private


class Louder(RidgeMap):
    """A map of a user's own, which has a verb of its own."""

    def expect(self, x: Any, arm: int) -> None:
        super().expect(x, arm)
        super().expect(x, arm)


MAPS: dict[str, Callable[[], Any]] = {
    "RidgeMap": lambda: RidgeMap(DIM_X, DIM_Z),
    "RidgeMap, ridge": lambda: RidgeMap(DIM_X, DIM_Z, ridge=0.5, intercept=True),
    "RidgeMap, features": lambda: RidgeMap(DIM_X, DIM_Z, features=np.sin),
    "HybridMap": lambda: HybridMap(DIM_X, DIM_Z),
    "HybridMap, features": lambda: HybridMap(DIM_X, DIM_Z, ridge=1.0, features=np.sin),
    "StagedMap": lambda: StagedMap([RidgeMap(DIM_X, 1), RidgeMap(DIM_X + 1, 1)]),
    "KernelMap": lambda: KernelMap(DIM_X, DIM_Z),
    "a subclass": lambda: Louder(DIM_X, DIM_Z),
}
KINDS: tuple[Any, ...] = (RobustPoLinUCB, LinUCBPhiHat, PoLinTS, BestPolicy)


def on_x_and_z(kind: Any, make_map: Callable[[], Any]) -> Any:
    return kind(ARMS, make_map())


POLICIES: dict[str, Callable[[], Any]] = {
    **{f"PoLinUCB, {name}": partial(on_x_and_z, PoLinUCB, make) for name, make in MAPS.items()},
    **{kind.__name__: partial(on_x_and_z, kind, MAPS["RidgeMap"]) for kind in KINDS},
    "hybrid": lambda: PoLinUCB(ARMS, HybridMap(DIM_X, DIM_Z), model="hybrid", optimism="posterior"),
    "shared": lambda: PoLinUCB(ARMS, RidgeMap(DIM_X, DIM_Z), model="shared"),
    "LinUCB": lambda: LinUCB(ARMS, DIM_X),
    "LinUCBOracle": lambda: LinUCBOracle(ARMS, DIM_X, DIM_Z),
}
every_policy = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)


def announced(policy: Any, names: range, z_of: range = range(0)) -> Any:
    """A copy with these rounds open; of some z came, and of one of them a part."""
    policy, rng = private(policy), np.random.default_rng(1)
    rounds = {name: (rng.normal(size=DIM_X), int(rng.integers(ARMS))) for name in range(60)}
    for name in names:
        policy.expect(*rounds[name], round_id=str(name))
    for name in z_of:
        policy.observe(*rounds[name], np.array([name / 7.0, 1.0]), round_id=str(name))
    return policy


def taken_over(policy: Any, other: Any) -> Any:
    policy = private(policy)
    change(policy, open_rounds.take_over, list(other._open))
    return policy


def digest(policy: Any) -> str:
    """Of all that is saved."""
    return digest_of(content_of(policy))


def widths(policy: Any) -> Any:
    """What announced rows change."""
    slots = policy._arm_set.all_slots
    return [arms.widths.inverse_of(arms.models_of(slots)) for arms in policy._regressions()]


@every_policy
def test_many_rounds_are_taken_over_as_if_announced_one_by_one(make: Callable[[], Any]) -> None:
    policy = taught(make(), np.random.default_rng(3))
    many = taken_over(announced(policy, range(20)), announced(policy, range(10, 40)))
    single = announced(policy, range(20))
    for one in announced(policy, range(10))._open:
        single.withdraw(one.x, one.arm, round_id=one.round_id)
    for one in announced(policy, range(20, 40))._open:
        single.expect(one.x, one.arm, round_id=one.round_id)
    assert digest(many) == digest(single)
    for found, wanted in zip(widths(many), widths(single), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9)


@every_policy
def test_a_batch_is_announced_as_one_by_one(make: Callable[[], Any]) -> None:
    for policy in (make(), taught(make(), np.random.default_rng(3))):
        batch, single = announced(policy, range(4)), announced(policy, range(40))
        new = [one for one in single._open if one.round_id not in open_rounds.named(batch)]
        X, arms, names = ([getattr(one, name) for one in new] for name in ("x", "arm", "round_id"))
        for some in (slice(0, 1), slice(1, 30), slice(30, None)):
            batch.expect_batch(X[some], arms[some], round_ids=names[some])
        assert digest(batch) == digest(single)
        for found, wanted in zip(widths(batch), widths(single), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_a_batch_that_is_refused_changes_nothing() -> None:
    policy = announced(taught(POLICIES["hybrid"](), np.random.default_rng(3)), range(3))
    before, X = digest(policy), np.ones((2, DIM_X))
    for arms, names, message in (
        ([0, 1], ["a", "2"], "round_id is '2', which is open already"),
        ([0, 1], ["a", "a"], "two of round_ids are the same"),
        ([0, 1], ["a"], "round_ids has 1 entries, wanted 2"),
        ([0], ["a", "b"], "arms has 1 entries, wanted 2"),
        ([0, 1], "ab", "round_ids is 'ab', wanted a sequence"),
        (0, ["a", "b"], "arms is 0, wanted a sequence"),
        (np.array(1), ["a", "b"], "arms is array.1., wanted a sequence"),
        ([0, 9], ["a", "b"], "arm is 9"),
    ):
        given: Any = arms, names
        with pytest.raises(InvalidInput, match=message):
            policy.expect_batch(X, given[0], round_ids=given[1])
        assert digest(policy) == before


@pytest.mark.parametrize("make", [make for name, make in POLICIES.items() if name != "LinUCB"])
def test_what_came_of_z_is_learnt_once(make: Callable[[], Any]) -> None:
    """Of rounds that are open in both, of new ones, and of one whose z was known already."""
    policy = taught(make(), np.random.default_rng(3))
    before, other = announced(policy, range(20), range(5)), announced(policy, range(30), range(25))
    found = taken_over(before, other)
    known = {one.round_id: (one.x, one.arm, one.z) for one in found._open}
    assert set(known) == set(map(str, range(30)))
    for one in other._open:
        x, arm, z = known[one.round_id]
        assert (x.tolist(), arm) == (one.x.tolist(), one.arm)
        assert (z is None) == (one.z is None)
        assert z is None or z.tolist() == one.z.tolist()
    if (pulls := pairs(found)) is not None:
        assert pulls == pairs(before) + 20 == pairs(other)
    for one in other._open:
        if one.z is None:
            found.observe(one.x, one.arm, np.array([0.5, 1.0]), round_id=one.round_id)
        found.credit(one.x, one.arm, None, 1.0, round_id=one.round_id)
    assert found._open is None


def pairs(policy: Any) -> Any:
    """How many z the map has learnt, if it says so."""
    models = getattr(getattr(policy._phi_hat, "map", None), "_models", None)
    return None if models is None else float(models.pulls[0])


@pytest.mark.parametrize("kind", ["StagedMap", "RidgeMap", "HybridMap"])
def test_parts_of_z_are_taken_over(kind: str) -> None:
    policy = taught(PoLinUCB(ARMS, MAPS[kind]()), np.random.default_rng(3))
    before, other = announced(policy, range(5)), announced(policy, range(8))
    for one in list(other._open)[3:]:
        other.observe(one.x, one.arm, np.array([2.0, np.nan]), round_id=one.round_id)
    found = open_rounds.named(taken_over(before, other))
    assert [one.part is not None for one in found.values()] == [False] * 3 + [True] * 5
    once = taken_over(before, other)
    again = taken_over(once, other)
    assert digest(again) == digest(once)
    other.observe(one.x, one.arm, np.array([2.0, 3.0]), round_id="7")
    z = open_rounds.named(taken_over(again, other))["7"].z
    assert z is not None
    assert z.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("kind", MAPS)
def test_a_policy_that_knows_no_z_yet_takes_rounds_over(kind: str) -> None:
    """They count from the first z on."""
    policy = PoLinUCB(ARMS, MAPS[kind]())
    other = announced(taught(PoLinUCB(ARMS, MAPS[kind]()), np.random.default_rng(3)), range(6), range(2))
    found = taken_over(announced(policy, range(3)), other)
    assert set(open_rounds.named(found)) == set(map(str, range(6)))
    assert all(row is not None for one in found._open for row in one.rows)


def test_no_round_at_all_is_taken_over() -> None:
    policy = taught(POLICIES["hybrid"](), np.random.default_rng(3))
    found = private(announced(policy, range(9)))
    change(found, open_rounds.take_over, [])
    assert found._open is None
    assert digest(found) == digest(policy)


def test_of_rounds_at_one_x_stages_take_back_the_oldest() -> None:
    """As `expect` and `observe` do, so that a replay of these verbs has the same state."""
    policy = taught(POLICIES["PoLinUCB, StagedMap"](), np.random.default_rng(3))
    x, z = np.ones(DIM_X), np.array([1.0, 2.0])
    before, other = private(policy), private(policy)
    for name in "abc":
        other.expect(x, 0, round_id=name)
    before.expect(x, 0, round_id="a")
    other.update(-x, 1, z, 1.0)
    before.update(-x, 1, z, 1.0)
    for name in "bc":
        other.observe(x, 0, z, round_id=name)
    single = private(before)
    for name in "bc":
        single.expect(x, 0, round_id=name)
        single.observe(x, 0, z, round_id=name)
    assert digest(taken_over(before, other)) == digest(single)
