"""The decision service over loopback, on the cores that it shares with what loads it.

`python -m benchmarks --only service`, or `python -m benchmarks.service --decisions 1000000` for how memory
grows. Latencies are counted from the moment at which a request was due, not from when it could be sent.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from postserve.service.serving import TEMPLATE

TICKS = os.sysconf("SC_CLK_TCK")
CONNECTIONS = 32
BATCH = 100
"""Outcomes in one request of feedback."""


class Served(NamedTuple):
    """A process that serves."""

    port: int
    process: "subprocess.Popen[bytes]"

    @property
    def cpu(self) -> float:
        """Seconds of processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def megabytes(self) -> float:
        """Resident memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


@contextmanager
def serving(*options: str) -> Iterator[Served]:
    """The template's experiment, served by a process of its own."""
    with tempfile.TemporaryDirectory() as folder, socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        free.close()
        path = Path(folder) / "experiment.toml"
        path.write_text(TEMPLATE.read_text().replace("port = 8711", f"port = {port}"))
        command = [sys.executable, "-m", "benchmarks.serving", str(path), *options]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # ours is for the results
        try:
            asyncio.run(_ready(port))
            yield Served(port, process)
        finally:
            process.terminate()
            process.wait(120)


async def _ready(port: int) -> None:
    for _ in range(600):
        try:
            status, _ = await (await Connection.open(port)).ask("GET", "/readyz")
            if status == 200:
                return
        except OSError:
            pass
        await asyncio.sleep(0.2)
    raise TimeoutError("the service did not become ready")


class Connection(NamedTuple):
    """One connection that is kept."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @classmethod
    async def open(cls, port: int) -> "Connection":
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        content = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(content)}\r\n\r\n"
        self.writer.write(head.encode() + content)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        length = next(int(line[15:]) for line in lines if line.startswith(b"content-length:"))
        return int(lines[0].split()[1]), await self.reader.readexactly(length)


class Traffic:
    """Visitors, and what comes of them a while later."""

    def __init__(self) -> None:
        self.rng, self.name, self.count = random.Random(0), f"{random.getrandbits(48):x}", 0
        self.open: deque[str] = deque()

    def decide(self) -> tuple[str, Any]:
        self.count += 1
        name = f"{self.name}-{self.count}"
        self.open.append(name)
        x = {"age": self.rng.gauss(40, 12), "device": self.rng.choice(["phone", "tablet", "computer"])}
        return "/v1/decide", {"id": name, "context": x}

    def outcome(self) -> dict[str, Any]:
        minutes = self.rng.gauss(10, 3)
        z = {"minutes": minutes, "finished": "yes" if minutes > 10 else "no"}
        return {"id": self.open.popleft(), "z": z, "reward": minutes / 10 + self.rng.gauss(0, 1)}

    def feedback(self) -> tuple[str, Any]:
        return "/v1/events:batch", {"events": [self.outcome() for _ in range(min(BATCH, len(self.open)))]}


class Found(NamedTuple):
    """What a load gave: requests per second, seconds of each, how many were refused."""

    rate: float
    latencies: list[float]
    refused: int

    def percentile(self, share: float) -> float:
        return float(np.quantile(self.latencies, share))


async def caught_up(port: int) -> None:
    """Wait until the service has learnt all that it was told."""
    connection = await Connection.open(port)
    for _ in range(6000):
        _, body = await connection.ask("GET", "/v1/models")
        if json.loads(body)["behind"] == 0:
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("the service did not catch up")


async def full_load(port: int, seconds: float, traffic: Traffic, *, feedback: bool) -> Found:
    """Every connection asks again as soon as it is answered."""
    latencies: list[float] = []
    refused, start = 0, time.perf_counter()

    async def ask(connection: Connection) -> None:
        nonlocal refused
        while (now := time.perf_counter()) < start + seconds:
            comes = feedback and len(traffic.open) >= 5 * BATCH
            status, _ = await connection.ask("POST", *(traffic.feedback() if comes else traffic.decide()))
            if not comes:
                latencies.append(time.perf_counter() - now)
                refused += status != 200

    await asyncio.gather(*[ask(await Connection.open(port)) for _ in range(CONNECTIONS)])
    return Found(len(latencies) / (time.perf_counter() - start), latencies, refused)


async def offered(port: int, rate: float, seconds: float, traffic: Traffic, *, feedback: bool) -> Found:
    """Decisions are asked for at a rate, whatever the answers take."""
    free: asyncio.Queue[Connection] = asyncio.Queue()
    for _ in range(CONNECTIONS):
        free.put_nowait(await Connection.open(port))
    latencies: list[float] = []
    refused = 0

    async def ask(due: float, path: str, body: Any) -> None:
        nonlocal refused
        connection = await free.get()
        status, _ = await connection.ask("POST", path, body)
        free.put_nowait(connection)
        if path == "/v1/decide":
            latencies.append(time.perf_counter() - due)
            refused += status != 200

    start, tasks = time.perf_counter(), []
    for k in range(int(rate * seconds)):
        due = start + k / rate
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(ask(due, *traffic.decide())))
        if feedback and len(traffic.open) >= 2 * BATCH:
            tasks.append(asyncio.create_task(ask(due, *traffic.feedback())))
    await asyncio.gather(*tasks)
    return Found(len(latencies) / (time.perf_counter() - start), latencies, refused)


async def save(port: int) -> int:
    """Save the model; returns the number of its snapshot."""
    await caught_up(port)
    _, body = await (await Connection.open(port)).ask("POST", "/v1/models")
    return int(json.loads(body)["snapshots"][-1]["snapshot"])


async def roll_back(port: int, snapshot: int) -> tuple[float, int]:
    """Let an earlier snapshot decide; returns the seconds that it took, and how many decisions are open."""
    connection, start = await Connection.open(port), time.perf_counter()
    status, _ = await connection.ask("POST", "/v1/models/promote", {"snapshot": snapshot})
    took = time.perf_counter() - start
    assert status == 200, status
    _, metrics = await connection.ask("GET", "/metrics")
    counts = dict(line.rsplit(" ", 1) for line in metrics.decode().splitlines())
    return took, int(float(counts["postserve_open_rounds"]))


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """Rates, latencies, and processor time over that of the same endpoint with no log and no learning."""
    seconds, pairs = (4.0, 2) if quick else (15.0, 5)
    with serving() as ours, serving("--reference") as reference:
        traffic = Traffic()
        asyncio.run(full_load(ours.port, 2.0, traffic, feedback=True))
        asyncio.run(full_load(reference.port, 2.0, Traffic(), feedback=False))
        early = asyncio.run(save(ours.port))
        alone = asyncio.run(full_load(ours.port, seconds, Traffic(), feedback=False))
        yield "decide, as many as it takes", {"per_second": alone.rate, "refused": alone.refused}
        mixed = asyncio.run(full_load(ours.port, seconds, traffic, feedback=True))
        yield "the same with feedback", {"per_second": mixed.rate, "refused": mixed.refused}
        start = time.perf_counter()
        asyncio.run(caught_up(ours.port))
        yield "until all of that is learnt", {"seconds": time.perf_counter() - start}
        steady = asyncio.run(offered(ours.port, 500.0, 2 * seconds, traffic, feedback=True))
        times = {f"p{round(100 * share)}_ms": 1e3 * steady.percentile(share) for share in (0.5, 0.99)}
        yield "decide at 500 per second with feedback", {**times, "refused": steady.refused}
        ratios, spent = [], []
        for _ in range(pairs):
            each = []
            for served in (ours, reference):
                before = served.cpu
                asyncio.run(offered(served.port, 500.0, seconds / 2, Traffic(), feedback=False))
                time.sleep(1.0)
                each.append((served.cpu - before) / (500.0 * seconds / 2))
            spent.append(1e6 * each[0])
            ratios.append(each[0] / each[1])
        yield (
            "processor time of a decision",
            {"us": float(np.median(spent)), "ratio": float(np.median(ratios))},
        )
        yield "memory", {"mb": ours.megabytes}
        late = asyncio.run(save(ours.port))
        for when, snapshot in ("before most of them", early), ("after them", late):
            seconds, is_open = asyncio.run(roll_back(ours.port, snapshot))
            yield f"roll back to a snapshot from {when}", {"seconds": seconds, "open": is_open}


async def _grow(served: Served, decisions: int) -> None:
    traffic = Traffic()
    while traffic.count < decisions:
        found = await full_load(served.port, 30.0, traffic, feedback=True)
        print(
            f"{traffic.count:9,d} decisions, {len(traffic.open):5d} open, {found.rate:6.0f} per second, "
            f"{served.megabytes:6.0f} MB",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.service")
    parser.add_argument("--decisions", type=int, default=1_000_000)
    asked = parser.parse_args()
    with serving() as served:
        asyncio.run(_grow(served, asked.decisions))
