"""How much of z a map can tell from x, on users it has not met."""

from typing import Any

import numpy as np

from postserve.experiments.study import Curve, MakeEnvironment, MakePolicy, recorded_rounds

FOLDS = 5


def r_squared_of(make_environment: MakeEnvironment, make_map: MakePolicy, horizon: int, seed: int) -> Curve:
    """R² of a map after `horizon` pairs; one number, so the curve is flat."""
    rounds = recorded_rounds(horizon)
    value = r_squared(make_environment(seed), make_map, horizon, np.random.default_rng(seed))
    return Curve(rounds, np.full(len(rounds), value))


def r_squared(environment: Any, make_map: MakePolicy, n_pairs: int, rng: np.random.Generator) -> float:
    """1 - held-out squared error / variance of z, the mean over its coordinates, by cross-validation.

    A map learns as in a policy: from `n_pairs` pairs drawn with replacement, here from the table's rows
    outside a fold. It is judged on those inside.
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
