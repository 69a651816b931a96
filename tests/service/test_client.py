"""The clients, against a service that runs in this process."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.service.playing import FILE, X, Z
from tests.service.processes import free_port
from tests.waiting import wait_until

import postserve
from postserve import (
    AsyncClient,
    Client,
    DecisionLog,
    InvalidInput,
    OutcomesLost,
    ServiceConflict,
    ServiceForbidden,
    ServiceInvalidInput,
    ServiceNotFound,
    ServiceUnavailable,
)
from postserve.service.edge.access import hash_of
from postserve.service.log.events import Decided
from postserve.service.log.stores.memory import MemoryStore
from postserve.service.trial import trial


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with trial(FILE) as address:
        yield address


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as one:
        yield one


class Losing(httpx.HTTPTransport):
    """Brings every request to the service, and loses the answer of the first ones."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self.left, self.lock = answers, threading.Lock()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        with self.lock:
            self.left -= 1
            if self.left >= 0:
                answer.read()
                raise httpx.ReadError("the connection was reset", request=request)
        return answer


def test_an_answer_that_was_lost_is_no_second_draw() -> None:
    store = MemoryStore()
    with trial(FILE, store) as url, Client(url, transport=Losing(3)) as client:
        decision = client.decide(X)
        assert decision.repeated
        made = [event for _, event in store.read(0, 100) if isinstance(event, Decided)]
        assert [(each.id, each.arm) for each in made] == [(decision.id, decision.arm)]
        assert made[0].propensity == decision.propensity == decision.propensities[decision.arm]


def test_all_verbs(client: Client, tmp_path: Path) -> None:
    assert client.ready()
    decision = client.decide(X, id="d", eligible=["long"], deferred=True)
    assert (decision.id, decision.arm, decision.propensity) == ("d", "long", 1.0)
    assert client.follow("d", {"minutes": 3}).status == "deferred"
    assert client.activate("d").status == "open"
    assert client.follow("d", {"finished": "yes"}).status == "open"
    assert client.reward("d", 1.0).status == "closed"
    assert client.reward("d", 1.0).repeated
    assert client.decision("d")["z"] == Z
    assert client.arms() == {"short": True, "long": True}
    assert client.add_arm("a / new") == {"short": True, "long": True, "a / new": True}
    for _ in range(2):
        assert client.retire_arm("a / new")["a / new"] is False
    saved = client.snapshot()["snapshots"][-1]["snapshot"]
    assert client.promote(saved)["snapshots"] == client.models()["snapshots"]
    client.export_model(saved, tmp_path / "model.npz")
    assert len(postserve.load(tmp_path / "model.npz").propensities(X)) == 3
    client.export_log(tmp_path / "log.parquet")
    log = DecisionLog.read(tmp_path / "log.parquet")
    assert log.arm_names == ("short", "long", "a / new")
    assert len(log) == 1
    client.export_log(tmp_path / "log.jsonl", "events", after=1, before=4)
    assert len((tmp_path / "log.jsonl").read_bytes().splitlines()) == 2


def test_the_verbs_of_the_other_client(url: str, tmp_path: Path) -> None:
    async def play() -> None:
        async with AsyncClient(url) as client:
            assert await client.ready()
            assert "AsyncClient('http://127.0.0.1" in repr(client)
            decision = await client.decide(X, deferred=True)
            await client.activate(decision.id)
            await client.follow(decision.id, Z)
            assert (await client.reward(decision.id, 1.0)).status == "closed"
            many = await asyncio.gather(*(client.decide(X, id=f"async {i}") for i in range(20)))
            async with client.batching(size=7) as batch:
                for each in many:
                    await batch.add(each.id, z=Z, reward=0.5)
            assert (await client.decision("async 19"))["status"] == "closed"
            with pytest.raises(OutcomesLost, match="'async 3' is not in the log"):
                async with client.batching() as batch:
                    await batch.add("async 3", reward=2.0)
            async with client.batching(seconds=0.01) as batch:
                await client.decide(X, id="async late")
                await batch.add("async late", reward=1.0)
                for _ in range(6000):
                    if (await client.decision("async late"))["reward"] == 1.0:
                        break
                    await asyncio.sleep(0.01)
                else:
                    raise TimeoutError
            assert await client.arms() == await client.add_arm("short")
            assert (await client.snapshot())["version"] > 0
            assert (await client.outcomes([{"id": "async 1", "reward": 0.5}]))[0].repeated
            saved = (await client.models())["snapshots"][-1]["snapshot"]
            await client.promote(saved)
            await client.export_model(saved, tmp_path / "model.npz")
            await client.export_log(tmp_path / "log.dsjson", "dsjson")
            await client.add_arm("async arm")
            assert not (await client.retire_arm("async arm"))["async arm"]

    asyncio.run(play())
    assert postserve.load(tmp_path / "model.npz").dim_z == 2
    assert (tmp_path / "log.dsjson").read_bytes().count(b"\n") >= 21


@pytest.mark.parametrize("name", ["a/b", "..", ".", "a b?c#d", "ä%2F", "context", "a/context", "x" * 200])
def test_any_id_finds_its_decision(client: Client, name: str) -> None:
    client.decide(X, id=name)
    client.follow(name, Z)
    assert client.reward(name, 1.0).status == "closed"
    assert client.decision(name)["id"] == name


def test_refusals_have_types_and_the_services_words(client: Client, tmp_path: Path) -> None:
    client.decide(X, id="once")
    with pytest.raises(ServiceConflict, match="decision 'once' was made with x"):
        client.decide({**X, "age": 5}, id="once")
    with pytest.raises(ServiceInvalidInput, match="context has no age"):
        client.decide({"device": "phone"})
    with pytest.raises(InvalidInput, match="length >= 1"):
        client.follow("", Z)
    with pytest.raises(ServiceNotFound, match="there is no decision 'nobody'"):
        client.decision("nobody")
    with pytest.raises(ServiceNotFound, match="there is no snapshot 999"):
        client.export_model(999, tmp_path / "model.npz")
    with pytest.raises(ServiceInvalidInput, match="Invalid enum value 'csv'"):
        client.export_log(tmp_path / "log.csv", "csv")
    with pytest.raises(ServiceInvalidInput, match="after is 'now', wanted a place"):
        client.export_log(tmp_path / "log.parquet", after="now")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("verb", "message"),
    [
        (lambda client: client.reward("\ud800", 1.0), "wanted a text without lone surrogates"),
        (lambda client: client.export_log("log.parquet", after="\ud800"), "wanted a text without lone"),
        (lambda client: client.decide(None), "context is None .* wanted a mapping"),
        (lambda client: client.decide("abc"), "context is 'abc' .* wanted a mapping"),
        (lambda client: client.decide(X, eligible=3), "eligible is 3 .* wanted names of arms"),
        (lambda client: client.follow("d", None), "z is None .* wanted a mapping"),
        (lambda client: client.outcomes(None), "events is None .* wanted mappings"),
        (lambda client: client.batching(seconds=1e10), "seconds is 1e.10, wanted a number above 0"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_words(verb: Any, message: str) -> None:
    with Client("http://127.0.0.1:1", tries=1) as client, pytest.raises(InvalidInput, match=message):
        verb(client)


def test_who_cannot_be_reached_is_not_ready(tmp_path: Path) -> None:
    with Client(f"http://127.0.0.1:{free_port()}", tries=2, patience=1.0) as client:
        assert not client.ready()
        assert not client.ready(wait=0.3)
        with pytest.raises(ServiceUnavailable, match="could not be reached"):
            client.decide(X)
        batch = client.batching()
        batch.add("a", reward=1.0)
        batch.add("b", z=Z)
        with pytest.raises(OutcomesLost) as lost:
            batch.close()
        assert [(each.id, each.error) for each in lost.value.failed] == [("a", "unsent"), ("b", "unsent")]
    for wrong in ("127.0.0.1:80", "ftp://host", "http://", "", "http://host:port"):
        with pytest.raises(InvalidInput, match="url is "):
            Client(wrong)


def test_the_key_is_sent_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    key = f'[[keys]]\nname = "site"\nhash = "{hash_of("sesame")}"\nroles = ["decide"]\n'
    caplog.set_level("DEBUG")
    with trial(FILE + key) as url:
        with Client(url, "sesame") as client:
            assert client.decide(X).arm in ("short", "long")
            with pytest.raises(ServiceForbidden, match="has no role read") as refused:
                client.arms()
            shown = repr(client) + repr(client._http.headers) + repr(refused.value)
        with Client(url, "wrong") as client, pytest.raises(ServiceForbidden, match="no key that is known"):
            client.decide(X)
        monkeypatch.setenv("POSTSERVE_KEY", "sesame")
        with Client(url) as client:
            client.decide(X)
    assert "sesame" not in shown + caplog.text
    with pytest.raises(InvalidInput) as wrong:
        Client(key="sesame\n")
    assert "sesame" not in str(wrong.value)


def test_a_buffer_is_sent_when_it_is_full_or_old(client: Client) -> None:
    for i in range(5):
        client.decide(X, id=f"full {i}")
    with client.batching(size=3, seconds=3600) as batch:
        for i in range(5):
            batch.add(f"full {i}", z=Z, reward=1.0)
        states = [client.decision(f"full {i}")["status"] for i in range(5)]
        assert states == ["closed"] * 3 + ["open"] * 2
        batch.flush()
        assert client.decision("full 4")["status"] == "closed"
    client.decide(X, id="old")
    with client.batching(seconds=0.01) as batch:
        batch.add("old", z=Z)
        wait_until(lambda: bool(client.decision("old")["z"]))
        batch.add("old", reward=1.0)
        wait_until(lambda: client.decision("old")["status"] == "closed")
    with pytest.raises(InvalidInput, match="the buffer is closed"):
        batch.add("old", reward=1.0)


def test_what_is_refused_from_a_buffer_is_reported_by_its_id(client: Client) -> None:
    client.decide(X, id="fine")
    client.decide(X, id="other")
    client.reward("other", 1.0)

    def play() -> None:
        with client.batching() as batch:
            batch.add("fine", z=Z, reward=1.0)
            batch.add("other", reward=2.0)
            batch.add("fine", z={"colour": "red"})
            with pytest.raises(InvalidInput, match="is not JSON"):
                batch.add("fine", reward=float("nan"))

    with pytest.raises(OutcomesLost, match="'other' is not in the log: the reward of decision") as lost:
        play()
    assert [(each.id, each.error) for each in lost.value.failed] == [
        ("other", "conflict"),
        ("fine", "invalid"),
    ]
    assert client.decision("fine")["status"] == "closed"


def test_a_buffer_outlives_a_service_that_is_away() -> None:
    port = free_port()
    with (
        Client(f"http://127.0.0.1:{port}", tries=1) as client,
        client.batching(size=2, seconds=3600) as batch,
    ):
        batch.add("a", reward=1.0)
        with pytest.raises(ServiceUnavailable):
            batch.add("b", reward=1.0)
        with trial(FILE) as url:
            client._http.base_url = url
            for name in "ab":
                client.decide(X, id=name)
            batch.add("c", reward=1.0)
            assert [client.decision(name)["reward"] for name in "ab"] == [1.0, 1.0]


def test_threads_share_a_client_and_its_buffer(client: Client) -> None:
    with client.batching(size=10, seconds=0.05) as batch:

        def play(number: int) -> None:
            for i in range(20):
                decision = client.decide(X, id=f"thread {number}/{i}")
                batch.add(decision.id, z=Z, reward=1.0)

        threads = [threading.Thread(target=play, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    states = {client.decision(f"thread {number}/{i}")["status"] for number in range(4) for i in range(20)}
    assert states == {"closed"}
