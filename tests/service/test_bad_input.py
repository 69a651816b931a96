"""Whatever is sent: a refusal in words, never a failure, and not a bit of the model changes."""

import logging
import random
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance
from tests.service.playing import FILE, experiment
from tests.service.size import LONG
from tests.service.wires import Got, Wire, serving

from postserve.service.edge.app import VERBS
from postserve.service.edge.routing import Verb
from postserve.service.edge.wire import DecideIn
from postserve.service.engine import Engine
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.rebuild import rebuild

MOST_BYTES = 100_000
REQUESTS = 14_000 if LONG else 2_500
"""Of each of our own two fuzzers."""
EXAMPLES = 200 if LONG else 15
"""Of schemathesis, for each verb, valid and not."""


class Played:
    """A service, a connection to it, and what its server has logged."""

    def __init__(self, port: int, engine: Engine) -> None:
        self.wire, self.engine, self.port = Wire(port), engine, port
        self.logged: list[str] = []
        self.handler = logging.Handler(logging.ERROR)
        self.handler.emit = lambda record: self.logged.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("uvicorn.error").addHandler(self.handler)

    def digest(self) -> tuple[int, str]:
        """How long the log is, and what was learnt from it."""
        last = self.engine.store.last()
        assert self.engine.learner.wait_for(last, 300)
        return last, self.engine.model.digest


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    """A service that has learnt a little."""
    one = experiment(f"[server]\nmost_bytes = {MOST_BYTES}\n", FILE)
    with serving(one, MemoryStore()) as (port, engine):
        found = Played(port, engine)
        for i in range(20):
            for path, body in (("/v1/decide", DECIDE), *((path, VALID[path]) for path in FEEDBACK)):
                content = body.replace("d0", f"d{i}").encode()
                assert found.wire.ask("POST", path.replace("d0", f"d{i}"), content).status == 200
        yield found
        found.wire.close()
        logging.getLogger("uvicorn.error").removeHandler(found.handler)
        assert not found.logged
        assert engine.model.skipped == 0
        assert rebuild(one, engine.store).model.digest == found.digest()[1]


DECIDE = '{"id": "d0", "context": {"age": 31, "device": "phone"}, "eligible": ["short"], "deferred": false}'
FEEDBACK = ("/v1/decisions/d0/context", "/v1/decisions/d0/reward")
VALID = {
    "/v1/decide": DECIDE,
    FEEDBACK[0]: '{"z": {"minutes": 3, "finished": "yes"}}',
    FEEDBACK[1]: '{"reward": 1, "key": ""}',
    "/v1/events:batch": '{"events": [{"id": "d0", "reward": 1, "z": {"minutes": 3}}]}',
    "/v1/arms": '{"arm": "short"}',
    "/v1/models/promote": '{"snapshot": 1}',
}
NO_NUMBERS = [
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e400", "true", "false", '"3"', "[]", "{}", "[1]"),
    *("1" * 5000, "-" + "9" * 400, "1e300", "0x10", "01", "+1", "1.", ".5", "1_000", "--1", '"NaN"'),
]
NO_BODIES = [
    *(
        b"",
        b"null",
        b"[]",
        b"3",
        b'"x"',
        b"{}",
        b"{",
        b"\x00",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b"context=1",
    ),
    *(b"[" * 50_000, b'{"z":' * 20_000, b'{"context": "\xff"}', b'{"id": "\\ud800", "context": {}}', b"NaN"),
]
NO_IDS = [
    *(
        "%00",
        "a%00b",
        "%0A",
        "a%0D%0Ab",
        "%1F",
        "%7F",
        "%FF",
        "%C3%28",
        "%ED%A0%80",
        "x" * 201,
        "%E2%98%83" * 201,
    ),
    *("%F4%90%80%80", "\\ud800%0A", "%EF%BF%BD"),
]
METHODS = ["GET", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "POST"]


def post(path: str, body: bytes) -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def wrong_number(rng: random.Random) -> bytes:
    """A number that is none, or too large."""
    path = rng.choice(["/v1/decide", *FEEDBACK, "/v1/models/promote"])
    digits = {"/v1/decide": "31", FEEDBACK[0]: "3", FEEDBACK[1]: "1", "/v1/models/promote": "1"}[path]
    return post(path, VALID[path].replace(f": {digits}", f": {rng.choice(NO_NUMBERS)}", 1).encode())


def wrong_field(rng: random.Random) -> bytes:
    """A field too many, in any place, or too few."""
    path = rng.choice(list(VALID))
    text = VALID[path]
    places = [i for i, char in enumerate(text) if char == "{"]
    at = rng.choice(places) + 1
    name = rng.choice(["colour", "", "ID", "Reward", "__proto__", "\\u0000", "é"])
    return post(path, f'{text[:at]}"{name}": {rng.choice(["1", "null", "{}"])}, {text[at:]}'.encode())


def wrong_body(rng: random.Random) -> bytes:
    """No JSON, or JSON of another kind, or the first half of it."""
    path = rng.choice(list(VALID))
    cut = VALID[path][: rng.randrange(len(VALID[path]) - 1)].encode()
    return post(path, rng.choice([*NO_BODIES, cut, cut, cut]))


def wrong_names(rng: random.Random) -> bytes:
    """Arms, snapshots and categories that do not exist."""
    other = rng.choice(["", "shorter", "\\u0000", "\\n", "x" * 300, "\\ud83d\\ude00"])
    path, old, new = rng.choice(
        [
            ("/v1/decide", '"short"', f'"{other}"'),
            ("/v1/decide", '["short"]', "[]"),
            ("/v1/decide", '["short"]', '"short"'),
            ("/v1/decide", '"phone"', rng.choice(['""', f'"{"y" * 201}"', "3", "null"])),
            (
                "/v1/decide",
                '"d0"',
                rng.choice(['""', '"\\u0000"', '"a\\n"', "3", f'"{"i" * 201}"', '"\\ud800"']),
            ),
            ("/v1/arms", '"short"', rng.choice(['""', '"\\u0007"', "null", f'"{"a" * 201}"'])),
            ("/v1/models/promote", "1", rng.choice(["0", "-1", "999", str(10**30), "1.5"])),
            (FEEDBACK[0], '"yes"', rng.choice(["1", "null", '""', "[]"])),
            (FEEDBACK[1], '"key": ""', rng.choice(['"key": null', '"key": 3', f'"key": "{"k" * 201}"'])),
        ]
    )
    return post(path, VALID[path].replace(old, new).encode())


def wrong_path(rng: random.Random) -> bytes:
    """Ids that cannot be, methods that a path has not, and paths that nobody has."""
    name, path = rng.choice(NO_IDS), rng.choice(FEEDBACK)
    request = post(path.replace("d0", name), VALID[path].encode())
    if rng.random() < 0.4:
        known = {verb.method for verb in VERBS if verb.path == "/v1/decide"}
        method = rng.choice([each for each in METHODS if each not in known and each != "HEAD"])
        request = request.replace(b"POST", method.encode(), 1).replace(
            path.replace("d0", name).encode(), b"/v1/decide"
        )
    elif rng.random() < 0.5:
        there = rng.choice(
            ["/", "//", "/v1", "/v1/decisions", "/v2/decide", "/v1/decide/", "/%00", "/v1/DECIDE"]
        )
        request = post(there, b"{}")
    return request


def too_large(rng: random.Random) -> bytes:
    """Bodies and heads without measure."""
    if rng.random() < 0.3:
        return b"GET /livez HTTP/1.1\r\nX: " + b"y" * rng.choice([500_000, 2_000_000]) + b"\r\n\r\n"
    size = 10_000_000 if rng.random() < 0.1 else MOST_BYTES + 1
    return post("/v1/decide", b'{"context": ' + b" " * size + b"}")


def no_http(rng: random.Random) -> bytes:
    """Bytes that are no request."""
    return rng.choice(
        [
            rng.randbytes(rng.randrange(1, 200)) + b"\r\n\r\n",
            b"BREW /v1/decide HTTP/1.1\r\n\r\n",
            b"GET /\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n",
            b"POST /v1/decide HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
            b"POST /v1/decide HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
            b"POST /v1/decide HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ]
    )


ALWAYS_WRONG: list[Callable[[random.Random], bytes]] = [
    *[wrong_number, wrong_field, wrong_body, wrong_names, wrong_path] * 8,
    *[too_large, no_http],
]


def in_words(request: bytes, got: Got) -> None:
    """An answer that a caller can read, and no failure of the service."""
    assert got.status < 500, (got.status, request[:500])
    assert got.headers["content-type"] == "application/json", request[:500]
    if got.status >= 400:
        assert len(got.json["message"]) > 10, request[:500]
        assert got.json["error"], request[:500]


def test_what_is_wrong_is_refused_and_changes_nothing(played: Played) -> None:
    before, rng = played.digest(), random.Random(1)
    for _ in range(REQUESTS):
        request = rng.choice(ALWAYS_WRONG)(rng)
        got = played.wire.send(request)
        in_words(request, got)
        assert got.status >= 400 or b'"error":' in got.body, (request[:500], got)
        if got.status == 400:
            played.wire.close()
        assert played.engine.store.last() == before[0], request[:500]
    assert played.digest() == before


def any_bytes(rng: random.Random) -> bytes:
    """A request in which some bytes are others; many can still be read."""
    path = rng.choice(list(VALID))
    body = bytearray(VALID[path].encode())
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(body))
        match rng.randrange(4):
            case 0:
                body[at] = rng.randrange(256)
            case 1:
                body[at:at] = rng.choice([b"0", b"e9", b'"', b"{", b"}", b",", b"\\u0041", b"\xe2\x98\x83"])
            case 2:
                del body[at : at + rng.randrange(1, 5)]
            case 3:
                body[at:at] = body[rng.randrange(at + 1) : at + 1]
    twice = rng.random() < 0.1 and path != "/v1/arms"
    return post(path, bytes(body[:-1]) + b", " + bytes(body[1:]) if twice else bytes(body))


def test_what_may_be_right_is_answered_and_learnt(played: Played) -> None:
    rng, accepted = random.Random(2), 0
    for _ in range(REQUESTS):
        request, last = any_bytes(rng), played.engine.store.last()
        got = played.wire.send(request)
        in_words(request, got)
        if got.status >= 400:
            assert played.engine.store.last() == last, request
        accepted += got.status == 200
    assert 0 < accepted < REQUESTS
    played.digest()


@pytest.fixture(scope="module")
def api(played: Played) -> Any:
    too_large = {"negative_data_rejection": {"expected-statuses": ["4xx"]}}
    config = schemathesis.Config.from_dict({"checks": too_large})
    return schemathesis.openapi.from_url(f"http://127.0.0.1:{played.port}/openapi.json", config=config)


EXCLUDED: dict[str, list[Any]] = {
    "DELETE /v1/arms/{arm}": [positive_data_acceptance],  # only if there is such an arm
    "POST /v1/models/promote": [positive_data_acceptance],
    "GET /v1/log": [positive_data_acceptance],  # a text must be a time
    "POST /v1/events:batch": [negative_data_rejection],  # each is refused for itself
}


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_the_document_holds(verb: Verb, mode: GenerationMode, api: Any) -> None:
    if mode is GenerationMode.NEGATIVE and verb.body is None and not verb.parameters:
        return  # nothing can be wrong with it
    cases = api[verb.path][verb.method].as_strategy(generation_mode=mode)

    excluded = EXCLUDED.get(verb.name, [])

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def holds(case: Any) -> None:
        if mode is GenerationMode.POSITIVE and verb.body is DecideIn:
            case.body.pop("eligible", None)  # which must exist
        case.call_and_validate(excluded_checks=excluded)

    holds()


def test_a_body_that_ends_early_is_nobodys_failure(played: Played) -> None:
    before = played.digest()
    for body in (
        b"Content-Length: 100\r\n\r\n{",
        b"Transfer-Encoding: chunked\r\n\r\n5\r\n{\r\n",
        b"Content-Le",
    ):
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", played.port), 300) as one:
                one.sendall(b"POST /v1/decide HTTP/1.1\r\nHost: x\r\n" + body)
                one.shutdown(socket.SHUT_WR)
                while one.recv(1 << 16):
                    pass
    assert played.wire.ask("GET", "/livez").status == 200
    assert played.digest() == before
    assert not played.logged
