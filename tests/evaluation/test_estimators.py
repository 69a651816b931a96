"""Estimators in worlds that can be enumerated: 2 x, 3 arms, 2 z, 2 rewards, which may be missing."""

from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from postserve import LoggedRounds
from postserve.evaluation import (
    dm,
    dr,
    dr_followups,
    ips,
    rejection,
    snips,
    switch_dr,
    switch_threshold,
)
from postserve.evaluation.models import Ridge, folds, predictions
from postserve.types import FloatArray, IntArray

ATOMS: IntArray = np.array(list(product(range(2), range(3), range(2), range(2), range(2))))
X, A, Z, R, THERE = ATOMS.T
"""Every round that there can be: x, arm, z, reward, and whether the reward is there."""


class World(NamedTuple):
    """Probabilities, a policy, and models that need not be right."""

    x: FloatArray
    served: FloatArray
    z: FloatArray
    reward: FloatArray
    arrival: FloatArray
    policy: FloatArray
    q: FloatArray
    m: FloatArray
    e: FloatArray

    @property
    def chance(self) -> FloatArray:
        """The probability of each atom."""
        reward, there = self.reward[X, A, Z], self.arrival[X, A, Z]
        found = self.x[X] * self.served[X, A] * self.z[X, A, Z]
        found *= np.where(R == 1, reward, 1.0 - reward) * np.where(THERE == 1, there, 1.0 - there)
        return np.asarray(found)

    @property
    def means(self) -> FloatArray:
        """E[r | x, arm]."""
        return np.asarray((self.z * self.reward).sum(axis=2))

    @property
    def value(self) -> float:
        return float(self.x @ (self.policy * self.means).sum(axis=1))

    @property
    def ratios(self) -> FloatArray:
        return np.asarray(self.policy[X, A] / self.served[X, A])

    @property
    def direct(self) -> FloatArray:
        return np.asarray((self.policy * self.q).sum(axis=1)[X])

    @property
    def predicted(self) -> FloatArray:
        return np.asarray(self.q[X, A])


@st.composite
def worlds(draw: st.DrawFn) -> World:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    concentration = draw(st.sampled_from([0.3, 1.0, 5.0]))

    def inner(*shape: int) -> FloatArray:
        return np.asarray(rng.uniform(0.05, 0.95, size=shape))

    served = 0.02 + rng.dirichlet(np.full(3, concentration), size=2)
    z = inner(2, 3)
    return World(
        x=rng.dirichlet([1.0, 1.0]),
        served=served / served.sum(axis=1, keepdims=True),
        z=np.stack([1.0 - z, z], axis=2),
        reward=inner(2, 3, 2),
        arrival=inner(2, 3, 2),
        policy=rng.dirichlet(np.full(3, concentration), size=2),
        q=rng.normal(size=(2, 3)),
        m=rng.normal(size=(2, 3, 2)),
        e=inner(2, 3, 2),
    )


many = settings(max_examples=60, deadline=None)


@many
@given(worlds())
def test_ips_and_dr_expect_the_value_whatever_the_model(world: World) -> None:
    rewards = R.astype(float)
    for terms in (ips(rewards, world.ratios), dr(rewards, world.ratios, world.direct, world.predicted)):
        assert world.chance @ terms == pytest.approx(world.value, abs=1e-12)


@many
@given(worlds(), st.floats(0.0, 5.0))
def test_dm_and_switch_dr_are_off_by_the_models_error_where_they_rely_on_it(
    world: World, threshold: float
) -> None:
    of_arms = world.policy * (world.q - world.means)
    terms = dm(world.direct)
    assert world.chance @ terms == pytest.approx(world.value + world.x @ of_arms.sum(axis=1), abs=1e-12)
    terms = switch_dr(R.astype(float), world.ratios, world.direct, world.predicted, threshold)
    beyond = of_arms * (world.policy / world.served > threshold)
    assert world.chance @ terms == pytest.approx(world.value + world.x @ beyond.sum(axis=1), abs=1e-12)


@many
@given(worlds())
def test_completed_rewards_expect_the_value_if_the_rewards_model_or_the_arrivals_is_right(
    world: World,
) -> None:
    rewards = np.where(THERE == 1, R, np.nan)

    def expected(m: FloatArray, e: FloatArray) -> float:
        models = (world.direct, world.predicted, m[X, A, Z], e[X, A, Z])
        return float(world.chance @ dr_followups(rewards, world.ratios, *models))

    assert expected(world.reward, world.e) == pytest.approx(world.value, abs=1e-10)
    assert expected(world.m, world.arrival) == pytest.approx(world.value, abs=1e-10)
    right = world.m + world.arrival / world.e * (world.reward - world.m)  # what it expects with neither
    means = (world.z * right).sum(axis=2)
    assert expected(world.m, world.e) == pytest.approx(world.x @ (world.policy * means).sum(axis=1), abs=1e-9)


@many
@given(worlds())
def test_with_all_rewards_there_it_is_dr_whatever_the_rewards_model(world: World) -> None:
    rewards, ones = R.astype(float), np.ones(len(R))
    models = (world.direct, world.predicted)
    completed = dr_followups(rewards, world.ratios, *models, world.m[X, A, Z], ones)
    np.testing.assert_allclose(completed, dr(rewards, world.ratios, *models), rtol=0.0, atol=1e-10)


@many
@given(worlds())
def test_with_the_true_model_z_can_only_lower_the_variance_of_missing_rewards(world: World) -> None:
    """Against the same with a model of x alone: DR of complete rounds, weighted by 1 / e."""
    rewards = np.where(THERE == 1, R, np.nan)
    world = world._replace(q=world.means)
    models = (world.direct, world.predicted)

    def variance(m: FloatArray) -> float:
        terms = dr_followups(rewards, world.ratios, *models, m, world.arrival[X, A, Z])
        return float(world.chance @ (terms - world.value) ** 2)

    assert variance(world.reward[X, A, Z]) <= variance(world.predicted) + 1e-12


@many
@given(worlds())
def test_snips_is_the_value_on_a_log_that_has_every_round_as_often_as_it_occurs(world: World) -> None:
    counts = np.round(1000.0 * world.chance).astype(int) + 1
    rewards, ratios = np.repeat(R.astype(float), counts), np.repeat(world.ratios, counts)
    terms = snips(rewards, ratios)
    assert terms.mean() == pytest.approx((ratios @ rewards) / ratios.sum(), abs=1e-9)
    weighed = snips(rewards + 7.0, ratios)  # a constant is added to the value
    assert weighed.mean() == pytest.approx(terms.mean() + 7.0, abs=1e-9)
    exact = (world.chance * world.ratios) @ R / (world.chance @ world.ratios)
    assert exact == pytest.approx(world.value, abs=1e-12)


@many
@given(worlds())
def test_snips_over_all_logs_of_two_rounds_is_as_counted_by_hand(world: World) -> None:
    rewards, expected, by_hand = R.astype(float), 0.0, 0.0
    chance = world.chance
    for i, j in product(range(0, 48, 2), repeat=2):  # whether rewards are there does not matter
        both = (chance[i] + chance[i + 1]) * (chance[j] + chance[j + 1])
        w, r = world.ratios[[i, j]], rewards[[i, j]]
        if w.sum() > 0.0:
            expected += both * snips(r, w).mean()
            by_hand += both * (w[0] * r[0] + w[1] * r[1]) / (w[0] + w[1])
    assert expected == pytest.approx(by_hand, abs=1e-12)


@many
@given(worlds())
def test_replay_expects_the_value_over_all_logs_in_which_a_row_is_kept(world: World) -> None:
    keep = world.ratios * world.served.min()
    one = {  # the probability of a reward and of being kept
        (r, kept): float((world.chance * np.where(kept, keep, 1.0 - keep))[r == R].sum())
        for r, kept in product((0, 1), (0, 1))
    }
    total = expected = 0.0
    for log in product(one, repeat=3):
        rewards, kept = np.array(log, dtype=float).T
        if kept.any():
            chance = float(np.prod([one[each] for each in log]))
            total += chance
            expected += chance * float(rejection(rewards, kept).mean())
    assert expected / total == pytest.approx(world.value, abs=1e-9)


@settings(max_examples=5, deadline=None)
@given(worlds())
def test_cross_fitted_dr_expects_the_value_over_all_logs_of_two_rounds(world: World) -> None:
    """The model of a row comes from the other one: if it had learnt from the row itself, this would fail."""
    chance = world.chance.reshape(-1, 2).sum(axis=1)
    x, a, z, r, _ = ATOMS[::2].T
    expected = 0.0
    for pair in product(range(len(chance)), repeat=2):
        at = np.array(pair)
        log = LoggedRounds(
            x=x[at][:, None],
            z=z[at][:, None],
            arms=a[at],
            rewards=r[at],
            propensities=world.served[x[at], a[at]],
            arm_names=["a", "b", "c"],
        )
        found = predictions(
            log,
            [world.policy[x[at]]],
            folds(2, 2, np.random.default_rng(0)),
            reward_model=Ridge(),
            arrival_model=None,
            reward_range=None,
        )
        ratios = world.policy[x[at], a[at]] / log.propensities
        expected += chance[at].prod() * dr(log.rewards, ratios, found.direct[0], found.predicted).mean()
    assert expected == pytest.approx(world.value, abs=1e-10)


def test_the_threshold_is_between_dm_and_dr() -> None:
    rng = np.random.default_rng(0)
    n = 2000
    ratios = np.where(rng.random(n) < 0.002, 300.0, 0.4)
    q, rewards = np.full(n, 0.5), (rng.random(n) < 0.5).astype(float)
    thresholds = [switch_threshold(scale * rewards, ratios, scale * q, scale * q) for scale in (1.0, 8.0)]
    assert thresholds[0] == thresholds[1]  # the unit of rewards does not matter
    rare = np.where(rng.random(n) < 0.002, 30.0, 1.0)
    close = switch_threshold(q + 0.001 * rng.normal(size=n), np.ones(n), q, q)
    assert close >= 1.0  # with nothing to cut, nothing is cut
    found = switch_threshold(rewards, rare, q, q)
    terms = [switch_dr(rewards, rare, q, q, each) for each in (found, np.inf)]
    assert terms[0].var() <= terms[1].var()
