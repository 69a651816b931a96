"""Simulated traffic: its worlds, that it learns, and that the comparison with the library can fail."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from tests.service.playing import FILE, Clock, Play, experiment, playing
from tests.service.processes import free_port
from tests.service.test_fold import POLICIES, traffic
from typer.testing import CliRunner

from postserve import Client, InvalidInput, LoggedRounds
from postserve.cli import app
from postserve.service.experiment import parse_experiment
from postserve.service.exporting import write_log
from postserve.service.log.retention import drop_erased
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.serving import TEMPLATE
from postserve.service.traffic import showing, worlds
from postserve.service.traffic.playing import Habits, Traffic
from postserve.service.traffic.replaying import compared
from postserve.service.traffic.worlds import MadeUpWorld, SyntheticWorld, TrialWorld, file_for, world_of
from postserve.service.trial import trial

LESSONS = TEMPLATE.read_text()


def no_snapshot(seq: int, path: Path) -> None:
    raise AssertionError(f"snapshot {seq} was made here")


def events_of(play: Play, folder: Path) -> Path:
    path = folder / "events.jsonl"
    with path.open("wb") as file:
        write_log(file, play.engine.experiment, play.engine.store, "events")
    return path


@pytest.mark.parametrize("kind", [*POLICIES, "default_reward"])
def test_the_library_learns_the_same_from_the_log(kind: str, tmp_path: Path) -> None:
    """With arms that come and go, snapshots, and a promotion."""
    clock = Clock()
    with playing(experiment(POLICIES.get(kind, "default_reward = 0.5\n")), MemoryStore(), clock) as play:
        for seed in (1, 2):
            traffic(play, clock, 30, seed)
            for name in (f"shown {seed}", f"not shown {seed}"):
                play.decide(name, deferred=True)
                play.done(play.engine.follow(name, {"minutes": 2.0, "finished": "no"}))
            play.done(play.engine.activate(f"shown {seed}"))
            play.done(play.engine.snapshot())
            play.done(play.engine.add_arm(f"new {seed}"))
        play.learn()
        play.done(play.engine.promote(play.engine.store.snapshots()[0][0]))
        traffic(play, clock, 30, seed=3)
        clock.now += 300.0
        play.engine.expire()
        play.done(play.engine.snapshot())
        play.learn()
        saved = dict(play.engine.store.snapshots())
        found = compared(events_of(play, tmp_path), saved, tmp_path, no_snapshot)
    assert (found.agreeing, found.differs_at, found.why) == (3, None, "")


def test_where_events_were_dropped_it_begins_with_a_snapshot(tmp_path: Path) -> None:
    clock, store = Clock(), MemoryStore()

    def fetch(seq: int, path: Path) -> None:
        saved = store.snapshot(seq)
        assert saved is not None
        path.write_bytes(saved.state)

    with playing(experiment(), store, clock) as play:
        traffic(play, clock, 20, seed=1)
        play.done(play.engine.snapshot())
        play.learn()
        play.decide("open")
        play.decide("forget me")
        play.done(play.engine.follow("open", {"minutes": 2.0}))
        play.done(play.engine.erase("forget me"))
        play.done(play.engine.snapshot())
        play.learn()
        assert drop_erased(store, "forget me")
        play.done(play.engine.follow("open", {"finished": "no"}))
        play.done(play.engine.reward("open", 1.0))
        traffic(play, clock, 20, seed=2)
        play.done(play.engine.promote(store.snapshots()[0][0]))
        play.done(play.engine.snapshot())
        play.learn()
        found = compared(events_of(play, tmp_path), dict(store.snapshots()), tmp_path, fetch)
    assert (found.agreeing, found.differs_at, found.why) == (1, None, "")


CHANGES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "rewarded": lambda event: {**event, "reward": event["reward"] + 1e-12},
    "followed": lambda event: {**event, "z": {**event["z"], "minutes": 77.0}},
    "decided": lambda event: {**event, "x": {**event["x"], "age": 1.0 + event["x"]["age"]}},
}


@pytest.mark.parametrize("kind", CHANGES)
def test_one_event_that_differs_is_seen(kind: str, tmp_path: Path) -> None:
    clock = Clock()
    with playing(experiment(), MemoryStore(), clock) as play:
        traffic(play, clock, 20, seed=1)
        play.done(play.engine.snapshot())
        traffic(play, clock, 20, seed=2)
        play.done(play.engine.snapshot())
        play.learn()
        saved, path = dict(play.engine.store.snapshots()), events_of(play, tmp_path)
    first, second = saved
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    later = [i for i, line in enumerate(lines) if line["seq"] > first and line["kind"] == kind]
    after = next(i for i in later if kind != "followed" or len(lines[i]["z"]) == 2)
    lines[after] = CHANGES[kind](lines[after])
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = compared(path, saved, tmp_path, no_snapshot)
    assert (found.agreeing, found.differs_at) == (1, second)


def test_an_event_that_the_library_refuses_is_named(tmp_path: Path) -> None:
    with playing(experiment(), MemoryStore()) as play:
        for name in ("a", "b"):
            play.decide(name)
            play.done(play.engine.reward(name, 1.0))
            play.done(play.engine.follow(name, {"minutes": 1.0, "finished": "no"}))
        path = events_of(play, tmp_path)
    lines = path.read_text().splitlines()
    place = next(i for i, line in enumerate(lines) if '"followed"' in line and '"b"' in line)
    lines[place] = lines[place].replace('"minutes":1.0', '"minutes":"many"')
    path.write_text("\n".join(lines))
    found = compared(path, {}, tmp_path, no_snapshot)
    assert found.differs_at == json.loads(lines[place])["seq"]
    assert "the library refuses it: column 'minutes'" in found.why


def test_the_best_arm_of_a_made_up_world_is_the_one_that_earns_most() -> None:
    world, rng = MadeUpWorld(parse_experiment(LESSONS)), np.random.default_rng(0)
    arms, seen = ["short", "long", "quiz", "new"], set()
    for _ in range(12):
        x = world.visitor(rng)
        draws = {arm: [world.feedback(x, arm, rng).reward or 0.0 for _ in range(400)] for arm in arms}
        means = {arm: float(np.mean(each)) for arm, each in draws.items()}
        error = 4 * max(float(np.std(each)) for each in draws.values()) / 20
        best = world.best(x, arms)
        assert means[best] > max(means.values()) - 2 * error
        seen.add(best)
    assert len(seen) > 1  # so that x must be looked at


def test_a_trial_serves_what_people_alike_did() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    arms = rng.integers(2, size=200)
    z = np.where(rng.random((200, 1)) < 0.2, np.nan, arms[:, None] + x[:, :1])
    rewards = np.where(rng.random(200) < 0.2, np.nan, 10.0 * arms + x[:, 0])
    log = LoggedRounds(x=x, z=z, arms=arms, rewards=rewards, propensities=0.5, arm_names=["no", "yes"])
    world = TrialWorld(log)
    visitors = [world.visitor(rng) for _ in range(300)]
    found = [world.feedback(one, "yes", rng) for one in visitors]
    assert {each.z is None for each in found} == {each.reward is None for each in found} == {True, False}
    pairs = [(each.reward, one["x0"]) for each, one in zip(found, visitors, strict=True)]
    assert np.mean([abs(reward - 10.0 - x0) for reward, x0 in pairs if reward is not None]) < 0.5


@pytest.mark.parametrize("source", ["linear", "trial"])
def test_the_file_for_data_fits_them(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: dict[str, Any] = {"x": [[0.0], [1.0]], "z": [[2.0], [4.0]], "arms": [1, 0], "rewards": [1.0, 3.0]}
    log = LoggedRounds(**parts, propensities=0.5, x_names=["zip=Urban ä"], arm_names=["No E-Mail", "b"])
    monkeypatch.setitem(worlds.TRIALS, "trial", lambda: log)
    one = parse_experiment(file_for(source))
    kind: Any = {"linear": SyntheticWorld, "trial": TrialWorld}[source]
    assert isinstance(world_of(one, source, 0), kind)
    with pytest.raises(InvalidInput, match="x has age, device, wanted"):
        world_of(parse_experiment(FILE), source, 0)
    other = file_for(source).replace('arms = ["', 'arms = ["more", "')
    with pytest.raises(InvalidInput, match="arms has 'more'"):
        world_of(parse_experiment(other), source, 0)


def test_a_service_learns_within_some_hundred_rounds(tmp_path: Path) -> None:
    (tmp_path / "lessons.toml").write_text(LESSONS)
    with trial(LESSONS) as url:
        words = ["simulate-traffic", str(tmp_path / "lessons.toml"), "--url", url, "--rounds", "400"]
        run = CliRunner().invoke(app, [*words, "--twice", "0.3", "--deferred", "0.3", "--lost", "0.1"])
    assert run.exit_code == 0, run.output
    assert "errors: none" in run.output
    assert "the service's model is the library's to the bit" in run.output
    first, _, *lines = run.output.splitlines()
    assert first == f"waiting for {url}; the first start compiles for up to a minute"
    rows = [line.split() for line in lines[:4]]
    assert [row[0] for row in rows] == ["100", "200", "300", "400"]
    shares = [int(row[2].rstrip("%")) for row in rows]
    assert shares[3] > max(shares[0], 60)


def test_an_environment_is_played_with_the_file_that_is_written_for_it(tmp_path: Path) -> None:
    path = tmp_path / "linear.toml"
    run = CliRunner().invoke(app, ["simulate-traffic", str(path), "--environment", "linear", "--init"])
    assert run.exit_code == 0, run.output
    with trial(path.read_text()) as url:
        words = ["simulate-traffic", str(path), "--data", "linear", "--url", url, "--rounds", "120"]
        run = CliRunner().invoke(app, words)
    assert run.exit_code == 0, run.output
    assert "to the bit" in run.output


def test_an_interrupt_ends_it_and_what_was_sent_is_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lessons.toml").write_text(LESSONS)

    class Interrupted(Traffic):
        def _send(self, now: float) -> None:
            super()._send(now)
            if len(self.rounds) >= 50:
                raise KeyboardInterrupt

    monkeypatch.setattr(showing, "Traffic", Interrupted)
    with trial(LESSONS) as url:
        run = CliRunner().invoke(app, ["simulate-traffic", str(tmp_path / "lessons.toml"), "--url", url])
    assert run.exit_code == 0, run.output
    assert "stopped after 56 rounds" in run.output
    assert "to the bit" in run.output


def test_a_difference_is_an_exit_status(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lessons.toml").write_text(LESSONS)
    snapshot = Client.snapshot

    def wrong(self: Client) -> Any:
        found = snapshot(self)
        return {**found, "snapshots": [{**each, "digest": "another"} for each in found["snapshots"]]}

    monkeypatch.setattr(Client, "snapshot", wrong)
    with trial(LESSONS) as url:
        words = ["simulate-traffic", str(tmp_path / "lessons.toml"), "--url", url, "--rounds", "20"]
        run = CliRunner().invoke(app, words)
    assert run.exit_code == 1
    assert "differs from the library's at event" in run.output


def test_what_cannot_be_played_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "lessons.toml"
    path.write_text(LESSONS.replace("8711", str(free_port())))
    monkeypatch.setattr(showing, "READY", 0.1)
    for words, message in (
        ([], "is not ready, wanted: postserve serve"),
        (["--init"], "there is no --data"),
        (["--data", "iris"], "data is 'iris', wanted one of"),
        (["--data", "linear"], "x has age, device, wanted x0"),
        (["--data", "linear", "--init"], "is there already"),
    ):
        run = CliRunner().invoke(app, ["simulate-traffic", str(path), *words])
        assert run.exit_code == 2
        assert message in run.output.replace("\n", " ")


def test_errors_are_counted_and_the_rest_goes_on() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/arms":
            return httpx.Response(200, json={"arms": [{"arm": "short", "eligible": True}]})
        return httpx.Response(500)

    with Client(transport=httpx.MockTransport(answer)) as client:
        one = Traffic(MadeUpWorld(parse_experiment(LESSONS)), client, Habits(), seed=0)
        one.play(20)
    assert one.errors == {"ServiceError": 20}
    assert [each.reward for each in one.rounds] == [None] * 20
