"""What can be asked of the service, as flows that every client runs."""

import json
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import quote

from postserve.client.trying import Answer, Call, Flow, Patience, Wait, encoded, tried
from postserve.errors import (
    InvalidInput,
    OutcomesLost,
    ServiceError,
    ServiceInvalidInput,
    ServiceUnavailable,
)
from postserve.validation import errors_as_invalid_input

T = TypeVar("T")
MOST = 1_000
"""Outcomes in one request."""
LOOK = 0.2
"""Seconds between two looks at whether the service is ready."""
FIELDS = ("id", "z", "reward", "key", "activate")


class ServedDecision(NamedTuple):
    """What the service chose."""

    id: str
    arm: str
    propensity: float
    propensities: Mapping[str, float]
    """Of all eligible arms."""
    model_version: int
    expires: float
    """Seconds since 1970, until when its reward is waited for."""
    repeated: bool
    """Whether it was made before, for the same id."""


class OutcomeResult(NamedTuple):
    """What became of feedback: where its round is now, or why it is not in the log."""

    id: str
    status: str = ""
    repeated: bool = False
    error: str = ""
    message: str = ""


def decide(
    patience: Patience,
    context: Mapping[str, Any],
    eligible: Sequence[str] | None,
    name: str | None,
    deferred: bool,
) -> Flow[ServedDecision]:
    """Choose an arm. The id is there before the first try, so that a second one cannot draw again."""
    body = {
        "context": _copied(dict, "context", context, "a mapping"),
        "id": uuid.uuid4().hex if name is None else name,
        "eligible": None if eligible is None else _copied(list, "eligible", eligible, "names of arms"),
        "deferred": deferred or None,
    }
    answer = yield from _post(patience, "/v1/decide", body)
    return ServedDecision(**_known(ServedDecision, _json(answer, *ServedDecision._fields)))


def follow(patience: Patience, name: str, z: Mapping[str, Any]) -> Flow[OutcomeResult]:
    """Some fields of z came, or all."""
    return outcome(patience, name, "context", {"z": _copied(dict, "z", z, "a mapping")})


def outcome(patience: Patience, name: str, verb: str, body: Mapping[str, Any]) -> Flow[OutcomeResult]:
    """Feedback of one decision."""
    answer = yield from _post(patience, f"/v1/decisions/{_part(name)}/{verb}", body)
    return OutcomeResult(**_known(OutcomeResult, _json(answer, "id")))


def outcomes(patience: Patience, events: Iterable[Mapping[str, Any]]) -> Flow[list[OutcomeResult]]:
    """Feedback of many decisions, some thousand in a request; each is accepted or refused for itself."""
    listed = [_checked(event) for event in _copied(list, "events", events, "mappings, one per decision")]
    results: list[OutcomeResult] = []
    for start in range(0, len(listed), MOST):
        results += yield from _some(patience, listed[start : start + MOST])
    return results


def _some(patience: Patience, events: list[Mapping[str, Any]]) -> Flow[list[OutcomeResult]]:
    """One request, or two of half the size if it is too large or one event spoils it."""
    try:
        body = encoded({"events": events})
        answer = yield from tried(Call("POST", "/v1/events:batch", body), patience)
    except InvalidInput as error:
        if len(events) > 1:
            half = len(events) // 2
            first = yield from _some(patience, events[:half])
            return first + (yield from _some(patience, events[half:]))
        word = "invalid" if isinstance(error, ServiceInvalidInput) else "unsent"
        return [OutcomeResult(str(events[0]["id"]), error=word, message=str(error))]
    found = _json(answer, "results")["results"]
    if [each.get("id") for each in found] != [event["id"] for event in events]:
        raise ServiceError(f"the answer has {len(found)} results, wanted one per outcome: {len(events)}")
    return [OutcomeResult(**_known(OutcomeResult, each)) for each in found]


def _checked(event: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(event, Mapping) or "id" not in event or (event.keys() - {*FIELDS}):
        wanted = f"a mapping with id and some of {', '.join(FIELDS[1:])}"
        raise InvalidInput(f"an outcome is {event!r:.60}, wanted {wanted}")
    return {name: value for name, value in event.items() if value is not None}


def get(patience: Patience, path: str) -> Flow[Any]:
    """What the service says at an address."""
    return _json((yield from tried(Call("GET", path), patience)))


def post(patience: Patience, path: str, body: Mapping[str, Any] | None = None) -> Flow[Any]:
    """What it says once it was told something."""
    return _json((yield from _post(patience, path, body or {})))


def decision(patience: Patience, name: str) -> Flow[dict[str, Any]]:
    """All that is known of a decision."""
    return get(patience, f"/v1/decisions/{_part(name)}")


def arms(patience: Patience, call: Call | None = None) -> Flow[dict[str, bool]]:
    """The arms, and whether each can be served; after `call`."""
    answer = yield from tried(call or Call("GET", "/v1/arms"), patience)
    found = _json(answer, "arms")["arms"]
    return {each["arm"]: each["eligible"] for each in found}


def adding(arm: str) -> Call:
    """An arm can be served from now on."""
    return Call("POST", "/v1/arms", encoded({"arm": arm}))


def retiring(arm: str) -> Call:
    """An arm is served no more."""
    return Call("DELETE", f"/v1/arms/{_part(arm)}")


def file(patience: Patience, path: str, into: BinaryIO) -> Flow[None]:
    """What the service has at an address, written to a file."""
    yield from tried(Call("GET", path, into=into), patience)


def log_path(form: str, after: object, before: object) -> str:
    """The address of the log."""
    asked = {"format": form, "after": after, "before": before}
    query = "&".join(f"{name}={_quoted(value)}" for name, value in asked.items() if value is not None)
    return f"/v1/log?{query}"


def answers(path: str, wait: float) -> Flow[bool]:
    """Whether the service answers that it is alive, or ready, at the latest after some seconds of waiting."""
    end: float | None = None
    while True:
        try:
            yield from tried(Call("GET", path), Patience(1, 0.0))
            return True
        except ServiceUnavailable:
            now, *_ = yield Wait(LOOK if end is not None else 0.0)
            end = now + wait if end is None else end
            if now >= end:
                return False


def lost(failed: Sequence[OutcomeResult]) -> OutcomesLost:
    """The error that names outcomes which are not in the log."""
    first = failed[0]
    rest = f", and {len(failed) - 1} more" if len(failed) > 1 else ""
    return OutcomesLost(f"the outcome of {first.id!r:.60} is not in the log: {first.message}{rest}", failed)


def _post(patience: Patience, path: str, body: Mapping[str, Any]) -> Flow[Answer]:
    return tried(Call("POST", path, encoded(body)), patience)


def _part(name: str) -> str:
    """A name as a part of an address, whatever is in it; one that is dots is no folder."""
    return _quoted(name).replace(".", "%2E")


def _quoted(value: object) -> str:
    with errors_as_invalid_input(f"{value!r:.60} cannot be sent", "a text without lone surrogates"):
        return quote(str(value), safe="")


def _copied(kind: Callable[[Any], T], what: str, value: Any, wanted: str) -> T:
    with errors_as_invalid_input(f"{what} is {value!r:.60}", wanted):
        return kind(value)


def _known(kind: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    """What this version knows of an answer; a newer service may say more."""
    return {name: value for name, value in found.items() if name in kind._fields}


def _json(answer: Answer, *names: str) -> Any:
    """An object with these names: something else may answer in the service's place."""
    try:
        found = json.loads(answer.content)
        if isinstance(found, dict) and found.keys() >= {*names}:
            return found
    except ValueError:
        pass
    got = f"the answer is {answer.content!r:.60}"
    raise ServiceError(f"{got}, wanted JSON with {', '.join(names) or 'names'}", answer.status)
