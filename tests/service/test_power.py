"""Power may be lost at any moment: what was answered is in the log, and the model is a fold over the rest."""

import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from tests.service.playing import Clock, Play, experiment, playing
from tests.service.power import Disk
from tests.service.size import LONG

from postserve.service.engine import first_model
from postserve.service.log.events import Decided, Followed, Rewarded
from postserve.service.log.rounds import Round, round_of
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.model.learner import Learner
from postserve.service.rebuild import rebuild

LOGS = 20 if LONG else 2
"""Logs that are begun anew."""
LOSSES = 10
"""Moments in the life of a log at which power is lost."""
EVERY = 60
"""Changes of the disk between two of them, on average."""
SHARES = (0.0, 0.0, 0.5, 0.9)
"""How much of what was not synced survives."""


class Loss(NamedTuple):
    """What is left, and what had been answered."""

    folder: Path
    answered: list[tuple[str, Round]]


class Load:
    """Requests in groups, snapshots, checkpoints and restarts, while power is lost again and again."""

    def __init__(self, folder: Path, seed: int, synchronous: str) -> None:
        self.folder, self.rng, self.synchronous = folder, random.Random(seed), synchronous
        self.disk, self.clock, self.experiment = Disk(), Clock(), experiment()
        self.answered: list[tuple[str, Round]] = []
        self.losses: list[Loss] = []
        self.disk.before = self.lose_power_perhaps
        (folder / "live").mkdir()

    def lose_power_perhaps(self) -> None:
        if self.rng.random() * EVERY < 1.0 and len(self.losses) < LOSSES:
            left = self.folder / str(len(self.losses))
            left.mkdir()
            self.disk.image(left, self.rng, self.rng.choice(SHARES))
            self.losses.append(Loss(left, list(self.answered)))

    def run(self) -> list[Loss]:
        for life in range(100):
            store = SqliteStore(self.folder / "live" / "log", synchronous=self.synchronous, vfs=self.disk.vfs)
            with playing(self.experiment, store, self.clock) as play:
                for burst in range(12):
                    self.burst(play, f"{life}-{burst}")
            if len(self.losses) >= LOSSES:
                break
        self.disk.unregister()
        return self.losses

    def burst(self, play: Play, label: str) -> None:
        """Requests that are committed in a few groups, in any order, some of them twice."""
        rng, engine = self.rng, play.engine
        wanted: list[tuple[str, Callable[[], Any]]] = []
        for i in range(rng.randrange(1, 8)):
            name = f"{label}-{i}"
            x = {"age": float(rng.randrange(9)), "device": "phone"}
            wanted.append((name, lambda name=name, x=x: engine.decide(x, name=name)))  # type: ignore[misc]
            for z in ({"minutes": float(i)}, {"finished": "yes"}):
                wanted.append((name, lambda name=name, z=z: engine.follow(name, z)))  # type: ignore[misc]
            wanted.append((name, lambda name=name, i=i: engine.reward(name, i / 7)))  # type: ignore[misc]
        wanted += rng.choices(wanted, k=3)
        rng.shuffle(wanted)
        futures = []
        for name, ask in wanted:
            future = ask()
            future.add_done_callback(lambda done, name=name: self.answer(name, done))
            futures.append(future)
        for future in futures:
            play.done(future)
        match rng.randrange(6):
            case 0:
                play.done(engine.snapshot())
            case 1:
                mode = rng.choice(["PASSIVE", "RESTART", "TRUNCATE"])
                db = apsw.Connection(engine.store.path, vfs=self.disk.vfs)  # type: ignore[attr-defined]
                db.set_busy_timeout(60_000)
                db.execute(f"PRAGMA synchronous = {self.synchronous}")
                db.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
                db.close()
            case 2:
                self.clock.now += 60.0
                engine.expire()

    def answer(self, name: str, done: Any) -> None:
        if done.exception() is None:
            self.answered.append((name, done.result().round))


def lost(loss: Loss) -> list[str]:
    """All that is wrong with what is left."""
    try:
        with closing(SqliteStore(loss.folder / "log")) as store:
            return wrong_with(store, loss)
    except Exception as error:  # a broken file may have anything in it
        return [f"the log cannot be read: {error!r}"]


def wrong_with(store: SqliteStore, loss: Loss) -> list[str]:
    one = experiment()
    found = store._connection.execute("PRAGMA integrity_check").fetchall()
    wrong = [] if found == [("ok",)] else [f"the file is broken: {found}"]
    histories = store.events_of({name for name, _ in loss.answered})
    for name, answered in loss.answered:
        events = histories[name]
        if answered not in [round_of(events[: i + 1]) for i in range(len(events))]:
            wrong.append(f"{name}: {answered} was answered, the log has {events}")
    for name, events in histories.items():
        times = [sum(isinstance(each, kind) for each in events) for kind in (Decided, Rewarded, Followed)]
        if times[0] > 1 or times[1] > 1 or times[2] > 2:
            wrong.append(f"{name} was kept twice: {events}")
    learner = Learner(store, first_model(one, store), tuple(one.z), 10)
    learner.catch_up()
    again = rebuild(one, store)
    if (again.model.digest, again.differs_at) != (learner.model.digest, None):
        wrong.append("the model is no fold over the log")
    if learner.model.skipped:
        wrong.append("some events teach nothing")
    return wrong


@pytest.mark.parametrize("seed", range(LOGS))
def test_what_was_answered_survives_a_power_loss(seed: int, tmp_path: Path) -> None:
    losses = Load(tmp_path, seed, "FULL").run()
    assert len(losses) == LOSSES
    assert sum(bool(loss.answered) for loss in losses) > LOSSES // 2
    for loss in losses:
        assert not lost(loss)


@pytest.mark.parametrize("synchronous", ["OFF", "NORMAL"])
def test_a_store_that_does_not_sync_would_be_found_out(synchronous: str, tmp_path: Path) -> None:
    assert any(lost(loss) for loss in Load(tmp_path, 1, synchronous).run())
