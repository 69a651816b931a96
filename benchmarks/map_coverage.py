"""How sure maps with something for each arm are: how often phi lies within 1.96 of their deviations.

`python -m benchmarks.map_coverage` prints a table. Arms differ in slope and level around common ones, and
have between no and 60 z. Each share is of coordinates of phi at fresh x, by how many z the arm had.
"""

import argparse
from collections.abc import Callable, Iterable

import numpy as np

from postserve import HybridMap, PerArmMap, RidgeMap
from postserve.types import FloatArray

DIM_X, DIM_Z = 5, 4
PAIRS = np.array([0, 0, 1, 2, 3, 4, 6, 10, 15, 20, 30, 60])
"""The number of z of each arm."""
GROUPS = {"none": (0, 0), "1 to 4": (1, 4), "5 to 20": (5, 20), "more": (21, 60)}
MAPS: dict[str, Callable[[], HybridMap | PerArmMap]] = {
    "HybridMap": lambda: HybridMap(DIM_X, DIM_Z),
    "PerArmMap of RidgeMap": lambda: PerArmMap(RidgeMap(DIM_X, DIM_Z)),
}


def covered(phi_hat: HybridMap | PerArmMap, seed: int) -> FloatArray:
    """The share of coordinates of phi within 1.96 deviations, of each arm of one world."""
    rng, n_arms = np.random.default_rng(seed), len(PAIRS)
    common, own = rng.normal(size=(1, DIM_Z, DIM_X)), rng.normal(size=(n_arms, DIM_Z, DIM_X))
    slopes = (common + 0.5 * own) / np.sqrt(DIM_X)
    levels = 0.5 * rng.normal(size=DIM_Z) + 0.5 * rng.normal(size=(n_arms, DIM_Z))
    for arm in rng.permutation(np.repeat(np.arange(n_arms), PAIRS)).tolist():
        x = rng.normal(size=DIM_X)
        phi_hat.update(x, arm, slopes[arm] @ x + levels[arm] + rng.normal(size=DIM_Z))
    arms, within = range(n_arms), []
    for x in rng.normal(size=(10, DIM_X)):
        off = np.abs(phi_hat.predict(x, arms) - slopes @ x - levels)
        within.append((off <= 1.96 * phi_hat.spread(x, arms)).mean(axis=1))
    return np.asarray(np.mean(within, axis=0))


def coverage(make: Callable[[], HybridMap | PerArmMap], seeds: Iterable[int]) -> dict[str, float]:
    """The mean share over worlds, by the number of z."""
    shares = np.mean([covered(make(), seed) for seed in seeds], axis=0)
    return {
        name: float(shares[(least <= PAIRS) & (most >= PAIRS)].mean())
        for name, (least, most) in GROUPS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=500)
    worlds = parser.parse_args().worlds
    print(f"| z of the arm | {' | '.join(GROUPS)} |")
    print(f"|---|{'---:|' * len(GROUPS)}")
    for name, make in MAPS.items():
        shares = coverage(make, range(worlds)).values()
        print(f"| {name} | {' | '.join(f'{share:.1%}' for share in shares)} |")


if __name__ == "__main__":
    main()
