"""Decisions, and feedback that comes late, in parts, twice, out of order or never."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.playing import FILE, Clock, Play, X, Z, experiment, playing, rounds_learnt

from postserve import InvalidInput
from postserve.policies import open_rounds
from postserve.service.log.events import Expired, Promoted
from postserve.service.log.requests import Conflict, Tell
from postserve.service.log.rounds import round_of
from postserve.service.log.stores import Store, StoreError
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.model import learner
from postserve.service.rebuild import rebuild
from postserve.state import arrays_of

Make = Callable[[], Store]


def pairs_learnt(policy: Any) -> int:
    """How many pairs of x and z the map has learnt from."""
    return int(arrays_of(policy)["context_map.counts"][0])


def same_state(one: Any, other: Any) -> bool:
    mine, theirs = arrays_of(one), arrays_of(other)
    return mine.keys() == theirs.keys() and all(np.array_equal(mine[key], theirs[key]) for key in mine)


def test_the_service_learns_what_the_library_would(make: Make) -> None:
    one = experiment()
    by_hand = one.untaught(2)
    with playing(one, make()) as play:
        arms = []
        for i in range(30):
            decided = play.decide(f"d{i}", {"age": float(i), "device": "phone"})
            arms.append(["short", "long"].index(decided.arm))
            by_hand.expect({"age": float(i), "device": "phone"}, arms[-1], round_id=f"d{i}")
        for i in reversed(range(30)):
            x, z = {"age": float(i), "device": "phone"}, {"minutes": float(i % 7), "finished": "yes"}
            play.done(play.engine.follow(f"d{i}", z))
            by_hand.observe(x, arms[i], z, round_id=f"d{i}")
        for i in range(0, 30, 2):
            x, z = {"age": float(i), "device": "phone"}, {"minutes": float(i % 7), "finished": "yes"}
            play.done(play.engine.reward(f"d{i}", i / 10))
            by_hand.credit(x, arms[i], z, i / 10, round_id=f"d{i}")
        assert same_state(play.learn(), by_hand)
        assert play.engine.model.skipped == 0


def test_parts_of_z_and_the_reward_may_come_in_any_order(make: Make) -> None:
    with playing(experiment(), make()) as play:
        for name in ("one", "other"):
            play.decide(name)
        steps: list[Callable[[str], Any]] = [
            lambda name: play.engine.follow(name, {"minutes": 3.0}),
            lambda name: play.engine.follow(name, {"finished": "yes"}),
            lambda name: play.engine.reward(name, 1.0),
        ]
        for name, order in (("one", steps), ("other", steps[::-1])):
            answers = [play.done(step(name)) for step in order]
            assert answers[-1].round.is_closed(["minutes", "finished"])
            assert not answers[-2].round.is_closed(["minutes", "finished"])
        policy = play.learn()
        assert policy._open is None
        assert play.engine.model.skipped == 0


def test_a_decision_is_made_once(make: Make) -> None:
    with playing(experiment(), make()) as play:
        first = play.done(play.engine.decide(X, name="d"))
        again = play.done(play.engine.decide(X, name="d"))
        assert (first.changed, again.changed) == (True, False)
        assert first.round.decided == again.round.decided
        for other in ({"name": "d", "eligible": ["long"]}, {"name": "d", "deferred": True}):
            with pytest.raises(Conflict, match="wanted the same request"):
                play.done(play.engine.decide(X, **other))
        assert len(play.engine.store.read(0, 10)) == 1


def test_repetitions_change_nothing_and_contradictions_are_refused(make: Make) -> None:
    with playing(experiment(), make()) as play:
        play.decide("d")
        assert play.done(play.engine.follow("d", {"minutes": 3.0})).changed
        assert not play.done(play.engine.follow("d", {"minutes": 3.0})).changed
        with pytest.raises(Conflict, match=r"z.minutes of decision 'd' is 3.0, got 4.0"):
            play.done(play.engine.follow("d", {"minutes": 4.0}))
        assert play.done(play.engine.reward("d", 1.0)).changed
        assert not play.done(play.engine.reward("d", 1.0)).changed
        with pytest.raises(Conflict, match=r"is 1\.0, got 2\.0"):
            play.done(play.engine.reward("d", 2.0))
        assert play.done(play.engine.follow("d", Z)).changed  # the part that is new
        with pytest.raises(Conflict, match=r"got 4\.0"):
            play.done(play.engine.follow("d", {"minutes": 4.0}))


def test_feedback_that_comes_before_its_decision_is_parked(make: Make) -> None:
    with playing(experiment(), make()) as play:
        assert play.done(play.engine.reward("d", 1.0)).round.decided is None
        assert play.done(play.engine.follow("d", Z)).round.decided is None
        assert play.learn()._open is None
        play.decide("d")
        assert rounds_learnt(play.learn()) == 1


def test_without_a_reward_the_default_counts_or_the_round_is_taken_back(make: Make) -> None:
    for more, rounds in (("", 0), ("default_reward = 0.5\n", 1)):
        clock = Clock()
        with playing(experiment(more), MemoryStore(), clock) as play:
            play.decide("d")
            assert play.learn()._open is not None
            clock.now += 2000.0
            play.engine.expire()
            assert play.learn()._open is None
            assert rounds_learnt(play.learn()) == rounds
            with pytest.raises(Conflict, match="closed"):
                play.done(play.engine.reward("d", 1.0))


def test_a_reward_waits_for_z_and_counts_without_it_once_that_wait_is_over(make: Make) -> None:
    clock = Clock()
    with playing(experiment(), make(), clock) as play:
        play.decide("d")
        play.done(play.engine.reward("d", 1.0))
        assert rounds_learnt(play.learn()) == 0
        clock.now += 200.0
        play.engine.expire()
        assert rounds_learnt(play.learn()) == 1
        with pytest.raises(Conflict, match="closed"):
            play.done(play.engine.follow("d", Z))


def test_what_was_never_shown_teaches_nothing(make: Make) -> None:
    clock = Clock()
    with playing(experiment("default_reward = 0.5\n"), make(), clock) as play:
        for name in ("shown", "not"):
            play.decide(name, deferred=True)
            play.done(play.engine.follow(name, Z))
        assert play.learn()._open is None
        play.done(play.engine.activate("shown"))
        assert play.learn()._open is not None
        clock.now += 2000.0
        play.engine.expire()
        assert rounds_learnt(play.learn()) == 1
        assert play.learn()._open is None


@pytest.mark.parametrize(("mode", "value"), [("last", 3.0), ("sum", 6.0)])
def test_several_rewards_are_settled_when_the_wait_is_over(make: Make, mode: str, value: float) -> None:
    clock = Clock()
    with playing(experiment(f'rewards = "{mode}"\n'), make(), clock) as play:
        play.decide("d")
        play.done(play.engine.follow("d", Z))
        for i in (1, 2, 3, 3):
            play.done(play.engine.reward("d", float(i), key=str(i)))
        if mode == "sum":
            with pytest.raises(Conflict, match="has no key"):
                play.done(play.engine.reward("d", 1.0))
        assert rounds_learnt(play.learn()) == 0
        clock.now += 2000.0
        play.engine.expire()
        assert rounds_learnt(play.learn()) == 1
        last = play.engine.store.events_of(["d"])["d"][-1]
        assert isinstance(last, Expired)
        assert last.reward == value


def test_bad_values_are_refused_before_they_are_logged(make: Make) -> None:
    bad = [
        ({}, "context has no age"),
        ({**X, "age": "old"}, "context.age is 'old', wanted a number"),
        ({**X, "age": True}, "context.age is True"),
        ({**X, "age": float("nan")}, "context.age is nan"),
        ({**X, "age": 1e300}, "wanted a number of at most 1e\\+09"),
        ({**X, "device": 3}, "context.device is 3"),
        ({**X, "size": 3}, "context has 'size'"),
    ]
    with playing(experiment(), make()) as play:
        for x, message in bad:
            with pytest.raises(InvalidInput, match=message):
                play.engine.decide(x, name="d")
        with pytest.raises(InvalidInput, match="eligible has 'middle'"):
            play.done(play.engine.decide(X, ["middle"], "d"))
        with pytest.raises(InvalidInput, match="eligible is empty"):
            play.done(play.engine.decide(X, [], "d"))
        with pytest.raises(InvalidInput, match="z is empty"):
            play.engine.follow("d", {})
        with pytest.raises(InvalidInput, match="reward is inf"):
            play.engine.reward("d", float("inf"))
        assert play.engine.store.last() == 0


def test_propensities_are_those_of_the_draw(make: Make) -> None:
    with playing(experiment(), make()) as play:
        for i in range(8):
            play.decide(f"t{i}")
            play.done(play.engine.follow(f"t{i}", Z))
            play.done(play.engine.reward(f"t{i}", float(i % 2)))
        play.learn()
        found = [play.decide(f"d{i}", {"age": 2.0, "device": "computer"}) for i in range(2000)]
        shares = {
            version: [each.arm == "long" for each in found if each.version == version]
            for version in {each.version for each in found}
        }
        expected = sum(
            len(each) * next(f for f in found if f.version == version).propensities[1]
            for version, each in shares.items()
        )
        assert abs(sum(map(sum, shares.values())) - expected) < 4 * np.sqrt(2000 * 0.25)
        assert all(min(each.propensities) >= 0.1 for each in found)


def test_arms_come_and_go(make: Make) -> None:
    with playing(experiment(), make()) as play:
        play.decide("before", eligible=["short"])
        play.done(play.engine.add_arm("middle"))
        play.learn()
        assert play.decide("new", eligible=["middle"]).arm == "middle"
        play.done(play.engine.retire_arm("short"))
        play.learn()
        assert list(play.engine.model.eligible) == ["long", "middle"]
        with pytest.raises(InvalidInput, match="eligible has 'short'"):
            play.done(play.engine.decide(X, ["short"], "late"))
        play.done(play.engine.follow("before", Z))
        play.done(play.engine.reward("before", 1.0))  # what comes of its rounds is still learnt
        assert rounds_learnt(play.learn()) == 1
        play.done(play.engine.add_arm("short"))
        play.learn()
        assert list(play.engine.model.eligible) == ["short", "long", "middle"]


def test_another_model_is_refused_and_other_waits_are_not(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with playing(experiment(), SqliteStore(path)) as play:
        play.decide("d")
    with pytest.raises(StoreError, match=r"^policy.model was not there, got 'hybrid', wanted as when"):
        Play(experiment('[policy]\nmodel = "hybrid"\n'), SqliteStore(path), Clock())
    other = FILE.replace('age = "number"', 'age = ["young", "old"]')
    with pytest.raises(StoreError, match=r"^x.age was 'number', got \['young', 'old'\], wanted"):
        Play(experiment(file=other), SqliteStore(path), Clock())
    with playing(experiment("default_reward = 1.0\n"), SqliteStore(path)) as play:
        assert play.learn()._open is not None


def test_the_file_of_a_running_experiment_may_gain_and_lose_arms(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"

    def arms(listed: str, added: str | None = None, retired: str | None = None) -> tuple[str, ...]:
        one = experiment(file=FILE.replace('["short", "long"]', listed))
        with playing(one, SqliteStore(path)) as play:
            if added:
                play.done(play.engine.add_arm(added))
                play.learn()
            if retired:
                play.done(play.engine.retire_arm(retired))
            play.learn()
            return play.engine.model.eligible

    assert arms('["short", "long"]', added="by hand") == ("short", "long", "by hand")
    assert arms('["long", "new"]') == ("long", "by hand", "new")  # short left the file
    assert arms('["long", "new"]', retired="new") == ("long", "by hand")
    assert arms('["long", "new"]') == ("long", "by hand")  # the file says nothing new of it
    assert arms('["short"]') == ("short", "by hand")


def test_z_is_taken_as_long_as_it_is_waited_for() -> None:
    """Though the wait for the reward, which came, is over."""
    file = FILE.replace('wait_for_z = "100s"', 'wait_for_z = "5000s"')
    for more, rewarded in (("", True), ("default_reward = 0.5\n", False)):
        clock = Clock()
        with playing(experiment(more, file), MemoryStore(), clock) as play:
            play.decide("d")
            if rewarded:
                play.done(play.engine.reward("d", 1.0))
            clock.now += 2000.0
            play.engine.expire()
            assert play.done(play.engine.follow("d", Z)).changed
            policy = play.learn()
            assert (rounds_learnt(policy), pairs_learnt(policy)) == (1, 1)
            with pytest.raises(Conflict, match=r"closed|is 1\.0, got 2\.0"):
                play.done(play.engine.reward("d", 2.0))


def test_a_late_repetition_is_no_last_reward() -> None:
    clock = Clock()
    with playing(experiment('rewards = "last"\n'), MemoryStore(), clock) as play:
        play.decide("d")
        play.done(play.engine.follow("d", Z))
        for reward, key, changes in ((1.0, "a", True), (2.0, "b", True), (1.0, "a", False), (3.0, "a", True)):
            assert play.done(play.engine.reward("d", reward, key)).changed is changes
        clock.now += 2000.0
        play.engine.expire()
        assert round_of(play.engine.store.events_of(["d"])["d"]).reward == 3.0


def test_open_decisions_settle_as_the_file_says_now() -> None:
    store, clock = MemoryStore(), Clock()
    with playing(experiment('rewards = "sum"\n'), store, clock) as play:
        play.decide("d")
        for key, reward in (("a", 1.0), ("b", 5.0)):
            play.done(play.engine.reward("d", reward, key))
    with playing(experiment(), store, clock) as play:
        clock.now += 2000.0
        play.engine.expire()
        assert round_of(store.events_of(["d"])["d"]).reward == 1.0


def test_only_the_promoted_snapshot_is_taken() -> None:
    """Whatever others were looked at before."""
    with playing(experiment(), MemoryStore(), Clock()) as play:
        play.done(play.engine.snapshot())
        for each in ("one", "two"):
            play.decide(each)
            play.done(play.engine.follow(each, Z))
            play.done(play.engine.reward(each, 1.0))
            play.done(play.engine.snapshot())
        play.learn()
        first, second, third = (seq for seq, _ in play.engine.store.snapshots())
        play.engine.learner.check(third)
        play.done(play.engine.submit(Tell(Promoted(0.0, snapshot=second))))
        assert rounds_learnt(play.learn()) == 1
        play.engine.learner.check(second)
        play.done(play.engine.promote(first))
        assert rounds_learnt(play.learn()) == 0


@pytest.mark.parametrize("name", ["PoLinUCB", "RobustPoLinUCB", "LinUCBPhiHat"])
def test_a_promoted_model_has_the_open_rounds_of_today(name: str) -> None:
    """With what came of them by then, so that whatever comes later teaches as if it had never been away."""
    one, clock = experiment(f'[policy]\nname = "{name}"\n'), Clock()
    with playing(one, MemoryStore(), clock) as play:
        for each in ("old", "part", "closed"):
            play.decide(each)
        play.done(play.engine.snapshot())
        play.done(play.engine.follow("old", Z))
        play.done(play.engine.follow("part", {"minutes": 3.0}))
        for each in ("between", "closed"):
            play.decide(each)
            play.done(play.engine.follow(each, Z))
        play.done(play.engine.reward("closed", 1.0))
        play.learn()
        play.done(play.engine.promote(play.engine.store.snapshots()[0][0]))
        policy = play.learn()
        assert set(open_rounds.named(policy)) == {"old", "part", "between"}
        assert (rounds_learnt(policy), pairs_learnt(policy)) == (0, 2)
        for each in ("old", "between"):
            play.done(play.engine.reward(each, 1.0))
        play.done(play.engine.follow("part", {"finished": "yes"}))
        play.done(play.engine.reward("part", 1.0))
        policy = play.learn()
        assert (rounds_learnt(policy), pairs_learnt(policy)) == (3, 3)
        assert policy._open is None
        assert play.engine.model.skipped == 0
        assert rebuild(one, play.engine.store).model.digest == play.engine.model.digest


def test_what_somebody_waits_for_is_learnt_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other events are gathered for a while, as each new model costs something."""
    monkeypatch.setattr(learner, "GATHER", 3600.0)
    with playing(experiment(), MemoryStore()) as play:
        for k in range(3):
            play.decide(f"{k}")
            play.done(play.engine.snapshot())
            play.learn()
        assert len(play.engine.store.snapshots()) == 3
