"""Figure 2's policies: the paper's with ridge 1, ours with the learnt prior, phi_hat by its network."""

from typing import Any

from postserve.context_maps import NetworkMap, RidgeMap
from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    MISSPECIFIED,
    ORACLE,
    PAPER_RADIUS,
    POLINUCB,
    RANDOM,
    ROBUST,
    X_ONLY,
    evidence,
)
from postserve.experiments.study import MakePolicy
from postserve.policies import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinUCB, RandomPolicy, RobustPoLinUCB


def ridge_one() -> dict[str, MakePolicy]:
    """The paper's, as in figure 1: ridge 1, one constant radius, no intercept."""
    options: dict[str, Any] = {"ridge": 1.0, "arm_radius": PAPER_RADIUS}
    return {
        RANDOM: lambda env: RandomPolicy(env.n_arms),
        X_ONLY: lambda env: LinUCB(env.n_arms, env.dim_x, **options),
        BEFORE: lambda env: LinUCBPhiHat(env.n_arms, network(env), **options),
        AFTER: lambda env: LinUCBPhiHat(env.n_arms, network(env), prediction="after", **options),
        POLINUCB: lambda env: PoLinUCB(env.n_arms, network(env), **options),
        ORACLE: lambda env: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z, **options),
    }


def learnt_prior() -> dict[str, MakePolicy]:
    """As a user would have them: the prior learnt from the rounds, and an intercept, for ratings are not 0.

    All of them have it, LinUCB(x) too; the network has one of its own.
    """
    made: dict[str, MakePolicy] = {
        X_ONLY: lambda env: LinUCB(env.n_arms, env.dim_x, intercept=True),
        BEFORE: lambda env: LinUCBPhiHat(env.n_arms, network(env), intercept=True),
        AFTER: lambda env: LinUCBPhiHat(env.n_arms, network(env), prediction="after", intercept=True),
        POLINUCB: lambda env: PoLinUCB(env.n_arms, network(env), intercept=True),
        MISSPECIFIED: lambda env: PoLinUCB(env.n_arms, linear(env), intercept=True),
        ROBUST: lambda env: RobustPoLinUCB(env.n_arms, network(env), intercept=True),
        ORACLE: lambda env: LinUCBOracle(env.n_arms, env.dim_x, env.dim_z, intercept=True),
    }
    return {evidence(name): make for name, make in made.items()}


def network(env: Any) -> NetworkMap:
    """The paper's: two layers, 64 hidden units, ReLU, Adam at 1e-3."""
    return NetworkMap(env.dim_x, env.dim_z)


def linear(env: Any) -> RidgeMap:
    """Linear in x, with an intercept."""
    return RidgeMap(env.dim_x, env.dim_z, intercept=True)
