"""What is replayed on the trials: the learnt prior and intercepts, nothing tuned, maps linear in x."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.context_maps import PerArmMap
from postserve.experiments import contenders as c
from postserve.experiments.figures.figure2.policies import linear
from postserve.experiments.figures.trials.worlds import Dims
from postserve.types import Decision, FloatArray


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
    """Under its own name, with the learnt prior and an intercept."""
    return replace(contender, prior="evidence").with_options(intercept=True, **options)


def _with_arm_in_context(maker: Any, dims: Dims) -> ArmInContext:
    return ArmInContext(maker(dims._replace(dim_x=dims.dim_x + dims.n_arms)), dims.n_arms)


WITHOUT_A_MAP = tuple(_learnt(each) for each in (c.RANDOM, c.X_ONLY, c.ORACLE))
WITH_A_MAP = tuple(_learnt(each, make_map=linear) for each in (c.BEFORE, c.AFTER, c.POLINUCB, c.ROBUST))


def where_z_follows_the_arm(arm_names: tuple[str, ...]) -> list[c.Contender]:
    """All, with rows that name the arm; beside them both other kinds of map, and each arm alone."""
    return [
        *WITHOUT_A_MAP,
        *(each.made_by(partial(_with_arm_in_context, each.maker)) for each in WITH_A_MAP),
        _learnt(c.MAP_PER_ARM, make_map=lambda dims, ridge: PerArmMap(linear(dims))),
        _learnt(c.ONE_MAP, make_map=linear),
        *(always(name, arm) for arm, name in enumerate(arm_names)),
    ]


def where_z_does_not() -> list[c.Contender]:
    """The same with one map on x, which every round teaches."""
    return [*WITHOUT_A_MAP, *WITH_A_MAP]
