"""Missing rewards: weights for the rows that have one."""

import numpy as np
import numpy.typing as npt

from postserve.data.rounds import LoggedRounds, deviations
from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import matrix

LEAST = 0.05
"""The least probability: no row counts for more than twenty."""


def marked_z(log: LoggedRounds) -> FloatArray:
    """z for models of a log: where it is missing, the columns' means, and a 1 in a column of its own."""
    lost = np.isnan(log.z).any(axis=1)
    if not lost.any():
        return log.z
    means = log.z[~lost].mean(axis=0) if not lost.all() else np.zeros(log.dim_z)
    return np.column_stack([np.where(lost[:, None], means, log.z), lost])


def missing_weights(log: LoggedRounds, also: npt.ArrayLike | None = None) -> FloatArray:
    """1 over the probability that a row has a reward, given x, z and the arm; 0 for rows without one.

    The probability is a logistic regression's over all rows; the mean weight of rows with a reward is 1.
    Values with these weights are right if, given all that, rewards are missing at random, and the regression
    is right. `also` has more columns that help to predict it (that a patient stopped early): no policy sees
    them. They are for estimators that leave out rows without a reward: "dr_followups" makes up for such rows
    itself.

    >>> from postserve import LoggedRounds
    >>> rng = np.random.default_rng(0)
    >>> x, arms = rng.normal(size=(4000, 1)), rng.integers(2, size=4000)
    >>> rewards = x[:, 0] + rng.normal(size=4000)
    >>> rewards[rng.random(4000) < 1 / (1 + np.exp(-2 * x[:, 0]))] = np.nan  # the larger x, the rarer seen
    >>> log = LoggedRounds(x=x, z=np.empty((4000, 0)), arms=arms, rewards=rewards, propensities=0.5)
    >>> seen, weights = ~np.isnan(rewards), missing_weights(log)
    >>> bool(rewards[seen].mean() < -0.3), bool(abs(np.average(rewards[seen], weights=weights[seen])) < 0.1)
    (True, True)
    """
    from sklearn.linear_model import LogisticRegression  # here, as importing it takes a second

    if not isinstance(log, LoggedRounds):
        raise InvalidInput(f"log is a {type(log).__name__}, wanted LoggedRounds")
    seen = ~np.isnan(log.rewards)
    if seen.all():
        return np.ones(len(log))
    if not seen.any():
        raise InvalidInput("no reward of the log ever came, wanted at least one")
    more = np.empty((len(log), 0)) if also is None else matrix("also", also, len(log), None)
    columns = np.hstack([log.x, marked_z(log), more])
    columns = (columns - columns.mean(axis=0)) / deviations(columns)
    known = np.hstack([columns, np.eye(log.n_arms)[log.arms]])
    model = LogisticRegression(max_iter=1000).fit(known, seen)
    came = np.maximum(model.predict_proba(known)[:, 1], LEAST)
    weights = np.where(seen, 1.0 / came, 0.0)
    return np.asarray(weights * (seen.sum() / weights.sum()))
