"""The trials as logs, jokes as tables, and the halves of them that runs go through."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from postserve.data import LoggedRounds, actg175, actg175_course, hillstrom, jester
from postserve.evaluation import missing_weights
from postserve.types import FloatArray, IntArray, Rounds

CD4 = "ACTG 175, CD4 at 96 weeks"
CD4_COMPLETE = "ACTG 175, CD4, complete cases"
NO_EVENT = "ACTG 175, no event by 96 weeks"
CONVERSION = "Hillstrom, conversion"
SPEND = "Hillstrom, spend"
LOGGED = (CD4, CD4_COMPLETE, NO_EVENT, CONVERSION, SPEND)
JOKES = "Jester, one draw of jokes"
DRAWN_JOKES = "Jester, a draw of jokes for each order"
FULLY_KNOWN = (JOKES, DRAWN_JOKES)

CUTS = 16
"""Seeds 2d and 2d + 1 are both halves of cut d % CUTS of the rows, each in an order of its own. Orders that
share a cut separate the variance of orders and rows."""
JOKES_X, JOKES_Z, JOKES_ARMS = 20, 40, 10


class Dims(NamedTuple):
    """What a policy needs to know about rounds."""

    dim_x: int
    dim_z: int
    n_arms: int


def dims_of(rounds: LoggedRounds | Rounds) -> Dims:
    n_arms = rounds.n_arms if isinstance(rounds, LoggedRounds) else rounds.rewards.shape[1]
    return Dims(rounds.x.shape[1], rounds.z.shape[1], n_arms)


def logs(data: Path | None) -> dict[str, LoggedRounds]:
    """The randomised trials, columns of x and z standardised."""
    cd4, no_event = (actg175(data, reward=reward).standardised() for reward in ("cd4", "no_event"))
    spend, conversion = (hillstrom(data, reward=reward).standardised() for reward in ("spend", "conversion"))
    off_treatment, event, _ = actg175_course(data).T
    return {
        CD4: cd4.changed(weights=missing_weights(cd4, also=np.column_stack([off_treatment, event]))),
        CD4_COMPLETE: cd4.take(np.flatnonzero(~np.isnan(cd4.rewards))),
        NO_EVENT: no_event.changed(weights=missing_weights(no_event, also=off_treatment[:, None])),
        CONVERSION: conversion,
        SPEND: spend,
    }


def complete_users(data: Path | None) -> FloatArray:
    """The ratings of those who rated every joke."""
    ratings = jester(data)
    return ratings[~np.isnan(ratings).any(axis=1)]


def sample(n: int, rows: int) -> IntArray:
    """All rows, or a random sample of so many."""
    return np.sort(np.random.default_rng(n).permutation(n)[:rows])


def half(n: int, seed: int) -> IntArray:
    """The rows of one half of a cut, in the order of this seed. An odd row is left out."""
    draw, second = divmod(seed, 2)
    cut = np.random.default_rng([draw % CUTS, n]).permutation(n)
    rows = np.split(cut[: n - n % 2], 2)[second]
    return np.random.default_rng([seed, n, 1]).permutation(rows)


def half_of_log(log: LoggedRounds, seed: int) -> LoggedRounds:
    return log.take(half(len(log), seed))


def half_of_users(ratings: FloatArray, fixed: bool, seed: int) -> Rounds:
    """Users of one run: their ratings of some jokes are x, of others z, and more jokes are the arms."""
    users = half(len(ratings), seed)
    jokes = np.random.default_rng([7, 0 if fixed else seed // 2]).permutation(ratings.shape[1])
    centred = (ratings - ratings.mean(axis=0)) / ratings.std(axis=0)
    for_x, for_z, arms, _ = np.split(jokes, np.cumsum([JOKES_X, JOKES_Z, JOKES_ARMS]))
    rewards = ratings[np.ix_(users, arms)]
    return Rounds(centred[np.ix_(users, for_x)], centred[np.ix_(users, for_z)], rewards, rewards)
