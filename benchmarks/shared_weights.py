"""How many arms candidates with common weights count as, by simulation: prior and noise are known here.

`python -m benchmarks.shared_weights` prints regret after 1,000 rounds with k of several kinds in
beta_t = sqrt(max(1, m_k)² + log(1 + t/n_weights)), and with constants, over that of the best constant of each
world: 10 to 100,000 candidates in 1 to 100 dimensions, the same in all rounds or fresh in each.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numba import njit

from postserve.confidence import posterior_exploration
from postserve.types import FloatArray

HORIZON, CONSTANTS = 1000, (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
NUMBERS, DIMS, NOISES = (10, 100, 1_000, 10_000, 100_000), (1, 3, 10, 30, 100), (0.1, 1.0)
SPHERE, GAUSSIAN, CLUSTERS, ONE_HOT = range(4)
KINDS = ("sphere", "Gaussian", "five clusters", "one-hot")
MOST = {False: 300_000, True: 150_000}
"""The largest price of a round with fixed candidates, and with fresh ones."""


class World(NamedTuple):
    """Candidates of a kind, the same in all rounds or fresh in each, and the noise of rewards."""

    kind: int
    fresh: bool
    n: int
    dim: int
    noise: float

    @property
    def price(self) -> int:
        """Roughly the operations of a round; fresh candidates are drawn, and projected anew."""
        return self.n * (self.dim**2 + 20 if self.fresh else self.dim)

    @property
    def seeds(self) -> int:
        """Fewer where a run takes long."""
        return max(2, min(8, MOST[False] // self.price))


Rule = Callable[[World, int], float]
"""The multiplier of the posterior standard deviation, in a world after so many rounds."""


def _constant(constant: float, world: World, t: int) -> float:
    return constant


RULES: dict[str, Rule] = {
    **{f"{constant:g} sd": partial(_constant, constant) for constant in CONSTANTS},
    "k = n, n·dim weights": lambda world, t: posterior_exploration(world.n, world.n * world.dim, t),
    "k = n": lambda world, t: posterior_exploration(world.n, world.dim, t),
    "k = 1": lambda world, t: posterior_exploration(1, world.dim, t),
    "k = 4 dim": lambda world, t: posterior_exploration(min(world.n, 4 * world.dim), world.dim, t),
    "k = dim, in use": lambda world, t: posterior_exploration(min(world.n, world.dim), world.dim, t),
}


@njit(cache=True)
def candidates(kind: int, n: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """One row per candidate, of length about 1."""
    U = rng.standard_normal((n, dim))
    if kind == CLUSTERS:
        centres = rng.standard_normal((5, dim))
        for i in range(n):
            U[i] = centres[i % 5] + 0.3 * U[i]
    for i in range(n):
        U[i] /= math.sqrt(dim) if kind == GAUSSIAN else math.sqrt(np.dot(U[i], U[i]))
    if kind == ONE_HOT:
        U[:] = 0.0
        order = rng.permutation(dim)
        for i in range(n):
            U[i, order[i % dim]] = 1.0
    return U


@njit(cache=True)
def regret(
    kind: int, fresh: bool, n: int, dim: int, noise: float, betas: FloatArray, rng: np.random.Generator
) -> float:
    """r = u·w + noise, w ~ N(0, I); the largest posterior mean + beta·deviation is served."""
    w, w_hat, covariance, total = rng.standard_normal(dim), np.zeros(dim), np.eye(dim), 0.0
    for t, beta in enumerate(betas):
        if fresh or t == 0:
            U = candidates(kind, n, dim, rng)
            truth, means, variances = U @ w, U @ w_hat, ((U @ covariance) * U).sum(axis=1)
        served = np.argmax(means + beta * np.sqrt(np.maximum(variances, 0.0)))
        total += truth.max() - truth[served]
        v, scale = covariance @ U[served], variances[served] + noise**2
        step = (truth[served] + noise * rng.standard_normal() - means[served]) / scale
        covariance -= np.outer(v, v) / scale
        w_hat += step * v
        if not fresh:
            change = U @ v
            means += step * change
            variances -= change**2 / scale
    return total


def worlds() -> Iterator[World]:
    """All that are not too large, and not alike: one-hot sets beyond dim, large sets in one dimension."""
    for each in product(range(len(KINDS)), (False, True), NUMBERS, DIMS, NOISES):
        world = World(*each)
        most = world.dim if world.kind == ONE_HOT else 1_000 if world.dim == 1 else world.n
        if world.price <= MOST[world.fresh] and world.n <= most:
            yield world


def mean_regrets(world: World) -> list[float]:
    """Of each rule, over seeds."""
    betas = [np.array([rule(world, t) for t in range(HORIZON)]) for rule in RULES.values()]
    seeds = range(world.seeds)
    return [
        float(np.mean([regret(*world, each, np.random.default_rng(seed)) for seed in seeds]))
        for each in betas
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    processes, found = parser.parse_args().processes, list(worlds())
    regrets = np.maximum(Parallel(n_jobs=processes)(delayed(mean_regrets)(world) for world in found), 0.01)
    ratios = regrets / regrets[:, : len(CONSTANTS)].min(axis=1, keepdims=True)
    parts: dict[str, list[bool]] = {
        **{f"{name}, {'fresh' if fresh else 'fixed'}": [w.kind == kind and w.fresh == fresh for w in found]
           for (kind, name), fresh in product(enumerate(KINDS), (False, True))},
        **{f"{n:,} candidates": [w.n == n for w in found] for n in NUMBERS},
        **{f"{dim} dimensions": [w.dim == dim for w in found] for dim in DIMS},
        "all": [True] * len(found),
    }  # fmt: skip
    print("geometric mean, and the largest ratio, over the worlds of a row")
    print(f"| worlds | {' | '.join(RULES)} |\n|---|{'---:|' * len(RULES)}")
    for name, part in parts.items():
        cells = (f"{np.exp(np.log(each).mean()):.2f}, {each.max():.1f}" for each in ratios[part].T)
        print(f"| {name} ({sum(part)}) | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
