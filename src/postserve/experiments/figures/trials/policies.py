"""What is replayed on the trials: with the learnt prior and intercepts, nothing tuned, maps linear in x."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.context_maps import PerArmMap, RidgeMap
from postserve.data import LoggedRounds
from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    MAP_PER_ARM,
    ONE_MAP,
    ORACLE,
    POLINUCB,
    RANDOM,
    ROBUST,
    X_ONLY,
)
from postserve.experiments.study import MakePolicy
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RandomPolicy, RobustPoLinUCB
from postserve.types import Decision, FloatArray, Rounds


class TellsArm:
    """A policy on contexts with a row an arm: x, and which arm it is.

    Where z follows what was served, a map on such rows has one slope for all arms, learnt from every row, and
    an offset for each. One map on x alone would lose what an arm does through z. And a map of its own for
    each arm, linear in x and learnt from that arm's rows, gives LinUCB(x) back: phi_hat(x) is then
    A_zx A_xx^{-1} x, and at u = (x, phi_hat(x)) u^T A^{-1} b = x^T A_xx^{-1} b_x and
    u^T A^{-1} u = x^T A_xx^{-1} x. Only the prior of each block, and rows without a reward, make a
    difference.
    """

    def __init__(self, policy: Any, n_arms: int) -> None:
        self.policy = policy
        self.arms = policy.arms
        self._which = np.eye(n_arms)

    def select(self, x: FloatArray, rng: np.random.Generator) -> Decision:
        """As the policy does, of the rows."""
        decision: Decision = self.policy.select(self._rows(x), rng)
        return decision

    def propensities(self, x: FloatArray) -> FloatArray:
        """As the policy has them, of the rows."""
        return np.asarray(self.policy.propensities(self._rows(x)))

    def update(self, x: FloatArray, arm: int, z: FloatArray, reward: float) -> None:
        """From the row that was served."""
        self.policy.update(np.concatenate([x, self._which[arm]]), arm, z, reward)

    def observe(self, x: FloatArray, arm: int, z: FloatArray) -> None:
        """From the row that was served."""
        self.policy.observe(np.concatenate([x, self._which[arm]]), arm, z)

    def _rows(self, x: FloatArray) -> FloatArray:
        return np.hstack([np.tile(x, (len(self._which), 1)), self._which])


class Always:
    """Serves one arm, whatever x is."""

    def __init__(self, arm: int, n_arms: int) -> None:
        self.arm = arm
        self.arms = tuple(range(n_arms))

    def select(self, x: npt.ArrayLike, rng: np.random.Generator) -> Decision:
        """That arm."""
        return Decision(self.arm, 1.0)

    def propensities(self, x: npt.ArrayLike) -> FloatArray:
        """1 for that arm."""
        return np.asarray(np.arange(len(self.arms)) == self.arm, dtype=np.float64)

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, reward: float) -> None:
        """Nothing is learnt."""

    def observe(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike) -> None:
        """Nothing is learnt."""


def always(name: str) -> str:
    """The name of serving one arm."""
    return f"always {name}"


def where_z_follows_the_arm(arm_names: tuple[str, ...]) -> dict[str, MakePolicy]:
    """All, with rows that tell the arm; beside them both other kinds of map, and each arm alone."""

    def telling(make: Callable[..., Any], **options: Any) -> MakePolicy:
        def made(rounds: LoggedRounds) -> TellsArm:
            k = rounds.n_arms
            phi_hat = RidgeMap(rounds.dim_x + k, rounds.dim_z, intercept=True)
            return TellsArm(make(k, phi_hat, intercept=True, **options), k)

        return made

    return {
        **_without_a_map(),
        BEFORE: telling(LinUCBPhiHat),
        AFTER: telling(LinUCBPhiHat, prediction="after"),
        POLINUCB: telling(PoLinUCB),
        ROBUST: telling(RobustPoLinUCB),
        MAP_PER_ARM: lambda log: PoLinUCB(log.n_arms, PerArmMap(_linear(log)), intercept=True),
        ONE_MAP: lambda log: PoLinUCB(log.n_arms, _linear(log), intercept=True),
        **{always(name): _always(arm) for arm, name in enumerate(arm_names)},
    }


def where_z_does_not() -> dict[str, MakePolicy]:
    """The same with one map on x, which every round teaches."""
    return {
        **_without_a_map(),
        BEFORE: lambda rounds: LinUCBPhiHat(n_arms_of(rounds), _linear(rounds), intercept=True),
        AFTER: lambda rounds: LinUCBPhiHat(
            n_arms_of(rounds), _linear(rounds), prediction="after", intercept=True
        ),
        POLINUCB: lambda rounds: PoLinUCB(n_arms_of(rounds), _linear(rounds), intercept=True),
        ROBUST: lambda rounds: RobustPoLinUCB(n_arms_of(rounds), _linear(rounds), intercept=True),
    }


def _without_a_map() -> dict[str, MakePolicy]:
    return {
        RANDOM: lambda rounds: RandomPolicy(n_arms_of(rounds)),
        X_ONLY: lambda rounds: LinUCB(n_arms_of(rounds), rounds.x.shape[1], intercept=True),
        ORACLE: lambda rounds: LinUCBOracle(
            n_arms_of(rounds), rounds.x.shape[1], rounds.z.shape[1], intercept=True
        ),
    }


def _always(arm: int) -> MakePolicy:
    return lambda log: Always(arm, log.n_arms)


def _linear(rounds: LoggedRounds | Rounds) -> RidgeMap:
    return RidgeMap(rounds.x.shape[1], rounds.z.shape[1], intercept=True)


def n_arms_of(rounds: LoggedRounds | Rounds) -> int:
    """How many arms there are."""
    return rounds.n_arms if isinstance(rounds, LoggedRounds) else rounds.rewards.shape[1]
