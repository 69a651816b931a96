"""A course site where the course and the country together move z, and z makes the reward.

`python -m benchmarks.course_site` prints the mean reward per round. One map for all arms cannot express which
course suits which country, so that all courses look alike to it; `HybridMap` can.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve import HybridMap, LinUCB, PoLinUCB, RandomPolicy, RidgeMap, simulate
from postserve.types import FloatArray, Rounds

COURSES, COUNTRIES = 12, 8
WORTH = np.array([0.06, 0.03])
"""By how much one unit of each entry of z raises the chance to finish the course."""


class CourseSite:
    """x is a country, one-hot, and experience; z is the first week's lessons and quiz, in standard units.

    z_a = suits[a, country] + 0.5·experience + N(0, I), with standard normal `suits`; a course is finished,
    reward 1, with probability 1/3 + z·WORTH, whatever the course.
    """

    n_arms, dim_x, dim_z = COURSES, COUNTRIES + 1, len(WORTH)

    def __init__(self, seed: int) -> None:
        self.suits = np.random.default_rng([seed, COURSES]).standard_normal((COUNTRIES, COURSES, self.dim_z))

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x], one row per course."""
        return np.asarray(self._phi(np.asarray(x, dtype=np.float64)[None])[0])

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """The chance of each course to be finished, at phi(x)."""
        return _chances(self.phi(x))

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n visitors, with one uniform number each that decides about the reward of all courses."""
        countries = np.eye(COUNTRIES)[rng.integers(COUNTRIES, size=n)]
        X = np.column_stack([countries, rng.standard_normal(n)])
        phi = self._phi(X)
        Z = phi + rng.standard_normal(phi.shape)
        rewards = (rng.random((n, 1)) < _chances(Z)).astype(np.float64)
        return Rounds(X, Z, rewards, _chances(phi))

    def _phi(self, X: FloatArray) -> FloatArray:
        moved = np.einsum("nc,caz->naz", X[:, :COUNTRIES], self.suits)
        return np.asarray(moved + 0.5 * X[:, COUNTRIES, None, None])


def _chances(Z: FloatArray) -> FloatArray:
    return np.asarray(np.clip(1.0 / 3.0 + Z @ WORTH, 0.0, 1.0))


POLICIES: dict[str, Callable[[CourseSite], Any]] = {
    "Random": lambda site: RandomPolicy(site.n_arms),
    "LinUCB(x)": lambda site: LinUCB(site.n_arms, site.dim_x),
    "PoLinUCB, RidgeMap": lambda site: PoLinUCB(site.n_arms, RidgeMap(site.dim_x, site.dim_z)),
    "PoLinUCB, HybridMap": lambda site: PoLinUCB(site.n_arms, HybridMap(site.dim_x, site.dim_z)),
    "PoLinUCB, HybridMap, posterior": lambda site: PoLinUCB(
        site.n_arms, HybridMap(site.dim_x, site.dim_z), optimism="posterior"
    ),
}


def earned(name: str, horizon: int, seeds: int) -> FloatArray:
    """The mean reward per round of each seed; all policies of a seed meet the same visitors."""
    sites = [CourseSite(seed) for seed in range(seeds)]
    runs = [simulate(POLICIES[name](site), site, horizon, seed) for seed, site in enumerate(sites)]
    return np.array([run.rewards.mean() for run in runs])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--horizon", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=8)
    options = vars(parser.parse_args())
    x_only = earned("LinUCB(x)", **options)
    print("| policy | reward per round | minus LinUCB(x), ± standard error |")
    print("|---|---:|---:|")
    for name in POLICIES:
        rewards = x_only if name == "LinUCB(x)" else earned(name, **options)
        off = rewards - x_only
        error = off.std(ddof=1) / np.sqrt(len(off))
        print(f"| {name} | {rewards.mean():.3f} | {off.mean():+.3f} ± {error:.3f} |")


if __name__ == "__main__":
    main()
