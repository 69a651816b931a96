"""Where parts of the service meet: repetitions and arms that came and went, shadows, erasures, batches."""

from typing import Any

import pytest
from tests.service.playing import Clock, X, Z, experiment, playing
from tests.service.test_faults import Failing
from tests.service.wires import Wire, serving

from postserve.errors import InvalidInput
from postserve.service import rehearsing
from postserve.service.engine import began_with
from postserve.service.log.requests import Conflict
from postserve.service.log.retention import drop_erased
from postserve.service.log.stores.memory import MemoryStore
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
