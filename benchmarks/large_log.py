"""A log larger than memory: written in parts, learnt from and evaluated, with the memory that it takes.

`python -m benchmarks.large_log` writes 20 million rounds (x 25, z 7) into a temporary folder and prints, for
one and two processes and for Dask, rounds per second, the seconds of all processors together, and memory: the
largest sum over all processes of what is resident, looked at ten times a second (shared pages count in
each). `--rounds` makes it smaller. Each measurement begins with a process of its own.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from postserve import DecisionLog, EpsilonGreedy, PoLinUCB, RidgeMap, compare, evaluate, fit_log

ARMS, DIM_X, DIM_Z = 4, 25, 7
PER_FILE = 500_000
WAYS = ("fit local=1", "fit local=2", "fit dask", "evaluate normal", "evaluate bootstrap", "compare normal")


def write(folder: Path, rounds: int) -> None:
    """Write the log, one file after another."""
    rng = np.random.default_rng(0)
    slopes, worth = rng.normal(size=(DIM_X, DIM_Z)) / 5.0, rng.normal(size=(ARMS, DIM_Z))
    for start in range(0, rounds, PER_FILE):
        n = min(PER_FILE, rounds - start)
        x, arms = rng.normal(size=(n, DIM_X)), rng.integers(ARMS, size=n)
        z = x @ slopes + rng.normal(size=(n, DIM_Z))
        rewards = np.vecdot(worth[arms], z) + rng.normal(size=n)
        table = {
            "decision_id": pl.Series(range(start, start + n)).cast(pl.String),
            "arm": pl.Series(arms).cast(pl.String),
            "propensity": np.full(n, 1 / ARMS),
            "reward": rewards,
            **{f"x.{i}": x[:, i] for i in range(DIM_X)},
            **{f"z.{i}": z[:, i] for i in range(DIM_Z)},
        }
        pl.DataFrame(table).write_parquet(folder / f"part{start // PER_FILE:05d}.parquet")


def measure(way: str, folder: Path) -> float:
    """Rounds per second of learning from the log, or of evaluating a policy on it, in this process."""
    log = DecisionLog.read(folder)
    verb, how = way.split()
    options: Any = {"interval": how}
    policy = PoLinUCB(ARMS, RidgeMap(DIM_X, DIM_Z))
    if verb != "fit":
        first = next(log.rounds())
        policy.update_batch(first.x, first.arms, first.z, first.rewards)
    start = time.perf_counter()
    if verb == "fit":
        fit_log(policy, log, engine=how)
    elif verb == "evaluate":
        evaluate(policy, log.rounds(), **options)
    else:
        compare([policy, EpsilonGreedy(policy)], log.rounds(), **options)
    return len(log) / (time.perf_counter() - start)


def run(way: str, folder: Path) -> str:
    """Measure in a process of its own, with its workers."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "benchmarks.large_log", "--measure", way, "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    largest = 0.0
    while process.poll() is None:
        largest = max(largest, _resident(process.pid))
        time.sleep(0.1)
    if process.returncode or process.stdout is None:
        raise RuntimeError(f"{way!r} ended with {process.returncode}")
    after, speed = resource.getrusage(resource.RUSAGE_CHILDREN), float(process.stdout.read())
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return f"{way:20} {speed:9,.0f} rounds/s, {seconds:6,.0f} CPU s, {largest:6,.0f} MB"


def _resident(process: int | str) -> float:
    """The resident memory of a process and of those below it, in MB, as Linux tells it."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
        tasks = list(Path(f"/proc/{process}/task").iterdir())
        below = [child for task in tasks for child in (task / "children").read_text().split()]
    except OSError:  # it has just ended
        return 0.0
    return pages * resource.getpagesize() / 2**20 + sum(map(_resident, below))


def main() -> None:
    """Write the log, and measure each way in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000_000)
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument(
        "--folder", type=Path, help="where the log is written, by default in a temporary folder"
    )
    options = parser.parse_args()
    if options.measure:
        print(measure(options.measure, options.folder))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write(folder, options.rounds)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        print(f"{options.rounds:,} rounds in {size:,.0f} MB")
        for way in WAYS:
            print(run(way, folder), flush=True)


if __name__ == "__main__":
    main()
