"""Whole runs: what the learnt prior is worth, that its variances are the truth's, and which map to take."""

from typing import Any

import numpy as np
import pytest
from benchmarks.course_site import POLICIES, earned
from benchmarks.regret import KINDS, RADII, Runs, study


@pytest.fixture(scope="module")
def runs() -> Runs:
    return study(without=["LinUCBOracle"])  # of which nothing is asserted


def final(runs: Any, kind: str, name: str) -> np.ndarray:
    return np.array([regret for regret, _ in runs[kind, name]])


@pytest.mark.parametrize("kind", KINDS)
def test_evidence_beats_the_best_constant_radius_with_ridge_one(runs: Any, kind: str) -> None:
    best = min(final(runs, kind, f"ridge 1, radius {radius}").mean() for radius in RADII)
    assert final(runs, kind, "PoLinUCB").mean() <= 0.82 * best


@pytest.mark.parametrize("kind", KINDS)
def test_the_learnt_variances_are_the_truths(runs: Any, kind: str) -> None:
    """sigma² = 0.1², and unit vectors in 100 and 5 dimensions have tau² of 1/100 and 1/5."""
    learnt = np.exp(np.mean([np.log(variances) for _, variances in runs[kind, "PoLinUCB"]], axis=0))
    ratio = learnt / [0.01, 0.01, 0.2]
    assert 1 / 2 <= ratio[0] <= 2
    assert ((ratio[1:] >= 1 / 1.25) & (ratio[1:] <= 1.25)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_robust_polinucb_loses_nothing_to_the_best_of_the_others(runs: Any, kind: str) -> None:
    """Its ratio to the best of them, paired: the mean is below 1.05, and so the interval reaches there."""
    others = ("LinUCB", "LinUCBPhiHat before", "LinUCBPhiHat after", "PoLinUCB")
    best = min((final(runs, kind, name) for name in others), key=np.mean)
    ratio = final(runs, kind, "RobustPoLinUCB") / best
    assert ratio.mean() < 1.05


@pytest.mark.parametrize("name", ["LinUCB", "LinUCBPhiHat before", "LinUCBPhiHat after", "PoLinUCB"])
def test_robust_polinucb_wins_where_the_reward_is_not_linear_in_z(runs: Any, name: str) -> None:
    assert final(runs, "nonlinear", "RobustPoLinUCB").mean() < final(runs, "nonlinear", name).mean()


def test_where_arm_and_context_together_move_z_one_map_falls_behind_and_the_hybrid_map_does_not() -> None:
    """Standard errors of the differences are 0.004 to 0.006; they are -0.05, -0.03, +0.006, +0.005."""
    rewards = {name: earned(name, horizon=1500, seeds=6).mean() for name in POLICIES}
    x_only = rewards["LinUCB(x)"]
    assert rewards["Random"] < x_only - 0.02
    assert rewards["PoLinUCB, RidgeMap"] < x_only - 0.01
    assert rewards["PoLinUCB, HybridMap"] > x_only - 0.01
    assert rewards["PoLinUCB, HybridMap, posterior"] > x_only - 0.01
