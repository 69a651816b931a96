"""How often a request is tried, and what is made of its answers: flows, driven by hand."""

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from postserve import (
    InvalidInput,
    PostserveError,
    ServiceConflict,
    ServiceError,
    ServiceForbidden,
    ServiceInvalidInput,
    ServiceNotFound,
    ServiceUnavailable,
)
from postserve.client.trying import Answer, Call, Done, Flow, Patience, Wait, encoded, tried
from postserve.client.verbs import decide, outcomes

CALL = Call("GET", "/v1/arms")
FINE = Answer(200, b"{}")
GONE = Answer(0, b"ConnectError: refused")
PATIENCE = Patience(5, 30.0)


def refusal(status: int, **headers: str) -> Answer:
    body = json.dumps({"error": "word", "message": "the reward is 1.0, got 2.0"}).encode()
    return Answer(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def driven(
    flow: Flow[Any], answers: Iterable[Answer], took: float = 0.0
) -> tuple[list[Call], list[float], Any]:
    """The calls, the waits and the result of a flow that gets these answers, each after some seconds."""
    calls: list[Call] = []
    waits, left, done = list[float](), iter(answers), None
    try:
        while True:
            step = flow.send(done) if done is not None else next(flow)
            if isinstance(step, Wait):
                waits.append(step.seconds)
                done = Done(sum(waits) + len(calls) * took)
            else:
                calls.append(step)
                done = Done(sum(waits) + len(calls) * took, next(left), took)
    except StopIteration as end:
        return calls, waits, end.value
    except PostserveError as error:
        return calls, waits, error


@pytest.mark.parametrize("trouble", [GONE, refusal(429), refusal(503), Answer(503, b"<html>")])
def test_what_may_pass_is_tried_again(trouble: Answer) -> None:
    calls, waits, result = driven(tried(CALL, PATIENCE), [trouble] * 3 + [FINE])
    assert (calls, result) == ([CALL] * 4, FINE)
    assert all(0.0 <= wait <= 0.1 * 2**i for i, wait in enumerate(waits))


def test_patience_begins_with_the_first_try() -> None:
    calls, _, error = driven(tried(CALL, PATIENCE), [GONE] * 5, took=20.0)
    assert (len(calls), type(error)) == (2, ServiceUnavailable)
    calls, _, error = driven(tried(CALL, PATIENCE), [GONE] * 5, took=40.0)
    assert (len(calls), type(error)) == (1, ServiceUnavailable)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, ServiceForbidden),
        (403, ServiceForbidden),
        (404, ServiceNotFound),
        (409, ServiceConflict),
        (413, ServiceInvalidInput),
        (422, ServiceInvalidInput),
        (500, ServiceError),
    ],
)
def test_what_will_not_pass_is_raised_in_the_services_words(status: int, kind: type[ServiceError]) -> None:
    calls, waits, error = driven(tried(CALL, PATIENCE), [refusal(status)])
    assert (len(calls), waits, type(error), error.status) == (1, [], kind, status)
    assert str(error) == "the reward is 1.0, got 2.0"


def test_what_is_not_of_the_service_is_said_to_be_so() -> None:
    for content in (b"<html>Bad gateway</html>", b"[]", b'"no"', b'{"error": 3}', b""):
        _, _, error = driven(tried(CALL, PATIENCE), [Answer(502, content)])
        assert str(error) == "the service answered with status 502, wanted 200"


def test_tries_come_to_an_end() -> None:
    calls, waits, error = driven(tried(CALL, PATIENCE), [GONE] * 9)
    assert (len(calls), len(waits), type(error)) == (5, 4, ServiceUnavailable)
    assert "ConnectError: refused" in str(error)
    calls, _, error = driven(tried(CALL, Patience(1, 30.0)), [refusal(503)])
    assert (len(calls), str(error)) == (1, "the reward is 1.0, got 2.0")


def test_the_wait_is_as_long_as_the_service_asks_for_and_patience_is_kept() -> None:
    calls, waits, result = driven(tried(CALL, PATIENCE), [refusal(429, retry_after="7"), FINE])
    assert result == FINE
    assert 7.0 <= waits[0] <= 7.1
    calls, waits, error = driven(tried(CALL, PATIENCE), [refusal(503, retry_after="20")] * 9)
    assert (len(calls), len(waits), type(error)) == (2, 1, ServiceUnavailable)
    dates = {"date": "Tue, 01 Sep 2026 10:00:00 GMT", "retry_after": "Tue, 01 Sep 2026 10:00:05 GMT"}
    _, waits, _ = driven(tried(CALL, PATIENCE), [refusal(503, **dates), FINE])
    assert 5.0 <= waits[0] <= 5.1
    _, waits, _ = driven(tried(CALL, PATIENCE), [refusal(503, retry_after="soon"), FINE])
    assert waits[0] <= 0.1


def test_clients_that_were_refused_together_do_not_come_back_together() -> None:
    waits = {driven(tried(CALL, PATIENCE), [GONE, FINE])[1][0] for _ in range(20)}
    assert len(waits) == 20


def test_a_decision_has_its_id_before_the_first_try() -> None:
    body = {"id": "?", "arm": "a", "propensity": 1.0, "propensities": {"a": 1.0}, "more": "of a newer one"}
    rest = {"model_version": 0, "expires": 1.0, "repeated": False}
    fine = Answer(200, json.dumps({**body, **rest}).encode())
    calls, _, _ = driven(decide(PATIENCE, {"age": 3}, None, None, False), [GONE, GONE, fine])
    assert len(set(calls)) == 1
    one = json.loads(calls[0].body or b"")["id"]
    calls, _, _ = driven(decide(PATIENCE, {"age": 3}, None, None, False), [fine])
    assert json.loads(calls[0].body or b"")["id"] != one
    calls, _, found = driven(decide(PATIENCE, {"age": 3}, ["a"], "mine", True), [fine])
    assert json.loads(calls[0].body or b"") == {
        "context": {"age": 3},
        "id": "mine",
        "eligible": ["a"],
        "deferred": True,
    }
    assert found.arm == "a"


def test_one_event_that_spoils_a_batch_is_found() -> None:
    sent = []

    def answer(call: Call) -> Answer:
        events = json.loads(call.body or b"")["events"]
        sent.append(len(events))
        if any(event.get("reward") == "much" for event in events):
            return refusal(422)
        results = [{"id": event["id"], "status": "open", "repeated": False} for event in events]
        return Answer(200, json.dumps({"results": results}).encode())

    events = [{"id": str(i), "reward": 1.0} for i in range(2500)]
    events[1200] = {"id": "bad", "reward": "much"}
    events[1300] = {"id": "worse", "reward": float("nan")}
    flow = outcomes(PATIENCE, events)
    step, results = next(flow), []
    try:
        while True:
            assert isinstance(step, Call)
            step = flow.send(Done(0.0, answer(step)))
    except StopIteration as end:
        results = end.value
    assert [each.id for each in results] == [event["id"] for event in events]
    assert [(each.id, each.error) for each in results if each.error] == [
        ("bad", "invalid"),
        ("worse", "unsent"),
    ]
    assert max(sent) <= 1000
    assert len(sent) < 60


@pytest.mark.parametrize("event", [{"reward": 1.0}, {"id": "d", "colour": "red"}, "d"])
def test_an_outcome_has_an_id_and_no_other_fields(event: Any) -> None:
    _, _, error = driven(outcomes(PATIENCE, [event]), [])
    assert isinstance(error, InvalidInput)
    assert "wanted a mapping with id and some of z, reward, key, activate" in str(error)


def test_numbers_of_numpy_are_numbers_and_what_is_none_is_refused() -> None:
    body = {"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True), "d": np.array(2.0)}
    assert json.loads(encoded(body)) == {"a": 0.5, "b": 3, "c": True, "d": 2.0}
    for wrong in (float("inf"), np.float32("nan"), np.zeros(2), object(), {1, 2}):
        with pytest.raises(InvalidInput, match="the request is not JSON"):
            encoded({"a": wrong})
