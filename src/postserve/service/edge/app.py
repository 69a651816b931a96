"""The HTTP edge: one function per verb, and the table of them."""

import asyncio
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route, compile_path

from postserve.errors import PostserveError
from postserve.service.edge.access import Gate
from postserve.service.edge.answering import (
    STATUS,
    content_of,
    converted,
    decoded,
    done,
    failure,
    fields_of,
    json_response,
    learnt,
    outcome_out,
    parameter,
    refusal,
    refuse_unless_ready,
    saved,
)
from postserve.service.edge.metrics import Metrics
from postserve.service.edge.openapi import document
from postserve.service.edge.routing import (
    COMMITS,
    NotFound,
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
)
from postserve.service.engine import Engine
from postserve.service.exporting import FORMATS, exported, span
from postserve.service.log.replies import Answer
from postserve.service.log.requests import Conflict
from postserve.service.log.retention import drop_erased
from postserve.service.log.rounds import round_of
from postserve.service.log.writer import Unavailable
from postserve.service.tally import NO_VERB

SLICE = 10
"""Events of a batch that wait for their commit at the same time, at most."""


def make_app(engine: Engine) -> Starlette:
    """All routes of the service."""
    watched, gate = Metrics(engine), Gate(engine.experiment.keys, engine.experiment.server.most_per_second)
    app = Starlette(
        routes=[Route(verb.route, _endpoint(engine, gate, verb), methods=[verb.method]) for verb in VERBS],
        exception_handlers={HTTPException: _no_route, Exception: failure},
    )
    app.state.engine, app.state.metrics = engine, watched
    app.router.redirect_slashes = False
    return app


def _endpoint(engine: Engine, gate: Gate, verb: Verb) -> Callable[[HttpRequest], Any]:
    """How a verb is answered: who asks and what, and then the function of the verb."""
    role, handler, body, query = verb.role, verb.handler, verb.body, verb.query
    decode = msgspec.json.Decoder(Any if body is None else body).decode
    wanted = f"wanted an object with {fields_of(body)}"
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
                refuse_unless_ready(engine)
            if body is not None:
                content = await content_of(engine, request)
                found = await handler(engine, request, decoded(decode, content, wanted))
            elif query is not None:
                found = await handler(engine, request, converted(dict(request.query_params), query))
            else:
                found = await handler(engine, request)
        except ClientDisconnect:
            return Response(status_code=400)  # which nobody reads
        except Exception as error:
            return refusal(error)
        return found if isinstance(found, Response) else json_response(found, request.scope.get(STATUS, 200))

    return counted


async def decide(engine: Engine, request: HttpRequest, asked: DecideIn) -> DecideOut:
    """Choose an arm."""
    answer = await done(engine.decide(asked.context, asked.eligible, asked.id, deferred=asked.deferred))
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
    name = parameter(request, "id")
    return outcome_out(engine, name, await done(engine.follow(name, asked.z)))


async def reward(engine: Engine, request: HttpRequest, asked: RewardIn) -> OutcomeOut:
    """A reward came."""
    name = parameter(request, "id")
    return outcome_out(engine, name, await done(engine.reward(name, asked.reward, asked.key)))


async def activate(engine: Engine, request: HttpRequest) -> OutcomeOut:
    """What was decided is shown."""
    name = parameter(request, "id")
    return outcome_out(engine, name, await done(engine.activate(name)))


async def decision(engine: Engine, request: HttpRequest) -> RoundOut:
    """All that is known of a decision."""
    name = parameter(request, "id")
    known = round_of((await asyncio.to_thread(engine.store.events_of, [name]))[name])
    if not known.first or known.erased:
        others = [verb.method for verb in _verbs_at(request) if verb.path != OF_DECISION]
        wanted = f"the id of one{''.join(f', or {method}' for method in others)}"
        raise NotFound(f"there is no decision {name!r:.60}, wanted {wanted}")
    return round_out(name, known, tuple(engine.experiment.z))


async def erase(engine: Engine, request: HttpRequest) -> ErasedOut:
    """Forget a decision: its events go, once a snapshot has learnt that nothing more comes of it."""
    name = parameter(request, "id")
    await done(engine.erase(name))
    if not (await asyncio.to_thread(engine.store.events_of, [name]))[name]:
        raise NotFound(f"there is no decision {name!r:.60}, wanted the id of one")
    await saved(engine, erasing=True)
    if not await asyncio.to_thread(drop_erased, engine.store, name):
        request.scope[STATUS] = 202
    return ErasedOut(id=name, status="erased")


async def events(engine: Engine, request: HttpRequest, asked: BatchIn) -> BatchOut:
    """Outcomes of many decisions, each accepted or refused for itself."""
    results: list[BatchedOut] = []
    at_once = max(1, min(SLICE, engine.experiment.server.most_waiting // 4))
    for start in range(0, len(asked.events), at_once):  # a batch alone is no overload
        some = asked.events[start : start + at_once]
        submitted = [_submitted(engine, each) for each in some]
        await asyncio.gather(*map(done, submitted), return_exceptions=True)
        for each, future in zip(some, submitted, strict=True):
            try:
                kept = outcome_out(engine, each.id, await done(future))
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
    return await learnt(engine, engine.add_arm(asked.arm), arms, request)


async def retire_arm(engine: Engine, request: HttpRequest) -> ArmsOut:
    """An arm is served no more."""
    arm = parameter(request, "arm")
    if arm in engine.model.retired:  # it is a repetition
        return await arms(engine, request)
    return await learnt(engine, engine.retire_arm(arm), arms, request)


async def export_log(engine: Engine, request: HttpRequest, query: LogQuery) -> Response:
    """The rounds so far, or all events, as a file."""
    part = span(query.after, query.before)
    pieces = await asyncio.to_thread(exported, engine.experiment, engine.store, query.format, part)
    return StreamingResponse(pieces, media_type=FORMATS[query.format])


async def models(engine: Engine, request: HttpRequest) -> ModelsOut:
    """The model that decides, and all snapshots."""
    model = engine.model
    kept = await asyncio.to_thread(engine.store.snapshots)
    return ModelsOut(
        version=model.seq,
        leads=engine.learner.leads,
        behind=await asyncio.to_thread(engine.store.last) - model.seq,
        skipped=model.skipped,
        promoted=model.promoted,
        snapshots=[SnapshotOut(snapshot=seq, digest=digest) for seq, digest in kept],
    )


async def snapshot(engine: Engine, request: HttpRequest) -> ModelsOut:
    """Save the model now."""
    if not await saved(engine):
        request.scope[STATUS] = 202
    return await models(engine, request)


async def promote(engine: Engine, request: HttpRequest, asked: PromoteIn) -> ModelsOut:
    """Let a snapshot decide from now on."""
    return await learnt(engine, await asyncio.to_thread(engine.promote, asked.snapshot), models, request)


async def export(engine: Engine, request: HttpRequest) -> Response:
    """A snapshot's policy, as a file that `postserve.load` reads."""
    seq = parameter(request, "snapshot")
    found = await asyncio.to_thread(engine.store.snapshot, seq)
    if found is None:
        raise NotFound(f"there is no snapshot {seq}, wanted one that /v1/models names")
    return Response(found.state, media_type=BINARY)


async def export_newest(engine: Engine, request: HttpRequest) -> Response:
    """The newest snapshot's policy, as a file that `postserve.load` reads."""
    known = await asyncio.to_thread(engine.store.snapshots)
    found = await asyncio.to_thread(engine.store.snapshot, known[-1][0]) if known else None
    if found is None:
        raise NotFound("there is no snapshot yet, wanted one made by POST /v1/models")
    return Response(found.state, media_type=BINARY)


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
    refuse_unless_ready(engine)
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
    Verb("POST", "/v1/models", "admin", snapshot, Conflict, *COMMITS, later=True),
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


def _verbs_at(request: HttpRequest) -> list[Verb]:
    """Those whose path this is."""
    return [verb for verb in VERBS if compile_path(verb.route)[0].match(request.scope["path"])]


def _no_route(request: HttpRequest, error: Exception) -> Response:
    """There is no such path, or it has no such verb."""
    path = request.scope["path"]
    matching = list(dict.fromkeys(verb.method for verb in _verbs_at(request)))
    request.app.state.engine.tally.statuses[NO_VERB][405 if matching else 404] += 1
    if not matching:
        return refusal(NotFound(f"there is no path {path!r:.60}, wanted one that /openapi.json names"))
    said = f"{path!r:.60} has no {request.method:.20}, wanted {' or '.join(matching)}"
    response = json_response(ErrorOut(error="wrong_method", message=said), 405)
    response.headers["Allow"] = ", ".join(matching)
    return response
