"""What a select and an update cost as arms, dimensions and rounds grow, and how memory grows."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.peers.ours import Ours
from benchmarks.streams import rewards, stream
from benchmarks.timing import play, seconds

ARMS = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
DIMS = (8, 16, 32, 128, 256, 512)
ROUNDS = (1_000, 3_000, 10_000, 30_000, 100_000)


def measure(quick: bool = False) -> Iterator[tuple[str, Any]]:
    """Microseconds, for select and update separately."""
    play(Ours(3, 4), stream(3, 4, 20), range(20))  # compiles
    for n_arms in ARMS[:4] if quick else ARMS:
        yield f"{n_arms} arms of 64", _cost(n_arms, 64, 1.0 if quick else 4.0)
    for dim in (8, 32, 128, 512) if quick else DIMS:
        yield f"10 arms of {dim}", _cost(10, dim, 1.0 if quick else 4.0)
    yield from _by_rounds(ROUNDS[:3] if quick else ROUNDS)
    rounds = 2_000 if quick else 20_000
    for way in ("own choices", "spread evenly"):
        yield f"100000 arms of 64, {rounds} rounds, {way}", _apart(_memory, 100_000, 64, rounds, way)
    yield "1000000 arms of 64, created and served", _apart(_create, 1_000_000, 64)


def _cost(n_arms: int, dim: int, budget: float) -> dict[str, Any]:
    """After 1,000 rounds of its own choices, or as many as half of the budget allows."""
    player, rounds = Ours(n_arms, dim), stream(n_arms, dim, 2000)
    done, spent, times = 0, 0.0, []
    while done < 2000 and spent < budget:
        times.append(play(player, rounds, range(done, done + 50)))
        done, spent = done + 50, spent + 50 * sum(times[-1])
    late = np.median(times[len(times) // 2 :], axis=0)
    return {"us": {"select": 1e6 * late[0], "update": 1e6 * late[1]}, "rounds": done}


def _by_rounds(marks: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    player, rounds, done = Ours(10, 105), stream(10, 105), 0
    for mark in marks:
        play(player, rounds, range(done, mark - 500))
        times = [play(player, rounds, range(at, at + 50)) for at in range(mark - 500, mark, 50)]
        select, update = np.median(times, axis=0)
        yield f"10 arms of 105 after {mark} rounds", {"us": {"select": 1e6 * select, "update": 1e6 * update}}
        done = mark


def _memory(n_arms: int, dim: int, rounds: int, way: str) -> dict[str, Any]:
    """Growth of the resident set in a process of its own, and the time of a select and an update then."""
    world, rng = stream(n_arms, dim), np.random.default_rng(1)
    play(Ours(3, 4), stream(3, 4, 20), range(20))  # compiles
    before = _resident()
    player = Ours(n_arms, dim)
    if way == "own choices":
        play(player, world, range(rounds))
    else:
        arms = np.linspace(0, n_arms - 1, rounds).astype(int)
        for at in range(0, rounds, 1000):
            which = arms[at : at + 1000]
            X = world.X[np.arange(at, at + len(which)) % len(world.X)]
            player.policy.update_batch(X, which, None, rewards(world, X, which, rng))
    grown = _resident() - before
    times = np.median([play(player, world, range(at, at + 10)) for at in range(0, 100, 10)], axis=0)
    cost = {"select": 1e6 * times[0], "update": 1e6 * times[1]}
    return {"mb": grown / 1e6, "us": cost}


def _create(n_arms: int, dim: int) -> dict[str, Any]:
    world = stream(n_arms, dim)
    play(Ours(3, 4), stream(3, 4, 20), range(20))  # compiles
    before, made = _resident(), []
    taken = seconds(lambda: made.append(Ours(n_arms, dim)))
    times = np.median([play(made[0], world, range(at, at + 5)) for at in range(0, 100, 5)], axis=0)
    cost = {"select": 1e6 * times[0], "update": 1e6 * times[1]}
    return {"create_ms": 1e3 * taken, "mb": (_resident() - before) / 1e6, "us": cost}


def _apart(function: Any, n_arms: int, dim: int, *rest: Any) -> dict[str, Any]:
    """In a fresh process, so that its memory is the policy's."""
    code = f"import json\nfrom benchmarks.scaling import {function.__name__} as f\n"
    code += f"print(json.dumps(f(*{(n_arms, dim, *rest)!r})))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if ran.returncode:
        return {"failed": (ran.stderr.strip().splitlines() or [f"ended with {ran.returncode}"])[-1]}
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _resident() -> int:
    """Bytes of this process in memory now."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return 1024 * int(line.split()[1])
    return 0
