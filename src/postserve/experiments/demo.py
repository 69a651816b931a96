"""Every policy on a small polynomial environment: `make demo`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from postserve.context_maps import RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.policies import (
    EpsilonGreedy,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    PoLinUCB,
    RandomPolicy,
    RobustPoLinUCB,
)
from postserve.types import FloatArray

DIM_X, DIM_Z, N_ARMS, HORIZON, SEEDS = 20, 5, 5, 1000, 5
OUT = Path("out/demo")


def policies(env: SyntheticEnvironment) -> dict[str, Callable[[], Any]]:
    """All policies, those with a map on the environment's own features."""

    def phi_hat() -> RidgeMap:
        return RidgeMap(DIM_X, DIM_Z, features=env.features)

    return {
        "Random": lambda: RandomPolicy(N_ARMS),
        "LinUCB (x only)": lambda: LinUCB(N_ARMS, DIM_X),
        "EpsilonGreedy(PoLinUCB, 5%)": lambda: EpsilonGreedy(PoLinUCB(N_ARMS, phi_hat()), epsilon=0.05),
        "LinUCBPhiHat (before)": lambda: LinUCBPhiHat(N_ARMS, phi_hat()),
        "LinUCBPhiHat (after)": lambda: LinUCBPhiHat(N_ARMS, phi_hat(), prediction="after"),
        "PoLinUCB": lambda: PoLinUCB(N_ARMS, phi_hat()),
        "RobustPoLinUCB": lambda: RobustPoLinUCB(N_ARMS, phi_hat()),
        "LinUCBOracle (sees z early)": lambda: LinUCBOracle(N_ARMS, DIM_X, DIM_Z),
    }


def regret(policy: Any, env: SyntheticEnvironment, horizon: int, seed: int) -> FloatArray:
    """Cumulative regret at phi(x) over one run; all policies of one seed meet the same rounds."""
    rounds_seed, policy_seed = np.random.SeedSequence(seed).spawn(2)
    rounds, rng = env.rounds(horizon, np.random.default_rng(rounds_seed)), np.random.default_rng(policy_seed)
    gaps = np.empty(horizon)
    for t, (x, z, rewards, means) in enumerate(zip(*rounds, strict=True)):
        early = {"z": z} if isinstance(policy, LinUCBOracle) else {}
        arm = policy.select(x, rng, **early).arm
        policy.update(x, arm, z, float(rewards[arm]))
        gaps[t] = means.max() - means[arm]
    return np.cumsum(gaps)


def main() -> None:
    """Run, show the table, and write the report."""
    console = Console()
    console.print(
        f"polynomial phi, x in {DIM_X} dimensions, z in {DIM_Z}, {N_ARMS} arms, "
        f"{HORIZON} rounds, {SEEDS} seeds; every policy with its defaults"
    )
    names = list(policies(SyntheticEnvironment("polynomial")))
    final: dict[str, list[float]] = {name: [] for name in names}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=SEEDS * len(names))
        for seed in range(SEEDS):
            env = SyntheticEnvironment("polynomial", dim_x=DIM_X, dim_z=DIM_Z, n_arms=N_ARMS, seed=seed)
            for name, make in policies(env).items():
                progress.update(task, description=f"seed {seed}, {name}")
                final[name].append(float(regret(make(), env, HORIZON, seed)[-1]))
                progress.advance(task)
    console.print(_table(final))
    console.print(f"report: {_write_report(final)}")


def _table(final: dict[str, list[float]]) -> Table:
    table = Table("policy", title="final regret")
    table.add_column("mean", justify="right")
    table.add_column("standard error", justify="right")
    for name, mean, error in _summary(final):
        table.add_row(name, f"{mean:.0f}", f"{error:.0f}")
    return table


def _summary(final: dict[str, list[float]]) -> list[tuple[str, float, float]]:
    return [
        (name, float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values))))
        for name, values in final.items()
    ]


def _write_report(final: dict[str, list[float]]) -> Path:
    OUT.mkdir(parents=True, exist_ok=True)
    rows = [f"| {name} | {mean:.0f} | {error:.0f} |" for name, mean, error in _summary(final)]
    settings = {"dim_x": DIM_X, "dim_z": DIM_Z, "n_arms": N_ARMS, "horizon": HORIZON, "seeds": SEEDS}
    text = "\n".join(
        [
            "# Regret on a polynomial environment",
            "",
            f"`make demo`, {json.dumps(settings)}, all policies with their defaults.",
            "",
            "| policy | mean final regret | standard error |",
            "|---|---:|---:|",
            *rows,
            "",
        ]
    )
    (OUT / "runs.json").write_text(json.dumps({"settings": settings, "final_regret": final}, indent=1))
    report = OUT / "report.md"
    report.write_text(text)
    return report


if __name__ == "__main__":
    main()
