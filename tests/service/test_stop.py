"""A service that is told to stop, that gets more than it takes, or goes back to an older model."""

import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.playing import Clock, X, Z, experiment, playing
from tests.service.processes import Forked
from tests.service.wires import PATIENCE, Got, Wire, serving

from postserve.service.edge import listening
from postserve.service.edge.access import Gate, TooMany, hash_of
from postserve.service.edge.answering import refuse_unless_ready
from postserve.service.engine import Engine
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.log.stores.sqlite import SqliteStore
from postserve.service.log.writer import Unavailable
from postserve.service.serving import Starting

CALLERS = 8


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Forked]:
    one = Forked(tmp_path)
    yield one
    one.close()


def test_no_request_fails_when_it_is_told_to_stop(service: Forked) -> None:
    answered: list[tuple[str, Got]] = []
    told = threading.Event()

    def call(caller: int) -> None:
        wire, i = Wire(service.port), 0
        while True:
            try:
                wire.open()
            except ConnectionRefusedError:
                return  # it takes no more: a caller would go elsewhere
            name = f"{caller}-{i}"
            answered.append((name, wire.ask("POST", "/v1/decide", {"id": name, "context": X})))
            i += 1
            if len(answered) > 200:
                told.set()

    callers = [threading.Thread(target=call, args=(caller,)) for caller in range(CALLERS)]
    idle = Wire(service.port)
    assert idle.ask("GET", "/livez").status == 200
    for caller in callers:
        caller.start()
    assert told.wait(PATIENCE)
    service.signal(signal.SIGTERM)
    for caller in callers:
        caller.join(PATIENCE)
        assert not caller.is_alive()
    assert service.wait() == 0
    idle.close()
    assert "Traceback" not in service.output.read_text()
    store = SqliteStore(service.log)
    known = store.events_of([name for name, _ in answered])
    for name, got in answered:
        assert got.status == 200, got
        assert [each.arm for each in known[name]] == [got.json["arm"]]  # type: ignore[union-attr]
    assert len(answered) == len(known)
    store.close()


def test_what_is_on_its_way_when_it_stops_is_answered() -> None:
    """Half a request is waited for, and a connection without one is closed."""
    with serving(experiment(), MemoryStore()) as (port, _):
        half, silent = Wire(port), Wire(port)
        body = b'{"id": "half", "context": {"age": 3, "device": "phone"}}'
        half.open().sendall(b"POST /v1/decide HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:9])
        assert silent.ask("GET", "/livez").status == 200
        later = threading.Timer(0.2, lambda: half.open().sendall(body[9:]))
        later.start()
    got = half.read()
    assert (got.status, got.json["id"], got.headers["connection"]) == (200, "half", "close")
    with pytest.raises(ConnectionError):
        silent.ask("GET", "/livez")
    later.join()


def test_half_a_request_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "KEEP", 0.1)
    head = b"POST /v1/decide HTTP/1.1\r\nContent-Length: 100\r\n"
    with serving(experiment(), MemoryStore()) as (port, _):
        for part in (b"", head, head + b"\r\n{"):
            with socket.create_connection(("127.0.0.1", port), PATIENCE) as one:
                one.sendall(part)
                assert one.recv(1) == b""


def test_more_than_it_takes_is_refused_and_it_recovers() -> None:
    with serving(experiment("[server]\nmost_waiting = 4\n"), MemoryStore()) as (port, engine):
        found: list[Got] = []

        def call(caller: int) -> None:
            wire = Wire(port)
            found.append(wire.ask("POST", "/v1/decide", {"id": f"d{caller}", "context": X}))
            wire.close()

        callers = [threading.Thread(target=call, args=(caller,)) for caller in range(30)]
        with engine.store.transaction():  # so that nothing can be committed meanwhile
            for caller in callers:
                caller.start()
            end = time.monotonic() + PATIENCE
            while len(found) < 20 and time.monotonic() < end:
                time.sleep(0.01)
            refused = list(found)
        for caller in callers:
            caller.join(PATIENCE)
        wire = Wire(port)
        assert wire.ask("POST", "/v1/decide", {"context": X}).status == 200
        wire.close()
    assert {got.status for got in refused} == {503}
    for got in refused:
        assert (got.json["error"], got.headers["retry-after"]) == ("overloaded", "1")
    assert {got.status for got in found} == {200, 503}
    assert engine.store.last() == sum(got.status == 200 for got in found) + 2  # one after, and the snapshot


def test_waits_end_however_few_requests_may_wait() -> None:
    with playing(experiment("[server]\nmost_waiting = 2\n"), MemoryStore()) as play:
        for i in range(40):
            play.decide(f"d{i}")
        play.clock.now += 2000.0  # type: ignore[attr-defined]
        play.engine.expire()
        assert play.learn()._open is None


def test_who_asks_too_often_is_told_to_wait() -> None:
    with serving(experiment("[server]\nmost_per_second = 5\n"), MemoryStore()) as (port, _):
        wire = Wire(port)
        found = [wire.ask("GET", "/v1/arms") for _ in range(30)]
        refused = [got for got in found if got.status == 429]
        assert refused
        assert all((got.json["error"], got.headers["retry-after"]) == ("too_many", "1") for got in refused)
        end = time.monotonic() + PATIENCE
        while wire.ask("GET", "/v1/arms").status == 429:
            assert time.monotonic() < end
            time.sleep(0.1)
        wire.close()


def test_a_rate_below_one_lets_some_through() -> None:
    clock = Clock()
    gate = Gate([], 0.5, clock)
    for seconds in (0.0, 2.0, 10.0):
        clock.now += seconds
        gate.admit(None, "read")
        with pytest.raises(TooMany, match=r"more than 0\.5 requests per second"):
            gate.admit(None, "read")


def test_a_start_that_failed_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = SqliteStore(tmp_path / "log.sqlite")
    engine = Engine(experiment(), store)
    monkeypatch.setattr(engine, "_warm_up", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        engine.start()
    engine.stop()
    again = SqliteStore(tmp_path / "log.sqlite")
    assert again.lead()  # the file is free
    again.close()


def test_a_service_that_starts_says_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, said = Engine(experiment(), MemoryStore()), list[str]()

    def say() -> None:
        with pytest.raises(Unavailable) as refused:
            refuse_unless_ready(engine)
        said.append(str(refused.value))
        Starting(engine)._say_what_takes_long()

    monkeypatch.setattr(engine.learner, "catch_up", say)
    monkeypatch.setattr(engine, "_warm_up", say)
    say()
    engine.start()
    refuse_unless_ready(engine)
    engine.stop()
    say()
    words = ["starting", "learning its log", "compiling, for up to a minute on a new machine", "stopping"]
    assert said == [f"the service is {word}, wanted a little patience" for word in words]
    assert capsys.readouterr().out.splitlines() == words


def test_the_older_model_decides_after_a_roll_back(tmp_path: Path) -> None:
    with serving(experiment(), SqliteStore(tmp_path / "log.sqlite")) as (port, engine):
        wire = Wire(port)

        def teach(label: str, better: str) -> None:
            for i in range(60):
                name = f"{label}{i}"
                arm = wire.ask("POST", "/v1/decide", {"id": name, "context": X}).json["arm"]
                wire.ask("POST", f"/v1/decisions/{name}/context", {"z": Z})
                wire.ask("POST", f"/v1/decisions/{name}/reward", {"reward": float(arm == better)})

        def ask() -> Any:
            assert engine.learner.wait_for(engine.store.last(), PATIENCE)
            return wire.ask("POST", "/v1/decide", {"context": X}).json["propensities"]

        teach("a", "short")
        older = wire.ask("POST", "/v1/models").json["snapshots"][-1]["snapshot"]
        before = ask()
        for i in range(3):
            teach(f"b{i}-", "long")
        assert ask() != before
        start = time.perf_counter()
        assert wire.ask("POST", "/v1/models/promote", {"snapshot": older}).status == 200
        after = wire.ask("POST", "/v1/decide", {"context": X}).json["propensities"]
        print(f"rolled back in {time.perf_counter() - start:.3f} s")
        assert after == before
        wire.close()


def test_keys_are_never_written_anywhere(tmp_path: Path) -> None:
    secret, wrong = "a-key-that-nobody-may-see", "another-key-that-is-wrong"
    service = Forked(tmp_path, f'[[keys]]\nname = "all"\nhash = "{hash_of(secret)}"\nroles = ["admin"]\n')
    wire, seen = Wire(service.port), b""
    for key in (secret, wrong):
        head = f"Authorization: Bearer {key}\r\n"
        for method, path in (
            ("POST", "/v1/decide"),
            ("GET", "/metrics"),
            ("GET", "/openapi.json"),
            ("PUT", "/x"),
        ):
            for body in ({"context": X}, b"{", b"{" * 20_000):
                seen += wire.ask(method, path, body, head).body
        seen += wire.send(f"BREW / HTTP/1.1\r\n{head}\r\n".encode()).body
        wire.close()
    assert service.stop() == 0
    service.close()
    for text in (seen, *(path.read_bytes() for path in tmp_path.iterdir())):
        assert secret.encode() not in text
        assert wrong.encode() not in text
    assert "Invalid HTTP request" in service.output.read_text()  # so that something was logged at all
