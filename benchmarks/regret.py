"""What the learnt prior is worth: final regret in the paper's worlds and in one that is not linear in z.

`python -m benchmarks.regret` prints the table; the suite holds its claims (tests/policies/test_regret.py).
Ten paired seeds, T = 1000 with the paper's dimensions, T = 2000 on the reward that is not linear in z.
"""

from collections.abc import Callable, Collection
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
    SyntheticEnvironment,
    simulate,
)
from postserve.experiments.figures.choice import NonlinearReward

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
    models = policy._arms.models  # whose columns have their own units; an intercept's is not compared
    blocks = [models.prior.block(name) for name in policy.prior.ridge if name != "intercept"]
    return final, [noise, *(noise / float(models.ridge[block].mean()) for block in blocks)]


Runs = dict[tuple[str, str], list[tuple[float, list[float]]]]


def study(without: Collection[str] = ()) -> Runs:
    """Every cell, by environment and policy, except of policies that are not wanted."""
    wanted = [name for name in policies(SyntheticEnvironment("linear")) if name not in without]
    names = dict.fromkeys(KINDS, wanted)
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
