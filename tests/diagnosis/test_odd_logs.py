"""Logs that are odd: a diagnosis is right about them, or refuses them in words."""

import base64
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import diagnosis as known

from postserve import DecisionLog, LoggedRounds, diagnose
from postserve.diagnosis import gains, objections, pictures
from postserve.diagnosis.predicting import forest, held_out
from postserve.diagnosis.questions import lateness
from postserve.diagnosis.sample import Sample, take_sample
from postserve.errors import InvalidInput

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few and short games."""
    monkeypatch.setattr(gains, "WORLDS", 2)
    monkeypatch.setattr(gains, "RUNS", 2)
    monkeypatch.setattr(gains, "MOST_RUNS", 2)
    monkeypatch.setattr(gains, "HORIZON", 50)


def log_of(n: int = 400, **parts: Any) -> LoggedRounds:
    return known.draw(1, n).log().changed(**parts)


def sample_of(log: LoggedRounds | DecisionLog) -> Sample:
    return take_sample(log, 10_000, np.random.default_rng(0))


def table(n: int = 200, **changes: Any) -> pl.DataFrame:
    world = known.draw(1, n)
    times = [START + timedelta(hours=i) for i in range(n)]
    columns = {
        "decision_id": [str(i) for i in range(n)],
        "time": times,
        "x.a": world.x[:, 0],
        "z.b": world.z[:, 0],
        "arm": [f"arm {arm}" for arm in world.arms],
        "propensity": [1 / known.ARMS] * n,
        "reward": world.rewards,
        "reward_time": [time + timedelta(hours=2) for time in times],
    }
    return pl.DataFrame({**columns, **changes})


@pytest.mark.parametrize("value", [0.0, 1 / 3, 3.7])
def test_what_never_varies_explains_nothing_and_is_no_objection(value: float) -> None:
    x, z = (side.copy() for side in (log_of().x, log_of().z))
    x[:, 0] = z[:, 0] = value
    assert not diagnose(log_of(x=x, z=z)).objections
    no_z = diagnose(log_of(z=np.full_like(z, value)))
    assert (no_z.helps, no_z.objections) == ("no", ())
    no_reward = diagnose(log_of(rewards=np.full(len(x), value)))
    assert (no_reward.helps, no_reward.objections) == ("no", ())
    assert {found.saved for found in no_reward.gains.values()} == {0.0}


def test_arms_that_were_always_served_though_propensities_say_half() -> None:
    log = log_of(arms=np.zeros(400, dtype=int), arm_names=["a", "b"], propensities=0.5)
    assert [each.kind for each in objections.selection(sample_of(log))] == ["selected"]
    assert not list(objections.selection(sample_of(log.changed(propensities=1.0))))


def test_rare_draws_that_did_not_happen_are_no_objection() -> None:
    """A log with little exploration, drawn as its propensities say."""
    rng, n = np.random.default_rng(0), 400
    x, rare = rng.normal(size=(n, 5)), 0.05 / 3.0
    for _ in range(40):
        best = (x[:, 0] > 0.0).astype(int)
        chances = np.full((n, 3), rare)
        chances[np.arange(n), best] += 0.95
        arms = (chances.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1)
        log = log_of(
            x=x, arms=arms, arm_names=["a", "b", "c"], propensities=chances[np.arange(n), arms],
            all_propensities=chances,
        )  # fmt: skip
        assert not list(objections.selection(sample_of(log)))


def test_a_copy_of_a_reward_with_long_tails_is_found() -> None:
    rewards = np.random.default_rng(0).standard_t(2.0, size=400)
    z = np.c_[2.0 * rewards - 1.0, log_of().z[:, 0]]
    assert objections.copies_of_reward(sample_of(log_of(z=z, rewards=rewards))).tolist() == [True, False]


def test_names_of_any_kind_are_shown_and_escaped(tmp_path: Path) -> None:
    names = ["<script>alert(1)</script>$\\foo$", "\u6f22\u5b57\u202e\n\x00\ud800"]
    arms = [names[0], names[1], "$", "x" * 300]
    page = diagnose(log_of(z_names=names, arm_names=arms)).write(tmp_path).read_text(encoding="utf-8")
    assert "<script" not in page
    pictures = [base64.b64decode(each).decode() for each in re.findall(r"base64,([^\"]+)", page)]
    assert len(pictures) == 5
    assert any("\u6f22\u5b57" in each for each in pictures)
    assert not any("<script" in each for each in pictures)


@pytest.mark.parametrize("lost", ["all", "the first", "the column"])
def test_times_that_are_not_known(lost: str) -> None:
    frame = table()
    if lost == "the column":
        log = DecisionLog.of(frame.drop("time"))
    else:
        gone = pl.lit(True) if lost == "all" else pl.int_range(pl.len()) == 0
        log = DecisionLog.of(frame.with_columns(pl.when(~gone).then(pl.col("time"))))
    found = lateness(sample_of(log))
    assert "nan" not in found.answer
    assert ("does not say" in found.answer) == (lost != "the first")
    if lost == "the first":
        assert found.numbers["days"] == pytest.approx(198 / 24)


def test_rewards_before_their_decision() -> None:
    """As by a clock of another time zone."""
    times = table()["time"]
    for late, kinds in ((-24, ["times"]), (0, []), (2, [])):
        log = DecisionLog.of(table(reward_time=times + timedelta(hours=late)))
        found = diagnose(log)
        assert [each.kind for each in found.objections if each.grave] == kinds
        assert found.trusted == (not kinds)
        told = lateness(sample_of(log)).answer
        assert told.startswith("Half of rewards came at least 24 hours before the decision") == bool(kinds)
        assert "-" not in told


def test_delays_are_drawn_in_the_unit_of_the_text() -> None:
    times = table()["time"]
    for late, unit in ((timedelta(seconds=20), "seconds"), (timedelta(hours=5), "hours")):
        found = lateness(sample_of(DecisionLog.of(table(reward_time=times + late))))
        axes = pictures.DRAWN["lateness"](found.numbers).axes[0]
        assert f" {unit}, 90% within" in found.answer
        assert axes.get_xlabel() == f"{unit} after the decision"
        assert axes.lines[0].get_xdata()[50] == pytest.approx(
            late.total_seconds() / {"seconds": 1, "hours": 3600}[unit]
        )


@pytest.mark.parametrize(
    ("high", "wanted"),
    [(0.4, ["0%", "10%", "20%", "30%", "40%"]), (0.004, ["0.0%", "0.1%", "0.2%", "0.3%", "0.4%"])],
)
def test_ticks_of_shares_are_few_and_differ(high: float, wanted: list[str]) -> None:
    share = {"value": high / 2, "low": 0.0, "high": high}
    made = pictures.DRAWN["sharing"]({"slopes": share})
    made.canvas.draw()
    axes = made.axes[0]
    shown = [
        text.get_text() for text in axes.get_xticklabels() if 0.0 <= text.get_position()[0] <= high * 1.01
    ]
    assert shown == wanted


def test_a_log_without_rounds_is_refused() -> None:
    with pytest.raises(InvalidInput, match="the log has no rounds, wanted at least 100"):
        diagnose(DecisionLog.of(table().head(0)))


def test_more_categories_than_can_be_played_are_refused() -> None:
    cities = [f"city {i}" for i in range(400)]
    with pytest.raises(InvalidInput, match=r"z 1 \(400 of them from column '.*city'\), wanted at most 300"):
        diagnose(DecisionLog.of(table(400, **{"x.city": cities})))
    with pytest.raises(InvalidInput, match="x has 5 numbers per round and z 296, wanted at most 300 in all"):
        diagnose(log_of(z=np.ones((400, 296)), z_names=[]))


@pytest.mark.parametrize(("part", "name"), [("x", "x0"), ("z", "z0"), ("rewards", "reward")])
def test_numbers_whose_squares_are_lost_are_refused(part: str, name: str) -> None:
    tiny = 1e-150 * getattr(log_of(), part)
    with pytest.raises(InvalidInput, match=rf"column '{name}' varies by \d.*e-1\d\d, wanted a constant"):
        diagnose(log_of(**{part: tiny}))


@pytest.mark.parametrize(("times", "plus"), [(1.0, 1e9), (1e47, 0.0), (1e-47, 0.0)])
def test_a_forest_sees_steps_in_any_units(times: float, plus: float) -> None:
    x = np.random.default_rng(0).normal(size=(400, 2))
    steps = np.sign(x[:, 0] * x[:, 1])
    predicted = held_out(forest, times * x + plus, steps[:, None])
    assert np.mean(predicted < 1.0) > 0.9  # squared errors, of a column whose variance is 1


def test_truth_values_are_what_they_are() -> None:
    late = np.arange(200) % 2 == 0
    assert sample_of(DecisionLog.of(table(**{"x.late": late}))).rounds.x[:, 1].tolist() == late.tolist()
