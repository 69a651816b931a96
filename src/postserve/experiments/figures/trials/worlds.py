"""The trials as logs, jokes as tables, the halves of them that runs go through, and what is replayed there.

Policies have their defaults, nothing tuned, and maps linear in x.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.context_maps import PerArmMap
from postserve.data import LoggedRounds, actg175, actg175_course, hillstrom, jester
from postserve.evaluation import missing_weights
from postserve.experiments import contenders as c
from postserve.types import Decision, FloatArray, IntArray, Rounds

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


class ArmInContext:
    """A policy on contexts with one row per arm: x, and which arm it is.

    A map on such rows has one slope for all arms and an offset for each. One map on x alone would lose what
    an arm does through z. One linear map per arm gives LinUCB(x) back, but for the prior and rows without a
    reward: phi_hat(x) is then A_zx A_xx^{-1} x, and at u = (x, phi_hat(x)) u^T A^{-1} b = x^T A_xx^{-1} b_x
    and u^T A^{-1} u = x^T A_xx^{-1} x.
    """

    def __init__(self, policy: Any, n_arms: int) -> None:
        self.policy = policy
        self.arms = policy.arms
        self._which = np.eye(n_arms)

    def select(self, x: FloatArray, rng: np.random.Generator) -> Decision:
        decision: Decision = self.policy.select(self._rows(x), rng)
        return decision

    def propensities(self, x: FloatArray) -> FloatArray:
        return np.asarray(self.policy.propensities(self._rows(x)))

    def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float) -> None:
        self.policy.update(self._rows(x)[arm], arm, z, reward)

    def observe(self, x: FloatArray, arm: int, z: FloatArray) -> None:
        self.policy.observe(self._rows(x)[arm], arm, z)

    def _rows(self, x: FloatArray) -> FloatArray:
        return np.hstack([np.tile(x, (len(self._which), 1)), self._which])


class Always:
    """Serves one arm, whatever x is, and learns nothing."""

    def __init__(self, arm: int, n_arms: int) -> None:
        self.arm = arm
        self.arms = tuple(range(n_arms))

    def select(self, x: npt.ArrayLike, rng: np.random.Generator) -> Decision:
        return Decision(self.arm, 1.0)

    def propensities(self, x: npt.ArrayLike) -> FloatArray:
        return np.asarray(np.arange(len(self.arms)) == self.arm, dtype=np.float64)

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, reward: float) -> None:
        pass

    def observe(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        pass


def always(name: str, arm: int) -> c.Contender:
    return c.Contender(f"always {name}", lambda dims: Always(arm, dims.n_arms), prior="evidence")


def _learnt(contender: c.Contender, **options: Any) -> c.Contender:
    """Under its own name, with the learnt prior."""
    return replace(contender, prior="evidence").with_options(**options)


def _with_arm_in_context(maker: Any, dims: Dims) -> ArmInContext:
    return ArmInContext(maker(dims._replace(dim_x=dims.dim_x + dims.n_arms)), dims.n_arms)


WITHOUT_A_MAP = tuple(_learnt(each) for each in (c.RANDOM, c.X_ONLY, c.ORACLE))
WITH_A_MAP = tuple(_learnt(each, make_map=c.map_on_x) for each in (c.BEFORE, c.AFTER, c.POLINUCB, c.ROBUST))


def naming_the_arm(contender: c.Contender) -> c.Contender:
    """The same on rows that name the arm."""
    return contender.made_by(partial(_with_arm_in_context, contender.maker))


def where_z_follows_the_arm(arm_names: tuple[str, ...]) -> list[c.Contender]:
    """All, with rows that name the arm; beside them both other kinds of map, and each arm alone."""
    return [
        *WITHOUT_A_MAP,
        *map(naming_the_arm, WITH_A_MAP),
        _learnt(c.MAP_PER_ARM, make_map=lambda dims, ridge: PerArmMap(c.map_on_x(dims))),
        _learnt(c.ONE_MAP, make_map=c.map_on_x),
        *(always(name, arm) for arm, name in enumerate(arm_names)),
    ]


def where_z_does_not() -> list[c.Contender]:
    """The same with one map on x, which every round teaches."""
    return [*WITHOUT_A_MAP, *WITH_A_MAP]
