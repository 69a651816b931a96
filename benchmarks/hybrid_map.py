"""What `HybridMap` costs where arms share phi, and what it is worth where they do not.

`python -m benchmarks.hybrid_map` prints the final regret of PoLinUCB on it over that on another map, paired
over seeds: in figure 1's worlds over `RidgeMap`, where arms have nothing in common over `PerArmMap`, and
where z is shifted for each arm by 0, 2 and 6 times a standard normal, over the unshifted world and over the
same world with phi known: a shift moves the rewards of the arms as well, and so how far they are apart.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve import HybridMap, PerArmMap, PoLinUCB, RidgeMap, SyntheticEnvironment, simulate
from postserve.types import FloatArray, Rounds

KINDS = ("polynomial", "periodic", "linear")
DIM_X, DIM_Z, ARMS = 10, 3, 5


class OwnPhi:
    """x is N(0, I), z_a = (common B_0 + own B_a)^T x + shift b_a + N(0, I), rewards N(·, 0.5²).

    Entries of the B are N(0, 1/dim_x), those of the b_a N(0, 1); weights of x and of z are on unit spheres,
    and each arm has its own.
    """

    n_arms, dim_x, dim_z = ARMS, DIM_X, DIM_Z

    def __init__(self, seed: int, *, common: float = 1.0, own: float = 0.0, shift: float = 0.0) -> None:
        rng = np.random.default_rng([seed, ARMS])
        shared, apart = rng.normal(size=(1, DIM_Z, DIM_X)), rng.normal(size=(ARMS, DIM_Z, DIM_X))
        self.slopes = (common * shared + own * apart) / np.sqrt(DIM_X)
        self.levels = shift * rng.normal(size=(ARMS, DIM_Z))
        self.theta, self.beta = (_unit(rng.normal(size=(ARMS, dim))) for dim in (DIM_X, DIM_Z))

    def phi(self, x: npt.ArrayLike) -> FloatArray:
        """E[z|x], one row per arm."""
        return np.asarray(self._phi(np.asarray(x, dtype=np.float64)[None])[0])

    def means(self, x: npt.ArrayLike) -> FloatArray:
        """At phi(x)."""
        X = np.asarray(x, dtype=np.float64)[None]
        return np.asarray(self._rewards(X, self._phi(X))[0])

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        """n rounds, as potential outcomes."""
        X = rng.normal(size=(n, DIM_X))
        phi = self._phi(X)
        Z = phi + rng.normal(size=phi.shape)
        return Rounds(X, Z, self._rewards(X, Z) + 0.5 * rng.normal(size=(n, ARMS)), self._rewards(X, phi))

    def _phi(self, X: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("azx,nx->naz", self.slopes, X) + self.levels)

    def _rewards(self, X: FloatArray, Z: FloatArray) -> FloatArray:
        return np.asarray(X @ self.theta.T + np.vecdot(Z, self.beta))


class KnownPhi:
    """The true phi of such a world."""

    dim_x, dim_z = DIM_X, DIM_Z

    def __init__(self, env: OwnPhi) -> None:
        self._env = env

    def predict(self, x: npt.ArrayLike, arms: Sequence[int]) -> FloatArray:
        """One row per arm."""
        return self._env.phi(x)[list(arms)]

    def radius(self, x: npt.ArrayLike, arms: Sequence[int]) -> FloatArray:
        """It is certain."""
        return np.zeros(len(arms))

    def sample(
        self, x: npt.ArrayLike, arms: Sequence[int], rng: np.random.Generator, size: int | None = None
    ) -> FloatArray:
        """As it is certain, every draw is the same."""
        drawn = self.predict(x, arms)
        return drawn if size is None else np.repeat(drawn[None], size, axis=0)

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Nothing is left to learn."""


def _unit(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def regrets(
    world: Callable[[int], Any], phi_hat: Callable[[Any], Any], horizon: int, seeds: int
) -> FloatArray:
    """The final regret of each seed."""
    found = []
    for seed in range(seeds):
        env = world(seed)
        found.append(simulate(PoLinUCB(env.n_arms, phi_hat(env)), env, horizon, seed).regret[-1])
    return np.array(found)


def line(name: str, ours: FloatArray, other: FloatArray) -> str:
    """The ratio of the means, with the standard error of the paired difference in the other's units."""
    mean, base = ours.mean(), other.mean()
    error = (ours - other).std(ddof=1) / np.sqrt(len(ours)) / base
    return f"| {name} | {mean:.0f} | {base:.0f} | {mean / base:.3f} ± {error:.3f} |"


def hybrid(env: OwnPhi) -> HybridMap:
    return HybridMap(env.dim_x, env.dim_z)


def per_arm(env: OwnPhi) -> PerArmMap:
    return PerArmMap(RidgeMap(env.dim_x, env.dim_z))


def given_h(kind: type[HybridMap] | type[RidgeMap], env: SyntheticEnvironment) -> HybridMap | RidgeMap:
    """As in figure 1."""
    return kind(env.dim_x, env.dim_z, features=env.features, intercept=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    print("| world | HybridMap | other | ratio, ± standard error |\n|---|---:|---:|---:|")
    for phi in KINDS:
        ours, other = (
            regrets(partial(_figure1, phi), partial(given_h, kind), 1000, seeds)
            for kind in (HybridMap, RidgeMap)
        )
        print(line(f"{phi}, over RidgeMap", ours, other), flush=True)
    apart = partial(OwnPhi, common=0.0, own=1.0)
    ours, other = (regrets(apart, phi_hat, 3000, 2 * seeds) for phi_hat in (hybrid, per_arm))
    print(line("nothing in common, over PerArmMap", ours, other), flush=True)
    shifted = {shift: partial(OwnPhi, shift=shift) for shift in (0.0, 2.0, 6.0)}
    found = {shift: regrets(world, hybrid, 3000, 2 * seeds) for shift, world in shifted.items()}
    for shift, world in shifted.items():
        print(line(f"z shifted by {shift:g}, over unshifted", found[shift], found[0.0]), flush=True)
        known = regrets(world, KnownPhi, 3000, 2 * seeds)
        print(line(f"z shifted by {shift:g}, over phi known", found[shift], known), flush=True)


def _figure1(phi: Any, seed: int) -> SyntheticEnvironment:
    return SyntheticEnvironment(phi, seed=seed)


if __name__ == "__main__":
    main()
