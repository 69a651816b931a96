"""The HTTP edge: one function per verb, and the table of them."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, compile_path

from postserve.errors import InvalidInput, PostserveError
from postserve.service.edge.access import Gate
from postserve.service.edge.metrics import Metrics
from postserve.service.edge.openapi import document
from postserve.service.edge.routing import (
    COMMITS,
    JSON,
    PARAMETERS,
    Failed,
    NotFound,
    TooLarge,
    Verb,
    status_of_error,
)
from postserve.service.edge.wire import (
    ArmIn,
    ArmOut,
    ArmsOut,
    BatchedOut,
    BatchIn,
    BatchOut,
    ContextIn,
    DecideIn,
    DecideOut,
    ErasedOut,
    ErrorOut,
    LiveOut,
    LogQuery,
    ModelsOut,
    OutcomeIn,
    OutcomeOut,
    PromoteIn,
    ReadyOut,
    RewardIn,
    RoundOut,
    SnapshotOut,
    round_out,
    status_of,
)
from postserve.service.engine import Engine
from postserve.service.exporting import FORMATS, exported, span
from postserve.service.log.replies import Answer
from postserve.service.log.requests import Conflict
from postserve.service.log.retention import drop_erased
from postserve.service.log.rounds import round_of
from postserve.service.log.stores import StoreError
from postserve.service.log.writer import Unavailable
from postserve.service.tally import NO_VERB

log = logging.getLogger("postserve.service")
SLICE = 10
"""Events of a batch that wait for their commit at the same time, at most."""
encode = msgspec.json.Encoder().encode
T = TypeVar("T")
STATUS = "postserve.status"
"""Where a request keeps the status of its answer, if that is not 200."""
LEARNT_SOON = 5.0
"""Seconds in which what was accepted is learnt, where all is well."""


def make_app(engine: Engine) -> Starlette:
    """All routes of the service."""
    watched, gate = Metrics(engine), Gate(engine.experiment.keys, engine.experiment.server.most_per_second)
    app = Starlette(
        routes=[Route(verb.route, _endpoint(engine, gate, verb), methods=[verb.method]) for verb in VERBS],
        exception_handlers={HTTPException: _no_route, Exception: _failure},
    )
    app.state.engine, app.state.metrics = engine, watched
    app.router.redirect_slashes = False
    return app


def _endpoint(engine: Engine, gate: Gate, verb: Verb) -> Callable[[HttpRequest], Any]:
    """How a verb is answered: who asks and what, and then the function of the verb."""
    role, handler, body, query = verb.role, verb.handler, verb.body, verb.query
    decode = msgspec.json.Decoder(Any if body is None else body).decode
    wanted = f"wanted an object with {_fields(body)}"
    statuses, seconds = engine.tally.statuses[verb.name], engine.tally.seconds[verb.name]

    async def counted(request: HttpRequest) -> Response:
        start = time.perf_counter()
        response = await answer(request)
        seconds.add(time.perf_counter() - start)
        statuses[response.status_code] += 1
        return response

    async def answer(request: HttpRequest) -> Response:
        try:
            if role is not None:
                gate.admit(request.headers.get("authorization"), role)
                _refuse_unless_ready(engine)
            if body is not None:
                content = await _content(engine, request)
                found = await handler(engine, request, _decoded(decode, content, wanted))
            elif query is not None:
                found = await handler(engine, request, _converted(dict(request.query_params), query))
            else:
                found = await handler(engine, request)
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads
        except Exception as error:
            return _refusal(error)
        return found if isinstance(found, Response) else _json(found, request.scope.get(STATUS, 200))

    return counted


async def decide(engine: Engine, request: HttpRequest, asked: DecideIn) -> DecideOut:
    """Choose an arm."""
    answer = await _done(engine.decide(asked.context, asked.eligible, asked.id, deferred=asked.deferred))
    decided = answer.round.decided
    assert decided is not None
    return DecideOut(
        id=decided.id,
        arm=decided.arm,
        propensity=decided.propensity,
        propensities=dict(zip(decided.eligible, decided.propensities, strict=True)),
        model_version=decided.version,
        expires=decided.due,
        repeated=not answer.changed,
    )


async def context(engine: Engine, request: HttpRequest, asked: ContextIn) -> OutcomeOut:
    """z came, all of it or some."""
    name = _parameter(request, "id")
    return _outcome(engine, name, await _done(engine.follow(name, asked.z)))


async def reward(engine: Engine, request: HttpRequest, asked: RewardIn) -> OutcomeOut:
    """A reward came."""
    name = _parameter(request, "id")
    return _outcome(engine, name, await _done(engine.reward(name, asked.reward, asked.key)))


async def activate(engine: Engine, request: HttpRequest) -> OutcomeOut:
    """What was decided is shown."""
    name = _parameter(request, "id")
    return _outcome(engine, name, await _done(engine.activate(name)))


async def decision(engine: Engine, request: HttpRequest) -> RoundOut:
    """All that is known of a decision."""
    name = _parameter(request, "id")
    known = round_of((await asyncio.to_thread(engine.store.events_of, [name]))[name])
    if not known.first or known.erased:
        raise NotFound(f"there is no decision {name!r:.60}, wanted the id of one")
    return round_out(name, known, tuple(engine.experiment.z))


async def erase(engine: Engine, request: HttpRequest) -> ErasedOut:
    """Forget a decision: its events go, once a snapshot has learnt that nothing more comes of it."""
    name = _parameter(request, "id")
    await _done(engine.erase(name))
    if not (await asyncio.to_thread(engine.store.events_of, [name]))[name]:
        raise NotFound(f"there is no decision {name!r:.60}, wanted the id of one")
    await _until_learnt(engine, engine.snapshot())
    gone = await asyncio.to_thread(drop_erased, engine.store, name)
    if not gone:
        request.scope[STATUS] = 202
    return ErasedOut(id=name, status="erased")


async def events(engine: Engine, request: HttpRequest, asked: BatchIn) -> BatchOut:
    """Outcomes of many decisions, each accepted or refused for itself."""
    results: list[BatchedOut] = []
    at_once = max(1, min(SLICE, engine.experiment.server.most_waiting // 4))
    for start in range(0, len(asked.events), at_once):  # a batch alone is no overload
        some = asked.events[start : start + at_once]
        submitted = [_submitted(engine, each) for each in some]
        await asyncio.gather(*map(_done, submitted), return_exceptions=True)
        for each, future in zip(some, submitted, strict=True):
            try:
                kept = _outcome(engine, each.id, await _done(future))
                results.append(BatchedOut(id=each.id, status=kept.status, repeated=kept.repeated))
            except COMMITS:
                raise  # nothing is wrong with the batch, and all of it may be repeated
            except PostserveError as error:
                _, word = status_of_error(error)
                results.append(BatchedOut(id=each.id, error=word, message=str(error)))
    return BatchOut(results=results)


def _submitted(engine: Engine, one: OutcomeIn) -> "Future[Answer]":
    """What one event of a batch asks, or why it is refused at once."""
    try:
        found: Future[Answer] = engine.outcome(one.id, one.z, one.reward, one.key, activate=one.activate)
    except PostserveError as error:
        found = Future()
        found.set_exception(error)
    return found


async def arms(engine: Engine, request: HttpRequest) -> ArmsOut:
    """The arms, and which of them can be served."""
    model = engine.model
    return ArmsOut(arms=[ArmOut(arm=arm, eligible=arm not in model.retired) for arm in model.arms])


async def add_arm(engine: Engine, request: HttpRequest, asked: ArmIn) -> ArmsOut:
    """An arm can be served from now on."""
    return await _learnt(engine, engine.add_arm(asked.arm), arms, request)


async def retire_arm(engine: Engine, request: HttpRequest) -> ArmsOut:
    """An arm is served no more."""
    arm = _parameter(request, "arm")
    if arm in engine.model.retired:  # it is a repetition
        return await arms(engine, request)
    return await _learnt(engine, engine.retire_arm(arm), arms, request)


async def export_log(engine: Engine, request: HttpRequest, query: LogQuery) -> Response:
    """The rounds so far, or all events, as a file."""
    part = span(query.after, query.before)
    pieces = await asyncio.to_thread(exported, engine.experiment, engine.store, query.format, part)
    return StreamingResponse(pieces, media_type=FORMATS[query.format])


async def models(engine: Engine, request: HttpRequest) -> ModelsOut:
    """The model that decides, and all snapshots."""
    model = engine.model
    saved = await asyncio.to_thread(engine.store.snapshots)
    return ModelsOut(
        version=model.seq,
        leads=engine.learner.leads,
        behind=await asyncio.to_thread(engine.store.last) - model.seq,
        skipped=model.skipped,
        snapshots=[SnapshotOut(snapshot=seq, digest=digest) for seq, digest in saved],
    )


async def snapshot(engine: Engine, request: HttpRequest) -> ModelsOut:
    """Save the model now."""
    return await _learnt(engine, engine.snapshot(), models, request)


async def promote(engine: Engine, request: HttpRequest, asked: PromoteIn) -> ModelsOut:
    """Let a snapshot decide from now on."""
    return await _learnt(engine, await asyncio.to_thread(engine.promote, asked.snapshot), models, request)


async def export(engine: Engine, request: HttpRequest) -> Response:
    """A snapshot's policy, as a file that `postserve.load` reads."""
    seq = _parameter(request, "snapshot")
    saved = await asyncio.to_thread(engine.store.snapshot, seq)
    if saved is None:
        raise NotFound(f"there is no snapshot {seq}, wanted one that /v1/models names")
    return Response(saved.state, media_type=BINARY)


async def export_newest(engine: Engine, request: HttpRequest) -> Response:
    """The newest snapshot's policy, as a file that `postserve.load` reads."""
    known = await asyncio.to_thread(engine.store.snapshots)
    saved = await asyncio.to_thread(engine.store.snapshot, known[-1][0]) if known else None
    if saved is None:
        raise NotFound("there is no snapshot yet, wanted one made by POST /v1/models")
    return Response(saved.state, media_type=BINARY)


async def shadow(engine: Engine, request: HttpRequest) -> Mapping[str, Any]:
    """What the policy that only looks on would have earned."""
    if engine.shadow is None:
        raise NotFound("there is no shadow, wanted [shadow] in the experiment's file")
    return await asyncio.to_thread(engine.shadow.report)


async def live(engine: Engine, request: HttpRequest) -> LiveOut:
    """The process answers."""
    return LiveOut()


async def ready(engine: Engine, request: HttpRequest) -> ReadyOut:
    """Kernels are compiled, and the log was learnt."""
    _refuse_unless_ready(engine)
    return ReadyOut(version=engine.model.seq)


async def metrics(engine: Engine, request: HttpRequest) -> Response:
    """Metrics for Prometheus."""
    text = await asyncio.to_thread(request.app.state.metrics.text)
    return Response(text, media_type=f"{TEXT}; version=0.0.4")


async def openapi(engine: Engine, request: HttpRequest) -> Mapping[str, Any]:
    """The OpenAPI document."""
    return document(engine.experiment, VERBS)


BINARY, TEXT = "application/octet-stream", "text/plain"
OF_DECISION = "/v1/decisions/{id}"
VERBS = [
    Verb("POST", "/v1/decide", "decide", decide, Conflict, *COMMITS),
    Verb("POST", OF_DECISION + "/context", "feedback", context, Conflict, *COMMITS),
    Verb("POST", OF_DECISION + "/reward", "feedback", reward, Conflict, *COMMITS),
    Verb("POST", OF_DECISION + "/activate", "feedback", activate, Conflict, *COMMITS),
    Verb("GET", OF_DECISION, "read", decision, NotFound),
    Verb("DELETE", OF_DECISION, "admin", erase, Conflict, NotFound, *COMMITS, later=True),
    Verb("POST", "/v1/events:batch", "feedback", events, *COMMITS),
    Verb("GET", "/v1/arms", "read", arms),
    Verb("POST", "/v1/arms", "admin", add_arm, *COMMITS, later=True),
    Verb("DELETE", "/v1/arms/{arm}", "admin", retire_arm, *COMMITS, later=True),
    Verb("GET", "/v1/log", "read", export_log, media="*/*"),
    Verb("GET", "/v1/models", "read", models),
    Verb("POST", "/v1/models", "admin", snapshot, *COMMITS, later=True),
    Verb("POST", "/v1/models/promote", "admin", promote, *COMMITS, later=True),
    Verb("GET", "/v1/models/newest", "read", export_newest, NotFound, media=BINARY),
    Verb("GET", "/v1/models/{snapshot}", "read", export, NotFound, media=BINARY),
    Verb("GET", "/v1/shadow", "read", shadow, NotFound),
    Verb("GET", "/livez", None, live),
    Verb("GET", "/readyz", None, ready, Unavailable),
    Verb("GET", "/metrics", "read", metrics, media=TEXT),
    Verb("GET", "/openapi.json", None, openapi),
]
"""All verbs, in the order in which a request is matched: an id may end like the path of a verb."""


# How they do it


def _refuse_unless_ready(engine: Engine) -> None:
    if not engine.ready:
        raise Unavailable("the service is starting or stopping, wanted a little patience")


async def _content(engine: Engine, request: HttpRequest) -> bytes:
    """The request's body, of the size that is wanted."""
    most, content = engine.experiment.server.most_bytes, bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise TooLarge(f"the body has more than {most:,} bytes, wanted at most that")
    return bytes(content)


def _decoded(decode: Callable[[bytes], Any], content: bytes, wanted: str) -> Any:
    """The body's content, with the fields that are wanted."""
    try:
        return decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not what is wanted: {error}; {wanted}") from error


def _fields(body: Any) -> str:
    """The names of a body's fields, for messages."""
    names = (field.encode_name for field in (() if body is None else msgspec.structs.fields(body)))
    return ", ".join(names)


def _parameter(request: HttpRequest, name: str) -> Any:
    """What stands in the path."""
    return _converted(request.path_params[name], PARAMETERS[name], f"{name} in the path")


def _converted(given: Any, kind: Any, what: str = "the query") -> Any:
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidInput(f"{what} is not what is wanted: {error}") from error


async def _done(future: "Future[Answer]") -> Answer:
    return await asyncio.wrap_future(future)


async def _learnt(
    engine: Engine,
    future: "Future[Answer]",
    then: Callable[[Engine, HttpRequest], Awaitable[T]],
    request: HttpRequest,
) -> T:
    """Wait until what was committed is learnt, too; 202 if the model of this process has it not soon."""
    if not await _until_learnt(engine, future):
        request.scope[STATUS] = 202
    return await then(engine, request)


async def _until_learnt(engine: Engine, future: "Future[Answer]") -> bool:
    await _done(future)
    last = await asyncio.to_thread(engine.store.last)
    end = time.monotonic() + LEARNT_SOON
    while (late := engine.model.seq < last) and time.monotonic() < end:
        await asyncio.sleep(0.02)  # threads are for the store
    return not late


def _outcome(engine: Engine, name: str, answer: Answer) -> OutcomeOut:
    status = status_of(answer.round, tuple(engine.experiment.z))
    return OutcomeOut(id=name, status=status, repeated=not answer.changed)


def _refusal(error: Exception) -> Response:
    code, word = status_of_error(error)
    if code == 500:
        raise error  # for the server's log, without a word of it to the caller
    message = str(error)
    if isinstance(error, StoreError):  # which may say where the store is
        log.warning("the store failed: %s", error)
        message = "the store does not answer, wanted one that does; the request may be repeated"
    response = _json(ErrorOut(error=word, message=message), code)
    if code in (429, 503):
        response.headers["Retry-After"] = "1"
    if code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def _no_route(request: HttpRequest, error: Exception) -> Response:
    """There is no such path, or it has no such verb."""
    path = request.scope["path"]
    fitting = (verb.method for verb in VERBS if compile_path(verb.route)[0].match(path))
    matching = list(dict.fromkeys(fitting))
    request.app.state.engine.tally.statuses[NO_VERB][405 if matching else 404] += 1
    if not matching:
        return _refusal(NotFound(f"there is no path {path!r:.60}, wanted one that /openapi.json names"))
    said = f"{path!r:.60} has no {request.method:.20}, wanted {' or '.join(matching)}"
    response = _json(ErrorOut(error="wrong_method", message=said), 405)
    response.headers["Allow"] = ", ".join(matching)
    return response


def _failure(request: HttpRequest, error: Exception) -> Response:
    """The server logs the error; the caller is told that there was one."""
    code, word = status_of_error(Failed())
    request.app.state.engine.tally.statuses[NO_VERB][code] += 1
    said = "the service failed at this request, its log says why; wanted a service without a mistake"
    response = _json(ErrorOut(error=word, message=said), code)
    response.headers["Connection"] = "close"  # as the server does after a failure
    return response


def _json(value: Any, status: int = 200) -> Response:
    return Response(encode(value) + b"\n", status, media_type=JSON)  # as a terminal wants it
