"""Figure 2's policies, with phi_hat by the paper's network, and how well its maps predict z."""

from typing import Any

import numpy as np

from postserve.context_maps import NetworkMap, RidgeMap
from postserve.experiments import contenders as c
from postserve.experiments.study import Curve, MakeEnvironment, recorded_rounds

FOLDS = 5


def network(env: Any, ridge: Any = None) -> NetworkMap:
    """The paper's: two layers, 64 hidden units, ReLU, Adam at 1e-3."""
    return NetworkMap(env.dim_x, env.dim_z)


def linear(env: Any, ridge: Any = None) -> RidgeMap:
    """Linear in x, with an intercept."""
    return RidgeMap(env.dim_x, env.dim_z, intercept=True)


MAPS = {"network": network, "linear": linear}
BEFORE, AFTER, POLINUCB, ROBUST = (
    each.with_options(make_map=network) for each in (c.BEFORE, c.AFTER, c.POLINUCB, c.ROBUST)
)
MISSPECIFIED = c.MISSPECIFIED.with_options(make_map=linear)
RIDGE_1 = (c.RANDOM, c.X_ONLY, BEFORE, AFTER, POLINUCB, c.ORACLE)
"""The paper's, as in figure 1: one constant radius, no intercept."""
LEARNT = tuple(
    each.evidence.with_options(intercept=True)
    for each in (c.X_ONLY, BEFORE, AFTER, POLINUCB, MISSPECIFIED, ROBUST, c.ORACLE)
)
"""As a user would have them: the prior learnt from the rounds, and an intercept (the network has its own)."""


def r_squared_of(make_environment: MakeEnvironment, make_map: Any, horizon: int, seed: int) -> Curve:
    """R² of a map after `horizon` pairs; one number, so the curve is flat."""
    rounds = recorded_rounds(horizon)
    value = r_squared(make_environment(seed), make_map, horizon, np.random.default_rng(seed))
    return Curve(rounds, np.full(len(rounds), value))


def r_squared(environment: Any, make_map: Any, n_pairs: int, rng: np.random.Generator) -> float:
    """1 - held-out squared error / variance of z, the mean over its coordinates, by cross-validation.

    A map learns as in a policy: from `n_pairs` pairs drawn with replacement, here outside a fold.
    """
    x, z = environment.x, environment.z
    left = np.empty_like(z)
    for fold in np.array_split(rng.permutation(len(x)), FOLDS):
        rest = np.setdiff1d(np.arange(len(x)), fold)
        phi_hat = make_map(environment)
        for row in rng.choice(rest, n_pairs):
            phi_hat.update(x[row], 0, z[row])
        left[fold] = [z[row] - phi_hat.predict(x[row])[0] for row in fold]
    shares = (left**2).sum(axis=0) / ((z - z.mean(axis=0)) ** 2).sum(axis=0)
    return float(1.0 - shares.mean())
