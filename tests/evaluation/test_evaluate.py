"""`evaluate` and `compare`: what they show policies, what they refuse, and how they print."""

import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.evaluation_coverage import UNIT, World
from tests.untyped import untyped

from postserve import (
    EpsilonGreedy,
    Evaluation,
    InvalidInput,
    LinUCB,
    LinUCBOracle,
    LoggedRounds,
    NoSupport,
    PoLinTS,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    compare,
    evaluate,
    replay,
)
from postserve.conformance.tools import same, snapshot
from postserve.evaluation import missing_weights
from postserve.evaluation.settings import ESTIMATORS
from postserve.types import FloatArray

WORLD = World(worth=2.0)
LOG = WORLD.log(300, np.random.default_rng(0))
GAPS = WORLD.log(300, np.random.default_rng(0), gaps=1.0)


class Recorder:
    """Plays every arm alike, and writes down what it is told."""

    arms = (0, 1, 2)

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def propensities(self, x: FloatArray) -> FloatArray:
        self.told.append(("asked", *x))
        x[:] = np.nan  # a policy may do what it likes with its x
        return np.full(3, 1.0 / 3.0)

    def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float) -> None:
        self.told.append(("update", arm, *z, reward))

    def observe(self, x: FloatArray, arm: int, z: FloatArray) -> None:
        self.told.append(("observe", arm, *z))

    def __deepcopy__(self, memo: Any) -> "Recorder":
        self.copy = Recorder()
        return self.copy


def test_a_fixed_policy_is_asked_at_x_and_told_nothing() -> None:
    policy = Recorder()
    evaluate(policy, GAPS)
    assert policy.told == [("asked", *x) for x in GAPS.x]
    assert not hasattr(policy, "copy")


def test_a_copy_learns_from_each_row_after_it_was_asked_about_it() -> None:
    policy = Recorder()
    evaluate(policy, GAPS, learns=True)
    wanted: list[tuple[Any, ...]] = []
    for x, arm, z, reward in zip(GAPS.x, GAPS.arms, GAPS.z, GAPS.rewards, strict=True):
        wanted.append(("asked", *x))
        wanted.append(("observe", arm, *z) if np.isnan(reward) else ("update", arm, *z, reward))
    assert policy.told == []
    assert policy.copy.told == wanted


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_callers_policy_and_log_are_unchanged(estimator: Any, learns: bool) -> None:
    policy = PoLinTS(3, RidgeMap(LOG.dim_x, LOG.dim_z), floor=0.1, draws=50)
    policy.update_batch(LOG.x[:40], LOG.arms[:40], LOG.z[:40], LOG.rewards[:40])
    before = snapshot(policy)
    found = evaluate(policy, GAPS, estimator=estimator, learns=learns)
    assert same(before, snapshot(policy))
    assert found.low < found.value < found.high
    again = evaluate(policy, GAPS, estimator=estimator, learns=learns)
    np.testing.assert_array_equal(again.terms, found.terms)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_the_value_is_the_mean_of_the_terms_and_near_the_truth(estimator: Any) -> None:
    log = WORLD.log(8000, np.random.default_rng(1))
    found = evaluate(WORLD.policy, log, estimator=estimator)
    assert found.value == pytest.approx(found.terms.mean())
    assert abs(found.value - WORLD.value(WORLD.policy)) < 0.03
    assert found.support.doubt == ""
    assert 0 < found.support.effective_rounds <= len(log)


def test_learning_as_ips_is_the_weighted_replay() -> None:
    policy = EpsilonGreedy(LinUCB(3, LOG.dim_x), epsilon=0.2)
    found = evaluate(policy, LOG, estimator="ips", learns=True)
    weighted = replay(policy, LOG, np.random.default_rng(0), method="weighted")
    assert found.value == pytest.approx(weighted.unbiased_value, rel=1e-12)


def test_learning_as_replay_is_replay() -> None:
    found = evaluate(LinUCB(3, LOG.dim_x), LOG, estimator="replay", learns=True, seed=5)
    replayed = replay(LinUCB(3, LOG.dim_x), LOG, np.random.default_rng(5))
    assert found.value == pytest.approx(replayed.value, rel=1e-12)
    assert found.support.effective_rounds == len(replayed.rows)


def test_parts_of_which_a_replay_keeps_more_rows_do_not_count_for_more() -> None:
    """In the second half arm 0 is rare, and rewards are 1: its half of the value is 1/2, in parts or not."""
    n, rng = 4000, np.random.default_rng(8)
    late = np.arange(n) >= n // 2
    arms = (rng.random(n) > np.where(late, 0.05, 0.5)).astype(int)
    log = LoggedRounds(
        x=np.ones((n, 1)),
        z=np.empty((n, 0)),
        arms=arms,
        rewards=1.0 * late,
        propensities=np.where(late, np.where(arms == 0, 0.05, 0.95), 0.5),
    )
    for given in (log, [log.take(~late), log.take(late)]):
        found = evaluate(RandomPolicy(2), given, estimator="replay", learns=True)
        assert abs(found.value - 0.5) < 4.0 * found.error < 0.25
        assert found.support.doubt == ""


def test_without_gaps_the_default_is_dr() -> None:
    terms = [evaluate(WORLD.policy, LOG, estimator=name).terms for name in ("dr", "dr_followups")]
    np.testing.assert_allclose(terms[0], terms[1], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr_followups"])
def test_a_log_in_parts_is_the_log(estimator: Any) -> None:
    parts = [LOG.take(np.arange(start, start + 100)) for start in (0, 100, 200)]
    whole, split = (evaluate(WORLD.policy, log, estimator=estimator) for log in (LOG, iter(parts)))
    assert split.support == whole.support
    if estimator != "dr_followups":  # whose models are fitted in each part
        np.testing.assert_array_equal(split.terms, whole.terms)
    learner = PoLinUCB(3, RidgeMap(LOG.dim_x, LOG.dim_z))
    values = [evaluate(learner, log, estimator="ips", learns=True).value for log in (LOG, parts)]
    assert values[0] == values[1]  # it went on from one part to the next
    even = [log.changed(propensities=1 / 3) for log in (LOG, *parts)]
    values = [
        evaluate(RandomPolicy(3), log, estimator="replay", learns=True).value for log in (even[0], even[1:])
    ]
    assert values[0] == values[1]  # and so did its draws


def test_differences_are_paired() -> None:
    policies = {"rule": WORLD.policy, "coin": RandomPolicy(3)}
    found = compare(policies, LOG, to="coin")
    rule, coin = found.evaluations["rule"], found.evaluations["coin"]
    gain = found.differences["rule"]
    assert gain.value == pytest.approx(rule.value - coin.value)
    assert gain.error == pytest.approx((rule.terms - coin.terms).std(ddof=1) / np.sqrt(len(LOG)))
    back = found.difference("coin", "rule")
    assert (back.low, back.high) == pytest.approx((-gain.high, -gain.low))
    alone = evaluate(WORLD.policy, LOG)
    np.testing.assert_array_equal(alone.terms, rule.terms)
    with pytest.raises(InvalidInput, match="there is no policy 'x', wanted one of as served, rule, coin"):
        found.difference("x", "coin")


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_what_was_served_is_the_mean_reward(estimator: Any) -> None:
    found = compare({"coin": RandomPolicy(3)}, LOG, estimator=estimator).evaluations["as served"]
    if estimator != "dm":
        assert found.value == pytest.approx(LOG.rewards.mean())
    assert found.value == pytest.approx(LOG.rewards.mean(), abs=0.05)


@pytest.mark.parametrize("kind", ["bernstein", "sequence"])
@pytest.mark.parametrize("estimator", ["ips", "dr", "dr_followups"])
def test_terms_and_differences_lie_in_the_range_that_intervals_assume(estimator: Any, kind: Any) -> None:
    log = GAPS if kind == "bernstein" else LOG
    largest = 1.0 / log.propensities.min()
    options: Any = {"estimator": estimator, "interval": kind, "reward_range": UNIT, "max_ratio": largest}
    found = compare({"rule": WORLD.policy, "coin": RandomPolicy(3)}, log, **options)
    inverse = 20.0 if estimator == "dr_followups" and log is GAPS else 1.0
    most = largest if estimator == "ips" else 1.0 + inverse * largest
    for each in found.evaluations.values():
        assert np.abs(each.terms).max() <= most
        assert each.low <= each.value <= each.high
    for gain in found.differences.values():
        assert gain.low <= gain.value <= gain.high


@pytest.mark.parametrize("estimator", ["ips", "snips"])
def test_weights_count_rows_as_if_they_were_there_so_often(estimator: Any) -> None:
    weights = np.random.default_rng(0).integers(0, 3, size=len(LOG))
    twice = LOG.take(np.repeat(np.arange(len(LOG)), weights))
    weighed = LOG.changed(weights=weights)
    found = [evaluate(WORLD.policy, log, estimator=estimator) for log in (twice, weighed)]
    assert found[0].value == pytest.approx(found[1].value, rel=1e-12)
    assert found[0].support.mean_ratio == pytest.approx(found[1].support.mean_ratio, rel=1e-12)


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr", "replay"])
def test_weights_make_up_for_rewards_that_are_missing_by_arm_and_x(estimator: Any) -> None:
    """Of two arms and two x the value of arm 1 is 1/2, however rarely its rewards come at one x."""
    log, came = missing_by_arm(n=20_000)
    weighed = log.changed(weights=np.where(np.isnan(log.rewards), 0.0, 1.0 / came))
    found = evaluate(One(), weighed, estimator=estimator)
    assert abs(found.value - 0.5) < 4.0 * found.error < 0.06
    assert found.support.doubt == ""


def test_rewards_that_come_for_one_arm_only_say_nothing_against_propensities() -> None:
    log, _ = missing_by_arm(n=8000)
    found = evaluate(One(), log, estimator="ips")
    assert found.support.doubt == ""
    assert evaluate(One(), log.changed(propensities=0.4), estimator="ips").support.doubt != ""
    counted = log.take(~np.isnan(log.rewards))  # a log of which rounds were left out
    assert "rounds were left out" in evaluate(One(), counted, estimator="ips").support.doubt


class One:
    """Always plays arm 1 of two."""

    def propensities(self, x: FloatArray) -> FloatArray:
        return np.array([0.0, 1.0])


def missing_by_arm(n: int) -> tuple[LoggedRounds, FloatArray]:
    """The reward is x, which is 0 or 1, and comes with a probability that depends on x and the arm."""
    rng = np.random.default_rng(3)
    x, arms = rng.integers(2, size=n), rng.integers(2, size=n)
    came = np.where(arms == 0, 0.1, np.where(x == 0, 1.0, 0.5))
    rewards = np.where(rng.random(n) < came, 1.0 * x, np.nan)
    z = np.empty((n, 0))
    return LoggedRounds(x=x[:, None], z=z, arms=arms, rewards=rewards, propensities=0.5), came


def test_few_heavy_rows_are_few_effective_rounds() -> None:
    heavy = LOG.changed(weights=np.where(np.arange(len(LOG)) < 10, 1000.0, 1e-3))
    served = compare({"coin": RandomPolicy(3)}, heavy, estimator="ips").evaluations["as served"]
    assert served.support.effective_rounds == pytest.approx(10.0, rel=1e-3)


@pytest.mark.parametrize("kind", ["bernstein", "sequence"])
def test_the_largest_ratio_is_not_guessed_from_what_was_drawn(kind: Any) -> None:
    """A rare arm may not have been served yet, though its ratio would be 1,000."""
    rng, n = np.random.default_rng(0), 200
    x = rng.random(n) < 0.1
    chance = np.where(x, 0.001, 0.5)
    arms = (rng.random(n) < chance).astype(int)
    assert not arms[x].any()
    log = LoggedRounds(
        x=x[:, None],
        z=np.empty((n, 0)),
        arms=arms,
        rewards=1.0 * x * arms,
        propensities=np.where(arms == 1, chance, 1.0 - chance),
    )
    bounds: Any = {"estimator": "ips", "interval": kind, "reward_range": UNIT}
    with pytest.raises(InvalidInput, match=r"max_ratio is None, and the log's propensities are 0.5 to 0.999"):
        evaluate(One(), log, **bounds)
    found = evaluate(One(), log, **bounds, max_ratio=1000.0)
    assert found.low <= 0.1 <= found.high
    even = log.take(~x)  # whose served arms all had 1/2
    assert evaluate(One(), even, **bounds).settings.max_ratio == 2.0
    known = even.changed(all_propensities=np.full((len(even), 2), 0.5))
    assert evaluate(One(), known, **bounds).settings.max_ratio == 2.0


class Arm:
    """Always plays one arm."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def propensities(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.eye(3)[self.arm])


def test_arms_that_were_never_served_are_refused_with_their_rounds() -> None:
    two = LOG.take(LOG.arms < 2)
    share = f"{len(two)} of {len(two)} rounds"
    message = rf"Arm plays what the log could not serve in {share} \(rows 0, 1, 2, 3, 4, …; no reward"
    with pytest.raises(NoSupport, match=message) as refused:
        evaluate(Arm(2), two)
    assert "no reward of arm 'c' is in the log" in str(refused.value)
    assert refused.value.rows == tuple(range(len(two)))
    evaluate(Arm(1), two)  # which it can answer


def test_every_estimator_refuses_what_the_log_could_not_serve() -> None:
    two = LOG.take(LOG.arms < 2).changed(propensities=0.5)
    for estimator in ESTIMATORS:
        for learns in (False, True):
            with pytest.raises(NoSupport, match="no reward of arm 'c' is in the log"):
                evaluate(RandomPolicy(3), two, estimator=estimator, learns=learns)


def test_arms_whose_rewards_never_came_are_refused() -> None:
    lost = LOG.changed(rewards=np.where(LOG.arms == 2, np.nan, LOG.rewards))
    with pytest.raises(NoSupport, match="no reward of arm 'c' is in the log"):
        evaluate(Arm(2), lost)


def test_missing_rewards_are_not_made_up_for_twice() -> None:
    lost = LOG.changed(rewards=np.where(np.arange(len(LOG)) % 3 == 0, np.nan, LOG.rewards))
    weighted = lost.changed(weights=missing_weights(lost))
    for given in (weighted, [weighted.take(np.arange(100)), weighted.take(np.arange(100, len(LOG)))]):
        with pytest.raises(InvalidInput, match="weights are 0 wherever a reward is missing, which 'dr_fol"):
            evaluate(RandomPolicy(3), untyped(given))
    estimate = evaluate(RandomPolicy(3), weighted, estimator="dr").value
    assert estimate == pytest.approx(evaluate(RandomPolicy(3), lost).value, abs=0.1)
    some = np.where(np.arange(len(LOG)) == 0, 0.0, 1.0)
    evaluate(RandomPolicy(3), lost.changed(weights=some))  # for another reason
    evaluate(RandomPolicy(3), LOG.changed(weights=some))


@pytest.mark.parametrize("learns", [False, True])
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_part_whose_rewards_are_all_out_does_not_count(estimator: Any, learns: bool) -> None:
    late = LOG.changed(rewards=np.full(len(LOG), np.nan))
    parts = ([LOG], [LOG, late], [late, LOG])
    alone, before, after = (
        evaluate(RandomPolicy(3), log, estimator=estimator, learns=learns) for log in parts
    )
    assert before.support.rounds == after.support.rounds == len(LOG)
    assert before.support.missing == after.support.missing == len(LOG)
    np.testing.assert_allclose(before.terms, alone.terms, rtol=0.0, atol=1e-12)
    assert after.value == pytest.approx(alone.value, abs=alone.error)  # other draws
    known = np.full((len(LOG), 3), 1.0 / 3.0)
    uniform = late.changed(propensities=1.0 / 3.0, all_propensities=known)
    with pytest.raises((NoSupport, InvalidInput), match="no reward of"):
        evaluate(RandomPolicy(3), uniform, estimator=estimator, learns=learns)


def test_certain_rounds_are_refused_where_the_policy_may_differ() -> None:
    certain = LOG.changed(propensities=np.where(np.arange(len(LOG)) % 100 == 7, 1.0, LOG.propensities))
    wanted = tuple(row for row in (7, 107, 207) if LOG.arms[row] != 1)
    assert wanted
    with pytest.raises(NoSupport, match="served its arm with propensity 1") as refused:
        evaluate(Arm(1), certain)
    assert refused.value.rows == wanted
    with pytest.raises(NoSupport) as refused:  # the rows of the whole log, not of a part
        evaluate(Arm(1), [certain.take(np.arange(100)), certain.take(np.arange(100, 300))])
    assert refused.value.rows == wanted
    evaluate(Arm(1), certain, estimator="dm")  # whose model answers


def test_wrong_propensities_are_doubted() -> None:
    log = WORLD.log(2000, np.random.default_rng(0))
    found = evaluate(RandomPolicy(3), log.changed(propensities=0.5))
    assert "the mean ratio is 0.667" in found.support.doubt
    assert found.support.doubt in str(found)
    assert "doubt" not in evaluate(RandomPolicy(3), log)._repr_html_()


def refused(message: str, policy: Any = WORLD.policy, log: Any = LOG, **options: Any) -> None:
    with pytest.raises(InvalidInput, match=message):
        untyped(evaluate)(policy, log, **options)


def test_what_cannot_be_used_is_refused() -> None:
    refused("estimator is 'best', wanted one of 'ips'", estimator="best")
    refused("interval is 'exact', wanted one of 'normal'", interval="exact")
    refused("level is 1, wanted a number above 0 and below 1", level=1.0)
    refused("folds is 1, wanted a whole number of at least 2", folds=1)
    refused("there is no option 'fold', wanted one of estimator", fold=3)
    refused("threshold is given for 'dr', wanted it for 'switch_dr' only", estimator="dr", threshold=2.0)
    refused("reward_range is None, 'sequence' wanted the least", interval="sequence")
    refused(r"reward_range is \(1, 0\), wanted two numbers that rise", reward_range=(1, 0))
    bounds: Any = {"interval": "bernstein", "reward_range": (0.0, 1.0), "max_ratio": 10.0}
    refused("interval is 'bernstein' for 'snips'", estimator="snips", **bounds)
    refused("interval is 'bernstein' for a policy that learns", learns=True, **bounds)
    refused("is outside reward_range, wanted 0 to 0.5", interval="bernstein", reward_range=(0.0, 0.5))
    refused("wanted at most max_ratio, 1.5", **{**bounds, "max_ratio": 1.5})
    refused("wanted weights of 1", log=LOG.changed(weights=2.0), **bounds)
    for estimator in ("ips", "dr", "dr_followups"):
        late: Any = {**bounds, "interval": "sequence", "estimator": estimator}
        refused("rewards are missing, and interval is 'sequence'", log=GAPS, **late)
    refused("reward_model is 3, wanted a scikit-learn model with fit and predict", reward_model=3)
    refused("log is a int, wanted LoggedRounds", log=3)
    refused("log has a str, wanted LoggedRounds", log=["x"])
    refused("log has no rounds", log=[])
    refused("wanted the same", log=[LOG, LOG.changed(arm_names=["d", "e", "f"])])
    refused("is the class RandomPolicy, wanted an object of it", policy=RandomPolicy)
    refused("sees z before it chooses", policy=LinUCBOracle(3, LOG.dim_x, LOG.dim_z))
    refused("has no propensities", policy=3)
    refused(r"the policy has arms \(0, 1\), wanted 0 to 2", policy=RandomPolicy(2))
    refused("the log's weights are 0 in all rounds", log=LOG.changed(weights=0.0))


def test_probabilities_that_are_none_are_refused() -> None:
    third = np.full(3, 1.0 / 3.0)
    wrongs = (np.full(3, 0.5), np.array([2.0, -1.0, 0.0]), np.full(3, np.nan), np.ones(1), third + 0j)
    for wrong in (*wrongs, third.astype(str), third.astype(object) + 0j, [[1.0], [0.0, 0.0]], None):
        policy = Recorder()
        policy.propensities = lambda x, wrong=wrong: wrong  # type: ignore[method-assign,misc]
        refused("the propensities of Recorder at row 0 are", policy=policy)


@pytest.mark.parametrize("as_given", [np.longdouble, np.float32, object, Fraction])
def test_probabilities_of_any_kind_of_number_are_numbers(as_given: Any) -> None:
    third: Any = [Fraction(1, 3)] * 3 if as_given is Fraction else np.full(3, 1.0 / 3.0).astype(as_given)
    for policy in (one := Recorder(), InBatches(third)):
        one.propensities = lambda x: third  # type: ignore[method-assign]
        found = evaluate(policy, LOG, estimator="ips")
        np.testing.assert_allclose(found.terms, LOG.rewards / (3.0 * LOG.propensities), rtol=1e-6)
    np.testing.assert_allclose(evaluate(one, LOG, estimator="ips", learns=True).terms, found.terms, rtol=1e-6)


class InBatches:
    """The same probabilities in every row, or what else it is given."""

    arms = (0, 1, 2)

    def __init__(self, chances: Any, shape: tuple[int, ...] | None = None) -> None:
        self.chances, self.shape = chances, shape

    def propensities(self, x: FloatArray) -> Any:
        return self.chances

    def propensities_batch(self, X: FloatArray) -> Any:
        return np.broadcast_to(self.chances, (len(X), 3) if self.shape is None else self.shape)


def test_a_batch_of_another_shape_is_refused() -> None:
    for chances, shape in ((1.0 / 3.0, ()), (1.0 / 3.0, (300, 1)), (1.0 / 3.0, (299, 3)), (1j, (300, 3))):
        got = "not numbers" if chances == 1j else f"of shape {shape}"
        message = re.escape(f"the propensities_batch of InBatches are {got}, wanted (300, 3)")
        refused(message, policy=InBatches(chances, shape))


def test_names_of_policies_are_checked() -> None:
    coin = RandomPolicy(3)
    for policies, message in (
        ([coin, coin], "two policies are of one class"),
        ({"as served": coin}, "wanted names other than 'as served'"),
        ({}, "wanted names other than"),
        (coin, "policies is a RandomPolicy, wanted a mapping"),
    ):
        with pytest.raises(InvalidInput, match=message):
            untyped(compare)(policies, LOG)
    with pytest.raises(InvalidInput, match="to is 'x', wanted one of as served, coin"):
        compare({"coin": coin}, LOG, to="x")


def test_tables_and_forest(tmp_path: Path) -> None:
    found = compare({"<rule>": WORLD.policy, "coin": RandomPolicy(3)}, GAPS)
    lines = str(found).splitlines()
    missing = int(np.isnan(GAPS.rewards).sum())
    assert lines[0] == f"dr_followups, 95% normal intervals, 300 rounds, {missing} rewards missing"
    assert [line.split("  ")[0] for line in lines[1:5]] == ["policy", "as served", "<rule>", "coin"]
    page = found._repr_html_()
    assert page.count("<tr>") == 4
    assert "&lt;rule&gt;" in page
    assert "<rule>" not in page
    drawn = found.forest(tmp_path / "forest.png")
    assert (tmp_path / "forest.png").stat().st_size > 5000
    assert [label.get_text() for label in drawn.axes[0].get_yticklabels()] == ["coin", "<rule>", "as served"]
    alone = evaluate(WORLD.policy, LOG)
    assert isinstance(alone, Evaluation)
    assert len(str(alone).splitlines()) == 4  # the last says that rounds are few


def test_few_effective_rounds_are_told_where_intervals_need_more() -> None:
    few, enough = LOG.take(np.arange(60)), WORLD.log(2000, np.random.default_rng(3))
    line = "fewer than {} effective rounds (RandomPolicy): {} intervals may hold too rarely"
    for kind in ("normal", "bootstrap"):
        found = evaluate(RandomPolicy(3), few, estimator="ips", interval=untyped(kind))
        assert str(found).splitlines()[-1] == line.format(90, kind)
        assert f"<p>{line.format(90, kind)}</p>" in found._repr_html_()
    gaps = WORLD.log(1000, np.random.default_rng(3), gaps=1.0)
    assert line.format(470, "normal") in str(evaluate(RandomPolicy(3), gaps))
    assert "too rarely" not in str(evaluate(RandomPolicy(3), gaps, estimator="ips"))
    assert "too rarely" not in str(evaluate(RandomPolicy(3), enough))
    bounds: Any = {"interval": "bernstein", "reward_range": UNIT, "max_ratio": 100.0}
    assert "too rarely" not in str(evaluate(RandomPolicy(3), few, **bounds))


def test_models_of_the_callers_own() -> None:
    from sklearn.dummy import DummyClassifier, DummyRegressor

    mean: Any = {"reward_model": DummyRegressor(), "arrival_model": DummyClassifier(strategy="prior")}
    found = evaluate(WORLD.policy, GAPS, **mean)
    assert not np.array_equal(found.terms, evaluate(WORLD.policy, GAPS).terms)
    assert evaluate(WORLD.policy, LOG, estimator="dm", reward_model=DummyRegressor()).error < 0.02


class Says:
    """A model of whatever kind, which says the same of every row; it cannot learn if that is None."""

    def __init__(self, said: Any) -> None:
        self.said = said

    def fit(self, inputs: FloatArray, targets: Any) -> "Says":
        if self.said is None:
            raise ValueError("too few rows")
        return self

    def predict(self, inputs: FloatArray) -> Any:
        return np.array([self.said] * len(inputs))

    predict_proba = predict


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (np.nan, "predict of reward_model gave nan, wanted numbers"),
        (np.inf, "predict of reward_model gave inf, wanted numbers"),
        ([1.0, 2.0], r"predict of reward_model gave shape \(\d+, 2\), wanted numbers .* of shape \(\d+,\)"),
        ("much", "predict of reward_model failed for .* rows .ValueError"),
        (None, "fit of reward_model failed for .* rows of arm 0 .ValueError: too few rows"),
    ],
)
def test_models_of_rewards_that_say_no_number_are_refused(said: Any, told: str) -> None:
    refused(told, reward_model=Says(said))
    refused(told, log=GAPS, reward_model=Says(said))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ([0.5, 50.0], "predict_proba of arrival_model gave 50, wanted numbers from 0 to 1"),
        ([0.5, np.nan], "predict_proba of arrival_model gave nan, wanted numbers"),
        (0.5, r"predict_proba of arrival_model gave shape \(\d+,\), wanted .* of shape \(\d+, 2\)"),
        (None, "fit of arrival_model failed for .* rows .ValueError: too few rows"),
    ],
)
def test_models_of_arrivals_that_say_no_probability_are_refused(said: Any, told: str) -> None:
    refused(told, log=GAPS, arrival_model=Says(said))


@pytest.mark.parametrize("constant", [0.1, 0.3, 1.7])
def test_a_column_that_is_constant_for_an_arm_tells_nothing_of_it(constant: float) -> None:
    """Its deviation is rounding: other arms' rows would be far from its mean in that unit."""
    rng, n = np.random.default_rng(0), 300
    arms = rng.integers(2, size=n)
    x = np.where(arms == 0, constant, 1e6 * rng.normal(size=n))[:, None]
    log = LoggedRounds(x=x, z=np.empty((n, 0)), arms=arms, rewards=rng.random(n), propensities=0.5)
    for estimator in ("dm", "dr"):
        found = evaluate(RandomPolicy(2), log, estimator=untyped(estimator))
        assert abs(found.value - log.rewards.mean()) < 0.1
        assert found.error < 0.1
    late = log.changed(rewards=np.where(rng.random(n) < 0.5, np.nan, log.rewards))
    wider = late.changed(x=np.column_stack([np.full(n, constant), x]), x_names=["constant", "x"])
    np.testing.assert_allclose(missing_weights(wider), missing_weights(late), rtol=1e-3)


def test_logs_without_z_and_of_few_rows_work() -> None:
    few = LoggedRounds(
        x=np.ones((3, 1)), z=np.empty((3, 0)), arms=[0, 1, 0], rewards=[1.0, np.nan, 0.0], propensities=0.5
    )
    rewards = few.changed(rewards=[1.0, 0.5, 0.0])
    assert evaluate(RandomPolicy(2), rewards).value == pytest.approx(0.5, abs=0.5)
    with pytest.raises(NoSupport):
        evaluate(RandomPolicy(2), few)


def test_rounds_whose_z_is_missing_count_and_teach_what_they_can() -> None:
    rng, n = np.random.default_rng(0), 800
    x, arms = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    z = x[:, :1] + rng.normal(size=(n, 1))
    rewards = np.where(arms == 1, 1.0, -1.0) * z[:, 0]
    z[rng.random(n) < 0.3] = np.nan
    rewards[rng.random(n) < 0.3] = np.nan
    log = LoggedRounds(x=x, z=z, arms=arms, rewards=rewards, propensities=0.5)
    found = evaluate(PoLinUCB(2, RidgeMap(2, 1), missing_z="drop"), log, learns=True)
    assert found.low < found.value < found.high
    assert found.value > 0.3
    assert np.isfinite(missing_weights(log)).all()
    with pytest.raises(InvalidInput, match="z is None"):
        evaluate(PoLinUCB(2, RidgeMap(2, 1)), log, learns=True)
