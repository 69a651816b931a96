"""What the learnt prior is worth: final regret in the paper's worlds and in one that is not linear in z.

`python -m benchmarks.regret` prints the table; the suite holds its claims (tests/policies/test_regret.py).
Ten paired seeds, T = 1000 with the paper's dimensions, T = 2000 on the reward that is not linear in z.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from postserve import (
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    PoLinUCB,
    RidgeMap,
    RobustPoLinUCB,
    Rounds,
    SyntheticEnvironment,
    simulate,
)

SEEDS = 10
KINDS = ("polynomial", "periodic", "linear")
RADII = (0.1, 0.3, 1.0)


def policies(env: Any) -> dict[str, Any]:
    def phi_hat(ridge: Any = "evidence") -> RidgeMap:
        return RidgeMap(env.dim_x, env.dim_z, features=env.features, ridge=ridge)

    def with_radius(radius: float) -> PoLinUCB:
        return PoLinUCB(env.n_arms, phi_hat(1.0), ridge=1.0, arm_radius=radius)

    made: dict[str, Callable[[], Any]] = {
        "PoLinUCB": lambda: PoLinUCB(env.n_arms, phi_hat()),
        "RobustPoLinUCB": lambda: RobustPoLinUCB(env.n_arms, phi_hat()),
        "LinUCB": lambda: LinUCB(env.n_arms, env.dim_x),
        "LinUCBPhiHat before": lambda: LinUCBPhiHat(env.n_arms, phi_hat()),
        "LinUCBPhiHat after": lambda: LinUCBPhiHat(env.n_arms, phi_hat(), prediction="after"),
        "LinUCBOracle": lambda: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z),
    }
    for radius in RADII:
        made[f"ridge 1, radius {radius}"] = partial(with_radius, radius)
    return made


def run(kind: Any, seed: int, name: str) -> tuple[float, list[float]]:
    """Final regret, and (sigma², tau_x², tau_z², …) as learnt."""
    env: Any = NonlinearReward(seed) if kind == "nonlinear" else SyntheticEnvironment(kind, seed=seed)
    policy = policies(env)[name]()
    final = float(simulate(policy, env, 2000 if kind == "nonlinear" else 1000, seed).regret[-1])
    policy.refit_prior()
    noise = float(policy.prior.noise_variance[0])
    return final, [noise, *(noise / ridge for ridge in policy.prior.ridge.values())]


class NonlinearReward:
    """A reward that is linear in x and in max(z, 0), z skewed around phi(x) = 2|x|W.

    x is N(0, I_10), 5 arms, W of 10 x 3 is N(0, 1/9), z = phi + Exp(1) - 1, reward =
    0.2 theta·x + beta·max(z, 0) + N(0, 0.1²) with theta and beta standard normal.
    """

    dim_x, dim_z, n_arms = 10, 3, 5

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.W = rng.standard_normal((10, 3)) / 3.0
        self.theta, self.beta = rng.standard_normal((5, 10)), rng.standard_normal((5, 3))

    @staticmethod
    def features(x: Any) -> Any:
        return np.concatenate([[1.0], x, np.abs(x)])

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        x = rng.standard_normal((n, 10))
        phi = 2.0 * np.abs(x) @ self.W
        z = phi + rng.exponential(size=(n, 3)) - 1.0
        positive = np.where(phi >= 1.0, phi, np.exp(np.minimum(phi, 1.0) - 1.0))  # E max(phi + Exp - 1, 0)
        base = 0.2 * x @ self.theta.T
        rewards = base + np.maximum(z, 0.0) @ self.beta.T + 0.1 * rng.standard_normal((n, 1))
        return Rounds(x, z, rewards, base + positive @ self.beta.T)


Runs = dict[tuple[str, str], list[tuple[float, list[float]]]]


def study() -> Runs:
    """Every cell, by environment and policy."""
    names = {kind: list(policies(SyntheticEnvironment("linear"))) for kind in KINDS}
    names["nonlinear"] = [name for name in names["linear"] if not name.startswith("ridge")]
    cells = [(kind, seed, name) for kind in names for name in names[kind] for seed in range(SEEDS)]
    results = Parallel(n_jobs=2)(delayed(run)(*cell) for cell in cells)
    found: Runs = {}
    for (kind, _, name), result in zip(cells, results, strict=True):
        found.setdefault((kind, name), []).append(result)
    return found


def main() -> None:
    """Print the study as a Markdown table."""
    print("| environment | policy | regret | se | less PoLinUCB's, paired | se | sigma² | tau² per block |")
    print("|---|---|---:|---:|---:|---:|---:|---|")
    runs = study()
    for (kind, name), cells in runs.items():
        final = np.array([cell[0] for cell in cells])
        paired = final - [cell[0] for cell in runs[kind, "PoLinUCB"]]
        variances = np.array([cell[1] for cell in cells])
        learnt = np.exp(np.log(variances).mean(axis=0)) if variances.all() else []
        texts = [f"{value:.4g}" for value in learnt] or ["", ""]
        numbers = [final.mean(), _error(final), paired.mean(), _error(paired)]
        columns = [kind, name, *(f"{value:.0f}" for value in numbers), texts[0], ", ".join(texts[1:])]
        print(f"| {' | '.join(columns)} |")


def _error(values: Any) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


if __name__ == "__main__":
    main()
