"""What LinUCB(phi_hat) pays for the noise of z, and poLinUCB does not.

`python -m benchmarks.equal_betas` prints the regret of both after 4,000 rounds, over reward noises and arms.
All arms have the same beta, so z says nothing about which arm is best: it is noise to LinUCB(phi_hat), which
regresses rewards on predictions of z, while poLinUCB regresses them on z itself.
"""

from collections.abc import Callable

import numpy as np

from postserve import LinUCBPhiHat, PoLinUCB, RidgeMap, SyntheticEnvironment, simulate
from postserve.types import FloatArray

HORIZON, SEEDS = 4000, 10
DIM_X, DIM_Z = 2, 1
NOISES, NUMBERS = (0.01, 0.1, 1.0), (4, 16)
POLICIES: dict[str, Callable[[int], PoLinUCB]] = {
    "LinUCB(phi_hat)": lambda n_arms: LinUCBPhiHat(n_arms, RidgeMap(DIM_X, DIM_Z)),
    "poLinUCB": lambda n_arms: PoLinUCB(n_arms, RidgeMap(DIM_X, DIM_Z)),
}


class EqualBetas(SyntheticEnvironment):
    """r = 0.1 x·theta_a + z + eta, ||theta_a|| = 1, z = x_1 + N(0, 1), x uniform on [-1, 1]²."""

    def __init__(self, n_arms: int, reward_noise: float, seed: int) -> None:
        super().__init__(
            lambda X: X[:, :1], dim_x=DIM_X, dim_z=DIM_Z, n_arms=n_arms, reward_noise=reward_noise, seed=seed
        )
        self.theta, self.beta = 0.1 * self.theta, np.ones_like(self.beta)

    def _contexts(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1.0, 1.0, size=(n, self.dim_x))


def regrets(policy: str, n_arms: int, reward_noise: float, *, seeds: int = SEEDS) -> FloatArray:
    """The regret after all rounds, one number per seed."""
    worlds = [EqualBetas(n_arms, reward_noise, seed) for seed in range(seeds)]
    runs = [
        simulate(POLICIES[policy](n_arms), world, horizon=HORIZON, seed=seed)
        for seed, world in enumerate(worlds)
    ]
    return np.array([run.regret[-1] for run in runs])


def main() -> None:
    print("| arms | reward noise |", " | ".join(POLICIES), "|\n|---:|---:|" + "---:|" * len(POLICIES))
    for n_arms in NUMBERS:
        for noise in NOISES:
            found = [regrets(policy, n_arms, noise) for policy in POLICIES]
            words = [f"{each.mean():.1f} ± {each.std(ddof=1) / np.sqrt(len(each)):.1f}" for each in found]
            print(f"| {n_arms} | {noise:g} |", " | ".join(words), "|")


if __name__ == "__main__":
    main()
