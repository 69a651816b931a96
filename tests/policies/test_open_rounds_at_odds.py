"""Announced rounds at odds with what comes later: other numbers, another learner's map, a damaged state."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.stored import arrays_in, write_arrays

import postserve
from postserve import (
    EpsilonGreedy,
    HybridMap,
    InvalidInput,
    LinUCB,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    StateMismatch,
)
from postserve.conformance.tools import same, snapshot
from postserve.protocols import announces
from postserve.types import FloatArray

X, NAN = np.array([1.0, -0.5]), np.nan
Change = Callable[[dict[str, Any]], Any]


def with_a_round_out() -> PoLinUCB:
    policy = PoLinUCB(2, HybridMap(2, 2))
    for arm in (0, 1):
        policy.update(X + arm, arm, [arm, 1.0], 1.0)
    policy.expect(X, 0)
    return policy


@pytest.mark.parametrize("came", [[1.0, NAN], [1.0, 2.0]])
def test_a_reward_with_another_z_is_refused(came: list[float]) -> None:
    policy = with_a_round_out()
    policy.observe(X, 0, came)
    before = snapshot(policy)
    with pytest.raises(
        InvalidInput, match=r"z is \[3. 2.\], which contradicts what came: .* wanted the same"
    ):
        policy.credit(X, 0, [3.0, 2.0], 1.0)
    assert same(before, snapshot(policy))
    policy.credit(X, 0, [1.0, 2.0], 1.0)
    assert policy._open is None


def test_a_reward_finds_the_round_by_the_part_that_came() -> None:
    policy = with_a_round_out()
    policy.expect(X, 0)
    for first in (1.0, 3.0):
        policy.observe(X, 0, [first, NAN])
    policy.credit(X, 0, [3.0, 2.0], 1.0)
    assert [one.part[0] for one in policy._open or () if one.part is not None] == [1.0]


@pytest.mark.parametrize("ragged", [[[1.0], [2.0, 3.0]], [1.0, [2.0]]])
def test_a_ragged_z_is_refused_in_words(ragged: Any) -> None:
    with pytest.raises(InvalidInput, match="z "):
        with_a_round_out().observe(X, 0, ragged)


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, pl.Series])
def test_a_part_of_z_may_be_anything_that_z_may_be(kind: Any) -> None:
    policy, twin = with_a_round_out(), with_a_round_out()
    for part in ([1.0, NAN], [NAN, 2.0]):
        policy.observe(X, 0, kind(part))
    twin.observe(X, 0, kind([1.0, 2.0]))
    assert same(snapshot(policy), snapshot(twin))


@pytest.mark.parametrize(
    "part",
    [np.ma.masked_array([1.0, NAN], mask=[True, False]), pd.Series(["a", NAN]), {"a": 1.0, "b": NAN}],
    ids=["masked", "text", "names"],
)
def test_a_part_that_is_not_numbers_is_refused_in_words(part: Any) -> None:
    policy = with_a_round_out()
    before = snapshot(policy)
    with pytest.raises(InvalidInput, match=r"z has .*wanted"):
        policy.observe(X, 0, part)
    assert same(before, snapshot(policy))


@pytest.mark.parametrize("others", [0, 1])
def test_a_part_needs_a_round_that_was_announced(others: int) -> None:
    policy = with_a_round_out()
    if not others:
        policy.withdraw(X, 0)
    with pytest.raises(InvalidInput, match="no open round at this x, wanted all of z, or a round"):
        policy.observe(X, 1, [1.0, NAN])


@pytest.mark.parametrize("taught", [0, 1])
def test_merging_tells_where_z_lies(taught: int) -> None:
    """Rounds that counted nowhere, since their map had no z, count once it has."""
    policies = [PoLinUCB(2, RidgeMap(2, 2)) for _ in range(2)]
    policies[taught].update(X, 0, [1.0, 2.0], 1.0)
    policies[1 - taught].expect(X, 0)
    policies[0].merge(policies[1])
    assert [one.rows[0] is not None for one in policies[0]._open or ()] == [True]


def test_a_wrapped_policy_announces_what_it_can() -> None:
    wrapped: Any = EpsilonGreedy(LinUCB(2, 2))
    assert announces(wrapped)
    assert (
        len(
            EpsilonGreedy(wrapped)
            .select_batch(np.ones((3, 2)), np.random.default_rng(0), sequential=True)
            .arms
        )
        == 3
    )
    wrapped = EpsilonGreedy(RandomPolicy(2))
    wrapped.policy = object()
    assert not announces(wrapped)


def without_the_maps_part(arrays: dict[str, Any]) -> None:
    del arrays["context_map.pending_rows"], arrays["context_map.pending_models"]


def with_another_row(arrays: dict[str, FloatArray]) -> None:
    arrays["context_map.pending_rows"] += 1.0


def of_another_arm(arrays: dict[str, Any]) -> None:
    arrays["open_arms"] += 1


@pytest.mark.parametrize("damage", [without_the_maps_part, with_another_row, of_another_arm])
def test_a_state_whose_map_has_other_rounds_is_refused(damage: Change, tmp_path: Path) -> None:
    """Feedback would be learnt, and then fail as it is taken back from the map."""
    path = tmp_path / "policy.npz"
    with_a_round_out().save(path)
    arrays = arrays_in(path)
    damage(arrays)
    write_arrays(path, arrays)
    with pytest.raises(StateMismatch, match="open_x is not what save"):
        postserve.load(path)


def test_a_state_with_a_negative_row_is_refused(tmp_path: Path) -> None:
    policy, path = LinUCB(None, 2, model="shared"), tmp_path / "policy.npz"
    policy.expect(X, 0)
    policy.save(path)
    write_arrays(path, arrays_in(path) | {"open_arms": np.array([-1])})
    with pytest.raises(StateMismatch, match="open_arms is not what save"):
        postserve.load(path)
