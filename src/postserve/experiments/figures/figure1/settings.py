"""Figure 1's worlds and policies."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from postserve.environments import SyntheticEnvironment
from postserve.experiments.contenders import PAPER_RADIUS, evidence_policies, paper_policies
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakeEnvironment, regret_cells, seed_list

KINDS = ("polynomial", "periodic", "linear")
PAPER = {"dim_x": 100, "dim_z": 5, "n_arms": 10}
SMALL = {"dim_x": 20, "dim_z": 5, "n_arms": 5}

SIZE = Size(horizon=5000, seeds=10, quick=False)
QUICK = Size(horizon=500, seeds=5, quick=True)


def environments(quick: bool, **options: Any) -> dict[str, MakeEnvironment]:
    """The three phi, in the paper's dimensions or in few."""
    return {kind: partial(_world, kind, {**(SMALL if quick else PAPER), **options}) for kind in KINDS}


def _world(kind: Any, options: Mapping[str, Any], seed: int) -> SyntheticEnvironment:
    return SyntheticEnvironment(kind, seed=seed, **options)


def cells(size: Size, **options: Any) -> list[Cell]:
    """Every policy in every world."""
    policies = {**paper_policies(), **evidence_policies()}
    return regret_cells(environments(size.quick, **options), policies, size.horizon, seed_list(size.seeds))


def horizons(horizon: int) -> list[int]:
    """Where results are told: the paper's T = 1000 on the way to a longer one."""
    return [1000, horizon] if horizon > 1000 else [horizon]


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    dims = SMALL if size.quick else PAPER
    return {
        "x": f"uniform on [-10, 10]^{dims['dim_x']}",
        "z": f"{dims['dim_z']} dimensions, phi(x) = 10 W^T h(x) with W of N(0, 1/dim_x), noise N(0, 1)",
        "arms": f"{dims['n_arms']}, theta and beta uniform on unit spheres, reward noise N(0, 0.1²)",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds, paired",
        "policies": f"ridge 1 with a constant radius of {PAPER_RADIUS} (tuned in other worlds: "
        "docs/tuning.md), and with the learnt prior, whose defaults come from there; unless told otherwise "
        "the map is given h",
        "optimism": "over the weights alone (plugin); where told (joint) over phi too, as in Algorithm 1",
    }
