"""The client for programs that run an event loop."""

import asyncio
import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from postserve.client import settings, verbs
from postserve.client.buffer import Buffer
from postserve.client.trying import Answer, Call, Done, Flow, Wait
from postserve.client.verbs import OutcomeResult, ServedDecision
from postserve.errors import ServiceError
from postserve.files import whole_file

T = TypeVar("T")


class AsyncClient:
    """`Client` with verbs that are awaited.

    >>> import asyncio
    >>> from postserve.service.trial import trial
    >>> async def visit(url):
    ...     async with AsyncClient(url) as client:
    ...         decision = await client.decide({"age": 31, "device": "phone"})
    ...         await client.follow(decision.id, {"minutes": 12.5, "finished": "yes"})
    ...         return await client.reward(decision.id, 1.0)
    >>> with trial() as url:
    ...     asyncio.run(visit(url)).status
    'closed'
    """

    def __init__(
        self,
        url: str = settings.URL,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        tries: int = 6,
        patience: float = 30.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._patience = settings.patience(tries, patience)
        self._http = httpx.AsyncClient(**settings.options(url, key, timeout, transport))
        self._for_files = settings.without_end(timeout)

    def __repr__(self) -> str:
        return f"AsyncClient({str(self._http.base_url)!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    # Decisions and their feedback

    async def decide(
        self,
        context: Mapping[str, Any],
        *,
        eligible: Sequence[str] | None = None,
        id: str | None = None,
        deferred: bool = False,
    ) -> ServedDecision:
        """Choose an arm; without an id, one is made. What is `deferred` counts once it is activated."""
        return await self._run(verbs.decide(self._patience, context, eligible, id, deferred))

    async def follow(self, id: str, z: Mapping[str, Any]) -> OutcomeResult:
        """Some fields of z came, or all."""
        return await self._run(verbs.follow(self._patience, id, z))

    async def reward(self, id: str, reward: float, key: str | None = None) -> OutcomeResult:
        """A reward came; where rewards are added, `key` names it."""
        return await self._run(verbs.outcome(self._patience, id, "reward", {"reward": reward, "key": key}))

    async def activate(self, id: str) -> OutcomeResult:
        """What was decided, and deferred, was shown."""
        return await self._run(verbs.outcome(self._patience, id, "activate", {}))

    async def outcomes(self, events: Iterable[Mapping[str, Any]]) -> list[OutcomeResult]:
        """Feedback of many decisions: mappings with id, and z, reward, key or activate.

        Each is accepted, or refused for itself: then its result has an `error` and a `message`.
        """
        return await self._run(verbs.outcomes(self._patience, events))

    def batching(self, size: int = 500, seconds: float = 1.0) -> "AsyncBatching":
        """A buffer for outcomes, which is sent when it is full, after some seconds, and when it is closed."""
        return AsyncBatching(self, size, seconds)

    async def decision(self, id: str) -> dict[str, Any]:
        """All that is known of a decision."""
        return await self._run(verbs.decision(self._patience, id))

    # Arms and models

    async def arms(self) -> dict[str, bool]:
        """The arms, and whether each can be served."""
        return await self._run(verbs.arms(self._patience))

    async def add_arm(self, arm: str) -> dict[str, bool]:
        """An arm can be served from now on."""
        return await self._run(verbs.arms(self._patience, verbs.adding(arm)))

    async def retire_arm(self, arm: str) -> dict[str, bool]:
        """An arm is served no more."""
        return await self._run(verbs.arms(self._patience, verbs.retiring(arm)))

    async def models(self) -> dict[str, Any]:
        """The version that decides now, and all snapshots."""
        return await self._run(verbs.get(self._patience, "/v1/models"))

    async def snapshot(self) -> dict[str, Any]:
        """Save the model; answers as `models`."""
        return await self._run(verbs.post(self._patience, "/v1/models"))

    async def promote(self, snapshot: int) -> dict[str, Any]:
        """Let the model of a snapshot decide and learn from now on."""
        return await self._run(verbs.post(self._patience, "/v1/models/promote", {"snapshot": snapshot}))

    async def shadow(self) -> dict[str, Any]:
        """What the experiment's shadow would have earned, and what was, with intervals."""
        return await self._run(verbs.get(self._patience, "/v1/shadow"))

    async def export_model(self, snapshot: int, path: str | Path) -> None:
        """Write a snapshot to a file that `postserve.load` reads."""
        await self._write(f"/v1/models/{snapshot:d}", path)

    async def export_log(
        self, path: str | Path, format: str = "parquet", *, after: object = None, before: object = None
    ) -> None:
        """Write the log to a file: "parquet", "dsjson", or its "events".

        `after` and `before` are places in the log, or times in ISO 8601.
        """
        await self._write(verbs.log_path(format, after, before), path)

    async def ready(self, wait: float = 0.0) -> bool:
        """Whether the service can be asked, at the latest after so many seconds."""
        return await self._run(verbs.answers("/readyz", wait))

    # How it asks

    async def _write(self, address: str, path: str | Path) -> None:
        with whole_file(Path(path)) as file:
            await self._run(verbs.file(self._patience, address, file))

    async def _run(self, flow: Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                step = flow.send(await self._done(step))
        except StopIteration as end:
            result: T = end.value
            return result

    async def _done(self, step: Call | Wait) -> Done:
        if isinstance(step, Wait):
            await asyncio.sleep(step.seconds)
            return Done(time.monotonic())
        began = time.monotonic()
        try:
            answer = await self._answer(step)
        except httpx.RequestError as error:
            answer = settings.unanswered(error)
        return Done(now := time.monotonic(), answer, now - began)

    async def _answer(self, call: Call) -> Answer:
        if call.into is None:
            got = await self._http.request(call.method, call.path, content=call.body)
            return Answer(got.status_code, got.content, got.headers)
        async with self._http.stream(call.method, call.path, timeout=self._for_files) as got:
            if got.status_code != 200:
                return Answer(got.status_code, await got.aread(), got.headers)
            call.into.seek(0)
            call.into.truncate()  # what a try before has left
            async for piece in got.aiter_bytes():
                call.into.write(piece)
            return Answer(200, b"", got.headers)


class AsyncBatching:
    """`Batching` whose verbs are awaited; `AsyncClient.batching` makes one.

    >>> import asyncio
    >>> from postserve.service.trial import trial
    >>> async def visit(url):
    ...     async with AsyncClient(url) as client:
    ...         async with client.batching() as batch:
    ...             decision = await client.decide({"age": 31, "device": "phone"})
    ...             await batch.add(decision.id, z={"minutes": 2.0, "finished": "no"}, reward=0.0)
    ...         return await client.decision(decision.id)
    >>> with trial() as url:
    ...     asyncio.run(visit(url))["status"]
    'closed'
    """

    def __init__(self, client: AsyncClient, size: int, seconds: float) -> None:
        self._client, self._buffer = client, Buffer(size, seconds)
        self._sending = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def failed(self) -> tuple[OutcomeResult, ...]:
        """What the service has refused so far."""
        return tuple(self._buffer.failed)

    async def add(
        self,
        id: str,
        *,
        z: Mapping[str, Any] | None = None,
        reward: float | None = None,
        key: str | None = None,
        activate: bool | None = None,
    ) -> None:
        """Take what came to one decision; raises `ServiceUnavailable` if a full buffer cannot be sent."""
        self._buffer.add({"id": id, "z": z, "reward": reward, "key": key, "activate": activate})
        if self._buffer.is_full:
            await self.flush()
        elif self._timer is None:
            self._timer = asyncio.create_task(self._late())

    async def flush(self) -> None:
        """Send what there is; what cannot be sent stays."""
        async with self._sending:
            events = self._buffer.taken()
            try:
                self._buffer.note(await self._client.outcomes(events))
            except BaseException:
                self._buffer.put_back(events)
                raise

    async def close(self) -> None:
        """Send the rest; raises `OutcomesLost` if something is not in the log."""
        self._buffer.close()
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self.flush()
        except Exception as error:  # whatever it is, they are not in the log
            self._buffer.give_up(error)
        if self._buffer.failed:
            raise verbs.lost(self._buffer.failed)

    async def _late(self) -> None:
        """Send what waits for too long; what cannot be sent is tried again."""
        try:
            while self._buffer.events:
                await asyncio.sleep(self._buffer.seconds)
                with contextlib.suppress(ServiceError):
                    await self.flush()
        finally:
            self._timer = None
