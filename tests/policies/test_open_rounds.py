"""Announced rounds of policies: what counts when, which round feedback belongs to, and what is refused."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import postserve
from postserve import (
    BestPolicy,
    EpsilonGreedy,
    InvalidInput,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    PoLinTS,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
)
from postserve.conformance.tools import same, snapshot
from postserve.types import FloatArray

DIM_X, DIM_Z, ARMS = 2, 2, 3
MODELS = ("disjoint", "shared", "hybrid")


def fixed(model: Any = "disjoint", kind: Any = PoLinUCB, **options: Any) -> Any:
    return kind(ARMS, RidgeMap(DIM_X, DIM_Z, ridge=0.5), model=model, ridge=2.0, **options)


def a_round(rng: np.random.Generator) -> tuple[FloatArray, int, FloatArray, float]:
    x = rng.normal(size=DIM_X)
    z = x[::-1] + rng.normal(size=DIM_Z)
    return x, int(rng.integers(ARMS)), z, float(z.sum() + rng.normal())


def taught(policy: Any, rng: np.random.Generator, rounds: int = 20) -> Any:
    for _ in range(rounds):
        policy.update(*a_round(rng))
    return policy


def inverses(policy: Any) -> FloatArray:
    slots = policy._arm_set.all_slots
    found: FloatArray = policy._arms.widths.inverse_of(policy._arms.models_of(slots))
    return found


def covariances(model: str, rows: list[tuple[int, FloatArray]], ridge: float = 2.0) -> FloatArray:
    """The marginal covariance of each arm's weights, from the joint regression on all of them."""
    d = DIM_X + DIM_Z
    parts = {"disjoint": ARMS, "shared": 1, "hybrid": ARMS + 1}[model]

    def lift(arm: int) -> FloatArray:
        blocks = np.zeros((parts, d, d))
        for part in {"disjoint": (arm,), "shared": (0,), "hybrid": (arm, ARMS)}[model]:
            blocks[part] = np.eye(d)
        return blocks.reshape(parts * d, d)

    precision = ridge * np.eye(parts * d)
    for arm, u in rows:
        row = lift(arm) @ u
        precision += row[:, None] * row
    covariance = np.linalg.inv(precision)
    return np.array([lift(arm).T @ covariance @ lift(arm) for arm in range(ARMS)])


@pytest.mark.parametrize("model", MODELS)
def test_a_round_counts_as_predicted_and_then_as_observed(model: str, tmp_path: Path) -> None:
    """Through every order of arrival, merging, saving and loading, against the dense joint Gaussian."""
    rng = np.random.default_rng(0)
    policy, other = fixed(model), fixed(model)
    learnt: list[tuple[int, FloatArray]] = []
    pairs: list[FloatArray] = []
    for learner in (policy, other):
        for _ in range(6):
            x, arm, z, reward = a_round(rng)
            learner.update(x, arm, z, reward)
            learnt.append((arm, np.append(x, z)))
            pairs.append(x)
    theirs = [a_round(rng) for _ in range(3)]
    other_rows = {}
    for i, (x, arm, _, _) in enumerate(theirs):
        other_rows[i] = (arm, np.append(x, other.context_map.predict(x)[0]))
        other.expect(x, arm)
    policy.merge(other)
    mine = [a_round(rng) for _ in range(8)]
    for i, (x, arm, _, _) in enumerate(mine, start=3):
        other_rows[i] = (arm, np.append(x, policy.context_map.predict(x)[0]))
        policy.expect(x, arm)
    rounds, rows = theirs + mine, other_rows
    without_z = set(range(len(rounds)))

    def check() -> None:
        everything = learnt + list(rows.values())
        np.testing.assert_allclose(inverses(policy), covariances(model, everything), rtol=1e-8, atol=1e-10)
        X = np.array([*pairs, *(rounds[i][0] for i in without_z)])
        F, probe = 0.5 * np.eye(DIM_X) + X.T @ X, np.array([1.0, -2.0])
        width = np.sqrt(probe @ np.linalg.inv(F) @ probe)
        np.testing.assert_allclose(policy.context_map.radius(probe), np.sqrt(DIM_Z) * width, rtol=1e-8)

    check()
    for step, i in enumerate(rng.permutation(len(rounds)).tolist()):
        x, arm, z, reward = rounds[i]
        if step % 3 == 0:
            policy.withdraw(x, arm)
            del rows[i]
            without_z.discard(i)
            check()
            continue
        policy.observe(x, arm, z)
        rows[i] = arm, np.append(x, z)
        without_z.discard(i)
        pairs.append(x)
        check()
        if step % 3 == 1:
            policy.credit(x, arm, z, reward)
            learnt.append(rows.pop(i))
            check()
        policy.save(tmp_path / "policy.npz")
        policy = postserve.load(tmp_path / "policy.npz")
        check()
    for i in list(rows):
        policy.credit(*rounds[i])
        learnt.append(rows.pop(i))
        check()
    assert policy._open is None
    assert policy._arms.widths is policy._arms.models


def test_forgetting_and_removing_an_arm() -> None:
    rng = np.random.default_rng(1)
    for model in MODELS:
        policy = fixed(model)
        x, _, z, reward = a_round(rng)
        policy.update(x, 2, z, reward)
        learnt = np.append(x, z)
        rows = []
        for out in (0, 1, 2):
            x, _, z, _ = a_round(rng)
            rows.append((out, np.append(x, policy.context_map.predict(x)[0])))
            policy.expect(x, out)
        policy.forget(arms=0.25)
        policy.remove_arm(1)
        expected = covariances(model, [(2, 0.5 * learnt), rows[0], rows[2]])
        np.testing.assert_allclose(inverses(policy), expected[[0, 2]], rtol=1e-8, atol=1e-10)
        assert policy.add_arm() == 3
        np.testing.assert_allclose(inverses(policy)[:2], expected[[0, 2]], rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", [PoLinUCB, PoLinTS, RobustPoLinUCB, LinUCBPhiHat, BestPolicy])
def test_before_the_first_z_a_round_counts_nowhere(kind: Any) -> None:
    """A map that cannot say where z lies predicts 0, which depends on where z is measured from."""
    chances = []
    for shift in (0.0, 1000.0):
        rng = np.random.default_rng(2)
        policy = kind(ARMS, RidgeMap(DIM_X, DIM_Z))
        out = [a_round(rng) for _ in range(4)]
        for x, arm, _, _ in out:
            policy.expect(x, arm)
        for _ in range(20):
            x, arm, z, reward = a_round(rng)
            policy.update(x, arm, z + shift, reward)
        assert all(row is not None for one in policy._open for row in one.rows)
        chances.append([policy.propensities(rng.normal(size=DIM_X)) for _ in range(10)])
    np.testing.assert_allclose(chances[0], chances[1], atol=1e-9)


def test_the_oldest_round_comes_first() -> None:
    policy = taught(fixed(), np.random.default_rng(3))
    x = np.ones(DIM_X)
    for _ in range(2):
        policy.expect(x, 1)
    policy.observe(x, 1, np.array([1.0, 2.0]))
    policy.observe(x, 1, np.array([3.0, 4.0]))
    with pytest.raises(InvalidInput, match="known already, wanted one z per announced round: 2"):
        policy.observe(x, 1, np.array([5.0, 6.0]))
    with pytest.raises(InvalidInput, match="known already"):
        policy.update(x, 1, np.array([5.0, 6.0]), 1.0)
    policy.credit(x, 1, np.array([3.0, 4.0]), 1.0)  # that of this z, not the oldest
    (left,) = policy._open
    assert left.z.tolist() == [1.0, 2.0]


def test_an_announced_round_remembers_its_z() -> None:
    """So that the reward alone is enough, also where the arm learns from the prediction."""
    for kind in (PoLinUCB, RobustPoLinUCB, LinUCBPhiHat, BestPolicy):
        rng = np.random.default_rng(4)
        one, other = (taught(fixed(kind=kind), np.random.default_rng(5)) for _ in range(2))
        x, arm, z, reward = a_round(rng)
        one.expect(x, arm)
        one.observe(x, arm, z)
        one.credit(x, arm, None, reward)
        other.update(x, arm, z, reward)
        probe = rng.normal(size=DIM_X)
        np.testing.assert_array_equal(one.propensities(probe), other.propensities(probe))


@pytest.mark.parametrize("kind", [PoLinUCB, RobustPoLinUCB, LinUCBPhiHat, BestPolicy])
@pytest.mark.parametrize("part", [[0, 1], [1]])
def test_a_reward_without_z_takes_what_came_before(kind: Any, part: list[int]) -> None:
    """By whichever verb it comes."""
    found, (x, arm, z, reward) = [], a_round(np.random.default_rng(4))
    came = np.full(DIM_Z, np.nan)
    came[part] = z[part]
    for verb in ("credit", "update", "update_batch"):
        policy = taught(fixed(kind=kind, missing_z="impute"), np.random.default_rng(5))
        policy.expect(x, arm)
        policy.observe(x, arm, came)
        rows = ([x], [arm], None, [reward]) if verb == "update_batch" else (x, arm, None, reward)
        getattr(policy, verb)(*rows)
        assert policy._open is None
        found.append(policy._regressions()[0].weights(policy._arm_set.all_slots))
    np.testing.assert_array_equal(found[1:], [found[0], found[0]])


def test_what_is_refused_leaves_the_round_open() -> None:
    policy = taught(fixed(), np.random.default_rng(3))
    x = np.ones(DIM_X)
    policy.expect(x, 1)
    with pytest.raises(InvalidInput, match="z is None"):
        policy.credit(x, 1, None, 1.0)
    with pytest.raises(InvalidInput, match=re.escape("arm 0 has no open round at this x")):
        policy.withdraw(x, 0)
    policy.withdraw(-0.0 + x, 1)
    with pytest.raises(InvalidInput, match=re.escape("wanted one that expect() announced")):
        policy.withdraw(x, 1)
    with pytest.raises(InvalidInput, match=re.escape("announced by expect()")):
        policy.context_map.withdraw(x, 1)


def test_a_batch_finds_one_round_for_each_row() -> None:
    policy = taught(LinUCB(ARMS, DIM_X), np.random.default_rng(3))
    x = np.ones(DIM_X)
    for _ in range(3):
        policy.expect(x, 1)
    policy.update_batch([x, x], [1, 1], None, [1.0, 2.0])
    policy.withdraw(x, 1)
    assert policy._open is None


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("optimism", ["plugin", "joint", "bound"])
def test_an_announced_round_makes_its_arm_less_attractive(model: Any, optimism: Any) -> None:
    policy = taught(fixed(model, optimism=optimism), np.random.default_rng(6))
    x, slots = np.array([3.0, -3.0]), np.arange(ARMS)
    before = policy._scores(x, slots)
    policy.expect(x, 1)
    after = policy._scores(x, slots)
    assert after[1] < before[1] - 1e-3
    assert (after <= before + 1e-9).all()


@pytest.mark.parametrize(
    "policy", [LinUCB(5, 1, ridge=1.0), EpsilonGreedy(LinUCB(5, 1, ridge=1.0), epsilon=0.0)]
)
def test_a_cohort_spreads_out(policy: Any) -> None:
    """Without contexts, a day's choices are made one after another."""
    X = np.ones((5, 1))
    decisions = policy.select_batch(X, np.random.default_rng(0), sequential=True)
    assert sorted(decisions.arms.tolist()) == [0, 1, 2, 3, 4]
    np.testing.assert_allclose(decisions.propensities, 1.0 / np.array([5, 4, 3, 2, 1]))


def test_a_cohort_of_rows_spreads_out() -> None:
    rows = np.eye(3)[None].repeat(3, axis=0)  # one row per arm, and candidates in a decision set
    by_arm: Any = LinUCB(3, 3, model="shared", ridge=1.0)
    for policy in (by_arm, EpsilonGreedy(by_arm, epsilon=0.0), LinUCB(None, 3, model="shared", ridge=1.0)):
        decisions = policy.select_batch(rows, np.random.default_rng(0), sequential=True)
        assert sorted(decisions.arms.tolist()) == [0, 1, 2]
    oracle = LinUCBOracle(3, 1, 3, model="shared", ridge=1.0)
    X = np.zeros((3, 3, 1))
    decisions = oracle.select_batch(X, np.random.default_rng(0), Z=rows, sequential=True)
    assert sorted(decisions.arms.tolist()) == [0, 1, 2]


def test_a_policy_of_ones_own_may_not_count_rounds() -> None:
    wrapped: Any = EpsilonGreedy(RandomPolicy(3))
    wrapped.policy = Bare()
    with pytest.raises(InvalidInput, match="Bare has no expect, wanted a policy that counts"):
        wrapped.select_batch(np.ones((2, 1)), np.random.default_rng(0), sequential=True)


class Bare:
    """A policy with the verbs of the protocol at most."""

    arms = (0, 1, 2)


def test_draws_count_announced_rounds() -> None:
    """Thompson sampling's draws of an arm with many announced rounds scatter less."""
    for model in MODELS:
        policy = taught(fixed(model, PoLinTS), np.random.default_rng(7))
        x, slots = np.array([3.0, -3.0]), np.arange(ARMS)
        before = np.concatenate(list(policy._drawn_scores(x, slots))).std(axis=0)
        for _ in range(50):
            policy.expect(x, 1)
        after = np.concatenate(list(policy._drawn_scores(x, slots))).std(axis=0)
        assert after[1] < 0.6 * before[1]


NAN = np.nan


@pytest.mark.parametrize("kind", [PoLinUCB, RobustPoLinUCB, LinUCBPhiHat, BestPolicy, PoLinTS])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_parts_of_z_teach_what_all_of_it_teaches(kind: Any, order: tuple[int, int], tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    one, other = (taught(fixed(kind=kind), np.random.default_rng(5)) for _ in range(2))
    x, arm, z, reward = a_round(rng)
    one.expect(x, arm)
    first, last = (np.where(np.arange(DIM_Z) == k, z, NAN) for k in order)
    assert one.observe(x, arm, first) is None
    assert one.observe(x, arm, first) is None  # it may be repeated
    one.save(tmp_path / "policy.npz")
    one = postserve.load(tmp_path / "policy.npz")
    z_hat, expected = one.observe(x, arm, last), other.observe(x, arm, z)
    np.testing.assert_array_equal(z_hat, expected)
    one.credit(x, arm, None, reward)
    other.credit(x, arm, z, reward, z_hat=expected)
    probe = rng.normal(size=DIM_X)
    np.testing.assert_array_equal(one.propensities(probe), other.propensities(probe))
    assert one._open is None


def test_a_part_of_z_counts_beside_what_is_predicted() -> None:
    policy = taught(fixed(), np.random.default_rng(5))
    x, z_hat = np.array([1.0, 2.0]), policy.context_map.predict([1.0, 2.0])[0]
    before = inverses(policy)[1]
    policy.expect(x, 1)
    policy.observe(x, 1, [4.0, NAN])
    u = np.array([1.0, 2.0, 4.0, z_hat[1]])
    expected = np.linalg.inv(np.linalg.inv(before) + u[:, None] * u)
    np.testing.assert_allclose(inverses(policy)[1], expected, rtol=1e-8)


@pytest.mark.parametrize("kind", [PoLinUCB, RobustPoLinUCB, LinUCBPhiHat])
def test_a_reward_before_the_last_part_has_it_imputed(kind: Any) -> None:
    rng = np.random.default_rng(5)
    one, other = (taught(fixed(kind=kind, missing_z="impute"), np.random.default_rng(5)) for _ in range(2))
    x, arm, z, reward = a_round(rng)
    z_hat = other.context_map.predict(x)[0]
    one.expect(x, arm)
    one.observe(x, arm, [z[0], NAN])
    one.credit(x, arm, None, reward)
    other.credit(x, arm, [z[0], z_hat[1]], reward, z_hat=z_hat)
    np.testing.assert_array_equal(one.weights, other.weights)


def test_parts_that_cannot_be_are_refused_and_change_nothing() -> None:
    policy = taught(fixed(), np.random.default_rng(5))
    x = np.ones(DIM_X)
    with pytest.raises(InvalidInput, match="z "):
        policy.observe(x, 1, [1.0, NAN])
    policy.expect(x, 1)
    policy.observe(x, 1, [1.0, NAN])
    before = snapshot(policy)
    for bad, message in (
        ([2.0, NAN], "contradicts"),
        ([2.0, 3.0], "contradicts"),
        ([NAN, NAN], "z has"),
        ([1.0, NAN, NAN], "shape"),
        ([NAN, np.inf], "z has"),
    ):
        with pytest.raises(InvalidInput, match=message):
            policy.observe(x, 1, bad)
    with pytest.raises(InvalidInput, match="no open round at this x, wanted all of z"):
        policy.observe(x, 0, [1.0, NAN])
    with pytest.raises(InvalidInput, match="z is None"):
        policy.credit(x, 1, None, 1.0)
    assert same(before, snapshot(policy))


def test_rounds_at_one_x_are_told_apart_by_earlier_parts() -> None:
    policy = taught(fixed(), np.random.default_rng(5))
    x = np.ones(DIM_X)
    for first in (1.0, 2.0):
        policy.expect(x, 1)
        policy.observe(x, 1, [first, NAN])
    policy.observe(x, 1, [2.0, 5.0])
    assert [(one.part, one.z) for one in policy._open][1][1].tolist() == [2.0, 5.0]
    assert next(iter(policy._open)).part[0] == 1.0
