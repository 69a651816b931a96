"""The log as others read it: what a round is in it, and that evaluations and diagnoses take it."""

import json
import socket
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.playing import FILE, Clock, Play, X, Z, experiment, playing
from tests.service.test_fold import traffic
from typer.testing import CliRunner

from postserve import Client, DecisionLog, InvalidInput, load
from postserve.cli import app
from postserve.data.log import from_dsjson
from postserve.service.exporting import exported, rounds, span, write_log
from postserve.service.log.events import decode
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.trial import trial


def written(play: Play, form: str = "parquet", **part: str) -> bytes:
    file = BytesIO()
    write_log(file, play.engine.experiment, play.engine.store, form, span(**part))
    return file.getvalue()


def rows(play: Play, folder: Path, **part: str) -> dict[str, dict[str, Any]]:
    (folder / "log.parquet").write_bytes(written(play, **part))
    log = DecisionLog.read(folder / "log.parquet")
    log.check()
    return {row["decision_id"]: row for row in log.frame.collect().iter_rows(named=True)}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def play(clock: Clock) -> Iterator[Play]:
    with playing(experiment(), MemoryStore(), clock) as one:
        yield one


def test_a_round_has_what_came_of_it_and_when(play: Play, clock: Clock, tmp_path: Path) -> None:
    decided = play.decide("whole")
    play.decide("empty", eligible=["long"])
    play.done(play.engine.reward("parked", 4.0))
    clock.now += 10
    play.done(play.engine.follow("whole", {"minutes": 3.0}))
    play.decide("parked")
    clock.now += 10
    play.done(play.engine.follow("whole", {"finished": "yes"}))
    clock.now += 10
    play.done(play.engine.reward("whole", 2.0))
    found = rows(play, tmp_path)
    assert list(found) == ["whole", "empty", "parked"]
    whole, began = found["whole"], 1_000_000.0
    assert {name: whole[name] for name in ("x.age", "x.device", "z.minutes", "z.finished")} == {
        **{f"x.{name}": value for name, value in X.items()},
        **{f"z.{name}": value for name, value in Z.items()},
    }
    assert (whole["arm"], whole["eligible"]) == (decided.arm, ["short", "long"])
    assert (whole["propensity"], whole["propensities"]) == (decided.propensity, list(decided.propensities))
    assert (whole["reward"], whole["model_version"]) == (2.0, 0)
    times = [whole[name].timestamp() - began for name in ("time", "z_time", "reward_time")]
    assert times == [0.0, 20.0, 30.0]
    empty = found["empty"]
    assert [empty[name] for name in ("z.minutes", "z_time", "reward", "reward_time")] == [None] * 4
    assert (found["parked"]["reward"], found["parked"]["reward_time"].timestamp()) == (4.0, began)


def test_what_was_not_shown_is_no_round(play: Play, tmp_path: Path) -> None:
    for name in ("shown", "not"):
        play.decide(name, deferred=True)
        play.done(play.engine.reward(name, 1.0))
    play.done(play.engine.activate("shown"))
    assert list(rows(play, tmp_path)) == ["shown"]


def test_feedback_that_was_forgotten_before_its_decision_is_not_in_it(
    play: Play, clock: Clock, tmp_path: Path
) -> None:
    play.done(play.engine.reward("d", 1.0))
    play.done(play.engine.follow("d", Z))
    clock.now += 2000.0
    play.engine.expire()
    play.decide("d")
    found = rows(play, tmp_path)["d"]
    assert [found[name] for name in ("reward", "reward_time", "z.minutes", "z_time")] == [None] * 4


@pytest.mark.parametrize(
    ("more", "value"),
    [('rewards = "last"\n', 3.0), ('rewards = "sum"\n', 6.0), ("default_reward = 0.5\n", 0.5)],
)
def test_the_reward_is_the_one_that_counts_once_it_is_settled(
    more: str, value: float, tmp_path: Path
) -> None:
    clock = Clock()
    with playing(experiment(more), MemoryStore(), clock) as play:
        play.decide("d")
        if "rewards" in more:
            for i in (1, 2, 3):
                play.done(play.engine.reward("d", float(i), key=str(i)))
        assert rows(play, tmp_path)["d"]["reward"] is None
        clock.now += 2000.0
        play.engine.expire()
        found = rows(play, tmp_path)["d"]
        assert (found["reward"], found["reward_time"].timestamp()) == (value, clock.now)


def test_a_part_of_the_log_by_places_or_times(play: Play, clock: Clock, tmp_path: Path) -> None:
    for i in range(5):
        play.decide(f"d{i}")
        clock.now += 10.0  # no wait is over, which would be an event, too
    play.done(play.engine.reward("d1", 1.0))
    assert list(rows(play, tmp_path, after="1", before="4")) == ["d1", "d2"]
    assert rows(play, tmp_path, after="1", before="4")["d1"]["reward"] == 1.0  # whenever it came
    assert list(rows(play, tmp_path, after="1970-01-12T13:46:55Z")) == ["d2", "d3", "d4"]
    assert list(rows(play, tmp_path, before="1970-01-12 13:46:41")) == ["d0"]
    assert list(rows(play, tmp_path, after="99")) == []
    lines = [json.loads(line) for line in written(play, "events", after="4").splitlines()]
    assert [(line["seq"], line["kind"], line["id"]) for line in lines] == [
        (5, "decided", "d4"),
        (6, "rewarded", "d1"),
    ]
    for wrong in ("yesterday", "-1", "1e5", ""):
        with pytest.raises(InvalidInput, match="wanted a place in the log such as 1200, or a time"):
            span(after=wrong)


def test_the_events_are_the_log(play: Play, clock: Clock) -> None:
    traffic(play, clock, 30, seed=1)
    first, *lines = written(play, "events").splitlines()
    assert json.loads(first)["arms"] == ["short", "long"]
    assert [decode(line) for line in lines] == [event for _, event in play.engine.store.read(0, 10_000)]


def test_an_export_is_of_one_moment(play: Play) -> None:
    for i in range(3):
        play.decide(f"d{i}")
    found = rounds(play.engine.store, play.engine.store.last(), span())
    play.done(play.engine.reward("d1", 1.0))
    play.decide("late")
    assert [(row["decision_id"], row["reward"]) for row in found] == [(f"d{i}", None) for i in range(3)]


def test_clocks_that_step_back_leave_the_order_of_the_log(play: Play, clock: Clock, tmp_path: Path) -> None:
    for step in (0.0, -50.0, 10.0):
        clock.now += step
        play.decide(f"at {step}")
    times = [row["time"] for row in rows(play, tmp_path).values()]
    assert times == sorted(times)
    DecisionLog.read(tmp_path / "log.parquet").delays()


def test_more_rounds_than_are_in_memory_at_once(
    play: Play, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traffic(play, clock, 60, seed=1)
    whole = rows(play, tmp_path)
    assert len(whole) == 60
    monkeypatch.setattr("postserve.service.exporting.READ", 7)
    monkeypatch.setattr("postserve.service.exporting.ROWS", 11)
    monkeypatch.setattr("postserve.service.exporting.PIECE", 100)
    assert rows(play, tmp_path) == whole
    pieces = list(exported(play.engine.experiment, play.engine.store, "dsjson"))
    assert len(pieces) > 10
    (tmp_path / "log.dsjson").write_bytes(b"".join(pieces))
    again = from_dsjson(tmp_path / "log.dsjson").frame.collect().iter_rows(named=True)
    assert [row["reward"] for row in again] == [row["reward"] for row in whole.values()]


def test_an_empty_log_has_its_columns(play: Play, tmp_path: Path) -> None:
    assert rows(play, tmp_path) == {}
    assert DecisionLog.read(tmp_path / "log.parquet").z_names == ["minutes", "finished"]


ARMS = FILE.replace('arms = ["short", "long"]', 'arms = ["short", "long", "best"]')


def test_an_exported_model_is_evaluated_on_the_exported_log(tmp_path: Path) -> None:
    """Arms are matched by name, though those of the file are not in rising order."""
    (tmp_path / "lessons.toml").write_text(ARMS + '[store]\npath = "log.sqlite"\n')
    rng, log, model = np.random.default_rng(0), tmp_path / "log.parquet", tmp_path / "model.npz"
    worth = {"short": 0.0, "long": 1.0, "best": 4.0}
    with trial(ARMS, SqliteStore(tmp_path / "log.sqlite")) as url, Client(url) as client:
        for i in range(300):
            x: dict[str, Any] = {
                "age": float(rng.integers(20, 60)),
                "device": str(rng.choice(["phone", "computer"])),
            }
            decision = client.decide(x, id=f"d{i}")
            z: dict[str, Any] = {
                "minutes": float(rng.normal(x["age"])),
                "finished": str(rng.choice(["no", "yes"])),
            }
            if i % 7:
                client.follow(f"d{i}", z if i % 5 else {"minutes": z["minutes"]})
            if i % 11:
                client.reward(f"d{i}", worth[decision.arm] + 0.1 * z["minutes"] + rng.normal())
        client.export_model(client.snapshot()["snapshots"][-1]["snapshot"], model)
        client.export_log(log)
        run = CliRunner().invoke(app, ["export", str(tmp_path / "lessons.toml"), str(tmp_path / "2.parquet")])
        assert run.exit_code == 0, run.output
    assert (tmp_path / "2.parquet").read_bytes() == log.read_bytes()
    assert DecisionLog.read(log).arm_names == ("short", "long", "best")
    assert load(model).propensities({"age": 40.0, "device": "phone"}).argmax() == 2
    words = ["evaluate", str(log), "--policy", str(model), "--out", str(tmp_path / "evaluation")]
    run = CliRunner().invoke(app, words)
    assert run.exit_code == 0, run.output
    found = json.loads((tmp_path / "evaluation/evaluation.json").read_text())["policies"]
    truth = 4.0 + 0.1 * 40
    assert found["model"]["low"] < truth < found["model"]["high"]
    assert found["model"]["value"] > found["as served"]["value"]
    run = CliRunner().invoke(app, ["diagnose", str(log), "--out", str(tmp_path / "diagnosis")])
    assert run.exit_code == 0, run.output
    assert (tmp_path / "diagnosis").is_dir()


def test_what_cannot_be_exported_is_said(tmp_path: Path) -> None:
    file = tmp_path / "lessons.toml"
    file.write_text(FILE + '[store]\npath = "log.sqlite"\n')
    for target, message in (("log.csv", "wanted one of .parquet"), ("log.parquet", "has no log")):
        run = CliRunner().invoke(app, ["export", str(file), str(tmp_path / target)])
        assert run.exit_code == 2
        assert message in run.output.replace("\n", " ")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lessons.toml"]  # and no empty log


def test_a_port_that_is_taken_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    file = tmp_path / "lessons.toml"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        file.write_text(f'{FILE}[store]\npath = "log.sqlite"\n[server]\nport = {port}\n')
        run = CliRunner().invoke(app, ["serve", str(file)])
    assert run.exit_code == 2
    assert f"127.0.0.1:{port} cannot be used" in run.output.replace("\n", " ")
    assert not (tmp_path / "log.sqlite").exists()
