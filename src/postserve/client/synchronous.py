"""The client for programs that wait for each answer."""

import threading
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


class Client:
    """Asks a decision service, and asks again, with the same id, if it does not answer or is overloaded.

    `key` is by default that in $POSTSERVE_KEY. A request is tried at most `tries` times, for at most
    `patience` seconds, after random waits that double, and that are as long as the service asks for. Threads
    may share a client. `transport` says how requests are sent, if not over the network.

    >>> from postserve.service.trial import trial
    >>> with trial() as url, Client(url) as client:  # the experiment of `postserve serve --init`, in memory
    ...     decision = client.decide({"age": 31, "device": "phone"}, id="visit-1")
    ...     again = client.decide({"age": 31, "device": "phone"}, id="visit-1")
    ...     _ = client.follow("visit-1", {"minutes": 12.5, "finished": "yes"})
    ...     result = client.reward("visit-1", 1.0)
    >>> decision.arm == again.arm, again.repeated, result.status
    (True, True, 'closed')
    """

    def __init__(
        self,
        url: str = settings.URL,
        key: str | None = None,
        *,
        timeout: float = 10.0,
        tries: int = 6,
        patience: float = 30.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._patience = settings.patience(tries, patience)
        self._http = httpx.Client(**settings.options(url, key, timeout, transport))
        self._for_files = settings.without_end(timeout)

    def __repr__(self) -> str:
        return f"Client({str(self._http.base_url)!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    # Decisions and their feedback

    def decide(
        self,
        context: Mapping[str, Any],
        *,
        eligible: Sequence[str] | None = None,
        id: str | None = None,
        deferred: bool = False,
    ) -> ServedDecision:
        """Choose an arm; without an id, one is made. What is `deferred` counts once it is activated."""
        return self._run(verbs.decide(self._patience, context, eligible, id, deferred))

    def follow(self, id: str, z: Mapping[str, Any]) -> OutcomeResult:
        """Some fields of z came, or all."""
        return self._run(verbs.follow(self._patience, id, z))

    def reward(self, id: str, reward: float, key: str | None = None) -> OutcomeResult:
        """A reward came; where rewards are added, `key` names it."""
        return self._run(verbs.outcome(self._patience, id, "reward", {"reward": reward, "key": key}))

    def activate(self, id: str) -> OutcomeResult:
        """What was decided, and deferred, was shown."""
        return self._run(verbs.outcome(self._patience, id, "activate", {}))

    def outcomes(self, events: Iterable[Mapping[str, Any]]) -> list[OutcomeResult]:
        """Feedback of many decisions: mappings with id, and z, reward, key or activate.

        Each is accepted, or refused for itself: then its result has an `error` and a `message`.
        """
        return self._run(verbs.outcomes(self._patience, events))

    def batching(self, size: int = 500, seconds: float = 1.0) -> "Batching":
        """A buffer for outcomes, which is sent when it is full, after some seconds, and when it is closed."""
        return Batching(self, size, seconds)

    def decision(self, id: str) -> dict[str, Any]:
        """All that is known of a decision."""
        return self._run(verbs.decision(self._patience, id))

    # Arms and models

    def arms(self) -> dict[str, bool]:
        """The arms, and whether each can be served."""
        return self._run(verbs.arms(self._patience))

    def add_arm(self, arm: str) -> dict[str, bool]:
        """An arm can be served from now on."""
        return self._run(verbs.arms(self._patience, verbs.adding(arm)))

    def retire_arm(self, arm: str) -> dict[str, bool]:
        """An arm is served no more."""
        return self._run(verbs.arms(self._patience, verbs.retiring(arm)))

    def models(self) -> dict[str, Any]:
        """The version that decides now, and all snapshots."""
        return self._run(verbs.get(self._patience, "/v1/models"))

    def snapshot(self) -> dict[str, Any]:
        """Save the model; answers as `models`."""
        return self._run(verbs.post(self._patience, "/v1/models"))

    def promote(self, snapshot: int) -> dict[str, Any]:
        """Let the model of a snapshot decide and learn from now on."""
        return self._run(verbs.post(self._patience, "/v1/models/promote", {"snapshot": snapshot}))

    def shadow(self) -> dict[str, Any]:
        """What the experiment's shadow would have earned, and what was, with intervals."""
        return self._run(verbs.get(self._patience, "/v1/shadow"))

    def export_model(self, snapshot: int, path: str | Path) -> None:
        """Write a snapshot to a file that `postserve.load` reads."""
        self._write(f"/v1/models/{snapshot:d}", path)

    def export_log(
        self, path: str | Path, format: str = "parquet", *, after: object = None, before: object = None
    ) -> None:
        """Write the log to a file: "parquet", "dsjson", or its "events".

        `after` and `before` are places in the log, or times in ISO 8601.
        """
        self._write(verbs.log_path(format, after, before), path)

    def ready(self, wait: float = 0.0) -> bool:
        """Whether the service can be asked, at the latest after so many seconds."""
        return self._run(verbs.answers("/readyz", wait))

    # How it asks

    def _write(self, address: str, path: str | Path) -> None:
        with whole_file(Path(path)) as file:
            self._run(verbs.file(self._patience, address, file))

    def _run(self, flow: Flow[T]) -> T:
        try:
            step = next(flow)
            while True:
                step = flow.send(self._done(step))
        except StopIteration as end:
            result: T = end.value
            return result

    def _done(self, step: Call | Wait) -> Done:
        if isinstance(step, Wait):
            time.sleep(step.seconds)
            return Done(time.monotonic())
        began = time.monotonic()
        try:
            answer = self._answer(step)
        except httpx.RequestError as error:
            answer = settings.unanswered(error)
        return Done(now := time.monotonic(), answer, now - began)

    def _answer(self, call: Call) -> Answer:
        if call.into is None:
            got = self._http.request(call.method, call.path, content=call.body)
            return Answer(got.status_code, got.content, got.headers)
        with self._http.stream(call.method, call.path, timeout=self._for_files) as got:
            if got.status_code != 200:
                return Answer(got.status_code, got.read(), got.headers)
            call.into.seek(0)
            call.into.truncate()  # what a try before has left
            for piece in got.iter_bytes():
                call.into.write(piece)
            return Answer(200, b"", got.headers)


class Batching:
    """Outcomes on their way to the service; `Client.batching` makes one.

    What cannot be sent stays until it can. `close`, or the end of a ``with`` block, sends the rest, and
    raises `OutcomesLost` if something was refused or could not be sent; `failed` has it at any time.

    >>> from postserve.service.trial import trial
    >>> with trial() as url, Client(url) as client:
    ...     with client.batching() as batch:
    ...         for i in range(100):
    ...             _ = client.decide({"age": 31, "device": "phone"}, id=f"visit-{i}")
    ...             batch.add(f"visit-{i}", z={"minutes": 2.0, "finished": "no"}, reward=0.0)
    ...     client.decision("visit-99")["status"]
    'closed'
    """

    def __init__(self, client: Client, size: int, seconds: float) -> None:
        self._client, self._buffer = client, Buffer(size, seconds)
        self._changing, self._sending = threading.Lock(), threading.Lock()
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def failed(self) -> tuple[OutcomeResult, ...]:
        """What the service has refused so far."""
        return tuple(self._buffer.failed)

    def add(
        self,
        id: str,
        *,
        z: Mapping[str, Any] | None = None,
        reward: float | None = None,
        key: str | None = None,
        activate: bool | None = None,
    ) -> None:
        """Take what came to one decision; raises `ServiceUnavailable` if a full buffer cannot be sent."""
        with self._changing:
            self._buffer.add({"id": id, "z": z, "reward": reward, "key": key, "activate": activate})
            full = self._buffer.is_full
            if not full and self._timer is None:
                self._wait()
        if full:
            self.flush()

    def flush(self) -> None:
        """Send what there is; what cannot be sent stays."""
        with self._sending:
            with self._changing:
                events = self._buffer.taken()
            try:
                results = self._client.outcomes(events)
            except BaseException:
                with self._changing:
                    self._buffer.put_back(events)
                raise
            with self._changing:
                self._buffer.note(results)

    def close(self) -> None:
        """Send the rest; raises `OutcomesLost` if something is not in the log."""
        with self._changing:
            self._buffer.close()
            if self._timer is not None:
                self._timer.cancel()
        try:
            self.flush()
        except Exception as error:  # whatever it is, they are not in the log
            self._buffer.give_up(error)
        if self._buffer.failed:
            raise verbs.lost(self._buffer.failed)

    def _wait(self) -> None:
        self._timer = threading.Timer(self._buffer.seconds, self._late)
        self._timer.daemon = True
        self._timer.start()

    def _late(self) -> None:
        try:
            self.flush()
        except ServiceError:
            pass  # it is tried again
        finally:
            with self._changing:
                self._timer = None
                if self._buffer.events and not self._buffer.closed:
                    self._wait()
