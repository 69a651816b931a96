"""Estimates on the Open Bandit sample, against the formulas written out once more, with another ridge."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.open_bandit import ESTIMATORS, Softmax, open_bandit_log, rewards_by_sklearn

from postserve import evaluate


def test_estimates_are_those_of_the_formulas(real_data: Path) -> None:
    folder = real_data / "obd" / "random" / "all"
    if not folder.is_dir():
        pytest.skip(f"no Open Bandit sample in {folder}")
    log = open_bandit_log(folder)
    policy = Softmax(log.n_arms, log.dim_x)
    q = rewards_by_sklearn(log)
    sums = dict.fromkeys(("ips", "weights", "dm", "dr"), 0.0)
    for row in range(len(log)):
        arm, reward = log.arms[row], log.rewards[row]
        pi = policy.propensities(log.x[row])
        weight = pi[arm] / log.propensities[row]
        direct = float(pi @ q[row])
        sums["ips"] += weight * reward
        sums["weights"] += weight
        sums["dm"] += direct
        sums["dr"] += direct + weight * (reward - q[row, arm])
    wanted = {name: total / len(log) for name, total in sums.items()}
    wanted["snips"] = sums["ips"] / sums["weights"]
    for name in ESTIMATORS:
        assert evaluate(policy, log, estimator=name).value == pytest.approx(wanted[name], abs=1e-9), name
    assert np.allclose(log.propensities, 1.0 / log.n_arms)
