"""Rounds in which only some arms could be served, and logs with the propensities of all arms."""

from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.untyped import untyped

from postserve import (
    DecisionLog,
    EpsilonGreedy,
    InvalidInput,
    LinUCB,
    LoggedRounds,
    NoSupport,
    RandomPolicy,
    evaluate,
    replay,
)
from postserve.policies.choosing import batch_propensities
from postserve.types import FloatArray

SETS = list(chain.from_iterable(combinations(range(3), size) for size in (1, 2, 3)))
ATOMS = [(x, arms, arm) for x, arms in product(range(2), SETS) for arm in arms]
"""Every round that there can be: x, the eligible arms, and the one that was served."""
COPIES = 12
"""So many of each round, that every fold of a model's rows has it."""


class Table:
    """A policy that plays each arm in proportion to a number, among the eligible ones."""

    def __init__(self, numbers: FloatArray) -> None:
        self.numbers = numbers

    def propensities(self, x: Any, arms: Any = None) -> FloatArray:
        some = np.zeros(3)
        some[list(range(3) if arms is None else arms)] = 1.0
        found = some * self.numbers[int(x[0])]
        return np.asarray(found / found.sum())


class MeanByX:
    """A model of rewards: the mean for each x."""

    def fit(self, inputs: FloatArray, targets: FloatArray) -> "MeanByX":
        self.means = {x: targets[inputs[:, 0] == x].mean() for x in np.unique(inputs[:, 0])}
        return self

    def predict(self, inputs: FloatArray) -> FloatArray:
        return np.array([self.means[x] for x in inputs[:, 0]])


def masks(eligible: Any, n_arms: int = 3) -> Any:
    found = np.zeros((len(eligible), n_arms), dtype=bool)
    for row, arms in enumerate(eligible):
        found[row, list(arms)] = True
    return found


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_every_estimator_expects_the_value_among_the_eligible_arms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    of_x, of_set = rng.dirichlet([2.0, 2.0]), rng.dirichlet(np.ones(len(SETS)), size=2)
    means, served, policy = rng.normal(size=(2, 3)), *(Table(rng.uniform(0.1, 1.0, (2, 3))) for _ in "ab")
    value, chance, chances = 0.0, [], []
    for x, arms, arm in ATOMS:
        here = of_x[x] * of_set[x, SETS.index(arms)]
        chances.append(served.propensities([x], arms))
        chance.append(here * chances[-1][arm])
        if arm == arms[0]:
            value += here * float(policy.propensities([x], arms) @ means[x])
    xs, eligible, served_arms = (list(each) * COPIES for each in zip(*ATOMS, strict=True))
    log = LoggedRounds(
        x=np.array(xs, dtype=float)[:, None],
        z=np.empty((len(xs), 0)),
        arms=served_arms,
        rewards=means[xs, served_arms],
        propensities=np.tile(np.array(chances)[np.arange(len(ATOMS)), [arm for *_, arm in ATOMS]], COPIES),
        all_propensities=np.tile(chances, (COPIES, 1)),
        eligible=masks(eligible),
        weights=np.tile(chance, COPIES),
    )
    options: Any = {"reward_model": MeanByX()}
    for estimator in ("ips", "dr", "dm", "dr_followups", "switch_dr"):
        if estimator == "switch_dr":
            options["threshold"] = 1.0
        found = evaluate(policy, log, estimator=untyped(estimator), **options)
        assert found.value == pytest.approx(value, abs=1e-9), estimator
    ratios = evaluate(policy, log.changed(rewards=np.ones(len(log))), estimator="ips")
    assert ratios.value == pytest.approx(1.0, abs=1e-12)


def uneven(n: int, rng: np.random.Generator) -> LoggedRounds:
    """Of three arms, one to three are eligible, and one of these is served, each alike."""
    eligible = [SETS[i] for i in rng.integers(len(SETS), size=n)]
    arms, x = [int(rng.choice(each)) for each in eligible], rng.normal(size=(n, 2))
    return LoggedRounds(
        x=x,
        z=np.empty((n, 0)),
        arms=arms,
        rewards=x[:, 0] * (np.array(arms) - 1.0) + 0.1 * rng.normal(size=n),
        propensities=[1.0 / len(each) for each in eligible],
        eligible=masks(eligible),
    )


LOG = uneven(900, np.random.default_rng(0))


def taught() -> EpsilonGreedy:
    policy = EpsilonGreedy(LinUCB(3, 2), epsilon=0.3)
    for row in range(300):
        policy.update(LOG.x[row], int(LOG.arms[row]), None, float(LOG.rewards[row]))
    return policy


def test_rounds_asked_at_once_are_asked_among_their_own_eligible_arms() -> None:
    policy, served = taught(), np.arange(len(LOG))
    assert batch_propensities(policy) is not None
    assert LOG.eligible is not None
    wanted = [
        policy.propensities(x, np.flatnonzero(m).tolist()) for x, m in zip(LOG.x, LOG.eligible, strict=True)
    ]
    ratios = np.array(wanted)[served, LOG.arms] / LOG.propensities
    found = evaluate(policy, LOG, estimator="ips")
    np.testing.assert_allclose(found.terms, ratios * LOG.rewards, rtol=0.0, atol=1e-12)
    assert found.support.doubt == ""


def test_a_learning_policy_and_replays_choose_among_eligible_arms() -> None:
    learnt = evaluate(LinUCB(3, 2), LOG, learns=True)
    best = np.mean(
        [max(x[0] * (a - 1.0) for a in np.flatnonzero(m)) for x, m in zip(LOG.x, _of(LOG), strict=True)]
    )
    assert abs(learnt.value - best) < 0.15
    assert evaluate(LinUCB(3, 2), LOG, learns=True, estimator="replay").value == pytest.approx(best, abs=0.2)
    for method in ("rejection", "weighted"):
        found = replay(LinUCB(3, 2), LOG, np.random.default_rng(0), method=untyped(method))
        assert found.value == pytest.approx(best, abs=0.2)


def _of(log: LoggedRounds) -> Any:
    assert log.eligible is not None
    return log.eligible


class Stubborn:
    """Ignores which arms are eligible."""

    def propensities(self, x: Any, arms: Any = None) -> FloatArray:
        return np.full(3, 1.0 / 3.0)

    def select(self, x: Any, rng: Any, arms: Any = None) -> Any:
        return RandomPolicy(3).select(x, rng)

    def update(self, *round_: Any) -> None: ...


class Unaware:
    """Does not know that some arms may not be eligible."""

    def propensities(self, x: Any) -> FloatArray:
        return np.full(3, 1.0 / 3.0)


def test_policies_that_play_other_arms_are_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"the propensities of Stubborn at row \d+ .* but for the eligible \["
    ):
        evaluate(Stubborn(), LOG)
    with pytest.raises(InvalidInput, match="the policy chose arm"):
        replay(Stubborn(), LOG, np.random.default_rng(0))
    with pytest.raises(
        InvalidInput, match=r"propensities of Unaware takes no arms.*wanted propensities\(…, arms"
    ):
        evaluate(Unaware(), LOG)
    every = LOG.take(_of(LOG).all(axis=1))
    assert every.eligible is None
    evaluate(Unaware(), every)


def test_an_arm_with_propensity_0_lacks_support_in_its_rounds() -> None:
    n = 60
    x, rng = np.ones((n, 1)), np.random.default_rng(0)
    arms = np.arange(n) % 3
    chances = np.full((n, 3), 1.0 / 3.0)
    chances[7], chances[10], arms[10] = [0.0, 1.0, 0.0], [0.5, 0.5, 0.0], 0
    chances[11] = np.nan
    arms[7] = 1
    served = np.where(np.isnan(chances[:, 0]), 1.0 / 3.0, chances[np.arange(n), arms])
    log = LoggedRounds(
        x=x, z=np.empty((n, 0)), arms=arms, rewards=rng.normal(size=n), propensities=served,
        all_propensities=chances,
    )  # fmt: skip
    with pytest.raises(NoSupport, match="the log gave an arm that the policy plays propensity 0") as refused:
        evaluate(RandomPolicy(3), log)
    assert refused.value.rows == (7, 10)
    evaluate(RandomPolicy(3), log, estimator="dm")
    evaluate(RandomPolicy(3), log.take(np.delete(np.arange(n), [7, 10])))
    some = np.ones((n, 3), dtype=bool)
    some[7], some[10] = [False, True, False], [True, True, False]
    evaluate(RandomPolicy(3), log.changed(eligible=some))  # which then does not play it there


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"eligible": np.ones((900, 2), dtype=bool)}, r"shape \(900, 2\) and dtype bool, wanted \(900, 3\)"),
        ({"eligible": np.ones((900, 3))}, "dtype float64, wanted"),
        ({"eligible": np.zeros((900, 3), dtype=bool)}, "at row 0, wanted the arm that was served among them"),
        ({"all_propensities": np.ones((900, 2))}, r"all_propensities has shape \(900, 2\), wanted"),
        ({"all_propensities": np.ones((900, 3))}, "at row 0, wanted probabilities that sum to 1"),
        ({"all_propensities": np.full((900, 3), 1 / 3), "propensities": 0.5}, "wanted what propensities has"),
        (
            {"all_propensities": np.full((900, 3), 1 / 3), "propensities": 1 / 3},
            "wanted 0 for arms that are not eligible",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(changes: Any, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        LOG.changed(**changes)


def test_a_log_of_decisions_hands_on_what_it_knows() -> None:
    log = DecisionLog.of(
        {
            "decision_id": ["1", "2", "3", "4"],
            "x.a": [1.0, 2.0, 3.0, 4.0],
            "arm": ["c", "a", "b", "a"],
            "eligible": [["c", "a"], None, ["b", "c", "a"], ["a"]],
            "propensity": [0.25, 0.5, 0.5, 1.0],
            "propensities": [[0.25, 0.75], None, [0.5, 0.3, 0.2], None],
            "reward": [1.0, 0.0, 0.0, 1.0],
        }
    )
    (rounds,) = log.rounds()
    assert _of(rounds).tolist() == [[True, False, True], [True] * 3, [True] * 3, [True, False, False]]
    lost = [np.nan] * 3
    np.testing.assert_array_equal(rounds.all_propensities, [[0.75, 0, 0.25], lost, [0.2, 0.5, 0.3], lost])
    taken = rounds.take([2, 0])
    np.testing.assert_array_equal(taken.all_propensities, [[0.2, 0.5, 0.3], [0.75, 0, 0.25]])
    with pytest.raises(InvalidInput, match=r"column 'eligible' has 'c' at row 0, wanted some of a, b"):
        next(DecisionLog(log.frame.with_columns(arm=untyped(_a()))).rounds(arm_names=["a", "b"]))


def _a() -> Any:
    import polars as pl

    return pl.lit("a")


def test_an_arm_without_a_reward_has_support_where_its_propensity_is_known() -> None:
    """By ratios alone; a model of the arm's rewards cannot be fitted."""
    n = 60
    arms, rng = np.arange(n) % 2, np.random.default_rng(0)
    log = LoggedRounds(
        x=np.ones((n, 1)), z=np.empty((n, 0)), arms=arms, rewards=rng.normal(size=n),
        propensities=np.full(n, 0.49), all_propensities=np.tile([0.49, 0.49, 0.02], (n, 1)),
        arm_names=["a", "b", "c"],
    )  # fmt: skip
    evaluate(RandomPolicy(3), log, estimator="ips")
    evaluate(RandomPolicy(3), log, estimator="snips")
    unknown = np.tile([0.49, 0.49, 0.02], (n, 1))
    unknown[3] = np.nan
    cases: Any = [(log, "dr"), (log, "dm"), (log.changed(all_propensities=unknown), "snips")]
    for changed, modelled in cases:
        with pytest.raises(NoSupport, match="no reward of arm 'c' is in the log"):
            evaluate(RandomPolicy(3), changed, estimator=modelled)
