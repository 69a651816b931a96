"""Any order of requests, crashes and restarts agrees with a small model of what each answer must be."""

import tempfile
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.service.playing import Clock, X, experiment

from postserve.service.engine import Engine
from postserve.service.log.requests import Conflict
from postserve.service.log.retention import drop_erased, drop_old
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.postgres import PostgresStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.rebuild import rebuild

NAMES = st.sampled_from("ab")  # few, so that much happens to each
FIELDS: dict[str, Any] = {"minutes": st.sampled_from([1.0, 2.0]), "finished": st.sampled_from(["no", "yes"])}
WAIT_Z, WAIT = 100.0, 1000.0


class Reference:
    """One decision, as a person would tell it."""

    def __init__(self) -> None:
        self.decided: float | None = None
        self.deferred = self.active = False
        self.z: dict[str, Any] = {}
        self.reward: float | None = None
        self.first: float | None = None
        self.gone = False

    def settle(self, now: float) -> None:
        """Feedback that found no decision in time is forgotten."""
        if self.decided is None and self.first is not None and self.first + WAIT <= now and not self.gone:
            self.__init__()  # type: ignore[misc]

    def over(self, now: float) -> bool:
        return self.decided is not None and self.decided + WAIT <= now

    def learnt(self, now: float) -> bool:
        if self.decided is None or not self.active or self.reward is None:
            return False
        return len(self.z) == 2 or self.decided + WAIT_Z <= now

    def refuses(self, now: float) -> bool:
        return self.learnt(now) or self.over(now)


class Machine(RuleBasedStateMachine):
    """Requests, the clock, and crashes: the writer and the learner are dropped, the store stays."""

    store_kind: Any = MemoryStore

    def __init__(self) -> None:
        super().__init__()
        self.clock, self.known = Clock(), {name: Reference() for name in "ab"}
        self.folder = tempfile.TemporaryDirectory()
        self.experiment = experiment()

    def make_store(self) -> Any:
        return self.store_kind(Path(self.folder.name) / "log.sqlite")

    @initialize()
    def begin(self) -> None:
        self.store = self.make_store()
        self.start()

    def start(self) -> None:
        self.engine = Engine(self.experiment, self.store, clock=self.clock, seed=0)
        self.engine._warm_up = lambda: None  # type: ignore[method-assign]
        self.engine.learner.catch_up()
        self.engine.writer.start()

    def ask(self, future: Any) -> bool | None:
        """Whether something changed; None if it was refused."""
        try:
            return bool(future.result(60).changed)
        except Conflict:
            return None

    def expire(self) -> None:
        self.engine.expire()
        for each in self.known.values():
            each.settle(self.clock.now)

    @rule(name=NAMES, deferred=st.sampled_from([False, False, True]))
    def decide(self, name: str, deferred: bool) -> None:
        known, got = self.known[name], self.ask(self.engine.decide(X, name=name, deferred=deferred))
        if known.gone:
            assert got is None
        elif known.decided is None:
            known.decided, known.deferred, known.active = self.clock.now, deferred, not deferred
            known.first = known.first or self.clock.now
            assert got is True
        else:
            assert got is (False if known.deferred == deferred else None)

    @rule(name=NAMES, z=st.fixed_dictionaries({}, optional=FIELDS).filter(bool))
    def follow(self, name: str, z: dict[str, Any]) -> None:
        known, got = self.known[name], self.ask(self.engine.follow(name, z))
        contradicts = any(known.z.get(key, value) != value for key, value in z.items())
        new = {key: value for key, value in z.items() if key not in known.z}
        if known.gone or contradicts or (new and known.refuses(self.clock.now)):
            assert got is None
        else:
            assert got is bool(new)
            known.z |= new
            known.first = known.first or self.clock.now

    @rule(name=NAMES, reward=st.sampled_from([0.0, 1.0]))
    def reward(self, name: str, reward: float) -> None:
        known, got = self.known[name], self.ask(self.engine.reward(name, reward))
        if known.gone:
            assert got is None
        elif known.reward is not None:
            assert got is (False if known.reward == reward else None)
        elif known.refuses(self.clock.now):
            assert got is None
        else:
            assert got is True
            known.reward = reward
            known.first = known.first or self.clock.now

    @rule(name=NAMES)
    def activate(self, name: str) -> None:
        known, got = self.known[name], self.ask(self.engine.activate(name))
        if known.gone or known.decided is None or (not known.active and known.over(self.clock.now)):
            assert got is None
        else:
            assert got is (not known.active)
            known.active = True

    @rule(seconds=st.sampled_from([1.0, 150.0, 1.0, 150.0, 1500.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds
        self.expire()

    @rule(name=NAMES, erase=st.booleans())
    def forget(self, name: str, erase: bool) -> None:
        """One decision that somebody wants forgotten, or all that closed before the oldest snapshot."""
        had = [each for each in self.known if self.store.events_of([each])[each]]
        if erase:
            known = self.known[name]
            assert self.ask(self.engine.erase(name)) is (known.first is not None and not known.gone)
            if name in had:
                assert self.ask(self.engine.snapshot())
                self.engine.learner.catch_up()
                assert drop_erased(self.store, name)
        else:
            drop_old(self.store, 1e12, 10)
        for each in had:
            if not self.store.events_of([each])[each]:
                known = self.known[each]
                assert erase or known.first is None or known.refuses(self.clock.now)
                known.gone = True

    @rule(what=st.sampled_from(["snapshot", "promote", "crash"]), which=st.integers(0, 9))
    def operate(self, what: str, which: int) -> None:
        self.engine.learner.catch_up()
        saved = self.store.snapshots()
        if what == "snapshot":
            assert self.ask(self.engine.snapshot())
        elif what == "promote" and saved:
            assert self.ask(self.engine.promote(saved[which % len(saved)][0]))
        elif what == "crash":
            self.engine.writer.stop()
            if not isinstance(self.store, MemoryStore):
                self.store.close()
                self.store = self.make_store()
            self.start()
        self.engine.learner.catch_up()

    @invariant()
    def the_log_says_what_the_model_says(self) -> None:
        if not hasattr(self, "store"):
            return
        for name, known in self.known.items():
            events = self.store.events_of([name])[name]
            decided = any(type(each).__name__ == "Decided" for each in events)
            assert decided == (known.decided is not None and not known.gone)

    def teardown(self) -> None:
        if hasattr(self, "engine"):
            self.engine.learner.catch_up()
            live = self.engine.model
            assert live.skipped == 0
            assert rebuild(self.experiment, self.store).model.digest == live.digest
            self.engine.writer.stop()
            self.store.close()
        self.folder.cleanup()


class InMemory(Machine):
    """Without a file."""

    def make_store(self) -> Any:
        return MemoryStore()


class InSqlite(Machine):
    """With one."""

    store_kind = SqliteStore


class InPostgres(Machine):
    """In a schema of its own."""

    address = ""

    def __init__(self) -> None:
        super().__init__()
        self.schema = f"machine_{uuid.uuid4().hex}"

    def make_store(self) -> Any:
        return PostgresStore(self.address, self.schema)


@pytest.mark.parametrize(("machine", "examples"), [(InMemory, 100), (InSqlite, 20), (InPostgres, 15)])
def test_the_service_agrees_with_the_reference(
    machine: Any, examples: int, request: pytest.FixtureRequest
) -> None:
    if machine is InPostgres:
        InPostgres.address = request.getfixturevalue("postgres")
    case = machine.TestCase
    case.settings = settings(
        max_examples=examples, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
    )
    case("runTest").runTest()
