"""Logs in parts: what is kept of them, and that rounds are asked at once only where that changes nothing."""

from typing import Any

import numpy as np
import pytest
from benchmarks.evaluation_coverage import UNIT, World

from postserve import EpsilonGreedy, LinUCB, LoggedRounds, PoLinTS, PoLinUCB, RidgeMap, evaluate
from postserve.evaluation import intervals
from postserve.evaluation.gathering import Column
from postserve.evaluation.settings import ESTIMATORS
from postserve.policies.choosing import batch_propensities
from postserve.types import FloatArray

WORLD = World(worth=2.0)
LOG = WORLD.log(600, np.random.default_rng(0))


def parts_of(log: LoggedRounds) -> list[LoggedRounds]:
    return [log.take(np.arange(start, end)) for start, end in ((0, 50), (50, 400), (400, 600))]


def taught(policy: Any) -> Any:
    policy.update_batch(LOG.x, LOG.arms, LOG.z, LOG.rewards)
    return policy


def in_turn(policy: Any, x: FloatArray) -> FloatArray:
    return np.array([policy.propensities(row) for row in x])


class Never0(LinUCB):
    """Changes what `propensities` says, and nothing else."""

    def propensities(self, x: Any, arms: Any = None) -> FloatArray:
        return super().propensities(x, [1, 2])


class HandsOn:
    """Has probabilities of its own, and everything else from another policy."""

    def __init__(self, policy: Any) -> None:
        self.policy = policy

    def propensities(self, x: Any, arms: Any = None) -> FloatArray:
        return np.array([0.0, 0.5, 0.5])

    def __getattr__(self, name: str) -> Any:
        return getattr(self.policy, name)


@pytest.mark.parametrize(
    ("make", "at_once"),
    [
        (lambda: PoLinUCB(3, RidgeMap(LOG.dim_x, LOG.dim_z)), True),
        (lambda: EpsilonGreedy(LinUCB(3, LOG.dim_x), epsilon=0.3), True),
        (lambda: PoLinTS(3, RidgeMap(LOG.dim_x, LOG.dim_z), draws=20), True),
        (lambda: Never0(3, LOG.dim_x), False),
        (lambda: HandsOn(LinUCB(3, LOG.dim_x)), False),
    ],
)
def test_rounds_are_asked_at_once_only_where_that_changes_nothing(make: Any, at_once: bool) -> None:
    policy = taught(make())
    assert (batch_propensities(policy) is not None) == at_once
    ratios = in_turn(policy, LOG.x)[np.arange(len(LOG)), LOG.arms] / LOG.propensities
    found = evaluate(policy, LOG, estimator="ips")
    np.testing.assert_allclose(found.terms, ratios * LOG.rewards, rtol=0.0, atol=1e-12)


def test_an_object_with_propensities_of_its_own_is_asked_row_by_row() -> None:
    policy: Any = taught(LinUCB(3, LOG.dim_x))
    policy.propensities = lambda x: np.array([0.0, 0.0, 1.0])
    wanted = np.where(LOG.arms == 2, LOG.rewards / LOG.propensities, 0.0)
    np.testing.assert_array_equal(evaluate(policy, LOG, estimator="ips").terms, wanted)


@pytest.mark.parametrize("estimator", [name for name in ESTIMATORS if name not in ("dm", "dr", "switch_dr")])
def test_numbers_that_vary_only_in_later_parts_are_kept_from_the_first_round_on(estimator: Any) -> None:
    late = np.arange(len(LOG)) >= 400
    log = LOG.changed(
        weights=np.where(late, 2.0, 1.0), rewards=np.where(np.arange(600) % 7 == 3, np.nan, LOG.rewards)
    )
    options: Any = {"estimator": estimator}
    if estimator == "dr_followups":  # whose models are of a part
        log, options["reward_model"] = log.changed(rewards=LOG.rewards), Zero()
    whole, split = evaluate(WORLD.policy, log, **options), evaluate(WORLD.policy, parts_of(log), **options)
    assert split.support == whole.support
    np.testing.assert_allclose(split.terms, whole.terms, rtol=0.0, atol=1e-12)


class Zero:
    """A model of rewards that says 0."""

    def fit(self, inputs: FloatArray, targets: FloatArray) -> "Zero":
        return self

    def predict(self, inputs: FloatArray) -> FloatArray:
        return np.zeros(len(inputs))


def test_a_switch_is_chosen_from_the_whole_log() -> None:
    options: Any = {"estimator": "switch_dr", "reward_model": Zero()}
    whole, split = (evaluate(WORLD.policy, log, **options) for log in (LOG, parts_of(LOG)))
    np.testing.assert_array_equal(split.terms, whole.terms)


def test_a_column_keeps_one_number_until_it_varies() -> None:
    column = Column()
    for values in ([], [2.0, 2.0], [2.0]):
        column.extend(np.array(values))
    assert column.values().tolist() == [2.0] * 3
    assert column.values().strides == (0,)
    for values in ([2.0, np.nan], [], [5.0]):
        column.extend(np.array(values))
    np.testing.assert_array_equal(column.values(), [2.0, 2.0, 2.0, 2.0, np.nan, 5.0])


def test_a_sequence_does_not_depend_on_how_many_rounds_are_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    terms, within = np.random.default_rng(0).random(1000), intervals.Range(*UNIT)
    whole = intervals.sequence(terms, 0.95, within)
    monkeypatch.setattr(intervals, "AT_ONCE", 77)
    np.testing.assert_array_equal(intervals.sequence(terms, 0.95, within), whole)
    last = intervals.interval("sequence", terms, 0.95, np.random.default_rng(0), within)
    assert last == (whole[0][-1], whole[1][-1])


def test_a_bootstrap_of_groups_is_skewed_as_that_of_rounds_is(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = np.random.default_rng(0).exponential(size=4013) ** 2 + 100.0  # groups differ in their rounds
    mean, ends = terms.mean(), {}
    for most in (5000, 400):
        monkeypatch.setattr(intervals, "MOST_DRAWN", most)
        monkeypatch.setattr(intervals, "RESAMPLES", 4000)
        low, high = intervals.bootstrap(terms, 0.95, np.random.default_rng(1))
        ends[most] = np.array([mean - low, high - mean])
    assert ends[5000][1] > 1.05 * ends[5000][0]
    np.testing.assert_allclose(ends[400], ends[5000], rtol=0.08)
