"""Models of rewards and of their arrival, which never predict for a row that they have learnt from."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.data.rounds import LoggedRounds, deviations
from postserve.errors import InvalidInput
from postserve.evaluation.estimators import complete
from postserve.evaluation.intervals import Range
from postserve.evaluation.missing import LEAST, marked_z
from postserve.types import FloatArray, IntArray
from postserve.validation import MAX_NORM, errors_as_invalid_input

Split = tuple[IntArray, IntArray]
"""The rows to learn from, and the rows to predict for."""
FIRST_BLOCK = 100
"""The rows of a growing log that no model predicts for."""


class Predictions(NamedTuple):
    """Columns as `estimators` has them, one entry per row; `direct` has one row for each policy."""

    direct: FloatArray
    predicted: FloatArray
    completed: FloatArray
    arrival: FloatArray


def folds(n: int, number: int, rng: np.random.Generator) -> Iterator[Split]:
    """Random folds: each is predicted by models of all others.

    >>> sorted(int(row) for _, rows in folds(5, 2, np.random.default_rng(0)) for row in rows)
    [0, 1, 2, 3, 4]
    """
    fold = rng.permutation(np.arange(n) % number)
    for k in range(min(number, n)):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def blocks(n: int) -> Iterator[Split]:
    """Blocks in order, each as long as all before it: predicted by models of these, whatever comes later.

    >>> [(len(known), len(rows)) for known, rows in blocks(500)]
    [(0, 100), (100, 100), (200, 200), (400, 100)]
    """
    start, end = 0, FIRST_BLOCK
    while start < n:
        yield np.arange(start), np.arange(start, min(end, n))
        start, end = end, 2 * end


class Ridge:
    """The default model of rewards: ridge regression of standardised columns, with ridge 1.

    It is scikit-learn's, at a tenth of the price: there are as many fits as arms times folds.
    """

    def fit(self, inputs: FloatArray, targets: FloatArray) -> "Ridge":
        """Learn from rows."""
        self._centre, self._scale = inputs.mean(axis=0), deviations(inputs)
        self._level = targets.mean()
        columns = (inputs - self._centre) / self._scale
        gram = columns.T @ columns + np.eye(columns.shape[1])
        self._weights = np.linalg.solve(gram, columns.T @ (targets - self._level))
        return self

    def predict(self, inputs: FloatArray) -> FloatArray:
        """Expected rewards, one per row."""
        return np.asarray(self._level + (inputs - self._centre) / self._scale @ self._weights)


def logistic() -> Any:
    """The default model of arrivals: logistic regression of standardised columns."""
    from sklearn.linear_model import LogisticRegression  # here, as importing it takes a second
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))


def predictions(
    log: LoggedRounds,
    chances: Sequence[FloatArray],
    splits: Iterable[Split],
    *,
    reward_model: Any,
    arrival_model: Any,
    reward_range: Range | None,
) -> Predictions:
    """q(x, pi), q(x, a), m(x, z, a) and e(x, z, a) of each row, by models of the other rows of its split.

    `chances` has, for each policy, its probability of each arm, (n, n_arms). Where rewards are missing, q
    learns the completed ones, which are there in every row: it is then a model of E[m given x, arm]. Both m
    and q are one model per arm; e is one model of x, z and the arm, and at least `LEAST`. With a
    `reward_range`, predictions outside are moved to its ends.
    """
    n = len(log)
    came = ~np.isnan(log.rewards)
    if not came.all():
        u = np.hstack([log.x, marked_z(log)])
        with_arm = np.hstack([u, np.eye(log.n_arms)[log.arms]])
    direct, arrival = np.zeros((len(chances), n)), np.ones(n)
    predicted, completed = np.zeros(n), np.zeros(n)
    for known, rows in splits:
        targets = log.rewards[known]
        if not came.all():
            seen = known[came[known]]
            m = _PerArm(reward_model, u[seen], log.arms[seen], log.rewards[seen], log.n_arms, reward_range)
            e = _arrival(arrival_model, with_arm[known], came[known])
            completed[rows] = m.of_arms(u[rows], log.arms[rows])
            arrival[rows] = e(with_arm[rows])
            targets = complete(targets, m.of_arms(u[known], log.arms[known]), e(with_arm[known]))
        q = _PerArm(reward_model, log.x[known], log.arms[known], targets, log.n_arms, reward_range)
        of_all = q.of_all(log.x[rows])
        direct[:, rows] = [(pi[rows] * of_all).sum(axis=1) for pi in chances]
        predicted[rows] = of_all[np.arange(len(rows)), log.arms[rows]]
    return Predictions(direct, predicted, completed, arrival)


class _PerArm:
    """One regressor per arm, each a copy of a template; arms without rows have the mean of all targets."""

    def __init__(
        self,
        template: Any,
        inputs: FloatArray,
        arms: IntArray,
        targets: FloatArray,
        n_arms: int,
        within: Range | None,
    ) -> None:
        self._within = within
        self._mean = float(targets.mean()) if len(targets) else 0.0
        self._fitted: list[Any] = [None] * n_arms
        for arm in np.unique(arms):
            mine = arms == arm
            self._fitted[arm] = _fit("reward_model", template, inputs[mine], targets[mine], f" of arm {arm}")

    def of_all(self, inputs: FloatArray) -> FloatArray:
        """Predictions for every arm, (n, n_arms)."""
        return np.stack([self._predict(arm, inputs) for arm in range(len(self._fitted))], axis=1)

    def of_arms(self, inputs: FloatArray, arms: IntArray) -> FloatArray:
        """Predictions for one arm per row."""
        found = np.empty(len(inputs))
        for arm in np.unique(arms):
            mine = arms == arm
            found[mine] = self._predict(arm, inputs[mine])
        return found

    def _predict(self, arm: int, inputs: FloatArray) -> FloatArray:
        model = self._fitted[arm]
        if model is None or not len(inputs):
            found = np.full(len(inputs), self._mean)
        else:
            found = _asked(
                "reward_model", "predict", model, inputs, (len(inputs),), Range(-MAX_NORM, MAX_NORM)
            )
        return found if self._within is None else np.clip(found, *self._within)


def _arrival(template: Any, inputs: FloatArray, came: npt.NDArray[np.bool_]) -> Any:
    """A function from inputs to the probability that the reward is there."""
    if len(came) == 0 or came.all() or not came.any():  # there is nothing to tell apart
        share = float(came.mean()) if len(came) else 1.0
        return lambda rows: np.full(len(rows), max(share, LEAST))
    fitted = _fit("arrival_model", template, inputs, came)

    def of(rows: FloatArray) -> FloatArray:
        if not len(rows):
            return np.zeros(0)
        found = _asked("arrival_model", "predict_proba", fitted, rows, (len(rows), 2), Range(0.0, 1.0))
        return np.maximum(found[:, 1], LEAST)

    return of


def _fit(name: str, template: Any, inputs: FloatArray, targets: npt.NDArray[Any], rows: str = "") -> Any:
    """A copy of a model that learnt from these rows."""
    with errors_as_invalid_input(f"fit of {name} failed for {len(inputs):,} rows{rows}", "a model that can"):
        model = copy.deepcopy(template)
        model.fit(inputs, targets)
    return model


def _asked(
    name: str, verb: str, model: Any, inputs: FloatArray, shape: tuple[int, ...], within: Range
) -> FloatArray:
    """What a fitted model says of these rows, which may be anybody's."""
    wanted = f"numbers from {within.low:g} to {within.high:g} of shape {shape}"
    with errors_as_invalid_input(f"{verb} of {name} failed for {len(inputs):,} rows", wanted):
        found = np.asarray(getattr(model, verb)(inputs), dtype=np.float64)
    if found.shape not in (shape, (*shape, 1)):
        raise InvalidInput(f"{verb} of {name} gave shape {found.shape}, wanted {wanted}")
    bad = ~((found >= within.low) & (found <= within.high))
    if bad.any():
        raise InvalidInput(f"{verb} of {name} gave {found[bad][0]:g}, wanted {wanted}")
    return found.reshape(shape)
