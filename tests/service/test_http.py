"""The HTTP edge, on a real server: `postserve serve` in a process of its own."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.playing import X, Z
from tests.service.processes import Service

from postserve.service.edge.access import hash_of


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
    assert service.ask("GET", "/v1/models")[1]["promoted"] is None
    promoted = service.ask("POST", "/v1/models/promote", {"snapshot": saved[0]["snapshot"]})[1]["promoted"]
    assert promoted == saved[0]["snapshot"]
    assert service.ask("POST", "/v1/models")[1]["promoted"] == promoted  # as a restart would have it
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


def test_messages_say_what_is_wanted(service: Service) -> None:
    for method, path, message in (
        ("POST", "/v1/decide", "the body is empty, wanted an object with context, id"),
        ("GET", "/v1/log?format=csv", "'csv' - at `$.format`; wanted format (parquet or dsjson or events)"),
        ("GET", "/v1/decisions/d1/activate", "no decision 'd1/activate', wanted the id of one, or POST"),
    ):
        assert message in service.ask(method, path)[1]["message"]
    assert service.stop() == 0
    assert f"ready at http://127.0.0.1:{service.port}\n" in service.output.read_text()


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


def test_a_restart_goes_on_where_it_was(service: Service) -> None:
    decided = service.ask("POST", "/v1/decide", {"id": "d", "context": X})[1]
    service.kill()
    service.start()
    known = service.ask("GET", "/v1/decisions/d")[1]
    assert (known["arm"], known["status"]) == (decided["arm"], "open")
    assert service.ask("POST", "/v1/decide", {"id": "d", "context": X})[1]["repeated"]
    assert service.stop() == 0
