"""A z that is out counts in the widths of a StagedMap, stage by stage, as if it had come at its mean."""

import copy
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
    STARTS,
    X_ALONE,
    Truth,
    require_equal,
    rounds,
    staged,
    stages_in,
)

import postserve
from postserve import HybridMap, InvalidInput, PerArmMap, PoLinUCB, RidgeMap, StagedMap
from postserve.conformance.tools import same, snapshot
from postserve.types import FloatArray

NOTHING = np.full(DIM_Z, NAN)
REST_NEVER_COMES = 4


def taught(kind: Any, told: Sequence[int], rng: np.random.Generator) -> tuple[Any, Truth]:
    policy, truth = PoLinUCB(len(ARMS), staged(kind, told), ridge=2.0), Truth(kind is HybridMap, told)
    for x, arm, z in rounds(6, rng):
        policy.observe(x, arm, z)
        for stage in stages_in(z, told):
            truth.learn(stage, x, arm, z)
    return policy, truth


def parts_of(z: FloatArray, rng: np.random.Generator) -> list[FloatArray]:
    """What is known of z after each entry, in a random order."""
    order = rng.permutation(DIM_Z)
    return [np.where(np.isin(np.arange(DIM_Z), order[: n + 1]), z, NAN) for n in range(DIM_Z)]


@pytest.mark.parametrize("kind", [RidgeMap, HybridMap])
@pytest.mark.parametrize("told", [STARTS, X_ALONE, ONE_STAGE], ids=["all", "x alone", "one stage"])
def test_stages_that_are_out_count_in_any_order_of_arrival(
    kind: Any, told: Sequence[int], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    policy, truth = taught(kind, told, rng)
    waiting: list[Any] = []
    for x, arm, z in rounds(8, rng):
        policy.expect(x, arm)
        rows = truth.rows_out(x, arm, NOTHING)
        truth.announce(rows)
        waiting.append((x, arm, NOTHING, parts_of(z, rng), rows))
        require_equal(policy.context_map, truth, rng)
    while len(waiting) > REST_NEVER_COMES:
        x, arm, before, (part, *rest), rows = waiting.pop(int(rng.integers(len(waiting))))
        policy.observe(x, arm, part)
        truth.announce(rows, -1.0)
        for stage in stages_in(part, told) - stages_in(before, told):
            truth.learn(stage, x, arm, part)
        if rest:
            rows = truth.rows_out(x, arm, part)
            truth.announce(rows)
            waiting.append((x, arm, part, rest, rows))
        policy.save(tmp_path / "policy.npz")
        policy = postserve.load(tmp_path / "policy.npz")
        require_equal(policy.context_map, truth, rng)
    policy.forget(map=0.5)
    truth.forget(0.5)
    require_equal(policy.context_map, truth, rng)
    gone = waiting[0][1]
    policy.remove_arm(gone)
    for _, arm, _, _, rows in waiting:
        if arm == gone:
            truth.announce(rows, -1.0)
    truth.remove(gone)
    require_equal(policy.context_map, truth, rng)
    for x, arm, _, _, rows in waiting:
        if arm != gone:
            policy.withdraw(x, arm)
            truth.announce(rows, -1.0)
            require_equal(policy.context_map, truth, rng)
    assert same(snapshot(policy.context_map), snapshot(policy.context_map.settled()))


def test_both_sides_announced_rounds_are_merged() -> None:
    rng = np.random.default_rng(1)
    one, other, truth = staged(HybridMap), staged(HybridMap), Truth(hybrid=True)
    announced = rounds(4, rng)
    for i, (x, arm, z) in enumerate(announced):
        (one if i % 2 else other).expect(x, arm, z if i == 0 else [z[0], NAN, NAN, NAN])
        truth.announce(truth.rows_out(x, arm, z if i == 0 else np.array([z[0], NAN, NAN, NAN])))
    one.merge(other)
    require_equal(one, truth, rng)
    for i, (x, arm, z) in enumerate(announced):
        one.withdraw(x, arm, z if i == 0 else [z[0], NAN, NAN, NAN])
    require_equal(one, Truth(hybrid=True), rng)


def test_a_removed_arms_rounds_go_from_maps_that_all_arms_share() -> None:
    rng = np.random.default_rng(2)
    phi_hat, truth = staged(), Truth(hybrid=False)
    for arm in ARMS:
        x = rng.normal(size=DIM_X)
        phi_hat.expect(x, arm)
        if arm != 1:
            truth.announce(truth.rows_out(x, arm, NOTHING))
    phi_hat.remove_arm(1)
    require_equal(phi_hat, truth, rng)


def test_what_was_not_announced_cannot_be_withdrawn() -> None:
    phi_hat = staged(HybridMap)
    x, z = np.ones(DIM_X), np.array([1.0, NAN, NAN, NAN])
    phi_hat.expect(x, 0, z)
    before = snapshot(phi_hat)
    for args in ((x, 0), (x, 1, z), (-x, 0, z), (x, 0, 2.0 * z)):
        with pytest.raises(InvalidInput, match="wanted one that was announced"):
            phi_hat.withdraw(*args)
    for bad in ([1.0], [np.inf, NAN, NAN, NAN], "z"):
        for verb in (phi_hat.expect, phi_hat.withdraw):
            with pytest.raises(InvalidInput, match="wanted"):
                verb(x, 0, bad)
    assert same(before, snapshot(phi_hat))


def test_a_stage_counts_once_what_its_map_is_told_can_be_predicted() -> None:
    """A z far from 0: while no first stage has come, the second would count at a day of 0."""
    phi_hat = StagedMap([RidgeMap(1, 1), RidgeMap(2, 1)])
    x, day = [1.0], 1000.0
    phi_hat.expect(x, 0)
    assert [one.counted.tolist() for one in phi_hat._out] == [[True, False]]
    phi_hat.withdraw(x, 0)
    phi_hat.expect(x, 0, [day, NAN])
    assert [one.counted.tolist() for one in phi_hat._out] == [[False, True]]
    phi_hat.learn_stages([2.0], 0, [day, NAN])
    phi_hat.expect(x, 0)
    assert [one.counted.tolist() for one in phi_hat._out] == [[False, True], [True, True]]


def test_maps_that_do_not_count_answer_as_before() -> None:
    rng = np.random.default_rng(3)
    phi_hat: Any = StagedMap([PerArmMap(RidgeMap(1, 1, ridge=RIDGE)), OwnTotal()])
    phi_hat.update([1.0], 0, [1.0, 2.0])
    before, x = copy.deepcopy(phi_hat), rng.normal(size=1)
    phi_hat.expect(x, 0)
    assert (phi_hat.spread(x, [0, 1]) == before.spread(x, [0, 1])).all()
    assert (phi_hat.settled().spread(x, [0, 1]) == before.spread(x, [0, 1])).all()
    phi_hat.withdraw(x, 0)
    assert not phi_hat._out


def test_an_older_states_rounds_count_from_their_next_part_on(tmp_path: Path) -> None:
    """It decides as it did: its map was not told of rounds that its arms have counted."""
    rng = np.random.default_rng(4)
    policy, truth = taught(HybridMap, STARTS, rng)
    announced = rounds(2, rng)
    policy._phi_hat._counts_pending = None
    for x, arm, _ in announced:
        policy.expect(x, arm)
    policy.observe(announced[0][0], announced[0][1], [1.0, NAN, NAN, NAN])
    truth.learn(0, announced[0][0], announced[0][1], np.array([1.0]))
    policy.save(tmp_path / "policy.npz")
    loaded = postserve.load(tmp_path / "policy.npz")
    require_equal(loaded.context_map, truth, rng)
    part = np.array([1.0, 2.0, 3.0, NAN])
    x, arm, _ = announced[0]
    loaded.observe(x, arm, part)
    truth.learn(1, x, arm, part)
    truth.announce(truth.rows_out(x, arm, part))
    require_equal(loaded.context_map, truth, rng)
    for x, arm, _ in announced:
        loaded.withdraw(x, arm)
    assert not loaded.context_map._out
