"""The OpenAPI document says what the service does."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.service.playing import FILE, X, Z, experiment
from tests.service.wires import Wire, serving

from postserve.service.edge.access import hash_of
from postserve.service.edge.app import VERBS
from postserve.service.edge.openapi import document
from postserve.service.log.stores.memory import MemoryStore


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with serving(experiment(), MemoryStore()) as (port, _):
        one = Wire(port)
        yield one
        one.close()


def test_the_document_has_every_verb_and_no_other(wire: Wire) -> None:
    found = wire.ask("GET", "/openapi.json").json
    assert found["openapi"].startswith("3.1")
    described = {(method.upper(), path) for path, one in found["paths"].items() for method in one}
    assert described == {(verb.method, verb.path) for verb in VERBS}
    assert len(described) == len(VERBS)
    references = set(_references(found))
    assert references == {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}


def _references(found: Any) -> Iterator[str]:
    if isinstance(found, dict):
        for key, value in found.items():
            if key == "$ref":
                yield value
            yield from _references(value)
    elif isinstance(found, list):
        for each in found:
            yield from _references(each)


def test_bounds_are_those_that_are_enforced(wire: Wire) -> None:
    found = wire.ask("GET", "/openapi.json").json["components"]["schemas"]
    age = found["DecideIn"]["properties"]["context"]["properties"]["age"]
    for value, status in ((age["maximum"], 200), (age["maximum"] * 1.01, 422)):
        assert wire.ask("POST", "/v1/decide", {"context": {**X, "age": value}}).status == status
    longest = found["ArmIn"]["properties"]["arm"]["maxLength"]
    for length, status in ((longest, 200), (longest + 1, 422)):
        name = "n" * length
        assert wire.ask("POST", "/v1/decide", {"id": name, "context": X}).status == status
        assert wire.ask("POST", f"/v1/decisions/{name}/reward", {"reward": 1.0}).status == status
    device = found["DecideIn"]["properties"]["context"]["properties"]["device"]
    for length, status in ((device["maxLength"], 200), (device["maxLength"] + 1, 422)):
        assert wire.ask("POST", "/v1/decide", {"context": {**X, "device": "d" * length}}).status == status


def test_keys_are_described_where_there_are_some() -> None:
    key = f'[[keys]]\nname = "a"\nhash = "{hash_of("secret")}"\nroles = ["decide"]\n'
    found = document(experiment(key), VERBS)
    assert found["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert found["paths"]["/v1/decide"]["post"]["security"] == [{"key": ["decide"]}]
    assert "security" not in found["paths"]["/livez"]["get"]
    assert "429" in found["paths"]["/v1/decide"]["post"]["responses"]


def test_what_has_no_path_or_no_such_method_is_refused_in_words(wire: Wire) -> None:
    got = wire.ask("GET", "/v1/nothing")
    assert (got.status, got.json["error"]) == (404, "not_found")
    got = wire.ask("PUT", "/v1/arms")
    assert (got.status, got.json["error"], got.headers["allow"]) == (405, "wrong_method", "GET, POST")
    assert wire.ask("GET", "/v1/arms/").status == 405  # an arm without a name


def test_an_id_may_look_like_a_path(wire: Wire) -> None:
    for name in ("a/b", "a/context", "a?b=c", "a%2Fb", "é ☃", "/"):
        there = "".join(f"%{byte:02X}" for byte in name.encode())
        assert wire.ask("POST", "/v1/decide", {"id": name, "context": X}).json["id"] == name
        assert wire.ask("POST", f"/v1/decisions/{there}/context", {"z": Z}).json["id"] == name
        assert wire.ask("POST", f"/v1/decisions/{there}/reward", {"reward": 1}).json["status"] == "closed"
        known = wire.ask("GET", f"/v1/decisions/{there}").json
        assert (known["id"], known["z"], known["reward"]) == (name, Z, 1.0)


class Broken(MemoryStore):
    """A store with a mistake in it."""

    def snapshot(self, seq: int) -> Any:
        raise RuntimeError("a detail that is nobody's business")


def test_a_failure_of_the_service_is_said_without_its_details() -> None:
    with serving(experiment(), Broken()) as (port, _):
        wire = Wire(port)
        got = wire.ask("GET", "/v1/models/1")
        assert (got.status, got.json["error"]) == (500, "failed")
        assert b"detail" not in got.body
        assert wire.ask("GET", "/livez").status == 200
        wire.close()


def test_a_large_batch_is_no_overload() -> None:
    one = experiment("[server]\nmost_waiting = 8\n", FILE)
    with serving(one, MemoryStore()) as (port, _):
        wire = Wire(port)
        batch = [{"id": f"d{i}", "z": Z, "reward": 1.0} for i in range(300)]
        results = wire.ask("POST", "/v1/events:batch", {"events": batch}).json["results"]
        wire.close()
    assert [each["id"] for each in results] == [f"d{i}" for i in range(300)]
    assert {each.get("status") for each in results} == {"parked"}
