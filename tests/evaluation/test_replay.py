"""Replay: the value that a policy would have had, from rounds that were served at random."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tests.untyped import untyped

from postserve import (
    ActionDependentEnvironment,
    CatalogueEnvironment,
    Decision,
    DecisionSetEnvironment,
    InvalidInput,
    LinUCB,
    LinUCBOracle,
    LoggedRounds,
    PerArmMap,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
    Rounds,
    SyntheticEnvironment,
    replay,
)
from postserve.conformance.tools import same, snapshot
from postserve.evaluation import missing_weights

METHODS: Any = ("rejection", "weighted")


class BySign:
    """Arm 1 where the first coordinate of x is positive; learns nothing."""

    arms = (0, 1)

    def __init__(self) -> None:
        self.learnt: list[tuple[int, float]] = []
        self.observed: list[int] = []

    def select(self, x: Any, rng: Any) -> Decision:
        return Decision(int(x[0] > 0.0), 1.0)

    def propensities(self, x: Any) -> npt.NDArray[np.float64]:
        chances: npt.NDArray[np.float64] = np.eye(2)[int(x[0] > 0.0)]
        return chances

    def update(self, x: Any, arm: int, z: Any, reward: float) -> None:
        self.learnt.append((arm, reward))

    def observe(self, x: Any, arm: int, z: Any) -> None:
        self.observed.append(arm)


def uneven_log(n: int, seed: int) -> tuple[LoggedRounds, float]:
    """Two arms, served by chances that depend on x, and the mean reward of BySign there."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    chance = 0.15 + 0.7 / (1.0 + np.exp(-2.0 * x[:, 1]))  # of arm 1
    arms = (rng.random(n) < chance).astype(np.int64)
    means = np.column_stack([1.0 + x[:, 1], 2.0 - x[:, 1]])
    rewards = means[np.arange(n), arms] + rng.normal(size=n)
    propensities = np.where(arms == 1, chance, 1.0 - chance)
    parts: dict[str, Any] = {"x": x, "z": x[:, :1], "arms": arms, "rewards": rewards}
    log = LoggedRounds(**parts, propensities=propensities, arm_names=["0", "1"])
    return log, 1.5  # E[1 + x1] and E[2 - x1], each on half of all x


@pytest.mark.parametrize("method", METHODS)
def test_a_fixed_policys_value_is_right_though_arms_were_not_equally_likely(method: Any) -> None:
    rng = np.random.default_rng(0)
    found = [replay(BySign(), uneven_log(400, seed)[0], rng, method=method).value for seed in range(200)]
    truth = uneven_log(2, 0)[1]
    assert abs(np.mean(found) - truth) < 4.0 * np.std(found) / np.sqrt(len(found))
    # Rows that are kept without a look at their propensities would say otherwise.
    naive = []
    for seed in range(200):
        log, _ = uneven_log(400, seed)
        naive.append(log.rewards[log.arms == (log.x[:, 0] > 0.0)].mean())
    assert abs(np.mean(naive) - truth) > 0.2


def test_the_unbiased_value_is_so_in_short_logs() -> None:
    rng = np.random.default_rng(1)
    found = [
        replay(BySign(), uneven_log(5, seed)[0], rng, method="weighted").unbiased_value
        for seed in range(4000)
    ]
    assert abs(np.mean(found) - 1.5) < 4.0 * np.std(found) / np.sqrt(len(found))


def randomised(env: Any, n: int, rng: np.random.Generator) -> LoggedRounds:
    """A trial in a world with a known truth."""
    rounds = env.rounds(n, rng)
    arms = rng.integers(env.n_arms, size=n)
    rewards = rounds.rewards[np.arange(n), arms]
    return LoggedRounds(x=rounds.x, z=rounds.z, arms=arms, rewards=rewards, propensities=1 / env.n_arms)


def test_a_learner_gets_by_rejection_what_it_gets_when_it_is_served() -> None:
    """The first 40 rows that count are 40 rounds, as if it had been served."""
    env = SyntheticEnvironment("linear", dim_x=3, dim_z=1, n_arms=3, seed=1)

    def learner() -> Any:
        return PoLinUCB(3, RidgeMap(3, 1, ridge=1.0), ridge=1.0, arm_radius=0.3)

    replayed, served = [], []
    for seed in range(150):
        rng = np.random.default_rng([seed, 1])
        found = replay(learner(), randomised(env, 220, rng), rng)
        assert len(found.rows) >= 40
        replayed.append(found.rewards[:40].mean())
        rounds = env.rounds(40, rng)
        served.append(replay(learner(), rounds, rng).value)
    error = np.hypot(np.std(replayed), np.std(served)) / np.sqrt(150)
    assert abs(np.mean(replayed) - np.mean(served)) < 4.0 * error
    assert np.mean(replayed) > 5.0 * error  # something was learnt: Random gets 0 on average


def test_rejection_learns_from_what_it_would_have_served_alone() -> None:
    log, _ = uneven_log(100, 3)
    even = log.changed(propensities=0.5)
    policy = BySign()
    found = replay(policy, even, np.random.default_rng(0))
    match = np.flatnonzero(log.arms == (log.x[:, 0] > 0.0))
    np.testing.assert_array_equal(found.rows, match)
    assert policy.learnt == list(zip(log.arms[match].tolist(), log.rewards[match].tolist(), strict=True))
    assert found.offered == 100.0
    assert found.value == pytest.approx(log.rewards[match].mean())


def test_weighted_learns_from_every_row_and_counts_it_before() -> None:
    log, _ = uneven_log(60, 4)
    policy = LinUCB(2, 2, intercept=True)
    found = replay(policy, log, np.random.default_rng(0), method="weighted")
    again = LinUCB(2, 2, intercept=True)
    weights = np.zeros(60)
    for row in range(60):
        weights[row] = again.propensities(log.x[row])[log.arms[row]] / log.propensities[row]
        again.update(log.x[row], int(log.arms[row]), None, float(log.rewards[row]))
    np.testing.assert_array_equal(found.rows, np.flatnonzero(weights))
    np.testing.assert_array_equal(found.weights, weights[weights > 0.0])
    assert policy.pulls.sum() == 60
    assert same(snapshot(policy), snapshot(again))


def test_random_counts_every_row_by_weights() -> None:
    log = uneven_log(50, 5)[0].changed(propensities=0.5)
    found = replay(RandomPolicy(2), log, np.random.default_rng(0), method="weighted")
    assert found.value == pytest.approx(log.rewards.mean())
    assert found.unbiased_value == pytest.approx(log.rewards.mean())


@pytest.mark.parametrize("method", METHODS)
def test_a_row_without_reward_teaches_phi_and_does_not_count(method: Any) -> None:
    log, _ = uneven_log(80, 6)
    rewards = log.rewards.copy()
    rewards[::3] = np.nan
    log = log.changed(rewards=rewards, propensities=0.5)
    policy = BySign()
    found = replay(policy, log, np.random.default_rng(0), method=method)
    assert not np.isnan(found.rewards).any()
    assert not set(found.rows.tolist()) & set(range(0, 80, 3))
    assert policy.observed
    assert not any(np.isnan(reward) for _, reward in policy.learnt)
    for learner in (PoLinUCB(2, RidgeMap(2, 1)), RobustPoLinUCB(2, PerArmMap(RidgeMap(2, 1)))):
        found = replay(learner, log, np.random.default_rng(0), method=method)
        assert learner.pulls.sum() == (
            len(found.rows) if method == "rejection" else (~np.isnan(rewards)).sum()
        )


def test_weights_of_rows_count() -> None:
    log = uneven_log(40, 7)[0].changed(propensities=0.5)
    weights = np.where(np.arange(40) < 20, 1.0, 0.0)
    found = replay(BySign(), log.changed(weights=weights), np.random.default_rng(0))
    first = replay(BySign(), log.take(np.arange(20)), np.random.default_rng(0))
    assert found.value == pytest.approx(first.value)


def test_full_information_counts_every_row() -> None:
    rng = np.random.default_rng(8)
    x, rewards = rng.normal(size=(30, 2)), rng.normal(size=(30, 2))
    found = replay(BySign(), Rounds(x, x[:, :1], rewards, rewards), rng)
    best = (x[:, 0] > 0.0).astype(int)
    np.testing.assert_array_equal(found.arms, best)
    assert found.value == pytest.approx(rewards[np.arange(30), best].mean())


@pytest.mark.parametrize("method", METHODS)
def test_an_oracle_is_shown_z(method: Any) -> None:
    log, _ = uneven_log(200, 9)
    assert replay(LinUCBOracle(2, 2, 1), log, np.random.default_rng(0), method=method).value > 0.0


@pytest.mark.parametrize("method", METHODS)
def test_the_unbiased_value_counts_what_came_and_what_it_weighs(method: Any) -> None:
    """Of a fixed policy both values are of the same thing: with gaps and weights too."""
    log, truth = uneven_log(40_000, 11)
    rng = np.random.default_rng(0)
    gaps = log.changed(rewards=np.where(rng.random(len(log)) < 0.4, np.nan, log.rewards))
    for rounds in (log, gaps, gaps.changed(weights=missing_weights(gaps)), log.changed(weights=3.0)):
        found = replay(BySign(), rounds, rng, method=method)
        assert found.unbiased_value == pytest.approx(truth, abs=0.1)
        assert found.value == pytest.approx(truth, abs=0.1)


def test_a_replay_in_which_nothing_counts_has_no_value() -> None:
    log = LoggedRounds(x=[[1.0], [2.0]], z=[[0.0], [1.0]], arms=[0, 0], rewards=[1.0, 2.0],
                       propensities=0.5, arm_names=["a", "b"])  # fmt: skip
    found = replay(BySign(), log, np.random.default_rng(0))
    assert np.isnan(found.value)
    assert found.unbiased_value == 0.0


def test_what_cannot_be_replayed_is_refused() -> None:
    log, _ = uneven_log(10, 0)
    rng = np.random.default_rng(0)
    for words, match in (
        ({"log": [1, 2]}, "log is a list, wanted LoggedRounds"),
        ({"method": "exact"}, "method is 'exact', wanted one of"),
        ({"rng": 3}, "rng is a int"),
        ({"policy": LinUCB(3, 2)}, r"the policy has arms \(0, 1, 2\), wanted 0 to 1"),
        ({"policy": LinUCB(3, 2), "method": "weighted"}, r"the policy has arms \(0, 1, 2\), wanted 0 to 1"),
        ({"policy": LinUCB(2, 5)}, "x has shape"),
    ):
        given: dict[str, Any] = {"policy": LinUCB(2, 2), "log": log, "rng": rng, **words}
        policy, rounds, stream = given.pop("policy"), given.pop("log"), given.pop("rng")
        with pytest.raises(InvalidInput, match=match):
            replay(policy, rounds, stream, **given)


def test_a_block_with_rows_an_arm_and_eligible_arms_is_served_as_simulate_serves_it() -> None:
    worlds: tuple[Any, ...] = (
        (ActionDependentEnvironment("linear", n_arms=3, dim_x=3, dim_z=1), 3),
        (DecisionSetEnvironment("linear", dim_x=3, dim_z=1, n_candidates=4), None),
        (CatalogueEnvironment("linear", dim_x=3, dim_z=1, n_arms=12, n_eligible=3), 12),
    )
    for env, n_arms in worlds:
        rounds = env.rounds(60, np.random.default_rng(0))
        options: Any = {"model": "shared"} if n_arms is None else {}
        first, policy = (PoLinUCB(n_arms, RidgeMap(3, 1), **options) for _ in range(2))
        found = replay(first, rounds, np.random.default_rng(1))
        rng = np.random.default_rng(1)
        for row in range(60):
            ids = None if rounds.arms is None else rounds.arms[row]
            arm = policy.select(rounds.x[row], rng, arms=ids).arm
            i = arm if ids is None else int(np.flatnonzero(ids == arm)[0])
            assert (found.arms[row], found.rewards[row]) == (arm, rounds.rewards[row, i])
            z = rounds.z[row]
            x = rounds.x[row]
            policy.update(x if x.ndim == 1 else x[i], arm, z if z.ndim == 1 else z[i], found.rewards[row])


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"z": np.zeros((4, 1))}, r"log.z has shape \(4, 1\), wanted \(5, n\)"),
        ({"rewards": np.zeros((4, 2)), "means": np.zeros((4, 2))}, "log.rewards has shape"),
        ({"rewards": np.full((5, 2), np.nan)}, "log.rewards has nan"),
        (
            {"rewards": np.zeros((5, 3)), "means": np.zeros((5, 3))},
            r"the policy has arms \(0, 1\), wanted 0 to 2",
        ),
        ({"arms": np.array([[2, 1]] * 5)}, "log.arms has a row with ids that do not rise"),
    ],
)
def test_blocks_that_do_not_fit_are_refused(changes: Any, told: str) -> None:
    block = Rounds(np.ones((5, 2)), np.ones((5, 1)), np.zeros((5, 2)), np.zeros((5, 2)))
    with pytest.raises(InvalidInput, match=told):
        replay(BySign(), block._replace(**changes), np.random.default_rng(0))


class Odd(BySign):
    """Answers what it was made with."""

    def __init__(self, arm: Any, chances: Any = None) -> None:
        super().__init__()
        self.arm, self.chances = arm, chances

    def select(self, x: Any, rng: Any) -> Decision:
        return Decision(self.arm, 1.0)

    def propensities(self, x: Any) -> Any:
        return self.chances


@pytest.mark.parametrize("arm", [-1, 2, 1.7, "0", None, True])
def test_an_arm_that_is_none_is_refused(arm: Any) -> None:
    log, _ = uneven_log(10, 0)
    with pytest.raises(InvalidInput, match="the policy chose arm"):
        replay(Odd(arm), log, np.random.default_rng(0))


@pytest.mark.parametrize("chances", [[1.0], [np.nan, np.nan], [3.0, -2.0], None, [0.5j, 0.5]])
def test_propensities_that_are_none_are_refused(chances: Any) -> None:
    log, _ = uneven_log(10, 0)
    with pytest.raises(InvalidInput, match="the policy's propensities are"):
        replay(Odd(0, chances), log, np.random.default_rng(0), method="weighted")


def test_what_a_policy_lacks_is_told_before_it_learns() -> None:
    log, _ = uneven_log(10, 0)
    gaps = log.changed(rewards=np.where(np.arange(10) == 9, np.nan, log.rewards))

    class Plain:
        def select(self, x: Any, rng: Any) -> Decision:
            return Decision(0, 1.0)

        def update(self, x: Any, arm: int, z: Any, reward: float) -> None:
            pass

    rng = np.random.default_rng(0)
    assert len(replay(Plain(), log, rng).rows)
    for policy, rounds, method, verb in (
        (Plain(), log, "weighted", "propensities"),
        (Plain(), gaps, "rejection", "observe"),
        (None, log, "rejection", "select"),
    ):
        with pytest.raises(InvalidInput, match=f"has no {verb}, wanted one that does"):
            replay(untyped(policy), rounds, rng, method=untyped(method))
    with pytest.raises(InvalidInput, match="log is a NoneType"):
        missing_weights(untyped(None))


def test_a_policy_cannot_change_the_log() -> None:
    log, _ = uneven_log(30, 2)
    before = log.x.copy()

    class Spoils(BySign):
        def select(self, x: Any, rng: Any) -> Decision:
            decision = super().select(x, rng)
            x[:] = 7.0
            return decision

    replay(Spoils(), log, np.random.default_rng(0))
    np.testing.assert_array_equal(log.x, before)


def test_rewards_that_came_stand_for_those_that_did_not() -> None:
    """Where z determines which rewards are missing, complete cases mislead, and weights correct for it."""
    rng = np.random.default_rng(10)
    n = 20_000
    x, z = rng.normal(size=(n, 1)), rng.normal(size=(n, 1))
    rewards = z[:, 0] + 0.5 * rng.normal(size=n)
    lost = rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * z[:, 0]))
    log = LoggedRounds(
        x=x, z=z, arms=rng.integers(2, size=n), rewards=np.where(lost, np.nan, rewards), propensities=0.5
    )
    weights = missing_weights(log)
    assert (weights[lost] == 0.0).all()
    assert weights[~lost].mean() == pytest.approx(1.0)
    assert abs(np.average(rewards, weights=weights)) < 0.05
    assert rewards[~lost].mean() < -0.3
    np.testing.assert_array_equal(missing_weights(log.changed(rewards=rewards)), 1.0)
    # Where something else says it, it must be given.
    hidden = rng.normal(size=n)
    lost = rng.random(n) < 1.0 / (1.0 + np.exp(-1.5 * hidden))
    log = log.changed(rewards=np.where(lost, np.nan, rewards + hidden))
    told = missing_weights(log, also=hidden[:, None])
    assert abs(np.average(rewards + hidden, weights=told)) < 0.05
    assert np.average(rewards + hidden, weights=missing_weights(log)) < -0.3
    with pytest.raises(InvalidInput, match="also has shape"):
        missing_weights(log, also=hidden[:5, None])
    with pytest.raises(InvalidInput, match="no reward of the log ever came"):
        missing_weights(log.changed(rewards=np.full(n, np.nan)))
