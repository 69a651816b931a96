"""Every policy on a small polynomial environment: `make demo`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.table import Table
except ModuleNotFoundError as missing:
    raise SystemExit("rich is not installed, wanted: pip install 'postserve[experiments]'") from missing

from postserve.context_maps import NetworkMap, RidgeMap
from postserve.environments import SyntheticEnvironment
from postserve.environments.synthetic import polynomial
from postserve.experiments.runner import regret
from postserve.policies import (
    EpsilonGreedy,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    PoLinUCB,
    RandomPolicy,
    RobustPoLinUCB,
)

DIM_X, DIM_Z, N_ARMS, HORIZON, SEEDS = 20, 5, 5, 1000, 5
OUT = Path("out/demo")
INTRODUCTION = (
    f"Polynomial phi: x in {DIM_X} dimensions, z in {DIM_Z}, {N_ARMS} arms, {HORIZON} rounds, {SEEDS} seeds. "
    "Policies have their defaults; unless a row says otherwise, the map is given h, the features in which "
    "phi is linear, as in the paper's experiments."
)


class Entry(NamedTuple):
    """A row of the table: a policy, and whether it is given h(x) beside x as its context."""

    make: Callable[[], Any]
    with_features: bool = False


def entries(env: SyntheticEnvironment) -> dict[str, Entry]:
    """All policies with their defaults; h is the environment's own feature map, phi = W^T h."""

    def phi_hat() -> RidgeMap:
        return RidgeMap(DIM_X, DIM_Z, features=env.features)

    return {
        "Random": Entry(lambda: RandomPolicy(N_ARMS)),
        "LinUCB on x": Entry(lambda: LinUCB(N_ARMS, DIM_X)),
        "LinUCB on (x, h(x))": Entry(lambda: LinUCB(N_ARMS, 2 * DIM_X), with_features=True),
        "PoLinUCB, phi linear in x (misspecified)": Entry(lambda: PoLinUCB(N_ARMS, RidgeMap(DIM_X, DIM_Z))),
        "PoLinUCB, phi by a network on x": Entry(lambda: PoLinUCB(N_ARMS, NetworkMap(DIM_X, DIM_Z))),
        "EpsilonGreedy(PoLinUCB), 5%": Entry(
            lambda: EpsilonGreedy(PoLinUCB(N_ARMS, phi_hat()), epsilon=0.05)
        ),
        "LinUCBPhiHat, before": Entry(lambda: LinUCBPhiHat(N_ARMS, phi_hat())),
        "LinUCBPhiHat, after": Entry(lambda: LinUCBPhiHat(N_ARMS, phi_hat(), prediction="after")),
        "PoLinUCB": Entry(lambda: PoLinUCB(N_ARMS, phi_hat())),
        "RobustPoLinUCB": Entry(lambda: RobustPoLinUCB(N_ARMS, phi_hat())),
        "LinUCBOracle, sees z early": Entry(lambda: LinUCBOracle(N_ARMS, DIM_X, DIM_Z)),
    }


def main() -> None:
    """Run, show the table, and write the report."""
    console = Console()
    console.print(INTRODUCTION)
    names = list(entries(SyntheticEnvironment("polynomial")))
    final: dict[str, list[float]] = {name: [] for name in names}
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=SEEDS * len(names))
        for seed in range(SEEDS):
            env = SyntheticEnvironment("polynomial", dim_x=DIM_X, dim_z=DIM_Z, n_arms=N_ARMS, seed=seed)
            first, *streams = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(1 + len(names)))
            rounds = env.rounds(HORIZON, first)  # the same for every policy: differences are paired
            for (name, entry), rng in zip(entries(env).items(), streams, strict=True):
                progress.update(task, description=f"seed {seed}, {name}")
                seen = np.hstack([rounds.x, polynomial(rounds.x)]) if entry.with_features else rounds.x
                final[name].append(float(regret(entry.make(), rounds._replace(x=seen), rng)[-1]))
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
            INTRODUCTION,
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
