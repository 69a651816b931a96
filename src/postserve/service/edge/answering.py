"""How verbs read what they are asked, wait for the log and the model, and answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from postserve.errors import InvalidInput
from postserve.service.edge.routing import JSON, PARAMETERS, Failed, TooLarge, status_of_error
from postserve.service.edge.wire import ErrorOut, OutcomeOut, status_of
from postserve.service.engine import Engine
from postserve.service.log.replies import Answer
from postserve.service.log.requests import Conflict
from postserve.service.log.stores import StoreError
from postserve.service.log.writer import Unavailable
from postserve.service.tally import NO_VERB

log = logging.getLogger("postserve.service")
encode = msgspec.json.Encoder().encode
T = TypeVar("T")
STATUS = "postserve.status"
"""Where a request keeps the status of its answer, if that is not 200."""
LEARNT_SOON = 5.0
"""Seconds in which what was accepted is learnt, where all is well."""


def refuse_unless_ready(engine: Engine) -> None:
    """Raise while the service starts, and when it stops."""
    if (doing := engine.doing) is not None:
        raise Unavailable(f"the service is {doing}, wanted a little patience")


async def content_of(engine: Engine, request: HttpRequest) -> bytes:
    """The request's body, of the size that is wanted."""
    most, content = engine.experiment.server.most_bytes, bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            raise TooLarge(f"the body has more than {most:,} bytes, wanted at most that")
    return bytes(content)


def decoded(decode: Callable[[bytes], Any], content: bytes, wanted: str) -> Any:
    """The body's content, with the fields that are wanted."""
    if not content:
        raise InvalidInput(f"the body is empty, {wanted}")
    try:
        return decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"the body is not what is wanted: {error}; {wanted}") from error


def fields_of(body: Any) -> str:
    """The names of a body's or query's fields, for messages, with the options where there are some."""
    return ", ".join(map(_described, () if body is None else msgspec.structs.fields(body)))


def _described(field: Any) -> str:
    options = get_args(field.type) if get_origin(field.type) is Literal else ()
    return f"{field.encode_name} ({' or '.join(options)})" if options else str(field.encode_name)


def parameter(request: HttpRequest, name: str) -> Any:
    """What stands in the path."""
    return converted(request.path_params[name], PARAMETERS[name], f"{name} in the path")


def converted(given: Any, kind: Any, what: str = "the query") -> Any:
    """A text, or several, as what is wanted."""
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        wanted = f"; wanted {fields_of(kind)}" if isinstance(given, dict) else ""
        raise InvalidInput(f"{what} is not what is wanted: {error}{wanted}") from error


async def done(future: "Future[Answer]") -> Answer:
    """Wait until a request is committed."""
    return await asyncio.wrap_future(future)


async def learnt(
    engine: Engine,
    future: "Future[Answer]",
    then: Callable[[Engine, HttpRequest], Awaitable[T]],
    request: HttpRequest,
) -> T:
    """Wait until what was committed is learnt, too; 202 if the model of this process has it not soon."""
    if not await until_learnt(engine, future):
        request.scope[STATUS] = 202
    return await then(engine, request)


async def until_learnt(engine: Engine, future: "Future[Answer]") -> bool:
    """Wait until what is committed is learnt, or for some seconds; whether it was."""
    await done(future)
    last = await asyncio.to_thread(engine.store.last)
    end = time.monotonic() + LEARNT_SOON
    while (late := engine.model.seq < last) and time.monotonic() < end:
        await asyncio.sleep(0.02)  # threads are for the store
    return not late


async def saved(engine: Engine, *, erasing: bool = False) -> bool:
    """Wait until the model is saved, or for some seconds; whether it was. Raises if it cannot be."""
    before = await asyncio.to_thread(engine.store.last)
    was_learnt = await until_learnt(engine, engine.snapshot(erasing=erasing))
    kept = await asyncio.to_thread(engine.store.snapshots)
    if was_learnt and (not kept or kept[-1][0] <= before):
        raise Conflict(
            "the model cannot be saved: it could not be loaded again, the service's log says why. Wanted an "
            "earlier snapshot to be promoted; then the request may be repeated"
        )
    return was_learnt


def outcome_out(engine: Engine, name: str, answer: Answer) -> OutcomeOut:
    """What feedback is answered with."""
    status = status_of(answer.round, tuple(engine.experiment.z))
    return OutcomeOut(id=name, status=status, repeated=not answer.changed)


def refusal(error: Exception) -> Response:
    """The answer to what is refused; a mistake of the service itself is raised."""
    code, word = status_of_error(error)
    if code == 500:
        raise error  # for the server's log, without a word of it to the caller
    message = str(error)
    if isinstance(error, StoreError):  # which may say where the store is
        log.warning("the store failed: %s", error)
        message = "the store does not answer, wanted one that does; the request may be repeated"
    response = json_response(ErrorOut(error=word, message=message), code)
    if code in (429, 503):
        response.headers["Retry-After"] = "1"
    if code == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def failure(request: HttpRequest, error: Exception) -> Response:
    """The server logs the error; the caller is told that there was one."""
    code, word = status_of_error(Failed())
    request.app.state.engine.tally.statuses[NO_VERB][code] += 1
    said = "the service failed at this request, its log says why; wanted a service without a mistake"
    response = json_response(ErrorOut(error=word, message=said), code)
    response.headers["Connection"] = "close"  # as the server does after a failure
    return response


def json_response(value: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(encode(value) + b"\n", status, media_type=JSON)  # as a terminal wants it
