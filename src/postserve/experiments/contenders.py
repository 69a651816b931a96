"""The policies that the figures compare, by the names they have there."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from postserve.context_maps import RidgeMap
from postserve.experiments.study import MakePolicy
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RandomPolicy, RobustPoLinUCB
from postserve.types import Decision

PAPER_RADIUS = 0.3
"""The constant radius of every policy with ridge 1, from `postserve tune` (docs/tuning.md)."""

RANDOM = "Random"
X_ONLY = "LinUCB(x)"
X_INTERCEPT = "LinUCB(1, x)"
X_AND_FEATURES = "LinUCB(x, h(x))"
BEFORE = "LinUCB(phi_hat, before)"
AFTER = "LinUCB(phi_hat, after)"
POLINUCB = "poLinUCB"
MISSPECIFIED = "poLinUCB, map linear in x"
JOINT = "poLinUCB, joint"
ROBUST = "RobustPoLinUCB"
ORACLE = "LinUCB(x, z), oracle"
THOMPSON = "PoLinTS"
FLOORED = "PoLinTS, floor 0.1"

# poLinUCB with a map for each arm, or one for all of them.
MAP_PER_ARM = "poLinUCB, a map an arm"
ONE_MAP = "poLinUCB, one map"
# poLinUCB with weights for each arm, weights for all, and the sum of both.
DISJOINT = "poLinUCB, disjoint"
SHARED = "poLinUCB, shared"
HYBRID = "poLinUCB, hybrid"
# On features of x and of z.
WITHOUT_FEATURES = "poLinUCB without features"
ON_FEATURES = "poLinUCB on features of x and z"
ON_X_FEATURES = "poLinUCB on features of x"
ORACLE_ON_FEATURES = "LinUCB(x, z) on features, oracle"


def evidence(name: str) -> str:
    """The name of a policy's form with the learnt prior."""
    return f"{name}, evidence"


class OnFeatures:
    """LinUCB on (x, h(x)): the fair baseline, given all that the map is given.

    h(x) is known when the arm is chosen, so it can stand where the oracle has z: a block of its own.
    """

    def __init__(self, policy: LinUCBOracle, features: Callable[[Any], Any]) -> None:
        self.policy = policy
        self.features = features

    def select(self, x: npt.ArrayLike, rng: np.random.Generator) -> Decision:
        """Choose from x and h(x)."""
        return self.policy.select(x, rng, z=self.features(x))

    def update(self, x: npt.ArrayLike, arm: int, z: npt.ArrayLike, reward: float) -> None:
        """Learn from x and h(x); z is not looked at."""
        self.policy.update(x, arm, self.features(x), reward)


def paper_policies() -> dict[str, MakePolicy]:
    """The paper's five, LinUCB(phi_hat) in both readings, the fair baseline and a map that cannot fit.

    Ridge 1 and one constant radius throughout; the map is given h, the features in which phi is linear.
    Optimism is over the weights alone (plugin), but for JOINT: over phi too, the literal line 3.
    """
    options: dict[str, Any] = {"ridge": 1.0, "arm_radius": PAPER_RADIUS}
    return {
        RANDOM: lambda env: RandomPolicy(env.n_arms),
        X_ONLY: lambda env: LinUCB(env.n_arms, env.dim_x, **options),
        X_AND_FEATURES: lambda env: _on_features(env, **options),
        MISSPECIFIED: lambda env: PoLinUCB(env.n_arms, RidgeMap(env.dim_x, env.dim_z, ridge=1.0), **options),
        BEFORE: lambda env: LinUCBPhiHat(env.n_arms, _on_h(env, 1.0), **options),
        AFTER: lambda env: LinUCBPhiHat(env.n_arms, _on_h(env, 1.0), prediction="after", **options),
        POLINUCB: lambda env: PoLinUCB(env.n_arms, _on_h(env, 1.0), **options),
        JOINT: lambda env: PoLinUCB(env.n_arms, _on_h(env, 1.0), optimism="joint", **options),
        ORACLE: lambda env: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z, **options),
    }


def evidence_policies() -> dict[str, MakePolicy]:
    """The same with our defaults: prior and noise learnt from the rounds, no constant chosen for a world."""
    made: dict[str, MakePolicy] = {
        X_ONLY: lambda env: LinUCB(env.n_arms, env.dim_x),
        X_AND_FEATURES: _on_features,
        BEFORE: lambda env: LinUCBPhiHat(env.n_arms, _on_h(env)),
        AFTER: lambda env: LinUCBPhiHat(env.n_arms, _on_h(env), prediction="after"),
        POLINUCB: lambda env: PoLinUCB(env.n_arms, _on_h(env)),
        ROBUST: lambda env: RobustPoLinUCB(env.n_arms, _on_h(env)),
        ORACLE: lambda env: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z),
    }
    return {evidence(name): make for name, make in made.items()}


def _on_h(env: Any, ridge: Any = "evidence") -> RidgeMap:
    return RidgeMap(env.dim_x, env.dim_z, features=env.features, ridge=ridge)


def _on_features(env: Any, **options: Any) -> OnFeatures:
    dim_h = len(env.features(np.zeros(env.dim_x)))
    return OnFeatures(LinUCBOracle(env.n_arms, env.dim_x, dim_h, **options), env.features)
