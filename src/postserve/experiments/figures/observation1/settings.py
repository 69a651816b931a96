"""Observation 1's world, and the policies that cannot and can learn it."""

from collections.abc import Mapping

from postserve.environments import Observation1
from postserve.experiments.contenders import (
    ORACLE,
    POLINUCB,
    RANDOM,
    X_INTERCEPT,
    X_ONLY,
    evidence,
    evidence_policies,
    paper_policies,
)
from postserve.experiments.figure import Size
from postserve.experiments.study import Cell, MakePolicy, regret_cells, seed_list
from postserve.policies import LinUCB

SIZE = Size(horizon=5000, seeds=20, quick=False)
WORLD = "observation 1"
QUICK = Size(horizon=500, seeds=5, quick=True)


def policies() -> dict[str, MakePolicy]:
    """Those linear in x, with and without a constant; poLinUCB; the oracle."""
    paper, ours = paper_policies(), evidence_policies()
    return {
        RANDOM: paper[RANDOM],
        X_ONLY: paper[X_ONLY],
        evidence(X_ONLY): ours[evidence(X_ONLY)],
        evidence(X_INTERCEPT): lambda env: LinUCB(env.n_arms, env.dim_x, intercept=True),
        POLINUCB: paper[POLINUCB],
        evidence(POLINUCB): ours[evidence(POLINUCB)],
        ORACLE: paper[ORACLE],
    }


def cells(size: Size) -> list[Cell]:
    """One world, the same for every seed but for the order of x."""
    return regret_cells({WORLD: lambda seed: Observation1()}, policies(), size.horizon, seed_list(size.seeds))


def described(size: Size) -> Mapping[str, str]:
    """The settings, for the report."""
    return {
        "x": "uniform on {-3, -1, 1}",
        "z": "x², without noise; the map has the features (x, x²)",
        "rewards": "x + x²/2 and -x - x²/2, without noise",
        "rounds, seeds": f"T = {size.horizon:,}, {size.seeds} seeds",
    }
