"""One round of LinUCB, ours and every peer's, as a ratio to plain numpy in the same process."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

from benchmarks.running import ONE_THREAD, ROOT

ENVIRONMENTS = ROOT / ".bench"


BEFOREHAND = "text made beforehand"


class Peer(NamedTuple):
    """What it is called, its package (which names its environment too), and what else is installed."""

    label: str
    package: str
    version: str
    beside: tuple[str, ...] = ()
    ready: bool = False  # whether x is converted for the library before the clock starts

    @property
    def wanted(self) -> list[str]:
        return [f"{self.package}=={self.version}", *self.beside]


PEERS = {
    "vowpalwabbit_adf": Peer("Vowpal Wabbit, adf", "vowpalwabbit", "9.11.9", ("numpy",)),
    "vowpalwabbit_adf ready": Peer(
        f"Vowpal Wabbit, adf, {BEFOREHAND}", "vowpalwabbit", "9.11.9", ("numpy",), ready=True
    ),
    "vowpalwabbit": Peer("Vowpal Wabbit", "vowpalwabbit", "9.11.9", ("numpy",)),
    "vowpalwabbit ready": Peer(
        f"Vowpal Wabbit, {BEFOREHAND}", "vowpalwabbit", "9.11.9", ("numpy",), ready=True
    ),
    "obp": Peer("obp", "obp", "0.4.1"),
    "river": Peer("river", "river", "0.26.1"),
    "contextualbandits": Peer("contextualbandits", "contextualbandits", "0.3.30"),
    "mabwiser": Peer("MABWiser", "mabwiser", "2.7.4"),
    "bayesianbandits": Peer("bayesianbandits", "bayesianbandits", "1.5.0"),
    "coba": Peer("coba (one model for all arms)", "coba", "8.1.0", ("numpy",)),
}
OURS = "postserve"


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """One entry per player: its version, and microseconds and ratios by scenario, or the reason for none."""
    budget, environment = (
        ("1" if quick else "4"),
        {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT / "src")},
    )
    command = ["-m", "benchmarks.peers.runner"]

    yield (
        OURS,
        {
            "version": version("postserve"),
            **_run([sys.executable, *command, "ours", "--budget", budget], environment),
        },
    )
    environment.pop("PYTHONPATH")
    for name, peer in PEERS.items():
        python, reason = _installed(peer)
        if reason:
            yield peer.label, {"failed": reason}
            continue
        ready = ["--ready"] if peer.ready else []
        found = _run([python, *command, name.split()[0], "--budget", budget, *ready], environment)
        yield peer.label, {"version": _version(python, peer.package), **found}


def _run(command: list[str], environment: dict[str, str]) -> dict[str, Any]:
    """The runner's lines by scenario; its last output where it failed."""
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    found = {line.pop("scenario"): line for line in lines}
    if ran.returncode:
        found["failed"] = (ran.stderr.strip().splitlines() or ["no word"])[-1]
    return found


def _installed(peer: Peer) -> tuple[str, str]:
    """The interpreter of the peer's environment, made if it is missing; or why it cannot be made."""
    place = ENVIRONMENTS / peer.package
    python, ready = place / "bin" / "python", place / ".ready"
    if ready.exists() and ready.read_text() == "\n".join(peer.wanted):
        return str(python), ""
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *peer.wanted]
    for command in ([sys.executable, "-m", "venv", str(place)], install):
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            said = [line for line in ran.stderr.splitlines() if line.strip()]
            return "", f"does not install: {said[-1] if said else 'no word'}"
    ready.write_text("\n".join(peer.wanted))
    return str(python), ""


def _version(python: str, package: str) -> str:
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=False).stdout.strip()
