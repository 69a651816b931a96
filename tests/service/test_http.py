"""The HTTP edge, on a real server: `postserve serve` in a process of its own."""

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.playing import FILE, X, Z

from postserve.service.access import hash_of
from postserve.service.experiment import read_experiment
from postserve.service.rebuild import rebuild
from postserve.service.stores.sqlite import SqliteStore

COMMAND = "from postserve.cli import main; main()"
PATIENCE = 300.0
"""Seconds that a busy machine may take to start a process, or to answer."""


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Service:
    """A running service."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.port = free_port()
        self.file, self.log = folder / "experiment.toml", folder / "log.sqlite"
        server = f'[store]\npath = "log.sqlite"\n[server]\nport = {self.port}\nmost_bytes = 10000\n'
        self.file.write_text(FILE + server + more, encoding="utf-8")
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", COMMAND, "serve", str(self.file)]
        with (self.file.parent / "output.txt").open("ab") as output:
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            except OSError:
                assert self.process.poll() is None, (self.file.parent / "output.txt").read_text()
                time.sleep(0.05)
        raise TimeoutError("the service did not start")

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", content, method=method)
        if key:
            request.add_header("Authorization", f"Bearer {key}")
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as refused:
            return refused.code, json.loads(refused.read())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path)
    yield one
    if one.process.poll() is None:
        one.kill()


def test_a_decision_and_its_feedback(service: Service) -> None:
    status, decided = service.ask("POST", "/v1/decide", {"id": "d", "context": X})
    assert status == 200
    assert decided["arm"] in ("short", "long")
    assert decided["propensity"] == decided["propensities"][decided["arm"]]
    assert sum(decided["propensities"].values()) == pytest.approx(1.0)
    assert not decided["repeated"]
    again = service.ask("POST", "/v1/decide", {"id": "d", "context": X})[1]
    assert again == {**decided, "repeated": True}
    status, got = service.ask("POST", "/v1/decisions/d/context", {"z": {"minutes": 3}})
    assert (status, got["status"], got["repeated"]) == (200, "open", False)
    assert service.ask("POST", "/v1/decisions/d/reward", {"reward": 1})[1]["status"] == "open"
    batch = {"events": [{"id": "d", "z": {"finished": "yes"}}, {"id": "d", "reward": 2}, {"id": "e"}]}
    first, second, third = service.ask("POST", "/v1/events:batch", batch)[1]["results"]
    assert first["status"] == "closed"
    assert (second["error"], third["error"]) == ("conflict", "invalid")
    known = service.ask("GET", "/v1/decisions/d")[1]
    assert (known["status"], known["z"], known["reward"]) == ("closed", {**Z, "minutes": 3.0}, 1.0)
    assert service.ask("GET", "/v1/decisions/nobody")[0] == 404
    assert service.ask("POST", "/v1/arms", {"arm": "middle"})[1]["arms"][2]["arm"] == "middle"
    assert service.ask("DELETE", "/v1/arms/short")[1]["arms"][0]["eligible"] is False
    saved = service.ask("POST", "/v1/models")[1]["snapshots"]
    assert len(saved) == 1
    assert service.ask("POST", "/v1/models/promote", {"snapshot": saved[0]["snapshot"]})[0] == 200
    assert service.ask("POST", "/v1/models/promote", {"snapshot": 999})[0] == 422
    assert service.stop() == 0


BAD: list[tuple[Any, int]] = [
    (b"", 422),
    (b"[]", 422),
    (b'{"context": {"age": NaN, "device": "phone"}}', 422),
    (b'{"context": {"age": 1e999, "device": "phone"}}', 422),
    ({"context": {**X, "age": True}}, 422),
    ({"context": X, "colour": "red"}, 422),
    ({"context": X, "eligible": ["nobody"]}, 422),
    ({"context": X, "id": ""}, 422),
    ({"context": X, "id": "x" * 201}, 422),
    (b"[" * 5000, 422),
    (b'{"context": ' + b" " * 20_000 + b"{}}", 413),
]


def test_bad_requests_are_refused_in_words(service: Service) -> None:
    for body, status in BAD:
        got, answer = service.ask("POST", "/v1/decide", body)
        assert got == status, answer
        assert "wanted" in answer["message"] or "expected" in answer["message"].lower() or got == 422
    assert service.ask("GET", "/v1/models")[1]["version"] == 0


def test_keys_and_roles(tmp_path: Path) -> None:
    keys = [
        f'[[keys]]\nname = "{role}"\nhash = "{hash_of(role)}"\nroles = ["{role}"]\n'
        for role in ("decide", "feedback", "read", "admin")
    ]
    one = Service(tmp_path, "".join(keys))
    try:
        assert one.ask("POST", "/v1/decide", {"context": X})[0] == 401
        assert one.ask("POST", "/v1/decide", {"context": X}, key="wrong")[0] == 401
        assert one.ask("POST", "/v1/decide", {"context": X}, key="read")[0] == 403
        for key in ("decide", "admin"):
            assert one.ask("POST", "/v1/decide", {"context": X}, key=key)[0] == 200
        assert one.ask("POST", "/v1/models", key="feedback")[0] == 403
        assert one.ask("GET", "/livez")[0] == 200
    finally:
        one.kill()


def test_what_was_answered_survives_a_kill(service: Service) -> None:
    promised: dict[str, Any] = {}
    for life in range(3):
        for i in range(20):
            name = f"{life}-{i}"
            status, decided = service.ask("POST", "/v1/decide", {"id": name, "context": X})
            assert status == 200
            promised[name] = decided["arm"]
            assert service.ask("POST", f"/v1/decisions/{name}/context", {"z": Z})[0] == 200
            if i % 2:
                assert service.ask("POST", f"/v1/decisions/{name}/reward", {"reward": i / 7})[0] == 200
        service.kill()
        service.start()
    for name, arm in promised.items():
        known = service.ask("GET", f"/v1/decisions/{name}")[1]
        assert known["arm"] == arm
        assert known["z"] == Z
        assert known["status"] == ("closed" if int(name.split("-")[1]) % 2 else "open")
    assert service.stop() == 0
    store = SqliteStore(service.log)
    found = rebuild(read_experiment(service.file), store)
    assert found.differs_at is None
    assert found.agreeing == 1
    store.close()
