"""z in stages, against a regression of each stage by hand: in any order of arrival, alone and in policies."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.own_map import OwnTotal
from tests.stages import (
    ARMS,
    DIM_X,
    DIM_Z,
    NAN,
    ONE_STAGE,
    RIDGE,
    SIZES,
    STARTS,
    X_ALONE,
    Truth,
    require_equal,
    rounds,
    staged,
    stages_in,
)

import postserve
from postserve import (
    BestPolicy,
    HybridMap,
    InvalidInput,
    LinUCBPhiHat,
    PerArmMap,
    PoLinTS,
    PoLinUCB,
    RidgeMap,
    RobustPoLinUCB,
    StagedMap,
)
from postserve.conformance.tools import learnt, same, snapshot
from postserve.types import FloatArray


def parts_of(z: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    """What is known of z after each entry, in a random order, up to a random one."""
    order = rng.permutation(DIM_Z)
    known = [np.isin(np.arange(DIM_Z), order[: n + 1]) for n in range(int(rng.integers(1, DIM_Z + 1)))]
    return [np.where(has, z, NAN) for has in known]


@pytest.mark.parametrize("kind", [RidgeMap, HybridMap])
@pytest.mark.parametrize("told", [STARTS, X_ALONE, ONE_STAGE], ids=["all", "x alone", "one stage"])
def test_stages_are_regressions_in_any_order_of_arrival(
    kind: Any, told: Sequence[int], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    phi_hat, other, truth = staged(kind, told), staged(kind, told), Truth(kind is HybridMap, told)
    waiting: list[Any] = [(x, arm, None, parts_of(z, rng)) for x, arm, z in rounds(25, rng)]
    turn = 0
    while waiting:  # parts of several rounds, in turn
        x, arm, before, (part, *rest) = waiting.pop(int(rng.integers(len(waiting))))
        learner = phi_hat if turn % 3 else other
        learner.learn_stages(x, arm, part, before)
        for stage in stages_in(part, told) - stages_in(before, told):
            truth.learn(stage, x, arm, part)
        if rest:
            waiting.append((x, arm, part, rest))
        turn += 1
    phi_hat.merge(other)
    require_equal(phi_hat, truth, rng)
    phi_hat.save(tmp_path / "map.npz")
    loaded = postserve.load(tmp_path / "map.npz")
    require_equal(loaded, truth, rng)
    loaded.forget(0.5)
    truth.forget(0.5)
    require_equal(loaded, truth, rng)
    for x, arm, z in rounds(5, rng):
        loaded.update(x, arm, z)
        for stage in range(len(SIZES)):
            truth.learn(stage, x, arm, z)
    require_equal(loaded, truth, rng)


def test_draws_of_later_stages_follow_those_of_earlier_ones() -> None:
    rng = np.random.default_rng(1)
    phi_hat, truth = staged(), Truth(hybrid=False)
    for x, arm, z in rounds(6, rng):
        phi_hat.update(x, arm, z)
        for stage in range(len(SIZES)):
            truth.learn(stage, x, arm, z)
    x = np.array([0.5, -1.0])
    drawn = phi_hat.sample(x, [0], rng, 20_000)[:, 0]
    expected = truth.covariance(x, 0)
    scale = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(np.cov(drawn.T) / scale, expected / scale, atol=0.1)


def test_a_removed_arm_starts_again() -> None:
    rng = np.random.default_rng(2)
    phi_hat = StagedMap([PerArmMap(RidgeMap(DIM_X, 1, ridge=RIDGE)), RidgeMap(DIM_X + 1, 3, ridge=RIDGE)])
    for x, arm, z in rounds(20, rng):
        phi_hat.update(x, arm, z)
    x = rng.normal(size=DIM_X)
    before = phi_hat.predict(x, [0, 1])
    phi_hat.remove_arm(0)
    after = phi_hat.predict(x, [0, 1])
    assert after[0, 0] == 0.0
    assert before[0, 0] != 0.0
    np.testing.assert_array_equal(before[1], after[1])


def test_a_beginning_sharpens_what_the_end_is_expected_to_be() -> None:
    rng = np.random.default_rng(3)
    phi_hat, alone = StagedMap([RidgeMap(1, 1), RidgeMap(2, 1)]), RidgeMap(1, 2)
    errors = np.zeros(2)
    for t in range(400):
        x = rng.normal(size=1)
        first = x[0] + rng.normal()
        z = np.array([first, 2.0 * first + 0.1 * rng.normal()])
        if t >= 100:
            ends = phi_hat.complete(x, 0, [first, NAN])[1], alone.predict(x)[0, 1]
            errors += (np.array(ends) - z[1]) ** 2
        phi_hat.update(x, 0, z)
        alone.update(x, 0, z)
    assert errors[0] < 0.01 * errors[1]


def make_policy(kind: Any = PoLinUCB, **options: Any) -> Any:
    return kind(len(ARMS), staged(HybridMap), ridge=2.0, **options)


@pytest.mark.parametrize("kind", [PoLinUCB, RobustPoLinUCB, LinUCBPhiHat, BestPolicy, PoLinTS])
@pytest.mark.parametrize("by", ["observe", "update", "update_batch"])
def test_a_policy_learns_each_stage_once(kind: Any, by: str, tmp_path: Path) -> None:
    """Parts, whole rounds and a file in between teach what whole rounds teach."""
    rng = np.random.default_rng(4)
    one, other = make_policy(kind), make_policy(kind)
    for x, arm, z in rounds(10, rng):
        for policy in (one, other):
            policy.update(x, arm, z, z.sum())
    x, arm, z = rounds(1, rng)[0]
    one.expect(x, arm)
    for known in (1, 1, 2, 3):
        assert one.observe(x, arm, np.where(np.arange(DIM_Z) < known, z, NAN)) is None
    one.save(tmp_path / "policy.npz")
    one = postserve.load(tmp_path / "policy.npz")
    if by == "observe":
        z_hat, expected = one.observe(x, arm, z), other.observe(x, arm, z)
        np.testing.assert_array_equal(z_hat, expected)
        one.credit(x, arm, None, 1.0)
        other.credit(x, arm, z, 1.0, z_hat=expected)
    else:
        other.update(x, arm, z, 1.0)
        args = (x, arm, z, 1.0) if by == "update" else (x[None], [arm], z[None], [1.0])
        getattr(one, by)(*args)
    assert one._open is None
    assert same(learnt(one), learnt(other))


def test_a_policy_learns_stages_as_they_come() -> None:
    rng = np.random.default_rng(5)
    policy, truth = make_policy(), Truth(hybrid=True)
    history = rounds(12, rng)
    for x, arm, _ in history:
        policy.expect(x, arm)
    for stage, (start, size) in enumerate(zip(STARTS, SIZES, strict=True)):
        for i in rng.permutation(len(history) - 3 * stage):  # of some rounds the end never comes
            x, arm, z = history[i]
            policy.observe(x, arm, np.where(np.arange(DIM_Z) < start + size, z, NAN))
            truth.learn(stage, x, arm, z)
    require_equal(policy.context_map.settled(), truth, rng)


def test_a_reward_before_the_last_stage_completes_z() -> None:
    rng = np.random.default_rng(6)
    one, other = make_policy(missing_z="impute"), make_policy(missing_z="impute")
    for x, arm, z in rounds(10, rng):
        for policy in (one, other):
            policy.update(x, arm, z, z.sum())
    x, arm, z = rounds(1, rng)[0]
    part = np.where(np.arange(DIM_Z) < 1, z, NAN)
    one.expect(x, arm)
    one.observe(x, arm, part)
    one.credit(x, arm, None, 3.0)
    other.context_map.learn_stages(x, arm, part)
    other.credit(x, arm, other.context_map.complete(x, arm, part), 3.0)
    assert same(snapshot(one), snapshot(other))


@pytest.mark.parametrize("missing_z", ["impute", "drop"])
@pytest.mark.parametrize("told", [X_ALONE, ONE_STAGE])
def test_what_is_known_teaches_where_the_reward_closes_the_round(told: Sequence[int], missing_z: Any) -> None:
    """Each output from the rounds that have it, whichever parts these are."""
    rng, truth = np.random.default_rng(8), Truth(hybrid=True, told=told)
    policy: Any = PoLinUCB(len(ARMS), staged(HybridMap, told), ridge=2.0, missing_z=missing_z)
    for x, arm, z in rounds(20, rng):
        policy.expect(x, arm)
        known = rng.random(DIM_Z) < 0.6
        known[rng.integers(DIM_Z)] = False
        known[rng.choice(np.flatnonzero(~known)) - 1] = True  # some, not all
        part = np.where(known, z, NAN)
        policy.observe(x, arm, part)
        policy.credit(x, arm, None, float(z.sum()))
        for stage in stages_in(part, told):
            truth.learn(stage, x, arm, part)
    assert policy._open is None
    require_equal(policy.context_map, truth, rng)


def test_a_part_that_contradicts_is_refused_and_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    policy = make_policy()
    x, arm, z = rounds(1, rng)[0]
    policy.expect(x, arm)
    policy.observe(x, arm, [z[0], NAN, NAN, NAN])
    before = snapshot(policy)
    for bad in ([z[0] + 1.0, NAN, NAN, NAN], [z[0] + 1.0, 1.0, 2.0, 3.0]):
        with pytest.raises(InvalidInput, match="contradicts a part that came"):
            policy.observe(x, arm, bad)
        assert same(before, snapshot(policy))


def test_a_map_of_ones_own_that_fails_leaves_all_as_they_were() -> None:
    class Fails(OwnTotal):
        def update(self, x: Any, arm: int, z: Any) -> None:
            raise RuntimeError("full")

    phi_hat = StagedMap([RidgeMap(1, 1, ridge=1.0), Fails()])
    before = phi_hat.predict([1.0])
    with pytest.raises(InvalidInput, match=re.escape("maps[1].update(x, arm, z) fails (RuntimeError: full)")):
        phi_hat.update([1.0], 0, [1.0, 2.0])
    np.testing.assert_array_equal(phi_hat.predict([1.0]), before)
    assert not phi_hat.order_free
    with pytest.raises(InvalidInput, match="cannot forget, wanted maps that do"):
        phi_hat.forget(0.5)


@pytest.mark.parametrize(
    ("maps", "message"),
    [
        ([], "maps is [], wanted a list of context maps, one per stage of z"),
        ("maps", "maps is 'maps', wanted"),
        ([RidgeMap(1, 1), 3], "maps[1] is a int, wanted a context map"),
        (
            [RidgeMap(2, 1), RidgeMap(2, 2), RidgeMap(4, 1)],
            "maps[2] has dim_x 4, wanted 5: x and the stages before it, or 2 or 3 for fewer stages",
        ),
        ([RidgeMap(2, 1), RidgeMap(1, 1)], "maps[1] has dim_x 1, wanted 3: x and the stages before it, or 2"),
    ],
)
def test_stages_that_do_not_follow_each_other_are_refused(maps: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        StagedMap(maps)


def test_stages_of_stages_are_given_one_by_one() -> None:
    inner = StagedMap([RidgeMap(1, 1), RidgeMap(2, 1)])
    with pytest.raises(InvalidInput, match=r"maps\[0\] is a StagedMap, wanted the maps of its stages"):
        StagedMap([inner, RidgeMap(3, 1)])
