"""Logs that leave an answer open, or seem to say more than they do."""

from typing import Any

import numpy as np
import pytest
from benchmarks import diagnosis as known

from postserve import LoggedRounds, diagnose
from postserve.diagnosis import advice, gains, objections, questions
from postserve.diagnosis.gains import Gain
from postserve.diagnosis.predicting import FOLDS, Rows, Share
from postserve.diagnosis.sample import Sample, take_sample
from postserve.types import FloatArray, IntArray


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few and short games."""
    monkeypatch.setattr(gains, "WORLDS", 4)
    monkeypatch.setattr(gains, "MOST_RUNS", gains.RUNS)
    monkeypatch.setattr(gains, "HORIZON", 100)


def sample_of(log: LoggedRounds) -> Sample:
    return take_sample(log, len(log), np.random.default_rng(0))


def log_of(x: FloatArray, z: FloatArray, arms: IntArray, rewards: FloatArray) -> LoggedRounds:
    return LoggedRounds(x=x, z=z, arms=arms, rewards=rewards, propensities=1 / (arms.max() + 1))


# What is missing, and why


def with_gaps(missing: Any, rewards: bool = False) -> LoggedRounds:
    """A log whose z, and perhaps rewards, are lost where `missing` says so of x, arms and rewards."""
    world = known.draw(7, 3000)
    lost = missing(world.x, world.arms, world.rewards, np.random.default_rng(1).random(3000))
    z = np.where(lost[:, None], np.nan, world.z)
    return world._replace(z=z, rewards=np.where(lost & rewards, np.nan, world.rewards)).log()


@pytest.mark.parametrize(
    "missing",
    [
        lambda x, arms, rewards, luck: arms == 0,
        lambda x, arms, rewards, luck: (arms == 0) & (luck < 0.5),
        lambda x, arms, rewards, luck: luck < 1.0 / (1.0 + np.exp(-2.0 * x[:, 0])),
    ],
    ids=["an arm has none", "an arm lacks half", "by x"],
)
def test_z_that_is_missing_by_arm_or_x_is_not_selected_by_the_reward(missing: Any) -> None:
    assert not [*objections.missing(sample_of(with_gaps(missing)))]


def test_z_that_is_missing_by_the_reward_is() -> None:
    raised = [*objections.missing(sample_of(with_gaps(lambda x, arms, rewards, luck: rewards < 0.0)))]
    assert [(each.kind, each.grave) for each in raised] == [("selected", True)]


def test_z_and_rewards_that_are_lost_together() -> None:
    """What z would say of the missing rewards is not there: x and the arm are all that can be asked."""
    log = with_gaps(lambda x, arms, rewards, luck: luck < 1.0 / (1.0 + np.exp(-2.0 * x[:, 0])), rewards=True)
    (raised,) = objections.missing(sample_of(log))
    assert raised.kind == "missing"
    assert "have neither z nor a reward" in raised.text
    assert "100%" not in raised.text
    assert not [*objections.missing(sample_of(with_gaps(lambda x, a, r, luck: luck < 0.4, rewards=True)))]


# Whether z follows the arm


def follows(shift: float, n: int) -> dict[str, Any]:
    """Two arms whose z differ by exactly so many standard errors."""
    rng = np.random.default_rng(0)
    arms = np.arange(n) % 2
    z = rng.normal(size=(n, 1))
    for arm in (0, 1):
        z[arms == arm] -= z[arms == arm].mean()
    z = z / z.std() + shift * np.sqrt(4.0 / n) * arms[:, None]
    found = questions.follows(sample_of(log_of(rng.normal(size=(n, 2)), z, arms, rng.normal(size=n))))
    return {"answer": found.answer.split(":")[0], **found.numbers}


@pytest.mark.parametrize(
    ("shift", "n", "answer", "own"),
    [
        (1.0, 4000, "No", False),
        (3.5, 4000, "It cannot be told", True),
        (6.0, 4000, "Yes", True),
        (1.0, 120, "It cannot be told", True),
    ],
)
def test_whether_z_follows_the_arm_has_three_answers(shift: float, n: int, answer: str, own: bool) -> None:
    found = follows(shift, n)
    assert found["answer"] == answer
    assert (found["follows"] or found["may_follow"]) == own


@pytest.mark.usefixtures("quick")
def test_where_z_may_follow_the_arm_each_has_a_map() -> None:
    log = known.draw(3, 200, shift=0.1).log()
    found = diagnose(log)
    numbers = known.numbers_of(found, "follows")
    assert numbers["may_follow"]
    assert not numbers["follows"]
    assert "HybridMap" in found.suggestion


# Answers that say no more than their intervals


@pytest.mark.parametrize(
    ("saved", "low", "high", "helps", "words"),
    [
        (0.5, 0.3, 0.7, "much", "Yes, much"),
        (0.1, 0.05, 0.15, "a little", "Yes, a little"),
        (0.49, 0.04, 0.95, "a little", "Yes, but it cannot be told how much"),
        (0.13, -0.01, 0.26, "no", "Not much, if anything"),
        (-0.01, -0.04, 0.02, "no", "No"),
        (0.2, -0.2, 0.6, "unclear", "It cannot be told from this log"),
    ],
)
def test_the_answer_in_words(saved: float, low: float, high: float, helps: str, words: str) -> None:
    gain = Gain(0.1, 0.0, 0.2, saved, low, high, 0.0, 0.0, [600], {})
    worth = {"name": "worth", "numbers": {"beyond": Share(0.2, 0.01).numbers()}}
    late = {"name": "lateness", "numbers": {"late": False}}
    findings: Any = [type("Finding", (), each) for each in (worth, late)]
    found: Any = {"now": gain, "late": gain}
    assert advice.verdict(findings, found) == helps
    text = advice.advice(advice.verdict(findings, found), findings, found, [])
    assert text.startswith(f"{words}: follow-ups save ")
    assert ("save nothing (-1% [-4%, 2%])" in text) == (saved < 0.0)


# Rounds that are not independent


def test_rows_of_a_group_are_held_out_together_and_count_as_one() -> None:
    rng = np.random.default_rng(0)
    rows, values = Rows(np.repeat(np.arange(40), 3)), rng.normal(size=(3, 120)) ** 2
    folds = rows.folds().reshape(40, 3)
    assert (folds == folds[:, :1]).all()
    assert np.bincount(folds[:, 0]).tolist() == [8] * FOLDS
    found, alone = rows.difference(*values), Rows(np.arange(120)).difference(*values)
    gained, whole = values[0] - values[1], values[2].mean()
    left = (gained - gained.mean() / whole * values[2]) / whole
    assert found.value == alone.value == pytest.approx(gained.mean() / whole)
    assert alone.error == pytest.approx(left.std() / np.sqrt(120))
    assert found.error == pytest.approx(left.reshape(40, 3).sum(axis=1).std() / np.sqrt(40) / 3)
    twice = Rows(np.tile(np.arange(120), 2)).difference(*np.tile(values, 2))
    assert twice.error == pytest.approx(alone.error)  # what is logged twice is no more certain


def test_groups_are_those_of_equal_x_unless_x_has_a_few_values_only() -> None:
    rng = np.random.default_rng(0)
    x, arms = rng.normal(size=(150, 2)), rng.integers(2, size=300)
    log = log_of(np.repeat(x, 2, axis=0), rng.normal(size=(300, 1)), arms, rng.normal(size=300))
    assert sample_of(log).rows.groups.tolist() == np.repeat(np.arange(0, 300, 2), 2).tolist()
    few = log.changed(x=rng.integers(3, size=(300, 2)).astype(float))
    assert sample_of(few).rows.groups.tolist() == list(range(300))


def repeated(seed: int) -> LoggedRounds:
    """160 rounds that were logged 12 times each; z is 20 columns of noise."""
    rng, again = np.random.default_rng(seed), np.tile(np.arange(160), 12)
    x, z, arms = rng.normal(size=(160, 2)), rng.normal(size=(160, 20)), rng.integers(2, size=160)
    rewards = x[:, 0] * (2 * arms - 1) + rng.normal(size=160)
    return log_of(x[again], z[again], arms[again], rewards[again])


def of_users(seed: int) -> LoggedRounds:
    """40 users with 60 rounds each, all but their z and their mean reward alike; z is noise."""
    rng = np.random.default_rng(seed)
    user = np.repeat(np.arange(40), 60)
    x, z, level = rng.normal(size=(40, 2))[user], rng.normal(size=(40, 10))[user], rng.normal(size=40)[user]
    arms = rng.integers(2, size=2400)
    rewards = level * (2 * arms - 1) + 0.5 * rng.normal(size=2400)
    return log_of(x, z + 0.01 * rng.normal(size=z.shape), arms, rewards)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("make", [repeated, of_users], ids=lambda make: make.__name__)
def test_what_is_repeated_is_not_learnt_from(make: Any) -> None:
    for seed in range(3):
        found = diagnose(make(seed))
        assert found.helps in ("no", "unclear"), found.summary
        assert not any(each.grave for each in found.objections), found
