"""Two processes serve one experiment from a real Postgres: each is killed, cut off, and left without it."""

import random
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from tests.service.databases import Server, running
from tests.service.playing import FILE, Clock, X, Z, experiment, rounds_learnt
from tests.service.processes import Service, free_port
from tests.waiting import wait_until

from postserve.service.engine import first_model
from postserve.service.experiment import read_experiment
from postserve.service.log.events import ArmAdded, Snapshot
from postserve.service.log.stores import Saved, StoreError
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.postgres import PostgresStore
from postserve.service.model import learner
from postserve.service.model.fold import Model, loaded
from postserve.service.rebuild import rebuild

SCHEMA = "replicas"


class Following(MemoryStore):
    """A store in which somebody else publishes a newer model each time, which takes a second to load."""

    shared = True

    def __init__(self, model: Model, clock: Clock) -> None:
        super().__init__()
        self.model, self.clock = model, clock

    def lead(self) -> bool:
        return False

    def published(self, after: int) -> Saved | None:
        self.clock.now += 1.0
        return self.model._replace(seq=after + 1).dump()


def test_taking_models_from_others_takes_a_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    one, clock = experiment(), Clock()
    monkeypatch.setattr(learner, "time", SimpleNamespace(monotonic=clock, sleep=time.sleep))
    untaught = first_model(one, MemoryStore())
    mine = learner.Learner(Following(untaught, clock), untaught, tuple(one.z), 10)
    for expected in range(1, 4):
        assert mine.step()
        assert (mine.model.seq, mine.leads) == (expected, False)
        assert not mine.step()  # not yet
        clock.now += 1.0 / learner.SHARE - 1.1
        assert not mine.step()
        clock.now += 0.2


class Contested(MemoryStore):
    """A store in which one leads as long as it is said."""

    shared, leading = True, True

    def lead(self) -> bool:
        return self.leading


def test_what_was_folded_counts_only_if_the_process_still_leads() -> None:
    one, store = experiment(), Contested()
    untaught = first_model(one, store)
    mine = learner.Learner(store, untaught, tuple(one.z), 10)

    def log_an_arm(arm: str) -> None:
        with store.transaction() as transaction:
            transaction.append([ArmAdded(1.0, arm=arm)])

    log_an_arm("first")
    mine.catch_up()
    assert (mine.model.seq, mine.leads) == (1, True)
    log_an_arm("second")
    store.leading = False
    assert not mine.step()
    assert (mine.model.seq, mine.leads) == (1, False)
    store.leading = True
    mine.catch_up()
    assert list(mine.model.arms) == ["short", "long", "first", "second"]


class Replica(Service):
    """One of the processes."""

    def __init__(self, folder: Path, address: str) -> None:
        folder.mkdir()
        self.port, self.file, self.output = free_port(), folder / "experiment.toml", folder / "output.txt"
        store = f'[store]\npath = "{address}"\nschema = "{SCHEMA}"\nsnapshot_every = 150\n'
        self.file.write_text(f"{FILE}{store}[server]\nport = {self.port}\n", encoding="utf-8")
        self.start()

    def leads(self) -> bool:
        try:
            status, answer = self.ask("GET", "/v1/models")
        except OSError:
            return False
        return status == 200 and bool(answer["leads"])


class Load:
    """Callers that ask one process or the other, and again with the same id until they have an answer."""

    def __init__(self, replicas: list[Replica]) -> None:
        self.replicas, self.answered, self.ending = replicas, Counter[str](), threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(caller,)) for caller in range(3)]
        for thread in self._threads:
            thread.start()

    def _call(self, caller: int) -> None:
        rng, number = random.Random(caller), 0
        while not self.ending.is_set():
            name, number = f"{caller}-{number}", number + 1
            self._ask(rng, "/v1/decide", {"id": name, "context": {**X, "age": float(number % 40)}})
            self._ask(rng, f"/v1/decisions/{name}/context", {"z": Z})
            if number % 4:
                self._ask(rng, f"/v1/decisions/{name}/reward", {"reward": number % 7 / 7})
            self.answered[name] = 3 if number % 4 else 2

    def _ask(self, rng: random.Random, path: str, body: Any) -> None:
        while True:
            try:
                status, answer = rng.choice(self.replicas).ask("POST", path, body)
            except OSError:
                status, answer = 503, None
            if status != 503:
                assert status == 200, answer
                return
            time.sleep(0.02)

    def goes_on(self) -> None:
        """Wait until many more have got all their answers."""
        before = len(self.answered)
        wait_until(lambda: len(self.answered) >= before + 30 or not self.alive)
        assert self.alive

    @property
    def alive(self) -> bool:
        return all(thread.is_alive() for thread in self._threads)

    def end(self) -> None:
        self.ending.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    """One of its own, because it is stopped."""
    with running(Path(tempfile.mkdtemp(prefix="postserve-"))) as one:
        yield one


def leader_and_other(replicas: list[Replica]) -> tuple[Replica, Replica]:
    """One leads; for a moment after the database was away, two may believe that they do."""
    first, second = replicas
    found: list[tuple[Replica, Replica]] = []

    def one_leads() -> bool:
        known = first.leads(), second.leads()
        found.append((first, second) if known[0] else (second, first))
        return sum(known) == 1

    wait_until(one_leads)
    return found[-1]


def serves(replica: Replica, arm: str) -> bool:
    """Whether an arm can be served; a process may still be without a connection, or have an older model."""
    status, answer = replica.ask("POST", "/v1/decide", {"context": X, "eligible": [arm]})
    assert status in (200, 422, 503), answer
    return bool(status == 200 and answer["arm"] == arm)


def erased(replica: Replica, name: str) -> bool:
    """Whether a decision was forgotten; where that takes long, one is to ask again."""
    status, answer = replica.ask("DELETE", f"/v1/decisions/{name}")
    assert status in (200, 202), answer
    return status == 200


def test_nothing_is_lost_whoever_is_lost(server: Server, tmp_path: Path) -> None:
    replicas = [Replica(tmp_path / name, server.address) for name in ("one", "other")]
    load = Load(replicas)
    try:
        load.goes_on()
        for victim in (0, 0, 1):  # who leads, who leads then, and who does not
            killed, other = leader_and_other(replicas)[:: -1 if victim else 1]
            killed.kill()
            load.goes_on()
            wait_until(other.leads)
            killed.start()
        with psycopg.connect(server.address, autocommit=True) as db:
            ours = (
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'postserve'"
            )
            db.execute(ours)
        load.goes_on()
        server.stop()
        server.start()
        load.goes_on()
        leader, other = leader_and_other(replicas)
        wait_until(lambda: other.ask("POST", "/v1/arms", {"arm": "new"})[0] in (200, 202))
        for each in replicas:
            wait_until(partial(serves, each, "new"))
        load.end()
        assert leader.stop() == 0
        wait_until(other.leads)
        assert other.stop() == 0
        check(server.address, leader.file, load.answered)
        leader.start()
        for name in list(load.answered)[:4]:  # some are closed, and some are not
            wait_until(partial(erased, leader, name))
            assert leader.ask("GET", f"/v1/decisions/{name}")[0] == 404
            assert leader.ask("DELETE", f"/v1/decisions/{name}")[0] == 404
            assert leader.ask("POST", "/v1/decide", {"id": name, "context": X})[0] == 409
        assert leader.stop() == 0
        again = PostgresStore(server.address, SCHEMA)
        found = rebuild(read_experiment(leader.file), again)
        assert found.differs_at is None
        assert again.snapshots()[-1] == (found.model.seq, found.model.digest)
        again.close()
    finally:
        load.ending.set()
        for each in replicas:
            if each.process.poll() is None:
                each.kill()


def check(address: str, file: Path, answered: dict[str, int]) -> None:
    """All that was answered is in the log, once, and was learnt once, by the model that all served."""
    store = PostgresStore(address, SCHEMA)
    logged = store.read(0, 1_000_000)
    assert [seq for seq, _ in logged] == list(range(1, len(logged) + 1))
    kept = Counter((event.id, type(event).__name__) for _, event in logged if event.id)
    assert set(kept.values()) == {1}
    of_id = Counter(name for name, _ in kept)
    assert {name: of_id[name] for name in answered} == answered
    found = rebuild(read_experiment(file), store)
    assert found.differs_at is None
    assert found.agreeing > 1
    published, newest = store.published(0), store.snapshots()[-1]
    assert published is not None
    assert newest == (len(logged), found.model.digest) == (published.seq, published.digest)
    assert rounds_learnt(loaded(published).policy) == sum(kind == "Rewarded" for _, kind in kept)
    store.close()


class CutOff(Contested):
    """A store whose connection is lost just before a snapshot, and is there again at the next election."""

    cut = True

    def save(self, saved: Saved) -> None:
        if self.cut:
            raise StoreError("the connection is gone, wanted one that is there")
        super().save(saved)

    def lead(self) -> bool:
        self.cut = False
        return self.leading


def test_who_is_cut_off_while_it_saves_asks_again_who_leads() -> None:
    one, store = experiment(), CutOff()
    untaught = first_model(one, store)
    mine = learner.Learner(store, untaught, tuple(one.z), 10)
    mine.step()  # it leads
    store.cut = True
    with store.transaction() as transaction:
        transaction.append([Snapshot(1.0)])
    with pytest.raises(StoreError, match="the connection is gone"):
        mine.step()
    mine.catch_up()
    assert mine.model.seq == 1
