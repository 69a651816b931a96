"""What goes wrong around the service: stores that fail, callers that leave, events that cannot be learnt."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.service.playing import FILE, Clock, X, Z, experiment, playing, rounds_learnt
from tests.service.wires import Wire, serving

from postserve import InvalidInput
from postserve.errors import StateMismatch
from postserve.policies import open_rounds
from postserve.policies.base import BasePolicy
from postserve.service.engine import first_model
from postserve.service.log.rounds import round_of
from postserve.service.log.stores import Saved, Store
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.log.writer import Overloaded, Unavailable
from postserve.service.model import fold
from postserve.service.model.learner import Learner
from postserve.service.rebuild import rebuild


def refuse(*args: Any, **options: Any) -> Any:
    """In the place of something that a policy cannot do."""
    raise StateMismatch("row_g is not what save() wrote, wanted those of the rows")


class Failing(MemoryStore):
    """A store that fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.failures = 0

    def fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise OSError("the disk is full")

    def transaction(self) -> Any:
        self.fail()
        return super().transaction()

    def save(self, saved: Saved) -> None:
        self.fail()
        super().save(saved)


def test_a_commit_that_fails_is_said_and_the_next_one_works() -> None:
    store = Failing()
    with playing(experiment(), store) as play:
        store.failures = 1
        with pytest.raises(Unavailable, match="may be repeated"):
            play.decide("d")
        assert store.last() == 0
        assert play.decide("d").id == "d"


def test_a_snapshot_that_could_not_be_loaded_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    one, store = experiment("[store]\nsnapshot_every = 1\n"), MemoryStore()
    with playing(one, store) as play:
        play.engine._stopping.set()  # its clock, which saves
        play.engine._timer.join()
        play.decide("d")
        play.learn()
        with monkeypatch.context() as patched:
            patched.setattr(fold, "loaded", refuse)
            play.engine._save_if_due()
            play.learn()
            assert (play.engine.model.skipped, store.snapshots()) == (1, [])
            last = store.last()
            play.engine._save_if_due()
            assert store.last() == last  # it is tried again once there is more to save
            again = Learner(store, first_model(one, store), tuple(one.z), 10)
            again.catch_up()
            assert again.model.digest == play.engine.model.digest
        play.decide("e")
        play.learn()
        play.engine._save_if_due()
        play.learn()
        assert len(store.snapshots()) == 1
        assert play.engine.model.skipped == 1


def test_who_asks_for_a_snapshot_that_cannot_be_kept_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(experiment(), MemoryStore()) as (port, _):
        wire = Wire(port)
        assert wire.ask("POST", "/v1/decide", {"id": "d", "context": X}).status == 200
        asked = (("POST", "/v1/models"), ("DELETE", "/v1/decisions/d"))
        with monkeypatch.context() as patched:
            patched.setattr(fold, "loaded", refuse)
            for method, path in asked:
                got = wire.ask(method, path)
                assert (got.status, "cannot be saved" in got.json["message"]) == (409, True)
        assert [wire.ask(method, path).status for method, path in asked] == [200, 200]
        assert wire.ask("GET", "/v1/decisions/d").status == 404
        wire.close()


def test_a_roll_back_that_the_policy_refuses_teaches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with playing(experiment(), MemoryStore()) as play:
        play.done(play.engine.snapshot())
        play.learn()
        play.decide("d")
        play.done(play.engine.reward("d", 1.0))
        before = rounds_learnt(play.learn())
        monkeypatch.setattr(open_rounds, "take_over", refuse)
        play.done(play.engine.promote(1))
        assert rounds_learnt(play.learn()) == before
        assert play.engine.model.skipped == 1


def test_numbers_that_are_next_to_nothing_are_0() -> None:
    with playing(experiment(), MemoryStore()) as play:
        for i in range(8):
            assert play.decide(f"d{i}", {**X, "age": 1e-45 * i}).x["age"] == 0.0
            play.done(play.engine.follow(f"d{i}", {**Z, "minutes": 1e8 * i}))
            play.done(play.engine.reward(f"d{i}", -1e-200))
        play.learn()
        assert play.decide("usual").x == X
        assert play.decide("least", {**X, "age": -1e-30}).x["age"] == -1e-30
        known = round_of(play.engine.store.events_of(["d1"])["d1"])
        assert known.reward == 0.0
        assert play.engine.model.skipped == 0


def test_a_snapshot_that_cannot_be_kept_is_tried_again() -> None:
    """It is no event that the policy refused: the model must pass through it, as a restart would."""
    one, store = experiment(), Failing()
    with playing(one, store) as play:
        for i in range(20):
            play.decide(f"d{i}")
            play.done(play.engine.follow(f"d{i}", Z))
            play.done(play.engine.reward(f"d{i}", i / 7))
        play.learn()
        play.engine.learner.stop()
        play.done(play.engine.snapshot())
        store.failures = 1
        with pytest.raises(OSError, match="full"):
            play.engine.learner.step()
        play.engine.learner.catch_up()
        assert play.engine.model.skipped == 0
        assert rebuild(one, store).model.digest == play.engine.model.digest


def test_a_caller_that_goes_away_leaves_the_writer_alone() -> None:
    with playing(experiment(), MemoryStore()) as play:
        with play.engine.store.transaction():  # so that the writer must wait
            futures = [play.engine.decide(X, name=f"d{i}") for i in range(5)]
            gone = [future.cancel() for future in futures[3:]]
        for future in futures[:3]:
            play.done(future)
        assert play.decide("after").id == "after"
        known = play.engine.store.events_of([f"d{i}" for i in range(5)])
        assert [len(known[f"d{i}"]) for i in range(3)] == [1, 1, 1]
        assert all(not known[f"d{3 + i}"] for i, left in enumerate(gone) if left)


def test_a_wait_that_became_longer_is_not_due_for_ever() -> None:
    store, clock = MemoryStore(), Clock()
    with playing(experiment(), store, clock) as play:
        play.done(play.engine.reward("d", 1.0))  # parked
    clock.now += 1500.0
    longer = experiment(file=FILE.replace("1000s", "5000s"))
    with playing(longer, store, clock) as play:
        play.engine.expire()  # which would not end
        play.decide("d")
        play.done(play.engine.follow("d", Z))
        assert rounds_learnt(play.learn()) == 1


def refuse_decision(monkeypatch: pytest.MonkeyPatch) -> None:
    expect_batch = BasePolicy.expect_batch

    def refuse(policy: Any, X: Any, arms: Any, *, round_ids: Any) -> None:
        expect_batch(policy, X, arms, round_ids=round_ids)  # half of it, perhaps
        if "bad" in round_ids:
            raise ArithmeticError("no")

    monkeypatch.setattr(BasePolicy, "expect_batch", refuse)


def refuse_feedback(monkeypatch: pytest.MonkeyPatch) -> None:
    teach = fold.teach

    def refuse(model: Any, before: Any, after: Any, names: Any) -> None:
        teach(model, before, after, names)
        if after.decided.id == "bad":
            raise ArithmeticError("no")

    monkeypatch.setattr(fold, "teach", refuse)


@pytest.mark.parametrize("refuse", [refuse_decision, refuse_feedback])
def test_an_event_that_cannot_be_learnt_is_passed_over_and_counted(
    refuse: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = experiment()
    refuse(monkeypatch)
    with playing(one, MemoryStore()) as play:
        for name in ("good", "bad", "better"):
            play.decide(name)
        if refuse is refuse_feedback:
            play.done(play.engine.follow("bad", {"minutes": 1.0}))
        for name in ("good", "better"):
            play.done(play.engine.follow(name, Z))
            play.done(play.engine.reward(name, 1.0))
        assert rounds_learnt(play.learn()) == 2
        assert play.engine.model.skipped == 1
        found = rebuild(one, play.engine.store)
        assert (found.model.skipped, found.model.digest) == (1, play.engine.model.digest)


class Hasty(MemoryStore):
    """A store in which snapshots are dropped just before they are pinned."""

    def set_setting(self, name: str, value: str) -> None:
        if name.startswith("pinned"):
            self.drop_snapshot(int(name.split()[1]), unless=name)
        super().set_setting(name, value)


def test_a_snapshot_that_is_dropped_while_it_is_promoted_is_refused() -> None:
    """An event that needs it could never be learnt, and nothing after it."""
    with playing(experiment(), Hasty()) as play:
        play.decide("d")
        play.done(play.engine.snapshot())
        play.learn()
        last = play.engine.store.last()
        with pytest.raises(InvalidInput, match="snapshot is 2, wanted one of none yet"):
            play.engine.promote(2)
        assert play.engine.store.last() == last


def test_a_promoted_snapshot_is_never_dropped(tmp_path: Path) -> None:
    stores: list[Store] = [MemoryStore(), SqliteStore(tmp_path / "log.sqlite")]
    for store in stores:
        with playing(experiment("[store]\nkeep_snapshots = 2\n"), store) as play:
            for i in range(6):
                play.decide(f"d{i}")
                play.done(play.engine.snapshot())
                play.learn()
                if i == 0:
                    play.done(play.engine.promote(2))
            assert [seq for seq, _ in store.snapshots()] == [2, 11, 13]


def test_more_than_can_wait_is_refused() -> None:
    with playing(experiment("[server]\nmost_waiting = 3\n"), MemoryStore()) as play:
        waiting: list[Any] = []

        def flood() -> None:
            for i in range(50):
                waiting.append(play.engine.decide(X, name=f"d{i}"))

        with play.engine.store.transaction(), pytest.raises(Overloaded, match="wanted fewer than 3"):
            flood()
        for future in waiting:
            play.done(future)
        assert play.decide("after").id == "after"
