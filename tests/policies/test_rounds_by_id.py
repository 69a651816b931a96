"""Announced rounds with an id: feedback finds the round that it names, however many are alike."""

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.policies.test_open_rounds import ARMS, DIM_X, DIM_Z, Bare, fixed, taught
from tests.stored import arrays_in, write_arrays

import postserve
from postserve import (
    BestPolicy,
    EpsilonGreedy,
    InvalidInput,
    LinUCB,
    LinUCBPhiHat,
    PoLinTS,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
    StagedMap,
    StateMismatch,
)
from postserve.conformance.tools import same, snapshot
from postserve.state import private

X, NAN = np.ones(DIM_X), np.nan
Z_A, Z_B = np.array([1.0, 2.0]), np.array([3.0, 5.0])
KINDS = (PoLinUCB, RobustPoLinUCB, LinUCBPhiHat, BestPolicy, PoLinTS)


def with_rounds(*ids: str | None, kind: Any = PoLinUCB, **options: Any) -> Any:
    """A policy that was told of rounds with these ids, all of them of one arm at one x."""
    policy = taught(fixed(kind=kind, **options), np.random.default_rng(5))
    for each in ids:
        policy.expect(X, 1, round_id=each)
    return policy


def z_by_id(policy: Any) -> dict[str | None, Any]:
    return {one.round_id: None if one.z is None else one.z.tolist() for one in policy._open or ()}


def weights(policy: Any) -> Any:
    return [arms.weights(policy._arm_set.all_slots) for arms in policy._regressions()]


def test_z_goes_to_the_round_that_it_names() -> None:
    policy = with_rounds(None, "a", "b")
    policy.observe(X, 1, Z_B, round_id="b")
    assert z_by_id(policy) == {None: None, "a": None, "b": Z_B.tolist()}
    policy.observe(X, 1, Z_A, round_id="a")
    assert z_by_id(policy) == {None: None, "a": Z_A.tolist(), "b": Z_B.tolist()}
    policy.credit(X, 1, None, 1.0, round_id="b")
    assert z_by_id(policy) == {None: None, "a": Z_A.tolist()}


@pytest.mark.parametrize("older", [None, "a"])
@pytest.mark.parametrize("kind", [PoLinUCB, RobustPoLinUCB, LinUCBPhiHat, BestPolicy])
@pytest.mark.parametrize("missing_z", ["impute", "drop"])
def test_a_reward_without_z_takes_that_of_no_other_round(missing_z: str, kind: Any, older: Any) -> None:
    policy, alone = (with_rounds(kind=kind, missing_z=missing_z) for _ in range(2))
    for each in (older, "b"):
        policy.expect(X, 1, round_id=each)
    policy.observe(X, 1, Z_A, round_id=older)
    policy.credit(X, 1, None, 7.0, round_id="b")
    alone.observe(X, 1, Z_A)
    alone.credit(X, 1, None, 7.0)
    assert z_by_id(policy) == {older: Z_A.tolist()}
    for got, wanted in zip(weights(policy), weights(alone), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_a_reward_without_z_is_refused_where_only_another_round_has_one() -> None:
    policy = with_rounds("a", "b")
    policy.observe(X, 1, Z_A, round_id="a")
    before = snapshot(policy)
    for verb in (policy.credit, policy.update):
        with pytest.raises(InvalidInput, match="z is None"):
            verb(X, 1, None, 7.0, round_id="b")
    assert same(before, snapshot(policy))
    policy.update(X, 1, None, 7.0, round_id="a")
    assert z_by_id(policy) == {"b": None}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["abab", "abba", "aabb", "bbaa"])
@pytest.mark.parametrize("first", [0, 1])
def test_parts_of_z_come_in_any_order(kind: Any, order: str, first: int) -> None:
    """Without an id rounds that are alike need parts that repeat the earlier ones."""
    z, seen = {"a": Z_A, "b": Z_B}, {"a": 0, "b": 0}
    policy, whole = with_rounds("a", "b", kind=kind), with_rounds("a", "b", kind=kind)
    for each in order:
        entry = (first + seen[each]) % 2
        z_hat = policy.observe(X, 1, np.where(np.arange(DIM_Z) == entry, z[each], NAN), round_id=each)
        seen[each] += 1
        assert (z_hat is None) == (seen[each] == 1)
        if seen[each] == 2:
            np.testing.assert_array_equal(z_hat, whole.observe(X, 1, z[each], round_id=each))
    assert z_by_id(policy) == z_by_id(whole) == {"a": Z_A.tolist(), "b": Z_B.tolist()}
    for each in "ab":
        for one in (policy, whole):
            one.credit(X, 1, None, 1.0, round_id=each)
    assert policy._open is None
    for got, wanted in zip(weights(policy), weights(whole), strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("stages", [False, True])
def test_every_round_learns_what_it_would_have_learnt_alone(stages: bool) -> None:
    """Rounds at two x, whose feedback comes mixed: as if nothing had been announced, up to rounding."""

    def make() -> Any:
        ridges: Any = RidgeMap(DIM_X, DIM_Z, ridge=0.5)
        if stages:
            ridges = StagedMap([RidgeMap(DIM_X, 1, ridge=0.5), RidgeMap(DIM_X + 1, 1, ridge=0.5)])
        return PoLinUCB(ARMS, ridges, ridge=2.0)

    rng, policy, plain = np.random.default_rng(0), make(), make()
    places = rng.normal(size=(2, DIM_X))
    rounds, to_come = {}, []
    for t in range(60):
        x, arm, z = places[t % 2], int(rng.integers(2)), rng.normal(size=DIM_Z)
        rounds[f"round {t}"] = x, arm, z, float(z.sum())
        policy.expect(x, arm, round_id=f"round {t}")
        parts = [np.array([z[0], NAN]), np.array([NAN, z[1]]), z]
        to_come.append((f"round {t}", [*([parts[:2], parts[1::-1], parts[2:]][t % 3]), None]))
    while to_come:
        i = int(rng.integers(len(to_come)))
        name, feedback = to_come[i]
        x, arm, z, reward = rounds[name]
        if (came := feedback.pop(0)) is None:
            policy.credit(x, arm, None, reward, round_id=name)
            to_come.pop(i)
        else:
            policy.observe(x, arm, came, round_id=name)
    for each in rounds.values():
        plain.update(*each)
    assert policy._open is None
    np.testing.assert_allclose(policy.weights, plain.weights, rtol=1e-9)
    probe = np.array([0.3, -2.0])
    np.testing.assert_allclose(policy.context_map.predict(probe), plain.context_map.predict(probe), rtol=1e-9)
    np.testing.assert_allclose(policy.context_map.radius(probe), plain.context_map.radius(probe), rtol=1e-9)


def test_what_is_withdrawn_is_the_round_that_is_named() -> None:
    policy = with_rounds("a", "b", "c")
    policy.observe(X, 1, [1.0, NAN], round_id="b")
    policy.withdraw(X, 1, round_id="b")
    assert z_by_id(policy) == {"a": None, "c": None}
    policy.withdraw(X - 0.0, 1, round_id="c")
    policy.withdraw(X, 1, round_id="a")
    assert same(snapshot(policy), snapshot(with_rounds()))


def test_feedback_without_an_id_finds_no_round_with_one() -> None:
    policy, plain = with_rounds("a"), with_rounds()
    with pytest.raises(InvalidInput, match="no open round at this x"):
        policy.withdraw(X, 1)
    with pytest.raises(InvalidInput, match="no open round at this x, wanted all of z"):
        policy.observe(X, 1, [1.0, NAN])
    for each in (policy, plain):
        z_hat = each.observe(X, 1, Z_B)
        each.credit(X, 1, Z_B, 1.0, z_hat=z_hat)
        each.update(X, 1, Z_B, 2.0)
        each.update_batch([X, X], [1, 1], [Z_A, Z_B], [1.0, 2.0])
    assert z_by_id(policy) == {"a": None}
    np.testing.assert_array_equal(policy.weights, plain.weights)
    policy.expect(X, 1)
    policy.update(X, 1, Z_B, 2.0)
    assert z_by_id(policy) == {"a": None}


BAD_IDS = ["", 7, 0, True, b"a", ["a"], ("a",), (X.tobytes(), 1), NAN]
Verb = Callable[[Any, Any], Any]
VERBS: dict[str, Verb] = {
    "observe": lambda policy, of: policy.observe(X, 1, Z_A, round_id=of),
    "observe a part": lambda policy, of: policy.observe(X, 1, [1.0, NAN], round_id=of),
    "credit": lambda policy, of: policy.credit(X, 1, Z_A, 1.0, round_id=of),
    "credit without z": lambda policy, of: policy.credit(X, 1, None, 1.0, round_id=of),
    "update": lambda policy, of: policy.update(X, 1, Z_A, 1.0, round_id=of),
    "update without z": lambda policy, of: policy.update(X, 1, None, 1.0, round_id=of),
    "withdraw": lambda policy, of: policy.withdraw(X, 1, round_id=of),
}
POLICIES: dict[str, Callable[[], Any]] = {
    "nothing open": with_rounds,
    "others open": lambda: with_rounds(None, "a"),
    "private": lambda: private(with_rounds(None, "a")),
    "imputes": lambda: with_rounds("a", missing_z="impute"),
    "drops": lambda: with_rounds("a", missing_z="drop"),
    "wrapped": lambda: EpsilonGreedy(with_rounds("a")),
}


@pytest.mark.parametrize("state", POLICIES)
@pytest.mark.parametrize("verb", VERBS)
def test_an_id_that_is_not_open_is_refused(verb: str, state: str) -> None:
    policy = POLICIES[state]()
    before, version = snapshot(policy), policy.version
    with pytest.raises(InvalidInput, match="round_id is 'b', which is not open, wanted one that expect"):
        VERBS[verb](policy, "b")
    for bad in BAD_IDS:
        with pytest.raises(InvalidInput, match=r"round_id is .*, wanted a non-empty str"):
            VERBS[verb](policy, bad)
        with pytest.raises(InvalidInput, match=r"round_id is .*, wanted a non-empty str"):
            policy.expect(X, 1, round_id=bad)
    assert same(before, snapshot(policy))
    assert policy.version == version


@pytest.mark.parametrize("verb", VERBS)
def test_another_x_or_arm_than_announced_is_refused(verb: str) -> None:
    policy = with_rounds()
    policy.expect(X, 0, round_id="arm")
    policy.expect([1.0, 2.0], 1, round_id="x")
    before = snapshot(policy)
    with pytest.raises(
        InvalidInput, match=re.escape("'arm' with arm 1 and x [1. 1.], wanted arm 0 and x [1")
    ):
        VERBS[verb](policy, "arm")
    with pytest.raises(InvalidInput, match=re.escape("wanted arm 1 and x [1. 2.], as it was announced")):
        VERBS[verb](policy, "x")
    assert same(before, snapshot(policy))


def test_an_open_id_cannot_be_announced_again() -> None:
    policy = with_rounds("a")
    before = snapshot(policy)
    for x, arm in ((X, 1), (X, 0), (X + 1.0, 1)):
        with pytest.raises(InvalidInput, match="round_id is 'a', which is open already, wanted another id"):
            policy.expect(x, arm, round_id="a")
    assert same(before, snapshot(policy))
    policy.update(X, 1, Z_A, 1.0, round_id="a")
    policy.expect(X, 0, round_id="a")
    assert z_by_id(policy) == {"a": None}


def test_a_second_or_another_z_of_a_round_is_refused() -> None:
    policy = with_rounds("a", "b")
    policy.observe(X, 1, [1.0, NAN], round_id="a")
    policy.observe(X, 1, Z_B, round_id="b")
    before = snapshot(policy)
    refused: list[tuple[Callable[[], Any], str]] = [
        (lambda: policy.observe(X, 1, [2.0, NAN], round_id="a"), "contradicts"),
        (lambda: policy.observe(X, 1, Z_B, round_id="a"), "contradicts"),
        (lambda: policy.credit(X, 1, Z_B, 1.0, round_id="a"), "contradicts"),
        (lambda: policy.observe(X, 1, Z_B, round_id="b"), "known already"),
        (lambda: policy.update(X, 1, Z_B, 1.0, round_id="b"), "known already"),
        (lambda: policy.credit(X, 1, Z_A, 1.0, round_id="b"), "contradicts"),
    ]
    for verb, message in refused:
        with pytest.raises(InvalidInput, match=message):
            verb()
    assert same(before, snapshot(policy))


@pytest.mark.parametrize("make", [lambda: LinUCB(2, DIM_X), lambda: RandomPolicy(2)])
def test_a_policy_without_z_or_x_has_ids_too(make: Callable[[], Any]) -> None:
    policy = make()
    with pytest.raises(InvalidInput, match="not open"):
        policy.observe(X, 1, Z_A, round_id="a")
    for each in "ab":
        policy.expect(X, 1, round_id=each)
    with pytest.raises(InvalidInput, match="with arm 0"):
        policy.observe(X, 0, Z_A, round_id="a")
    assert policy.observe(X, 1, Z_A, round_id="a") is None
    policy.credit(X, 1, None, 1.0, round_id="b")
    policy.update(X, 1, Z_A, 1.0, round_id="a")
    assert policy._open is None


def test_a_removed_arm_takes_its_rounds_along() -> None:
    policy = with_rounds("a", None, "b")
    policy.expect(X, 0, round_id="c")
    policy.remove_arm(1)
    assert z_by_id(policy) == {"c": None}
    policy.expect(X, 2, round_id="a")
    policy.update(X, 2, Z_A, 1.0, round_id="a")
    assert z_by_id(policy) == {"c": None}


def test_merging_takes_the_rounds_of_the_other() -> None:
    policy, other = with_rounds("a", None), with_rounds("b", None)
    other.observe(X, 1, Z_B, round_id="b")
    policy.merge(other)
    assert [one.round_id for one in policy._open] == ["a", None, None, "b"]
    policy.credit(X, 1, None, 1.0, round_id="b")
    policy.observe(X, 1, Z_A, round_id="a")
    assert z_by_id(policy) == {"a": Z_A.tolist(), None: None}


@pytest.mark.parametrize("make", [with_rounds, lambda *ids: EpsilonGreedy(with_rounds(*ids))])
@pytest.mark.parametrize("seen", [lambda policy: policy, private])
def test_an_id_that_is_open_in_both_is_not_merged(make: Callable[..., Any], seen: Callable[..., Any]) -> None:
    policy, other = seen(make("a", "b")), make(None, "b")
    before = snapshot(policy)
    with pytest.raises(InvalidInput, match="a round with round_id 'b' is open in both, wanted other ids"):
        policy.merge(other)
    assert same(before, snapshot(policy))
    other.withdraw(X, 1, round_id="b")
    policy.merge(other)


ODD_IDS = ["a", "a\0", "\0", " ", "null", '"', "é\N{GRINNING FACE}", "\ud800", "x" * 10_000, "[]\n"]


@pytest.mark.parametrize("way", ["file", "deepcopy", "pickle", "private"])
def test_copies_and_states_have_the_ids(way: str, tmp_path: Path) -> None:
    policy, path = with_rounds(None, *ODD_IDS, None), tmp_path / "policy.npz"
    for i, each in enumerate(ODD_IDS[:3]):
        policy.observe(X, 1, [float(i), 1.0], round_id=each)
    policy.observe(X, 1, [5.0, NAN], round_id=ODD_IDS[3])
    policy.save(path)
    ways = {
        "file": lambda: postserve.load(path),
        "deepcopy": lambda: copy.deepcopy(policy),
        "pickle": lambda: pickle.loads(pickle.dumps(policy)),
        "private": lambda: private(policy),
    }
    twin: Any = ways[way]()
    twin.save(tmp_path / "twin.npz")
    one, other = arrays_in(path), arrays_in(tmp_path / "twin.npz")
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    for each in ODD_IDS[::-1]:
        for learner in (policy, twin):
            learner.update(X, 1, None if each in ODD_IDS[:3] else [5.0, 7.0], 1.0, round_id=each)
        np.testing.assert_allclose(twin.weights, policy.weights, rtol=1e-12)
    assert z_by_id(twin) == {None: None}


def test_a_state_without_ids_says_nothing_of_them(tmp_path: Path) -> None:
    policy = with_rounds(None, "a")
    policy.withdraw(X, 1, round_id="a")
    policy.save(tmp_path / "policy.npz")
    assert "open_ids" not in arrays_in(tmp_path / "policy.npz")


NO_IDS = ["", "[", "7", '{"a": 1, "b": 2}', '["a"]', '["a", "b", "c"]', '["a", "a"]', '["a", ""]']


@pytest.mark.parametrize("ids", [*NO_IDS, '["a", 7]', '["a", ["b"]]', '["a", NaN]', "[" * 99_999])
def test_a_state_with_ids_that_cannot_be_is_refused(ids: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.npz"
    with_rounds("a", "b").save(path)
    write_arrays(path, arrays_in(path) | {"open_ids": np.array(ids)})
    with pytest.raises(StateMismatch, match="open_ids is not what save"):
        postserve.load(path)


def test_a_wrapped_policy_of_ones_own_may_know_no_ids() -> None:
    wrapped: Any = EpsilonGreedy(RandomPolicy(3))
    wrapped.policy = Bare()
    for verb in ("update", "credit", "observe"):
        given = (X, 1, None) if verb == "observe" else (X, 1, None, 1.0)
        with pytest.raises(InvalidInput, match="round_id is given and Bare has no expect, wanted a policy"):
            getattr(wrapped, verb)(*given, round_id="a")


def test_a_cohort_in_sequence_leaves_the_ids_alone() -> None:
    policy = with_rounds("a", "b")
    before = snapshot(policy)
    policy.select_batch(np.ones((4, DIM_X)), np.random.default_rng(0), sequential=True)
    assert same(before, snapshot(policy))
