"""Logs that leave an answer open, or seem to say more than they do."""

from typing import Any

import numpy as np
import pytest
from benchmarks import diagnosis as known

from postserve import LoggedRounds, diagnose
from postserve.diagnosis import advice, gains, objections, questions
from postserve.diagnosis.gains import Gain
from postserve.diagnosis.predicting import Share
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


def test_what_a_line_and_arms_share_may_be_left_open() -> None:
    def answers(n: int) -> tuple[str, str]:
        world = known.draw(5, n, noise=1.0)
        sample = sample_of(world._replace(x=np.random.default_rng(9).normal(size=world.x.shape)).log())
        return questions.predictability(sample).answer, questions.sharing(sample, "line").answer

    assert answers(4000)[0].startswith("No: x explains")
    assert "z is worth more to some arms than to others" in answers(4000)[1]
    assert answers(110)[0].startswith("It cannot be told: x explains")
    assert "which of both cannot be told" in answers(110)[1]


# Rounds that are not independent


def again(world: known.World, times: int) -> LoggedRounds:
    return world.take(np.tile(np.arange(len(world.x)), times)).log()


@pytest.mark.usefixtures("quick")
def test_rounds_that_were_logged_more_than_once() -> None:
    found = diagnose(again(known.draw(0, 160, worth=0.0), 12))
    assert not found.trusted
    (raised,) = (each for each in found.objections if each.kind == "repeated")
    assert raised.text.startswith("92% of complete rounds are copies of others")


def test_a_copy_of_one_round_in_a_thousand_is_nothing() -> None:
    world = known.draw(0, 4000)
    log = world.take(np.r_[np.arange(4000), :4]).log()
    assert not [*objections.repetition(sample_of(log))]


def test_rounds_of_categories_agree_by_chance() -> None:
    rng = np.random.default_rng(0)
    x, z = rng.integers(3, size=(4000, 3)), rng.integers(2, size=(4000, 1))
    arms, rewards = rng.integers(2, size=4000), rng.integers(2, size=4000)
    log = log_of(x.astype(float), z.astype(float), arms, rewards.astype(float))
    assert not [*objections.repetition(sample_of(log))]


@pytest.mark.usefixtures("quick")
def test_equal_x_are_no_copies() -> None:
    """x is one of 40 countries: it tells z, and z says nothing more of the reward."""
    rng = np.random.default_rng(0)
    country, arms = rng.integers(40, size=3000), rng.integers(2, size=3000)
    z, level = rng.normal(size=(40, 1))[country] + 0.05 * rng.normal(size=(3000, 1)), rng.normal(size=40)
    rewards = level[country] * (2 * arms - 1) + 0.3 * rng.normal(size=3000)
    found = diagnose(log_of(np.eye(40)[country], z, arms, rewards))
    assert found.trusted
    assert found.helps == "no"
    assert known.numbers_of(found, "predictability")["best"]["low"] > 0.9


def test_wrong_propensities_are_seen_where_x_has_few_values() -> None:
    rng = np.random.default_rng(0)
    x, arms = rng.integers(25, size=10_000), (rng.random(10_000) < 0.1).astype(np.int64)
    log = log_of(x[:, None].astype(float), rng.normal(size=(10_000, 1)), arms, rng.normal(size=10_000))
    (raised,) = objections.selection(sample_of(log))
    assert raised.grave


def test_an_arm_whose_z_is_noisier_need_not_move_it() -> None:
    """One in twenty rounds has an arm whose z has three times the noise, and the same mean."""
    moved = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        arms = (rng.random(2000) < 0.05).astype(np.int64)
        z = rng.normal(size=(2000, 2)) * np.where(arms == 1, 3.0, 1.0)[:, None]
        log = LoggedRounds(
            x=rng.normal(size=(2000, 2)),
            z=z,
            arms=arms,
            rewards=rng.normal(size=2000),
            propensities=np.where(arms == 1, 0.05, 0.95),
        )
        moved += questions.follows(sample_of(log)).numbers["follows"]
    assert moved == 0


def test_a_propensity_that_depends_on_x_is_no_sign_that_the_arm_moves_z() -> None:
    """At few x one arm is rare, so that its rounds weigh much there, and z is elsewhere there, or noisier."""
    scores = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, level = 10_000, 3.0 * (seed % 2)
        rare = (rng.random(n) < 0.1).astype(np.float64)
        first = np.where(rare > 0.0, 0.02, 0.5)
        arms = (rng.random(n) >= first).astype(np.int64)
        z = level * rare + rng.normal(size=n) * np.where((rare > 0.0) & (level == 0.0), 3.0, 1.0)
        log = LoggedRounds(
            x=rare[:, None],
            z=z[:, None],
            arms=arms,
            rewards=rng.normal(size=n),
            propensities=np.where(arms == 0, first, 1.0 - first),
        )
        scores.append(questions.follows(sample_of(log)).numbers["largest_score"])
    assert np.mean(np.array(scores) > 3.0) <= 0.05
