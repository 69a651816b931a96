"""The HTTP edge: one function per verb."""

import asyncio
import functools
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from postserve.errors import InvalidInput, PostserveError
from postserve.service.access import Forbidden, Gate, TooMany
from postserve.service.engine import Engine
from postserve.service.experiment import Role
from postserve.service.requests import Conflict
from postserve.service.rounds import round_of
from postserve.service.wire import (
    ArmIn,
    BatchIn,
    ContextIn,
    DecideIn,
    DecideOut,
    ErrorOut,
    OutcomeOut,
    PromoteIn,
    RewardIn,
    round_out,
    status_of,
)
from postserve.service.writer import Answer, Overloaded, Unavailable

T = TypeVar("T")
encode = msgspec.json.Encoder().encode
Handler = Callable[[Engine, HttpRequest], Awaitable[Any]]
STATUS: list[tuple[type[Exception], int, str]] = [
    (Conflict, 409, "conflict"),
    (Overloaded, 503, "overloaded"),
    (TooMany, 429, "too_many"),
    (Unavailable, 503, "unavailable"),
    (InvalidInput, 422, "invalid"),
]


class NotFound(PostserveError):
    """There is no such thing."""


def make_app(engine: Engine) -> Starlette:
    """All routes of the service."""
    gate = Gate(engine.experiment.keys, engine.experiment.server.most_per_second)

    def route(path: str, method: str, role: Role | None, handler: Handler) -> Route:
        async def answer(request: HttpRequest) -> Response:
            try:
                if role is not None:
                    gate.admit(request.headers.get("authorization"), role)
                found = await handler(engine, request)
            except Exception as error:
                return _refusal(error)
            return found if isinstance(found, Response) else _json(found)

        functools.update_wrapper(answer, handler)
        return Route(path, answer, methods=[method])

    return Starlette(
        routes=[
            route("/v1/decide", "POST", "decide", decide),
            route("/v1/decisions/{id}/context", "POST", "feedback", context),
            route("/v1/decisions/{id}/reward", "POST", "feedback", reward),
            route("/v1/decisions/{id}/activate", "POST", "feedback", activate),
            route("/v1/decisions/{id}", "GET", "read", decision),
            route("/v1/events:batch", "POST", "feedback", events),
            route("/v1/arms", "GET", "read", arms),
            route("/v1/arms", "POST", "admin", add_arm),
            route("/v1/arms/{arm}", "DELETE", "admin", retire_arm),
            route("/v1/models", "GET", "read", models),
            route("/v1/models", "POST", "admin", snapshot),
            route("/v1/models/promote", "POST", "admin", promote),
            route("/v1/models/{seq:int}", "GET", "read", export),
            route("/livez", "GET", None, live),
            route("/readyz", "GET", None, ready),
        ]
    )


async def decide(engine: Engine, request: HttpRequest) -> DecideOut:
    """Choose an arm."""
    asked = await _body(engine, request, DecideIn)
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


async def context(engine: Engine, request: HttpRequest) -> OutcomeOut:
    """z came, all of it or some."""
    asked = await _body(engine, request, ContextIn)
    return _outcome(engine, _id(request), await _done(engine.follow(_id(request), asked.z)))


async def reward(engine: Engine, request: HttpRequest) -> OutcomeOut:
    """A reward came."""
    asked = await _body(engine, request, RewardIn)
    return _outcome(engine, _id(request), await _done(engine.reward(_id(request), asked.reward, asked.key)))


async def activate(engine: Engine, request: HttpRequest) -> OutcomeOut:
    """What was decided is shown."""
    return _outcome(engine, _id(request), await _done(engine.activate(_id(request))))


async def decision(engine: Engine, request: HttpRequest) -> Any:
    """All that is known of a decision."""
    name = _id(request)
    known = round_of((await asyncio.to_thread(engine.store.events_of, [name]))[name])
    if not known.first:
        raise NotFound(f"there is no decision {name!r:.60}, wanted the id of one")
    return round_out(name, known, tuple(engine.experiment.z))


async def events(engine: Engine, request: HttpRequest) -> Any:
    """Outcomes of many decisions, each accepted or refused for itself."""
    asked = await _body(engine, request, BatchIn)
    results: list[Any] = []
    waiting: list[tuple[str, list[Future[Answer]]]] = []
    for each in asked.events:
        try:
            mine = []
            if each.activate:
                mine.append(engine.activate(each.id))
            if each.z is not None:
                mine.append(engine.follow(each.id, each.z))
            if each.reward is not None:
                mine.append(engine.reward(each.id, each.reward, each.key))
            if not mine:
                raise InvalidInput("an event has nothing in it, wanted z, reward or activate")
            waiting.append((each.id, mine))
        except PostserveError as error:
            waiting.append((each.id, [_failed(error)]))
    for name, futures in waiting:
        try:
            answers = [await _done(future) for future in futures]
            results.append(_outcome(engine, name, answers[-1]))
        except Exception as error:
            _, word = _status(error)
            results.append({"id": name, "error": word, "message": str(error)})
    return {"results": results}


async def arms(engine: Engine, request: HttpRequest) -> Any:
    """The arms, and which of them can be served."""
    model = engine.model
    return {"arms": [{"arm": arm, "eligible": arm not in model.retired} for arm in model.arms]}


async def add_arm(engine: Engine, request: HttpRequest) -> Any:
    """An arm can be served from now on."""
    asked = await _body(engine, request, ArmIn)
    await _learnt(engine, engine.add_arm(asked.arm))
    return await arms(engine, request)


async def retire_arm(engine: Engine, request: HttpRequest) -> Any:
    """An arm is served no more."""
    await _learnt(engine, engine.retire_arm(request.path_params["arm"]))
    return await arms(engine, request)


async def models(engine: Engine, request: HttpRequest) -> Any:
    """The model that decides, and all snapshots."""
    model = engine.model
    saved = await asyncio.to_thread(engine.store.snapshots)
    return {
        "version": model.seq,
        "behind": await asyncio.to_thread(engine.store.last) - model.seq,
        "skipped": model.skipped,
        "snapshots": [{"snapshot": seq, "digest": digest} for seq, digest in saved],
    }


async def snapshot(engine: Engine, request: HttpRequest) -> Any:
    """Save the model now."""
    await _learnt(engine, engine.snapshot())
    return await models(engine, request)


async def promote(engine: Engine, request: HttpRequest) -> Any:
    """Let a snapshot decide from now on."""
    asked = await _body(engine, request, PromoteIn)
    await _learnt(engine, engine.promote(asked.snapshot))
    return await models(engine, request)


async def export(engine: Engine, request: HttpRequest) -> Response:
    """A snapshot's policy, as a file that `postserve.load` reads."""
    saved = await asyncio.to_thread(engine.store.snapshot, request.path_params["seq"])
    if saved is None:
        raise NotFound(f"there is no snapshot {request.path_params['seq']}, wanted one of /v1/models")
    return Response(saved.state, media_type="application/octet-stream")


async def live(engine: Engine, request: HttpRequest) -> Any:
    """The process answers."""
    return {"status": "alive"}


async def ready(engine: Engine, request: HttpRequest) -> Any:
    """Kernels are compiled, and the log was learnt."""
    if not engine.ready:
        return _json({"status": "starting"}, 503)
    return {"status": "ready", "version": engine.model.seq}


# How they do it


async def _body(engine: Engine, request: HttpRequest, kind: type[T]) -> T:
    """The request's body, of the size and the fields that are wanted."""
    most, content = engine.experiment.server.most_bytes, bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise _TooLarge(f"the body has more than {most:,} bytes, wanted at most that")
    try:
        return msgspec.json.decode(bytes(content), type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not what is wanted: {error}") from error


class _TooLarge(PostserveError):
    pass


def _id(request: HttpRequest) -> str:
    name: str = request.path_params["id"]
    if len(name) > 200:
        raise InvalidInput(f"the id has {len(name)} characters, wanted at most 200")
    return name


async def _done(future: "Future[Answer]") -> Answer:
    return await asyncio.wrap_future(future)


async def _learnt(engine: Engine, future: "Future[Answer]") -> None:
    """Wait until what was committed is learnt, too."""
    await _done(future)
    last = await asyncio.to_thread(engine.store.last)
    await asyncio.to_thread(engine.learner.wait_for, last, 10.0)


def _failed(error: Exception) -> "Future[Answer]":
    future: Future[Answer] = Future()
    future.set_exception(error)
    return future


def _outcome(engine: Engine, name: str, answer: Answer) -> OutcomeOut:
    status = status_of(answer.round, tuple(engine.experiment.z))
    return OutcomeOut(id=name, status=status, repeated=not answer.changed)


def _status(error: Exception) -> tuple[int, str]:
    if isinstance(error, Forbidden):
        return (403, "forbidden") if error.known else (401, "unauthorised")
    if isinstance(error, NotFound):
        return 404, "not_found"
    if isinstance(error, _TooLarge):
        return 413, "too_large"
    return next(((code, word) for kind, code, word in STATUS if isinstance(error, kind)), (500, "failed"))


def _refusal(error: Exception) -> Response:
    code, word = _status(error)
    if code == 500:
        raise error  # for the server's log, without a word of it to the caller
    response = _json(ErrorOut(error=word, message=str(error)), code)
    if code in (429, 503):
        response.headers["Retry-After"] = "1"
    return response


def _json(value: Any, status: int = 200) -> Response:
    return Response(encode(value), status, media_type="application/json")
