"""`postserve simulate-traffic`: what the traffic earned, and whether the service learnt what it should."""

import tempfile
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from postserve.client import Client
from postserve.client.verbs import answers
from postserve.errors import InvalidInput, ServiceUnavailable
from postserve.service.experiment import read_experiment
from postserve.service.serving import address_of, write_new
from postserve.service.traffic.playing import Habits, Played, Traffic
from postserve.service.traffic.replaying import Compared, compared
from postserve.service.traffic.worlds import file_for, world_of
from postserve.terminal import say

ALIVE, READY = 60.0, 600.0
"""Seconds until a service that was started answers, and is ready: a busy machine may have all to compile."""
LINES = 20
"""Of the table, at most."""


def prepare(path: Path, source: str | None) -> None:
    """What `postserve simulate-traffic --init` does."""
    if source is None:
        raise InvalidInput("there is no --data, wanted a data set; `postserve serve --init` needs none")
    write_new(path, file_for(source).encode())
    say(f"wrote {path}; start it with: postserve serve {path}")


def play_and_show(
    path: Path, url: str | None, source: str | None, rounds: int, habits: Habits, seed: int, console: Any
) -> bool:
    """What `postserve simulate-traffic` does; whether the service's model is the library's."""
    experiment = read_experiment(path)
    world = world_of(experiment, source, seed)
    address = url or address_of(experiment)
    with Client(address) as client:
        _wait_for(client, address, path, console)
        traffic = Traffic(world, client, habits, seed)
        columns = (TextColumn("rounds"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
            task = shown.add_task("rounds", total=rounds)
            traffic.play(rounds, lambda done: shown.update(task, completed=done))
        _show(traffic, rounds, console)
        with tempfile.TemporaryDirectory(prefix="postserve-") as folder:
            return _show_compared(_compare(client, Path(folder)), console)


def _wait_for(client: Client, address: str, path: Path, console: Any) -> None:
    waits = f"waiting for {address}; the first start compiles for up to a minute"
    if not console.is_terminal:  # where no status is shown
        say(waits, console)
    with console.status(waits):
        if not client._run(answers("/livez", ALIVE)) or not client.ready(READY):
            raise ServiceUnavailable(f"{address} is not ready, wanted: postserve serve {path}")


def _show(traffic: Traffic, rounds: int, console: Any) -> None:
    table = Table(box=None)
    for title in ("rounds", "mean reward", "best arm"):
        table.add_column(title, justify="right")
    step = max(100, -(-len(traffic.rounds) // (100 * LINES)) * 100)
    for start in range(0, len(traffic.rounds), step):
        some = traffic.rounds[start : start + step]
        table.add_row(f"{start + len(some):,}", *_summary(some))
    console.print(table)
    if len(traffic.rounds) < rounds:
        say(f"stopped after {len(traffic.rounds):,} rounds", console)
    rate = traffic.requests / traffic.seconds if traffic.seconds else 0.0
    said = ", ".join(f"{count:,} {word}" for word, count in traffic.errors.most_common()) or "none"
    say(
        f"{traffic.requests:,} requests ({rate:,.0f}/s) with {traffic.outcomes:,} outcomes, "
        f"{traffic.repeated:,} of them repeated; errors: {said}",
        console,
    )


def _summary(rounds: list[Played]) -> tuple[str, str]:
    rewards = [each.reward for each in rounds if each.reward is not None]
    known = [each.best for each in rounds if each.best is not None]
    mean = f"{fmean(rewards):.3f}" if rewards else "none"
    return mean, f"{fmean(known):.0%}" if known else "not known"


def _compare(client: Client, folder: Path) -> Compared:
    """The service's snapshots, the newest of this moment, against the same events given to the library."""
    saved = {each["snapshot"]: each["digest"] for each in client.snapshot()["snapshots"]}
    newest = max(saved)
    client.export_log(folder / "events.jsonl", "events", before=newest + 1)
    found = compared(folder / "events.jsonl", saved, folder, client.export_model)
    if found.differs_at is None:
        client.export_model(newest, folder / "served.npz")
        if (folder / "served.npz").read_bytes() != (folder / f"{newest}.npz").read_bytes():
            return Compared(found.agreeing, newest, "the exported file has other bytes than the library's")
    return found


def _show_compared(found: Compared, console: Any) -> bool:
    if found.differs_at is None:
        say(
            f"the service's model is the library's to the bit (snapshots compared: {found.agreeing})", console
        )
        return True
    say(f"the service's model differs from the library's at event {found.differs_at}: {found.why}", console)
    return False
