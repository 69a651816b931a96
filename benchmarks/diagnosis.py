"""Whether `diagnose` is right about synthetic logs with known answers: `python -m benchmarks.diagnosis`.

Each kind of log has a criterion. An answer with a grave objection that the log does not deserve is wrong,
whatever else it says.
"""

import argparse
import datetime
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from rich.progress import track

from postserve import DecisionLog, LoggedRounds, diagnose
from postserve.diagnosis import Diagnosis, gains

ARMS, DIM_X, DIM_Z = 4, 5, 2
ROUNDS = 4_000
FIRST_SEED = 1000
"""Thresholds of the diagnosis and noises of these worlds were chosen by looking at seeds below 20."""
GAMES = gains.WORLDS, gains.RUNS, gains.MOST_RUNS


class World(NamedTuple):
    """Rounds as arrays: x, z, arms and rewards, arms being served at random."""

    x: Any
    z: Any
    arms: Any
    rewards: Any

    def take(self, rows: Any) -> "World":
        return World(*(each[rows] for each in self))

    def log(self) -> LoggedRounds:
        return LoggedRounds(x=self.x, z=self.z, arms=self.arms, rewards=self.rewards, propensities=1 / ARMS)


def draw(
    seed: int,
    rounds: int = ROUNDS,
    *,
    curved: bool = False,
    noise: float = 0.5,
    worth: float = 1.0,
    shift: float = 0.0,
    surrogate: bool = False,
) -> World:
    """z = phi(x) + an offset of the arm + noise, and the reward a line in x and z with weights of each arm.

    If z is a `surrogate`, weights are those of the first arm, x has none, and arms have own slopes in phi.
    """
    rng = np.random.default_rng(seed)
    x, arms = rng.normal(size=(rounds, DIM_X)), rng.integers(ARMS, size=rounds)
    phi = x @ rng.normal(size=(DIM_X, DIM_Z)) / np.sqrt(DIM_X)
    if curved:
        phi = phi**2 - 1.0
    z = phi + shift * rng.normal(size=(ARMS, DIM_Z))[arms] + rng.normal(size=(rounds, DIM_Z))
    theta = 0.5 * rng.normal(size=(ARMS, DIM_X)) / np.sqrt(DIM_X)
    beta = rng.normal(size=(ARMS, DIM_Z))
    beta *= worth / np.linalg.norm(
        beta, axis=1, keepdims=True
    )  # worth as much to each arm, in other directions
    if surrogate:
        theta, beta = np.zeros_like(theta), np.tile(beta[:1], (ARMS, 1))
        z = z + np.einsum("nx,nxz->nz", x, 0.5 * rng.normal(size=(ARMS, DIM_X, DIM_Z))[arms])
    rewards = (x * theta[arms]).sum(axis=1) + (z * beta[arms]).sum(axis=1) + noise * rng.normal(size=rounds)
    return World(x, z, arms, rewards)


def helps_much(seed: int) -> LoggedRounds:
    """phi is curved, and what z is worth differs between arms: LinUCB(x) pays in every round."""
    return draw(seed, curved=True, noise=0.3).log()


def helps_little(seed: int) -> LoggedRounds:
    """phi is a line, and z is a seventh of what x leaves open."""
    return draw(seed, noise=2.5).log()


def cannot_help(seed: int) -> LoggedRounds:
    """z is worth nothing to any arm."""
    return draw(seed, worth=0.0, noise=1.0).log()


def follows_the_arm(seed: int) -> LoggedRounds:
    """Each arm moves z."""
    return draw(seed, shift=1.0).log()


def leaked(seed: int) -> LoggedRounds:
    """One column of z is the reward in other units, all but its rounding."""
    world = draw(seed)
    z = world.z.copy()
    z[:, 1] = np.round(3.0 * world.rewards + 1.0, 1)
    return world._replace(z=z).log()


def drifting(seed: int) -> LoggedRounds:
    """Halfway through, the world becomes another one."""
    before, after = draw(seed), draw(seed + 1_000_000)
    half = np.arange(ROUNDS) >= ROUNDS // 2
    return World(*(np.concatenate([a[~half], b[half]]) for a, b in zip(before, after, strict=True))).log()


def selected_by_outcome(seed: int) -> LoggedRounds:
    """Of the rounds with a reward below the median, only three in ten were kept."""
    world = draw(seed, 2 * ROUNDS)
    kept = (world.rewards > np.median(world.rewards)) | (np.random.default_rng(seed).random(2 * ROUNDS) < 0.3)
    return world.take(kept).log()


def late_rewards(seed: int) -> DecisionLog:
    """z comes within a day or so and makes the reward, which takes more than two of the log's eight weeks."""
    world, rng = draw(seed, shift=1.0, surrogate=True), np.random.default_rng(seed)
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    times = [start + datetime.timedelta(minutes=20 * i) for i in range(ROUNDS)]
    came = [
        [time + datetime.timedelta(days=float(days)) for time, days in zip(times, delays, strict=True)]
        for delays in (rng.exponential(0.5, ROUNDS), 15.0 + rng.exponential(3.0, ROUNDS))
    ]
    in_time = [np.array([each <= times[-1] for each in column]) for column in came]
    table: dict[str, Any] = {
        "decision_id": [str(i) for i in range(ROUNDS)],
        "time": times,
        "arm": [str(arm) for arm in world.arms],
        "propensity": np.full(ROUNDS, 1 / ARMS),
        "reward": np.where(in_time[1], world.rewards, None),
        "z_time": [each if there else None for each, there in zip(came[0], in_time[0], strict=True)],
        "reward_time": [each if there else None for each, there in zip(came[1], in_time[1], strict=True)],
    }
    table |= {f"x.{j}": world.x[:, j] for j in range(DIM_X)}
    table |= {f"z.{j}": np.where(in_time[0], world.z[:, j], None) for j in range(DIM_Z)}
    return DecisionLog.of(table)


def kinds_of(found: Diagnosis) -> set[str]:
    """The kinds of its objections."""
    return {each.kind for each in found.objections}


def numbers_of(found: Diagnosis, name: str) -> dict[str, Any]:
    """The numbers of one finding."""
    return next(each.numbers for each in found.findings if each.name == name)


KINDS: dict[Callable[[int], Any], Callable[[Diagnosis], bool]] = {
    helps_much: lambda found: found.trusted and found.helps == "much",
    helps_little: lambda found: found.trusted and found.helps == "a little",
    cannot_help: lambda found: found.trusted and found.helps == "no",
    follows_the_arm: lambda found: found.trusted and numbers_of(found, "follows")["follows"],
    leaked: lambda found: kinds_of(found) == {"leaked"},
    drifting: lambda found: kinds_of(found) == {"drift"},
    selected_by_outcome: lambda found: kinds_of(found) == {"selected"},
    late_rewards: lambda found: (
        not found.objections and numbers_of(found, "lateness")["late"] and found.helps in ("much", "a little")
    ),
}
"""Each kind, and whether what was said of it is right."""


DECIDED_BY_GAMES = (helps_much, helps_little, cannot_help, late_rewards)
"""The answers to the others do not depend on the gain, so that these play few games."""


def judge(kind: Callable[[int], Any], seed: int) -> dict[str, Any]:
    """One log, diagnosed."""
    gains.WORLDS, gains.RUNS, gains.MOST_RUNS = GAMES if kind in DECIDED_BY_GAMES else (2, 2, 2)
    found = diagnose(kind(seed))
    now = found.gains["now"]
    return {
        "right": bool(KINDS[kind](found)),
        "helps": found.helps,
        "objections": sorted(kinds_of(found)),
        "saved": now.saved,
        "late": found.gains["late"].saved,
    }


def main() -> None:
    """Print one row per kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", default=[kind.__name__ for kind in KINDS])
    args = parser.parse_args()
    print("| kind | right | regret saved at once | if late | said, where wrong |\n|---|---:|---:|---:|---|")
    by_name = {kind.__name__: kind for kind in KINDS}
    for kind in map(by_name.__getitem__, args.kinds):
        cells = (delayed(judge)(kind, FIRST_SEED + seed) for seed in range(args.seeds))
        runs = Parallel(args.workers, return_as="generator")(cells)
        rows = list(track(runs, kind.__name__, args.seeds, transient=True))
        wrong = sorted({f"{row['helps']} {' '.join(row['objections'])}" for row in rows if not row["right"]})
        means = (np.mean([row[each] for row in rows]) for each in ("saved", "late"))
        saved = [f"{mean:.0%}" if kind in DECIDED_BY_GAMES else "" for mean in means]
        right = f"{sum(row['right'] for row in rows)} of {len(rows)}"
        cells_of_row = [kind.__name__.replace("_", " "), right, *saved, "; ".join(wrong)]
        print(f"| {' | '.join(cells_of_row)} |", flush=True)


if __name__ == "__main__":
    main()
