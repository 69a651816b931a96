"""Estimates on the Open Bandit sample, ours and those of Open Bandit Pipeline (obp), on the same log.

`python -m benchmarks.open_bandit FOLDER PYTHON` prints both: FOLDER has the all.csv of the sample, and PYTHON
is the interpreter of an environment with obp. The model of rewards is scikit-learn's, in the same folds.

obp 0.4.1 asks for a PyYAML that no longer builds, and for torch, which its estimators do not use. So
`pip install --no-deps obp==0.4.1`, and then
`pip install pandas pyyaml scikit-learn seaborn tqdm mypy-extensions`.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from postserve import LoggedRounds, evaluate
from postserve.types import FloatArray

ESTIMATORS: Any = ("ips", "snips", "dm", "dr")
USER = [f"user_feature_{i}" for i in range(4)]


class Softmax:
    """Plays arms with probabilities that follow fixed, random scores linear in x."""

    def __init__(self, n_arms: int, dim_x: int) -> None:
        self.arms = tuple(range(n_arms))
        self._weights = np.random.default_rng(0).normal(size=(n_arms, dim_x))

    def propensities(self, x: FloatArray) -> FloatArray:
        scores = self._weights @ x
        odds = np.exp(scores - scores.max())
        return np.asarray(odds / odds.sum())


def open_bandit_log(folder: Path) -> LoggedRounds:
    """The sample: x are the users' features, one column per value, arms the items, rewards clicks."""
    table = pl.read_csv(folder / "all.csv")
    x = table.select(USER).to_dummies().to_numpy().astype(np.float64)
    return LoggedRounds(
        x=x,
        z=np.empty((len(x), 0)),
        arms=table["item_id"].to_numpy(),
        rewards=table["click"].to_numpy().astype(np.float64),
        propensities=table["propensity_score"].to_numpy(),
    )


def rewards_by_sklearn(log: LoggedRounds, folds: int = 5, seed: int = 0) -> FloatArray:
    """q(x, arm) of every row and arm by ridge regressions of the other folds, (n, n_arms)."""
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    fold = np.random.default_rng(seed).permutation(np.arange(len(log)) % folds)
    q = np.empty((len(log), log.n_arms))
    for k in range(folds):
        for arm in range(log.n_arms):
            known = (fold != k) & (log.arms == arm)
            model = make_pipeline(StandardScaler(), Ridge(alpha=1.0)).fit(log.x[known], log.rewards[known])
            q[fold == k, arm] = model.predict(log.x[fold == k])
    return q


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("python", help="of an environment with obp")
    given = parser.parse_args()
    log = open_bandit_log(given.folder)
    policy = Softmax(log.n_arms, log.dim_x)
    ours = {name: evaluate(policy, log, estimator=name).value for name in ESTIMATORS}
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "log.npz"
        np.savez(
            arrays,
            rewards=log.rewards,
            arms=log.arms,
            propensities=log.propensities,
            chances=np.array([policy.propensities(x) for x in log.x]),
            q=rewards_by_sklearn(log),
        )
        script = Path(__file__).parent / "peers" / "obp_estimates.py"
        ran = subprocess.run([given.python, "-P", script, arrays], capture_output=True, text=True, check=True)
    theirs = json.loads(ran.stdout)
    print("| estimator | postserve | obp | difference |\n|---|---:|---:|---:|")
    for name in ESTIMATORS:
        difference = ours[name] - theirs[name]
        print(f"| `{name}` | {ours[name]:.12f} | {theirs[name]:.12f} | {difference:.1e} |")


if __name__ == "__main__":
    main()
