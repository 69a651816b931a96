"""What of the log goes, and what still holds then: restarts, rebuilds, roll-backs and ids."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.service.playing import FILE, Clock, Play, X, Z, experiment, playing, rounds_learnt
from tests.service.test_fold import traffic
from typer.testing import CliRunner

from postserve import InvalidInput
from postserve.cli import app
from postserve.service.engine import Engine
from postserve.service.log.requests import Conflict
from postserve.service.log.retention import drop_erased, drop_old
from postserve.service.log.stores import Store, StoreError
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.model.learner import Learner
from postserve.service.rebuild import rebuild

Make = Callable[[], Store]


def restarted(play: Play) -> Any:
    """The model that a restart would make of what is kept."""
    one = play.engine.experiment
    again = Learner(play.engine.store, Engine(one, MemoryStore()).model, tuple(one.z), 10)
    while again.step():
        pass
    return again.model


def all_agree(play: Play) -> bool:
    play.learn()
    found = rebuild(play.engine.experiment, play.engine.store)
    digests = {play.engine.model.digest, restarted(play).digest, found.model.digest}
    return len(digests) == 1 and found.differs_at is None and play.engine.model.skipped == 0


def test_old_decisions_go_once_a_snapshot_has_learnt_them(make: Make) -> None:
    clock = Clock()
    with playing(experiment(), make(), clock) as play:
        store = play.engine.store
        traffic(play, clock, 30, seed=1)
        assert not drop_old(store, clock.now + 1, 10)  # there is no snapshot yet
        before = store.last()
        assert len(store.read(0, 9999)) == before
        clock.now += 5000.0
        play.engine.expire()
        play.decide("open")
        play.done(play.engine.snapshot())
        play.learn()
        (first,) = (seq for seq, _ in store.snapshots())
        traffic(play, clock, 30, seed=2)
        drop_old(store, clock.now - 1e6, 10)
        assert len(store.read(0, 9999)) == store.last()  # nothing is that old
        drop_old(store, clock.now + 1, 10)
        kept = {event.id for seq, event in store.read(0, 9999) if seq < first and event.id}
        assert kept == {"open"}
        assert all_agree(play)
        play.done(play.engine.promote(first))
        traffic(play, clock, 10, seed=3)
        assert all_agree(play)
        with pytest.raises(Conflict, match="was erased, or was dropped with old ones"):
            play.done(play.engine.decide(X, name="1/0"))
        play.done(play.engine.follow("open", Z))
        assert play.done(play.engine.reward("open", 1.0)).changed
        assert all_agree(play)


def test_without_a_snapshot_that_can_be_loaded_what_is_left_is_not_taken_for_the_log() -> None:
    one, clock = experiment(), Clock()
    store: Any = MemoryStore()
    with playing(one, store, clock) as play:
        play.decide("d")
        clock.now += 5000.0
        play.engine.expire()
        play.done(play.engine.snapshot())
        play.learn()
        drop_old(store, clock.now + 1, 10)
    for seq, _ in store.snapshots():
        store.drop_snapshot(seq, unless="pinned")
    for use in (lambda: Engine(one, store), lambda: rebuild(one, store)):
        with pytest.raises(StoreError, match="earlier events were dropped"):
            use()


def test_the_service_drops_what_its_file_says(make: Make) -> None:
    clock = Clock()
    one = experiment('[store]\nkeep_events = "1d"\n')
    with playing(one, make(), clock) as play:
        play.engine._stopping.set()  # the clock of the service: it is asked by hand
        play.engine._timer.join()
        play.decide("old")
        clock.now += 2000.0
        play.engine.expire()
        clock.now += 86400.0
        play.decide("new")
        clock.now += 2000.0
        play.engine.expire()
        play.done(play.engine.snapshot())
        play.learn()
        play.engine._drop_at = 0.0
        play.engine._drop_if_due()
        found = play.engine.store.events_of(["old", "new"])
        assert [len(found["old"]) > 0, len(found["new"]) > 0] == [False, True]
    with pytest.raises(InvalidInput, match=r"store\.keep_events is 'long', wanted a time such as"):
        experiment('[store]\nkeep_events = "long"\n')


def erase(play: Play, name: str) -> None:
    play.done(play.engine.erase(name))
    assert not drop_erased(play.engine.store, name)  # no snapshot has learnt it
    play.done(play.engine.snapshot(erasing=True))
    play.learn()
    assert drop_erased(play.engine.store, name)


def test_what_somebody_wants_forgotten_is(make: Make) -> None:
    clock = Clock()
    with playing(experiment(), make(), clock) as play:
        traffic(play, clock, 10, seed=1)
        for name in ("closed", "open", "deferred"):
            play.decide(name, deferred=name == "deferred")
            play.done(play.engine.follow(name, Z))
        play.done(play.engine.reward("closed", 1.0))
        play.done(play.engine.reward("parked", 1.0))
        play.done(play.engine.snapshot())
        learnt = rounds_learnt(play.learn())
        ((old, _),) = play.engine.store.snapshots()
        names = ("closed", "open", "deferred", "parked")
        for name in names:
            erase(play, name)
            assert not play.done(play.engine.erase(name)).changed
            for ask in (play.engine.decide(X, name=name), play.engine.follow(name, Z)):
                with pytest.raises(Conflict, match="was erased, or was dropped"):
                    play.done(ask)
            assert all_agree(play)
        assert not any(play.engine.store.events_of(names).values())
        assert rounds_learnt(play.engine.model.policy) == learnt  # the sums stay
        play.done(play.engine.promote(old))  # in which it is still open
        assert all_agree(play)
        clock.now += 1e6
        play.engine.expire()
        assert play.learn()._open is None


def test_many_erasures_leave_the_snapshots_that_one_may_go_back_to(make: Make) -> None:
    with playing(experiment("[store]\nkeep_snapshots = 3\n"), make()) as play:
        for name in "abcdef":
            play.decide(name)
        for _ in range(2):
            play.done(play.engine.snapshot())
        play.learn()
        kept = [seq for seq, _ in play.engine.store.snapshots()]
        for name in "abcde":
            erase(play, name)
        assert [seq for seq, _ in play.engine.store.snapshots()][:-1] == kept
        assert all_agree(play)
        play.done(play.engine.promote(play.engine.store.snapshots()[-1][0]))
        erase(play, "f")
        assert all_agree(play)  # for which the promoted one is still there


def test_a_file_has_no_word_left_of_what_was_erased(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with playing(experiment(), SqliteStore(path)) as play:
        play.decide("somebody-known", {"age": 31.0, "device": "rare-device-of-hers"})
        erase(play, "somebody-known")
    content = path.read_bytes()
    assert b"lessons" in content
    assert b"somebody-known" not in content
    assert b"rare-device-of-hers" not in content


def test_a_backup_of_a_service_that_runs(tmp_path: Path) -> None:
    one, ending = experiment(), threading.Event()
    file, target = tmp_path / "experiment.toml", tmp_path / "copy.sqlite"
    file.write_text(f'{FILE}[store]\npath = "log.sqlite"\n', encoding="utf-8")
    with playing(one, SqliteStore(tmp_path / "log.sqlite")) as play:

        def write() -> None:
            i = 0
            while not ending.is_set():
                play.decide(f"d{(i := i + 1)}")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            made = CliRunner().invoke(app, ["backup", str(file), str(target)])
        finally:
            ending.set()
            writer.join()
        assert made.exit_code == 0, made.output
        again = CliRunner().invoke(app, ["backup", str(file), str(target)])
        assert (again.exit_code, "is there already" in again.output) == (2, True)
        copy = SqliteStore(target)
        assert copy.read(0, 9999) == play.engine.store.read(0, copy.last())
        assert rebuild(one, copy).model.seq == copy.last()
        copy.close()
    file.write_text(f'{FILE}[store]\npath = ":memory:"\n', encoding="utf-8")
    no_file = CliRunner().invoke(app, ["backup", str(file), str(tmp_path / "other.sqlite")])
    assert no_file.exit_code == 2
    assert "pg_dump" in no_file.output
