"""Where parts of the service meet: repetitions and arms that came and went, shadows, erasures, batches."""

from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.service.playing import Clock, X, Z, experiment, playing
from tests.service.test_faults import Failing
from tests.service.wires import Wire, serving

from postserve.errors import InvalidInput, StateMismatch
from postserve.service import rehearsing
from postserve.service.engine import began_with
from postserve.service.log.requests import Conflict
from postserve.service.log.retention import drop_erased, drop_old
from postserve.service.log.stores import Saved, StoreError
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.model.fold import loaded
from postserve.service.rebuild import rebuild
from postserve.service.traffic.replaying import Replay

SHADOW = '[shadow]\nname = "LinUCB"\n'


def test_a_repetition_stands_though_arms_came_and_went() -> None:
    with playing(experiment(), MemoryStore()) as play:
        all_arms, named = play.decide("all"), play.decide("named", eligible=["short"])
        play.done(play.engine.add_arm("new"))
        play.done(play.engine.retire_arm("short"))
        play.learn()
        assert play.decide("all") == all_arms
        assert play.decide("named", eligible=["short"]) == named
        with pytest.raises(Conflict, match="eligible"):
            play.decide("all", eligible=["new"])
        with pytest.raises(Conflict, match="x"):
            play.decide("named", {**X, "age": 5.0}, eligible=["short"])
        with pytest.raises(InvalidInput, match="wanted some of long, new"):
            play.decide("another", eligible=["short"])


def test_an_open_decision_may_have_any_id(monkeypatch: pytest.MonkeyPatch) -> None:
    store, clock = MemoryStore(), Clock()
    with playing(experiment(), store, clock) as play:
        play.decide("7")
    monkeypatch.setattr(rehearsing, "_rehearsed", set())
    with playing(experiment(), store, clock) as play:
        assert play.decide("7").id == "7"


def test_all_arms_cannot_be_retired_at_once() -> None:
    with playing(experiment(), MemoryStore()) as play:
        futures = [play.engine.retire_arm(arm) for arm in ("short", "long")]
        for future in futures:
            play.done(future)
        play.learn()
        assert play.engine.model.eligible == ("long",)


def test_a_shadow_lives_with_erasures_and_new_arms() -> None:
    store, clock = MemoryStore(), Clock()
    with playing(experiment(SHADOW), store, clock) as play:
        for i in range(30):
            play.decide(f"d{i}")
            play.done(play.engine.follow(f"d{i}", Z))
            play.done(play.engine.reward(f"d{i}", i % 3))
        play.done(play.engine.add_arm("new"))
        play.done(play.engine.erase("d3"))
        play.done(play.engine.snapshot())
        play.learn()
        assert drop_erased(store, "d3")
    with playing(experiment(SHADOW), store, clock) as play:
        assert play.engine.shadow is not None
        play.decide("later", eligible=["new"])
        play.done(play.engine.reward("later", 1.0))
        assert play.engine.shadow.report()["since"] == 0


def test_the_library_replays_an_erasure(tmp_path: Any) -> None:
    with playing(experiment(), MemoryStore()) as play:
        for i in range(20):
            play.decide(f"d{i}")
            play.done(play.engine.follow(f"d{i}", Z))
        play.done(play.engine.erase("d3"))
        play.done(play.engine.reward("d4", 1.0))
        policy = play.learn()
        began = began_with(play.engine.store)
        replay = Replay(began["model"], began["arms"], tmp_path)
        for seq, event in play.engine.store.read(0, 1000):
            replay.take(seq, event)
        assert replay.policy.arms == policy.arms
        assert (replay.policy.weights == policy.weights).all()


def test_a_batch_that_the_store_cannot_take_may_be_repeated() -> None:
    store = Failing()
    with serving(experiment(), store) as (port, _):
        wire = Wire(port)
        assert wire.ask("POST", "/v1/decide", {"id": "d", "context": X}).status == 200
        asked = {"events": [{"id": "d", "z": Z, "reward": 1.0}]}
        store.failures = 1
        refused = wire.ask("POST", "/v1/events:batch", asked)
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert wire.ask("POST", "/v1/events:batch", asked).json["results"][0]["status"] == "closed"
        wire.close()


def test_a_damaged_snapshot_cannot_be_promoted() -> None:
    store = MemoryStore()
    with playing(experiment(), store) as play:
        play.decide("a")
        play.done(play.engine.snapshot())
        play.learn()
        ((seq, digest),) = store.snapshots()
        saved = store.snapshot(seq)
        assert saved is not None
        middle = len(saved.content) // 2
        store.save(Saved(seq, digest, saved.content[:middle] + b"?" + saved.content[middle + 1 :]))
        with pytest.raises(InvalidInput, match=f"snapshot {seq} cannot be loaded"):
            play.engine.promote(seq)
        play.decide("b")
        play.learn()


def test_an_outcome_is_kept_whole_or_not_at_all() -> None:
    with playing(experiment(), MemoryStore()) as play:
        play.decide("d")
        play.decide("deferred", deferred=True)
        play.done(play.engine.follow("d", {"minutes": 3.0}))
        last = play.engine.store.last()
        with pytest.raises(Conflict, match=r"z\.minutes"):
            play.done(play.engine.outcome("d", {"minutes": 4.0}, 5.0, activate=False))
        with pytest.raises(InvalidInput, match="minutes"):
            play.engine.outcome("deferred", {"minutes": "many"}, 5.0, activate=True)
        with pytest.raises(InvalidInput, match="nothing in it"):
            play.engine.outcome("d", None, None, activate=False)
        assert play.engine.store.last() == last
        assert play.done(play.engine.outcome("d", Z, 5.0, activate=True)).changed
        assert not play.done(play.engine.outcome("d", Z, 5.0, activate=True)).changed
        assert play.engine.store.last() == last + 2


def test_a_repetition_may_name_an_arm_twice() -> None:
    with playing(experiment(), MemoryStore()) as play:
        first = play.decide("d", eligible=["short", "short"])
        play.done(play.engine.retire_arm("short"))
        play.learn()
        assert play.decide("d", eligible=["short", "short"]) == first


def test_a_clock_that_was_wrong_drops_nothing_that_is_new() -> None:
    store, clock = MemoryStore(), Clock()
    with playing(experiment(), store, clock) as play:
        for name, now in [(f"d{i}", 1e9) for i in range(20)] + [(f"e{i}", 1000.0) for i in range(80)]:
            clock.now = now
            play.decide(name)
            play.done(play.engine.outcome(name, Z, 1.0, activate=False))
        play.done(play.engine.snapshot())
        play.learn()
        clock.now = 1e9 + 60.0
        drop_old(store, clock.now - 86_400.0, 10)
        kept = store.events_of([f"d{i}" for i in range(20)])
        assert all(kept.values())
        assert not any(store.events_of([f"e{i}" for i in range(80)]).values())


def test_a_rebuild_begins_anew_if_something_is_erased_meanwhile() -> None:
    store, one = MemoryStore(), experiment()
    with playing(one, store) as play:
        for name in ("a", "b"):
            play.decide(name)
            play.done(play.engine.snapshot())
        play.learn()

        def erase(seq: int) -> None:
            if store.events_of(["a"])["a"]:
                play.done(play.engine.erase("a"))
                play.done(play.engine.snapshot())
                play.learn()
                assert drop_erased(store, "a")

        assert rebuild(one, store, erase).differs_at is None


def test_what_is_damaged_is_named(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with playing(experiment(), SqliteStore(path)) as play:
        play.decide("a")
        play.done(play.engine.snapshot())
        play.learn()
        seq = play.engine.store.snapshots()[0][0]
        saved = play.engine.store.snapshot(seq)
        assert saved is not None
        with pytest.raises(StateMismatch, match="the arms of the snapshot"):
            loaded(saved._replace(content=saved.content.replace(b'"short"', b'"shorT"', 1)))
    db = apsw.Connection(str(path))
    db.execute("UPDATE events SET body = '{' WHERE seq = 1")
    db.close()
    store = SqliteStore(path)
    with pytest.raises(StoreError, match="event 1 cannot be read"):
        store.read(0, 10)
    with pytest.raises(StoreError, match="an event of 'a' cannot be read"):
        store.events_of(["a"])
    store.close()
