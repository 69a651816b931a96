"""A second policy that looks on: it learns what it would as the first, and its worth is estimated."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.service.playing import FILE, Clock, Play, Z, experiment, playing
from tests.service.test_fold import traffic
from tests.waiting import wait_until

from postserve import Client, InvalidInput, ServiceNotFound
from postserve.policies import open_rounds
from postserve.service.log.retention import drop_erased
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.rebuild import rebuild
from postserve.service.trial import trial

RANDOM = '[shadow]\nname = "RandomPolicy"\n'
LINUCB = '[shadow]\nname = "LinUCB"\n'


def shadow_of(play: Play) -> Any:
    """Once it has learnt all."""
    shadow: Any = play.engine.shadow
    assert shadow.learner.wait_for(play.engine.store.last(), 120)
    return shadow


def play_rounds(play: Play, rounds: int, prefix: str = "d") -> list[float]:
    """The arm "long" earns 1, the other one nothing; what is earned."""
    rng, earned = np.random.default_rng(0), []
    for i in range(rounds):
        decided = play.decide(f"{prefix}{i}", {"age": float(rng.integers(20, 60)), "device": "phone"})
        play.done(play.engine.follow(decided.id, Z))
        earned.append(float(decided.arm == "long") + 0.1 * rng.normal())
        play.done(play.engine.reward(decided.id, earned[-1]))
        if i % 10 == 9:
            play.learn()
    return earned


@pytest.mark.parametrize("name", ["LinUCB", "PoLinTS"])
def test_it_learns_what_it_would_have_learnt_as_the_first(name: str) -> None:
    """Whatever happens to the first one's snapshots."""
    one, clock = experiment(f'[shadow]\nname = "{name}"\n'), Clock()
    with playing(one, MemoryStore(), clock) as play:
        traffic(play, clock, 30, seed=1)
        play.done(play.engine.snapshot())
        play.learn()
        play.done(play.engine.add_arm("middle"))
        play.done(play.engine.promote(play.engine.store.snapshots()[0][0]))
        traffic(play, clock, 30, seed=2)
        learnt = shadow_of(play).model
        alone = msgspec.structs.replace(one, policy=one.shadow, shadow=None)
        with playing(alone, MemoryStore(), clock) as other:
            with other.engine.store.transaction() as transaction:
                events = [event for _, event in play.engine.store.read(0, 10_000)]
                transaction.append(
                    [each for each in events if type(each).__name__ not in ("Snapshot", "Promoted")]
                )
            other.engine.learner.tell(other.engine.store.last())
            other.learn()
            assert other.engine.model.digest == learnt.digest
        assert rebuild(one, play.engine.store).model.digest == play.engine.model.digest


def test_it_forgets_what_was_erased_before_it_learnt_that() -> None:
    with playing(experiment(LINUCB), MemoryStore()) as play:
        for name in "abc":
            play.decide(name)
        play.decide("deferred", deferred=True)
        shadow = shadow_of(play)
        assert {*open_rounds.named(shadow.model.policy)} == {*"abc"}
        shadow.learner.stop()  # it learns by hand from here on
        for name in ("a", "b", "deferred"):
            play.done(play.engine.erase(name))
            play.done(play.engine.snapshot(erasing=True))
            play.learn()
            assert drop_erased(play.engine.store, name)
        play.decide("d")
        shadow.learner.catch_up()
        assert {*open_rounds.named(shadow.model.policy)} == {*"cd"}
        assert {*shadow.learner._rounds._known} <= {*"cd"}


def test_what_it_would_have_earned_is_estimated() -> None:
    with playing(experiment(RANDOM), MemoryStore()) as play:
        shadow = shadow_of(play)
        assert shadow.report() == {"since": 0, "behind": 0, "rounds": 0}
        earned = play_rounds(play, 300)
        play.decide("without a reward")
        shadow_of(play)
        found = shadow.report()
        assert found["rounds"] == 300
        assert found["served"]["value"] == pytest.approx(np.mean(earned))
        assert found["shadow"]["low"] < 0.5 < found["shadow"]["high"]
        assert found["difference"]["high"] < 0.0
        decided: Any = play.engine.store.read(0, 1)[0].event
        assert decided.shadow == (0.5, 0.5)


def test_a_restart_goes_on_and_another_shadow_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with playing(experiment(), SqliteStore(path)) as play:
        assert play.engine.shadow is None
        play_rounds(play, 20)
        last = play.engine.store.last()
    for times in (1, 2):
        with playing(experiment(RANDOM), SqliteStore(path)) as play:
            shadow_of(play)
            play_rounds(play, 20, f"{times}/")
            found = shadow_of(play).report()
            assert (found["since"], found["rounds"]) == (last + 1, 20 * times)  # 1: the snapshot of the end
    with playing(experiment(LINUCB), SqliteStore(path)) as play:
        model = shadow_of(play).model
        assert model.policy.pulls.sum() == 60.0  # it has learnt from all that was there
        assert shadow_of(play).report()["rounds"] == 0


def test_it_is_not_asked_before_it_knows_the_log() -> None:
    store = MemoryStore()
    with playing(experiment(), store) as play:
        play_rounds(play, 5)
    with playing(experiment(RANDOM), store) as one:
        shadow: Any = one.engine.shadow
        shadow_of(one)
        late = shadow.model._replace(seq=shadow._first - 1)
        known, shadow.learner.model = shadow.learner.model, late
        assert one.engine._shadows({"age": 1.0, "device": "phone"}, ("short",)) == ()
        shadow.learner.model = known
        assert one.engine._shadows({"age": 1.0, "device": "phone"}, ("short",)) == (1.0,)
        assert one.engine._shadows({"age": 1.0, "device": "phone"}, ("short", "new")) == ()


def test_where_the_log_cannot_say_it_is_said() -> None:
    file = FILE.replace("explore = 0.2", "explore = 0.0") + RANDOM
    with trial(file) as url, Client(url) as client:
        for i in range(30):
            decision = client.decide({"age": 30 + i % 3, "device": "phone"}, id=f"d{i}")
            client.follow(decision.id, Z)
            client.reward(decision.id, float(decision.arm == "long"))
            if i % 10 == 9:
                wait_until(lambda: client.models()["behind"] == 0)
        found = client.shadow()
        assert "explore in the experiment's file makes it possible" in found["unknown"]
        assert "difference" not in found


def test_with_one_arm_there_is_nothing_to_compare() -> None:
    with playing(
        experiment(file=FILE.replace('["short", "long"]', '["short"]') + RANDOM), MemoryStore()
    ) as play:
        play.decide("d")
        play.done(play.engine.reward("d", 1.0))
        assert "there is 1 arm" in shadow_of(play).report()["unknown"]


def test_over_http() -> None:
    with (
        trial(FILE) as url,
        Client(url) as client,
        pytest.raises(ServiceNotFound, match="there is no shadow"),
    ):
        client.shadow()
    with trial(FILE + RANDOM) as url, Client(url) as client:
        for i in range(20):
            client.decide({"age": 30 + i, "device": "phone"}, id=f"d{i}")
            client.outcomes([{"id": f"d{i}", "z": Z, "reward": i / 7}])
        wait_until(lambda: client.shadow()["behind"] == 0)
        assert client.shadow()["rounds"] == 20


def test_a_wrong_shadow_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match=r"in \[shadow\]: policy.name is 'Best', wanted one of"):
        experiment('[shadow]\nname = "Best"\n')


def test_with_a_default_reward_only_rounds_whose_wait_is_over_count() -> None:
    """Of the others, only those that earned something are known."""
    file, clock = FILE + "default_reward = 0.0\n" + RANDOM, Clock()
    with playing(experiment(file=file), MemoryStore(), clock) as play:
        shadow = shadow_of(play)
        for i in range(40):
            play.decide(f"d{i}")
            if i % 4 == 0:
                play.done(play.engine.reward(f"d{i}", 1.0))
        assert shadow_of(play).report()["rounds"] == 0
        clock.now += 2000.0
        play.engine.expire()
        found = shadow_of(play).report()
        assert (found["rounds"], found["served"]["value"]) == (40, 0.25)
        play.decide("new")
        play.done(play.engine.reward("new", 1.0))
        assert shadow_of(play) is shadow
        assert shadow.report()["rounds"] == 40


def test_an_arm_without_a_reward_does_not_hide_what_is_known() -> None:
    file = FILE.replace("explore = 0.2", "explore = 1.0") + RANDOM
    with playing(experiment(file=file), MemoryStore()) as play:
        play_rounds(play, 50)
        play.done(play.engine.add_arm("new"))
        play.learn()
        shadow_of(play)
        play.decide("d", eligible=["new", "short"])
        play_rounds(play, 5, "more")
        found = shadow_of(play).report()
        assert "unknown" not in found
        assert found["rounds"] == 55
