"""A log larger than memory: written in parts, learnt from and evaluated, with the memory that it takes.

`python -m benchmarks.large_log` writes 20 million rounds (x 25, z 7) into a temporary folder and prints, for
one and two processes and for Dask, rounds per second and the largest memory of each process. `--rounds` makes
it smaller. Each measurement is a process of its own.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from postserve import DecisionLog, PoLinUCB, RidgeMap, evaluate, fit_log

ARMS, DIM_X, DIM_Z = 4, 25, 7
PER_FILE = 500_000
WAYS = ("fit local=1", "fit local=2", "fit dask", "evaluate")


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


def measure(way: str, folder: Path) -> dict[str, float]:
    """Learn from the log, or evaluate a policy on it, in this process."""
    log = DecisionLog.read(folder)
    verb, _, engine = way.partition(" ")
    policy = PoLinUCB(ARMS, RidgeMap(DIM_X, DIM_Z))
    if verb == "evaluate":
        first = next(log.rounds())
        policy.update_batch(first.x, first.arms, first.z, first.rewards)
    start = time.perf_counter()
    if verb == "fit":
        fit_log(policy, log, engine=engine)
    else:
        evaluate(policy, log.rounds(), estimator="dr")
    seconds = time.perf_counter() - start
    largest = max(
        resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return {"rounds/s": len(log) / seconds, "MB": largest / 1024}


def main() -> None:
    """Write the log, and measure each way in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20_000_000)
    parser.add_argument("--measure", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.folder)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, options.rounds)
        size = sum(file.stat().st_size for file in folder.iterdir()) / 2**20
        print(f"{options.rounds:,} rounds in {size:,.0f} MB")
        for way in WAYS:
            command = [sys.executable, "-m", "benchmarks.large_log", "--measure", way, "--folder", name]
            found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            print(f"{way:12} {found['rounds/s']:10,.0f} rounds/s, at most {found['MB']:,.0f} MB in a process")


if __name__ == "__main__":
    main()
