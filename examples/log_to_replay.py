"""From a CSV log to a replay: what a policy would have earned on rounds served at random."""

import csv
import tempfile
from pathlib import Path

import numpy as np

from postserve import LinUCB, PoLinUCB, RidgeMap, from_frame, replay

ROWS, REPEATS = 3000, 10


def write_log(path, rng):
    """A made-up log: offers at random, the minutes watched later (whatever was offered), the revenue."""
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["age", "plan", "offer", "minutes", "revenue"])
        for _ in range(ROWS):
            age, plan = rng.integers(18, 80), rng.choice(["free", "basic", "full"])
            offer = rng.choice(["call", "mail", "none"])
            minutes = 60 - 0.5 * age + 10 * (plan == "full") + 15 * rng.normal()
            worth = {"call": 0.03, "mail": -0.02, "none": 0.0}[offer]  # a call pays where much is watched
            table.writerow([age, plan, offer, minutes, worth * (minutes - 35) + 0.2 * rng.normal()])


with tempfile.TemporaryDirectory() as folder:
    write_log(Path(folder) / "offers.csv", np.random.default_rng(0))
    log = from_frame(
        Path(folder) / "offers.csv",
        x=["age", "plan"],
        categories="plan",
        z="minutes",
        arm="offer",
        reward="revenue",
        propensity=1 / 3,
    )

policies = {
    "LinUCB on x": lambda: LinUCB(log.n_arms, log.dim_x),
    "poLinUCB": lambda: PoLinUCB(log.n_arms, RidgeMap(log.dim_x, log.dim_z)),
}
print(f"{log.n_arms} arms, {len(log):,} rows; mean revenue as served: {log.rewards.mean():.3f}")
for name, make in policies.items():
    found = [replay(make(), log, np.random.default_rng(seed)) for seed in range(REPEATS)]
    rows = np.mean([len(each.rows) for each in found])
    print(
        f"{name}: {np.mean([each.value for each in found]):.3f} per round, over {rows:,.0f} rows that matched"
    )
