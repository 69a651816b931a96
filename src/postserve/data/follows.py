"""Whether z follows the arm: an e-mail is opened because it was sent."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from postserve.data.rounds import LoggedRounds

SURE = 5.0
"""Standard errors beyond which a difference is not due to chance."""


class FollowsArm(UserWarning):
    """z differs between arms that were served at random, so that one map for all arms is wrong."""


@contextmanager
def without_warning() -> Iterator[None]:
    """Inside, no warning that z follows the arm: of a published set the pages say it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FollowsArm)
        yield


def how_z_follows(log: LoggedRounds) -> str:
    """In words, which column of z differs most between arms, in standard errors; empty if none does.

    Rows count by 1/p: then arms differ in z only if z follows them.
    """
    worst, words = SURE, ""
    for column, name in zip(log.z.T, log.z_names, strict=True):
        there = ~np.isnan(column)
        for arm, arm_name in enumerate(log.arm_names):
            own = _mean_and_error(log, column, there & (log.arms == arm))
            rest = _mean_and_error(log, column, there & (log.arms != arm))
            error = float(np.hypot(own[1], rest[1]))
            score = abs(own[0] - rest[0]) / error if error > 0.0 else 0.0
            if score > worst:
                worst = score
                words = (
                    f"z column {name!r} follows the arm: after {arm_name!r} it differs by {score:.0f} "
                    "standard errors. Use a HybridMap, which learns it for each arm (docs/data.md)."
                )
    return words


def _mean_and_error(log: LoggedRounds, column: np.ndarray, rows: np.ndarray) -> tuple[float, float]:
    """The mean of a column over these rows, counted by 1/p, and its standard error."""
    if np.count_nonzero(rows) < 2:
        return 0.0, np.inf
    values, weights = column[rows], 1.0 / log.propensities[rows]
    weights = weights / weights.sum()
    mean = float(weights @ values)
    return mean, float(np.sqrt(((weights * (values - mean)) ** 2).sum()))
