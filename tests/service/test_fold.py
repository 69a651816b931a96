"""The model is a fold over the log: a restart, a rebuild and another batch size give the same bits."""

import gc
import random
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.service.playing import Clock, Play, Z, experiment, playing, rounds_learnt

from postserve import PoLinUCB, load
from postserve.linalg.pending import PendingModels
from postserve.policies import open_rounds
from postserve.service.log.requests import Conflict
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.model import learner
from postserve.service.rebuild import rebuild

STAGED = """
[policy.map]
name = "StagedMap"
stages = [["minutes"], ["finished"]]
"""
POLICIES = {
    "PoLinUCB": "",
    "StagedMap": STAGED,
    "hybrid": '[policy]\nmodel = "hybrid"\noptimism = "posterior"\n',
    "PoLinTS": '[policy]\nname = "PoLinTS"\n',
    "LinUCB": '[policy]\nname = "LinUCB"\n',
}


def traffic(play: Play, clock: Clock, rounds: int, seed: int) -> None:
    """Decisions and feedback: late, in parts, twice, out of order, or never."""
    rng = random.Random(seed)
    outcomes: list[tuple[float, Any]] = []
    for i in range(rounds):
        name = f"{seed}/{i}"
        x = {"age": float(rng.randrange(3)), "device": rng.choice(["phone", "computer"])}
        parts: list[dict[str, Any]] = [
            {"minutes": float(rng.randrange(5))},
            {"finished": rng.choice(["no", "yes"])},
        ]
        if rng.random() < 0.3:
            parts = [{**parts[0], **parts[1]}]
        mine: list[Any] = [partial(play.engine.follow, name, z) for z in parts if rng.random() < 0.9]
        if rng.random() < 0.8:
            mine.append(partial(play.engine.reward, name, rng.gauss(0, 1)))
        mine.append(partial(play.engine.decide, x, name=name))
        for one in mine:
            outcomes += [(i + rng.expovariate(0.05), one)] * (1 + (rng.random() < 0.2))
    outcomes.sort(key=lambda each: each[0])
    futures = []
    for number, (_, one) in enumerate(outcomes):
        futures.append(one())
        if number % 40 == 39:
            clock.now += 60.0
            play.engine.expire()
    for future in futures:
        try:
            play.done(future)
        except Conflict as error:
            assert "closed" in str(error) or "expired" in str(error) or "same request" in str(error)  # noqa: PT017


@pytest.mark.parametrize("kind", POLICIES)
def test_a_restart_and_a_rebuild_give_the_same_bits(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, clock, path = experiment(POLICIES[kind]), Clock(), tmp_path / "log.sqlite"
    with playing(one, SqliteStore(path), clock) as play:
        traffic(play, clock, 40, seed=1)
        play.done(play.engine.snapshot())
        traffic(play, clock, 20, seed=2)
        play.learn()
        live = play.engine.model
        assert live.skipped == 0
        restarted = learner.Learner(play.engine.store, live, tuple(one.z), 10)
        assert restarted.model.seq < live.seq
        restarted.catch_up()
        assert restarted.model.digest == live.digest
        monkeypatch.setattr(learner, "BATCH", 7)
        found = rebuild(one, play.engine.store)
        assert found.model.digest == live.digest
        assert found.model.seq == live.seq
        assert (found.agreeing, found.differs_at) == (1, None)
    with playing(one, SqliteStore(path), clock) as play:
        assert play.engine.model.seq > live.seq  # the snapshot of the end
        assert rebuild(one, play.engine.store).model.digest == play.engine.model.digest


def test_rounds_are_the_same_in_batches_of_any_size(tmp_path: Path) -> None:
    clock, store = Clock(), SqliteStore(tmp_path / "log.sqlite")
    with playing(experiment(), store, clock) as play:
        traffic(play, clock, 60, seed=3)
        logged, names = store.read(0, 10_000), ("minutes", "finished")
        each = [learner.Rounds(store, names).steps([one])[0] for one in logged]  # all read from the log
        assert sum(step.after.is_closed(names) for step in each) > 20
        for size in (1, 7, len(logged)):
            rounds = learner.Rounds(store, names)
            assert [
                step for i in range(0, len(logged), size) for step in rounds.steps(logged[i : i + size])
            ] == each


def test_open_decisions_are_nothing_to_the_garbage_collector() -> None:
    """It would stop all threads to look at them, again and again: for 0.1 s with 70,000 of them."""
    with playing(experiment(), MemoryStore()) as play:
        decided = play.decide("d")
        play.done(play.engine.follow("d", {"minutes": 3.0}))
        step = learner.Rounds(play.engine.store, ()).steps(play.engine.store.read(1, 1))[0]
        one = open_rounds.named(play.learn())["d"]
    gc.collect()
    values = [decided, decided.x, decided.eligible, decided.propensities, step.after, step.after.z, one.rows]
    assert not any(map(gc.is_tracked, values))


def test_answers_do_not_compute_what_the_learner_can(monkeypatch: pytest.MonkeyPatch) -> None:
    where, renew = list[str](), PendingModels._renew_all

    def noted(models: PendingModels[Any]) -> None:
        where.append(threading.current_thread().name)
        renew(models)

    with playing(experiment(POLICIES["hybrid"]), MemoryStore()) as play:
        play.learn()
        monkeypatch.setattr(PendingModels, "_renew_all", noted)
        for name in "abc":
            play.decide(name)
            play.done(play.engine.follow(name, Z))
            play.learn()
        play.decide("d")
        assert set(where) == {"postserve-learner"}  # before the stop, which learns the rest in this thread


def test_a_model_that_cannot_answer_is_served_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is for those who ask; the learner goes on."""

    def fails(*asked: Any) -> None:
        raise ArithmeticError

    with playing(experiment(), MemoryStore()) as play:
        play.decide("a")
        monkeypatch.setattr(PoLinUCB, "propensities", fails)
        play.done(play.engine.follow("a", Z))
        play.learn()


def test_a_rebuild_says_where_it_differs() -> None:
    one, clock = experiment(), Clock()
    with playing(one, MemoryStore(), clock) as play:
        for seed in (1, 2, 3):
            traffic(play, clock, 10, seed)
            play.done(play.engine.snapshot())
        play.learn()
        store: Any = play.engine.store
        _, second, _ = (seq for seq, _ in store.snapshots())
        store.save(store.snapshot(second)._replace(digest="another"))
        found = rebuild(one, store)
        assert (found.agreeing, found.differs_at) == (2, second)


def test_an_older_model_can_be_promoted_and_goes_on() -> None:
    one, clock = experiment(), Clock()
    with playing(one, MemoryStore(), clock) as play:
        traffic(play, clock, 20, seed=1)
        play.done(play.engine.snapshot())
        play.learn()
        ((first, _),) = play.engine.store.snapshots()
        before = rounds_learnt(play.engine.model.policy)
        play.done(play.engine.add_arm("middle"))
        play.decide("open")
        traffic(play, clock, 20, seed=2)
        assert rounds_learnt(play.learn()) > before
        play.done(play.engine.promote(first))
        assert rounds_learnt(play.learn()) == before
        assert list(play.engine.model.arms) == ["short", "long", "middle"]
        play.done(play.engine.follow("open", {"minutes": 1.0, "finished": "no"}))
        play.done(play.engine.reward("open", 1.0))
        assert rounds_learnt(play.learn()) == before + 1
        traffic(play, clock, 20, seed=3)
        assert rounds_learnt(play.learn()) > before + 1
        assert play.engine.model.skipped == 0
        assert rebuild(one, play.engine.store).model.digest == play.engine.model.digest
        clock.now += 1e6
        play.engine.expire()
        assert play.learn()._open is None  # nothing of either life is left open


def test_a_snapshot_is_a_file_that_load_reads(tmp_path: Path) -> None:
    with playing(experiment(), MemoryStore()) as play:
        play.decide("d")
        play.done(play.engine.snapshot())
        play.learn()
        ((seq, _),) = play.engine.store.snapshots()
        saved = play.engine.store.snapshot(seq)
        assert saved is not None
        (tmp_path / "policy.npz").write_bytes(saved.state)
        policy = load(tmp_path / "policy.npz")
        assert policy.propensities({"age": 3.0, "device": "phone"}).sum() == 1.0


def test_a_damaged_snapshot_is_passed_over() -> None:
    one, clock = experiment(), Clock()
    with playing(one, MemoryStore(), clock) as play:
        for seed in (1, 2):
            traffic(play, clock, 10, seed)
            play.done(play.engine.snapshot())
        live = play.engine.model if play.learn() else None
        assert live is not None
        store: Any = play.engine.store
        newest = store.snapshots()[-1][0]
        content = store.snapshot(newest).content
        store.save(store.snapshot(newest)._replace(content=content[: len(content) // 2]))
        restarted = learner.Learner(store, live, tuple(one.z), 10)
        assert restarted.model.seq < newest
        restarted.catch_up()
        assert restarted.model.digest == live.digest
