"""What is replayed on the trials: with the learnt prior and intercepts, nothing tuned, maps linear in x."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.context_maps import PerArmMap, RidgeMap
from postserve.data import LoggedRounds
from postserve.experiments import contenders as c
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RandomPolicy, RobustPoLinUCB
from postserve.types import Decision, FloatArray, Rounds

MAPPED: dict[c.Contender, Callable[..., Any]] = {
    c.BEFORE: LinUCBPhiHat,
    c.AFTER: partial(LinUCBPhiHat, prediction="after"),
    c.POLINUCB: PoLinUCB,
    c.ROBUST: RobustPoLinUCB,
}


class ArmInContext:
    """A policy on contexts with one row per arm: x, and which arm it is.

    Where z follows the arm, a map on such rows has one slope for all arms, learnt from every row, and an
    offset for each. One map on x alone would lose what an arm does through z. And a map of its own for each
    arm, linear in x and learnt from that arm's rows, gives LinUCB(x) back: phi_hat(x) is then
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


def always(name: str, arm: int) -> c.Contender:
    """Serving one arm, by its name."""
    return c.Contender(f"always {name}", lambda log: Always(arm, log.n_arms), prior="evidence")


def where_z_follows_the_arm(arm_names: tuple[str, ...]) -> list[c.Contender]:
    """All, with rows that name the arm; beside them both other kinds of map, and each arm alone."""

    def on_rows(policy: Callable[..., Any], log: LoggedRounds) -> ArmInContext:
        k = log.n_arms
        phi_hat = RidgeMap(log.dim_x + k, log.dim_z, intercept=True)
        return ArmInContext(policy(k, phi_hat, intercept=True), k)

    return [
        *WITHOUT_A_MAP,
        *(contender.made_by(partial(on_rows, policy)) for contender, policy in MAPPED.items()),
        c.MAP_PER_ARM.made_by(lambda log: PoLinUCB(log.n_arms, PerArmMap(_linear(log)), intercept=True)),
        c.ONE_MAP.made_by(lambda log: PoLinUCB(log.n_arms, _linear(log), intercept=True)),
        *(always(name, arm) for arm, name in enumerate(arm_names)),
    ]


def where_z_does_not() -> list[c.Contender]:
    """The same with one map on x, which every round teaches."""

    def on_x(policy: Callable[..., Any], rounds: Rounds) -> Any:
        return policy(n_arms_of(rounds), _linear(rounds), intercept=True)

    return [
        *WITHOUT_A_MAP,
        *(contender.made_by(partial(on_x, policy)) for contender, policy in MAPPED.items()),
    ]


def n_arms_of(rounds: LoggedRounds | Rounds) -> int:
    """How many arms there are."""
    return rounds.n_arms if isinstance(rounds, LoggedRounds) else rounds.rewards.shape[1]


def _linear(rounds: LoggedRounds | Rounds) -> RidgeMap:
    return RidgeMap(*_dims(rounds), intercept=True)


def _dims(rounds: LoggedRounds | Rounds) -> tuple[int, int]:
    return rounds.x.shape[1], rounds.z.shape[1]


WITHOUT_A_MAP = (
    c.RANDOM.made_by(lambda rounds: RandomPolicy(n_arms_of(rounds))),
    c.X_ONLY.made_by(lambda rounds: LinUCB(n_arms_of(rounds), rounds.x.shape[1], intercept=True)),
    c.ORACLE.made_by(lambda rounds: LinUCBOracle(n_arms_of(rounds), *_dims(rounds), intercept=True)),
)
