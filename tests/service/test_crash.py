"""kill -9 under load, again and again: what was answered is there, once, and the model is a fold over it."""

import random
import signal
import threading
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.service.playing import FILE, rounds_learnt
from tests.service.processes import Forked
from tests.service.size import LONG
from tests.service.wires import Wire

from postserve.service.experiment import read_experiment
from postserve.service.log.events import Decided, Followed, Rewarded
from postserve.service.log.rounds import round_of
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.model.fold import loaded
from postserve.service.rebuild import rebuild

KILLS = 200 if LONG else 20
CALLERS = 4
ROUNDS = 25
"""Decisions that begin in one life of the service; much of their feedback comes in the next ones."""
IMPATIENT = FILE.replace('wait_for_z = "100s"', 'wait_for_z = "3s"')


class Request(NamedTuple):
    """Something to ask until there is an answer."""

    id: str
    path: str
    body: dict[str, Any]


class Traffic:
    """Callers that ask at the same time: late, twice, out of order, and again what nobody answered."""

    def __init__(self, service: Forked) -> None:
        self.service, self.rng = service, random.Random(7)
        self.waiting: deque[Request] = deque()
        self.answered: list[tuple[Request, Any]] = []
        self._made = 0

    def live(self, kill_after: int) -> int:
        """Ask until so many were answered, and kill the service then; how many were."""
        self.waiting.extend(self.requests())
        before, killing = len(self.answered), threading.Lock()

        def call() -> None:
            wire = Wire(self.service.port)
            try:
                while self.waiting:
                    try:
                        request = self.waiting.popleft()
                    except IndexError:
                        return
                    try:
                        got = wire.ask("POST", request.path, request.body)
                    except OSError:  # nobody knows what became of it
                        self.waiting.append(request)
                        return
                    assert got.status in (200, 409), got
                    if got.status == 200:
                        self.answered.append((request, got.json))
                    if len(self.answered) - before >= kill_after and killing.acquire(blocking=False):
                        self.service.signal(signal.SIGKILL)
            finally:
                wire.close()

        callers = [threading.Thread(target=call) for _ in range(CALLERS)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        if killing.acquire(blocking=False):
            self.service.signal(signal.SIGKILL)
        assert self.service.wait() == -signal.SIGKILL
        return before

    def requests(self) -> Iterator[Request]:
        """Of decisions that begin now, and of those whose time has come."""
        rng, found = self.rng, []
        for _ in range(ROUNDS):
            self._made += 1
            name = f"d{self._made}"
            x = {"age": float(rng.randrange(40)), "device": rng.choice(["phone", "computer"])}
            mine = [Request(name, "/v1/decide", {"id": name, "context": x})]
            parts: list[dict[str, Any]] = [
                {"minutes": rng.gauss(0, 1)},
                {"finished": rng.choice(["no", "yes"])},
            ]
            mine += [
                Request(name, f"/v1/decisions/{name}/context", {"z": z}) for z in parts if rng.random() < 0.9
            ]
            if rng.random() < 0.8:
                mine.append(Request(name, f"/v1/decisions/{name}/reward", {"reward": rng.gauss(0, 1)}))
            for request in mine:
                found += [(rng.expovariate(1.0), request)] * (1 + (rng.random() < 0.2))
        return (request for _, request in sorted(found, key=lambda each: each[0]))


def check(known: dict[str, Any], request: Request, answer: Any) -> None:
    """What was answered is what is known."""
    if request.path == "/v1/decide":
        for key in ("arm", "propensity", "model_version", "expires"):
            assert known[key] == answer[key], (key, request, answer, known)
        assert known["x"] == request.body["context"]
    elif "z" in request.body:
        assert request.body["z"].items() <= known["z"].items(), (request, answer, known)
    else:
        assert known["rewards"] == [request.body["reward"]], (request, answer, known)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Forked]:
    one = Forked(tmp_path, file=IMPATIENT)
    yield one
    one.close()


def test_no_answer_is_lost_and_nothing_counts_twice(service: Forked) -> None:
    traffic, rng = Traffic(service), random.Random(8)
    for _ in range(KILLS):
        before = traffic.live(kill_after=rng.randrange(1, 120))
        service.start()
        wire = Wire(service.port)
        for request, answer in traffic.answered[before:]:
            check(wire.ask("GET", f"/v1/decisions/{request.id}").json, request, answer)
        wire.close()
    wire = Wire(service.port)
    live = wire.ask("POST", "/v1/models").json["snapshots"][-1]
    for request, answer in traffic.answered:
        check(wire.ask("GET", f"/v1/decisions/{request.id}").json, request, answer)
    wire.close()
    assert service.stop() == 0
    assert "Traceback" not in service.output.read_text()
    assert len(traffic.answered) > 20 * KILLS
    check_log(service, live)


def check_log(service: Forked, live: dict[str, Any]) -> None:
    """Every event is there once, and the model that was live is what the log teaches."""
    store, one = SqliteStore(service.log), read_experiment(service.file)
    histories = store.events_of({event.id for _, event in store.read(0, 1_000_000) if event.id})
    for name, events in histories.items():
        fields = [field for event in events if isinstance(event, Followed) for field in event.z]
        assert len(fields) == len(set(fields)), (name, events)
        for kind in (Decided, Rewarded):
            assert sum(isinstance(event, kind) for event in events) <= 1, (name, events)
    found, saved = rebuild(one, store), dict(store.snapshots())
    assert found.differs_at is None
    assert saved[live["snapshot"]] == live["digest"]
    last = store.snapshot(store.last())
    assert last is not None  # which the stop has saved
    assert last.digest == found.model.digest
    closed = [one for one in map(round_of, histories.values()) if one.is_ready(("minutes", "finished"))]
    assert rounds_learnt(loaded(last).policy) == len(closed)
    assert found.model.skipped == 0
    store.close()
