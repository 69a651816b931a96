"""How often intervals of `evaluate` hold the truth, and how much follow-ups save where rewards are missing.

`python -m benchmarks.evaluation_coverage` prints the tables of docs/evaluation.md, from 1,000 logs each.
In its world, x is one of 500 points, z is 0 or 1 and follows x and the arm, and rewards are 0 or 1: the value
of a policy is known exactly. Logs are served by a policy whose least propensity is 0.1.
"""

import argparse
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from postserve import Evaluation, LoggedRounds, evaluate
from postserve.evaluation import dr_followups, missing_weights, sequence
from postserve.evaluation.columns import columns
from postserve.evaluation.intervals import Kind, interval
from postserve.evaluation.results import term_range
from postserve.evaluation.settings import checked
from postserve.types import FloatArray, IntArray

POINTS, DIM_X, N_ARMS = 500, 3, 3
LEVEL = 0.95
UNIT = (0.0, 1.0)


def sigmoid(values: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-values)))


class Rule:
    """Plays the arm with the best of fixed linear scores, and every arm with some probability."""

    arms = tuple(range(N_ARMS))

    def __init__(self, scores: FloatArray, spread: float) -> None:
        self.scores, self.spread = scores, spread

    def propensities(self, x: FloatArray) -> FloatArray:
        pi = np.full(N_ARMS, self.spread / N_ARMS)
        pi[int((self.scores @ x).argmax())] += 1.0 - self.spread
        return pi


class World:
    """Finite, so that values are sums. `worth` is how much z moves the log-odds of a reward."""

    def __init__(self, worth: float, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.x = rng.normal(size=(POINTS, DIM_X))
        slopes, of_z = rng.normal(size=(2, N_ARMS, DIM_X))
        self.z_chance = sigmoid(self.x @ of_z.T)
        levels = np.stack([self.x @ slopes.T - worth / 2.0, self.x @ slopes.T + worth / 2.0])
        self.reward_chance = sigmoid(levels)  # by z, point and arm
        self.logging = Rule(rng.normal(size=(N_ARMS, DIM_X)), spread=0.3)
        self.served = np.array([self.logging.propensities(x) for x in self.x])
        self.policy = Rule(slopes + 0.5 * rng.normal(size=slopes.shape), spread=0.1)

    def value(self, policy: Rule) -> float:
        pi = np.array([policy.propensities(x) for x in self.x])
        means = self.z_chance * self.reward_chance[1] + (1.0 - self.z_chance) * self.reward_chance[0]
        return float((pi * means).sum(axis=1).mean())

    def log(self, n: int, rng: np.random.Generator, *, gaps: float = 0.0) -> LoggedRounds:
        """n rounds; with gaps, rewards are missing by x, z and the arm: with 1, about half of them."""
        points = rng.integers(POINTS, size=n)
        pi = self.served[points]
        arms: IntArray = (pi.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        z: IntArray = (rng.random(n) < self.z_chance[points, arms]).astype(np.int64)
        rewards = (rng.random(n) < self.reward_chance[z, points, arms]).astype(np.float64)
        if gaps:
            odds = 2.0 * z - 1.0 + 0.5 * self.x[points, 0] + 0.5 * (arms - 1.0)
            comes = sigmoid(gaps * odds + 1.0 - gaps)
            rewards[rng.random(n) >= comes] = np.nan
        return LoggedRounds(
            x=self.x[points],
            z=z[:, None],
            arms=arms,
            rewards=rewards,
            propensities=pi[np.arange(n), arms],
            arm_names=["a", "b", "c"],
        )


def holds(ends: tuple[float, float], truth: float) -> bool:
    return ends[0] <= truth <= ends[1]


def covered(found: Evaluation, kind: Kind, truth: float, seed: int) -> bool:
    """Whether an interval of that kind over the same terms holds the truth."""
    limits: Any = {"interval": kind, "reward_range": UNIT, "max_ratio": 10.0}
    within = term_range(found.settings._replace(**limits), found.support.missing)
    return holds(interval(kind, found.terms, LEVEL, np.random.default_rng(seed), within), truth)


def covered_throughout(world: World, n: int, estimator: Any, rng: np.random.Generator) -> bool:
    """Whether a confidence sequence holds the truth after every round."""
    limits: Any = {"estimator": estimator, "interval": "sequence", "reward_range": UNIT, "max_ratio": 10.0}
    found = evaluate(world.policy, world.log(n, rng), **limits)
    within = term_range(found.settings, 0)
    assert within is not None
    low, high = sequence(found.terms, LEVEL, within)
    truth = world.value(world.policy)
    return bool(((low <= truth) & (truth <= high)).all())


def coverage(logs: int, estimators: Any = ("ips", "snips", "dr", "dr_followups")) -> Iterator[str]:
    world = World(worth=2.0)
    truth = world.value(world.policy)
    kinds: tuple[Kind, ...] = ("normal", "bootstrap", "bernstein")
    yield f"| estimator | rounds | effective | {' | '.join(kinds)} |"
    yield "|---|---:|---:|---:|---:|---:|"
    for estimator in estimators:
        gaps = 1.0 * (estimator == "dr_followups")
        # In 50 rounds with gaps, an arm may have no reward at all, and `evaluate` refuses.
        for n in (200, 400, 1600, 6400) if gaps else (50, 100, 200, 400, 1600):
            shares = dict.fromkeys(kinds, 0)
            effective = 0.0
            for seed in range(logs):
                rng = np.random.default_rng([n, seed])
                options: Any = {"estimator": estimator, "reward_range": UNIT, "seed": seed}
                found = evaluate(world.policy, world.log(n, rng, gaps=gaps), **options)
                effective += found.support.effective_rounds / logs
                for kind in kinds:
                    if kind != "bernstein" or estimator != "snips":
                        shares[kind] += covered(found, kind, truth, seed)
            texts = [f"{share / logs:.1%}" if share else "" for share in shares.values()]
            name = f"`{estimator}`{', gaps' if gaps else ''}"
            yield f"| {name} | {n:,} | {effective:.0f} | {' | '.join(texts)} |"


def sequences(logs: int) -> Iterator[str]:
    world = World(worth=2.0)
    yield "| estimator | rounds | held throughout |"
    yield "|---|---:|---:|"
    for estimator in ("ips", "dr"):
        rngs = (np.random.default_rng([1, seed]) for seed in range(logs))
        share = sum(covered_throughout(world, 2000, estimator, rng) for rng in rngs) / logs
        yield f"| `{estimator}` | 2,000 | {share:.1%} |"


def spread(worth: float, logs: int, n: int = 1000) -> dict[str, tuple[float, float, float]]:
    """Bias, its standard error, and the standard deviation of values, where rewards are missing."""
    world = World(worth=worth)
    truth = world.value(world.policy)
    names = ("dr, no gaps", "dr_followups", "dr, rows weighted", "dr, complete rows")
    without_z = "dr, terms weighted"
    off: dict[str, list[float]] = {name: [] for name in (*names, without_z)}
    for seed in range(logs):
        whole = world.log(n, np.random.default_rng([2, seed]))
        log = world.log(n, np.random.default_rng([2, seed]), gaps=1.0)
        weighted = log.changed(weights=missing_weights(log))
        for name, rounds in zip(names, (whole, log, weighted, log), strict=True):
            estimator: Any = name.partition(",")[0]
            off[name].append(evaluate(world.policy, rounds, estimator=estimator, seed=seed).value - truth)
        (found,) = columns({"policy": world.policy}, [log], checked({"seed": seed}))
        models = (found.direct["policy"], found.predicted, found.predicted, found.arrival)  # m is q: no z
        off[without_z].append(
            float(dr_followups(found.rewards, found.ratios["policy"], *models).mean()) - truth
        )
    return {
        name: (float(np.mean(each)), float(np.std(each) / math.sqrt(logs)), float(np.std(each)))
        for name, each in off.items()
    }


def spreads(logs: int) -> Iterator[str]:
    yield "| z moves log-odds by | estimator | bias | standard deviation |"
    yield "|---:|---|---:|---:|"
    for worth in (0.0, 2.0, 6.0):
        for name, (bias, error, deviation) in spread(worth, logs).items():
            yield f"| {worth:g} | {name} | {bias:+.4f} ± {error:.4f} | {deviation:.4f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--logs", type=int, default=1000)
    logs = parser.parse_args().logs
    for table in (sequences, spreads, coverage):
        for line in table(logs):
            print(line, flush=True)
        print()


if __name__ == "__main__":
    main()
