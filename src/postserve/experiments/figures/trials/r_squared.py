"""How well x predicts z, and x, or x with z, the reward: this decides whether follow-ups can help."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from postserve.data import LoggedRounds
from postserve.experiments.figures.trials.worlds import dims_of
from postserve.experiments.study import Curve
from postserve.types import FloatArray, Rounds

FOLDS = 5
RIDGES = tuple(10.0**k for k in range(-2, 6))


class Prediction(NamedTuple):
    """What is predicted from what, and by which kind of model."""

    target: str
    inputs: str
    model: str

    @property
    def name(self) -> str:
        return f"{self.target} from {self.inputs}, {self.model}"

    def fresh(self) -> Any:
        from sklearn.ensemble import RandomForestRegressor  # here, as it takes a second
        from sklearn.linear_model import RidgeCV

        if self.model == "linear":
            return RidgeCV(RIDGES)
        return RandomForestRegressor(50, min_samples_leaf=0.02, random_state=0)


PREDICTIONS = (
    Prediction("z", "x", "linear"),
    Prediction("z", "x", "forest"),
    Prediction("reward", "x", "linear"),
    Prediction("reward", "x and z", "linear"),
)


def r_squared(make_rounds: Callable[[int], Any], prediction: Prediction, horizon: int, seed: int) -> Curve:
    """R² on held-out rows, by one model per arm; a model that predicts the arm's mean has 0."""
    rounds = make_rounds(seed)
    # Where z does not depend on the arm, one arm is enough to predict it.
    one_is_enough = isinstance(rounds, Rounds) and prediction.target == "z"
    squares, of_mean = np.zeros(1), np.zeros(1)
    for arm in range(1 if one_is_enough else dims_of(rounds).n_arms):
        inputs, targets = _of_arm(rounds, arm, prediction)
        for fold in range(FOLDS):
            out = np.arange(len(inputs)) % FOLDS == fold
            model = prediction.fresh().fit(inputs[~out], np.squeeze(targets[~out]))
            guesses = model.predict(inputs[out]).reshape(targets[out].shape)
            squares = squares + ((targets[out] - guesses) ** 2).sum(axis=0)
            of_mean = of_mean + ((targets[out] - targets[~out].mean(axis=0)) ** 2).sum(axis=0)
    # A target that does not vary has R² 0.
    left = np.divide(squares, of_mean, out=np.ones_like(of_mean), where=of_mean > 0.0)
    return Curve(np.array([horizon]), np.array([(1.0 - left).mean()]))


def _of_arm(rounds: LoggedRounds | Rounds, arm: int, prediction: Prediction) -> tuple[FloatArray, FloatArray]:
    if isinstance(rounds, LoggedRounds):
        rewards, mine = rounds.rewards, rounds.arms == arm
    else:
        rewards, mine = rounds.rewards[:, arm], np.ones(len(rounds.x), dtype=bool)
    inputs = np.hstack([rounds.x, rounds.z]) if prediction.inputs == "x and z" else rounds.x
    if prediction.target == "z":
        return inputs[mine], rounds.z[mine]
    mine = mine & ~np.isnan(rewards)
    return inputs[mine], rewards[mine, None]
