"""How much of z x tells, and of the reward x, and x with z: what decides whether follow-ups can help."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from postserve.data import LoggedRounds
from postserve.experiments.figures.trials.policies import n_arms_of
from postserve.experiments.study import Curve, MakePolicy
from postserve.types import FloatArray, Rounds

FOLDS = 5
RIDGES = tuple(10.0**k for k in range(-2, 6))
LINEAR, CURVED = "linear", "forest"


class Foretelling(NamedTuple):
    """What is told from what, and by which kind of model."""

    target: str
    inputs: str
    kind: str

    def model(self) -> Any:
        """A fresh one."""
        from sklearn.ensemble import RandomForestRegressor  # here, as it takes a second
        from sklearn.linear_model import RidgeCV

        if self.kind == LINEAR:
            return RidgeCV(RIDGES)
        return RandomForestRegressor(50, min_samples_leaf=0.02, random_state=0)


Z_LINEAR, Z_CURVED = "z from x, linear", "z from x, forest"
FROM_X, FROM_XZ = "reward from x, linear", "reward from x and z, linear"
FORETELLINGS: dict[str, MakePolicy] = {
    Z_LINEAR: lambda rounds: Foretelling("z", "x", LINEAR),
    Z_CURVED: lambda rounds: Foretelling("z", "x", CURVED),
    FROM_X: lambda rounds: Foretelling("reward", "x", LINEAR),
    FROM_XZ: lambda rounds: Foretelling("reward", "xz", LINEAR),
}


def foretold(
    make_rounds: Callable[[int], Any], make_foretelling: MakePolicy, horizon: int, seed: int
) -> Curve:
    """R² on rows held out, for each arm by a model of its own; 0 is the arm's mean where it was fitted."""
    rounds = make_rounds(seed)
    foretelling: Foretelling = make_foretelling(rounds)
    squares, of_mean = np.zeros(1), np.zeros(1)
    for arm in _arms_that_matter(rounds, foretelling):
        inputs, targets = _of_arm(rounds, arm, foretelling)
        for fold in range(FOLDS):
            out = np.arange(len(inputs)) % FOLDS == fold
            model = foretelling.model().fit(inputs[~out], np.squeeze(targets[~out]))
            guesses = model.predict(inputs[out]).reshape(targets[out].shape)
            squares = squares + ((targets[out] - guesses) ** 2).sum(axis=0)
            of_mean = of_mean + ((targets[out] - targets[~out].mean(axis=0)) ** 2).sum(axis=0)
    left = np.divide(squares, of_mean, out=np.ones_like(of_mean), where=of_mean > 0.0)  # or nothing to tell
    return Curve(np.array([horizon]), np.array([(1.0 - left).mean()]))


def _arms_that_matter(rounds: LoggedRounds | Rounds, foretelling: Foretelling) -> range:
    """Each, but for a z that is the same whatever is served."""
    same = isinstance(rounds, Rounds) and foretelling.target == "z"
    return range(1 if same else n_arms_of(rounds))


def _of_arm(
    rounds: LoggedRounds | Rounds, arm: int, foretelling: Foretelling
) -> tuple[FloatArray, FloatArray]:
    """Inputs and targets of the rows that tell of an arm."""
    if isinstance(rounds, LoggedRounds):
        rewards, mine = rounds.rewards, rounds.arms == arm
    else:
        rewards, mine = rounds.rewards[:, arm], np.ones(len(rounds.x), dtype=bool)
    if foretelling.target == "reward":
        mine = mine & ~np.isnan(rewards)
    inputs = np.hstack([rounds.x, rounds.z]) if foretelling.inputs == "xz" else rounds.x
    return inputs[mine], (rewards[:, None] if foretelling.target == "reward" else rounds.z)[mine]
