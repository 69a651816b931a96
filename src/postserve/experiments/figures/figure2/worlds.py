"""MovieLens as tables of users, and the policies that are run there.

The worlds are the paper's five movies, and draws of movies, splits and halves of users.
"""

from typing import Any, NamedTuple

import numpy as np

from postserve.context_maps import NetworkMap
from postserve.environments import TableEnvironment
from postserve.experiments import contenders as c
from postserve.experiments.figures.figure2.rating_model import RatingModel
from postserve.experiments.study import Curve, MakeEnvironment, recorded_rounds
from postserve.types import FloatArray, IntArray

DIM_X, N_ARMS = 25, 5
PAPERS_DRAW, DRAWS, HALVES = 1, 2, 3
"""Keys of random streams: the paper's draw of movies, ours, and cuts of the users."""
CUTS = 10
"""Draw d has cut d % CUTS: draws that share one separate the variance of runs and users."""

AS_THEY_ARE = "5 movies, rewards as they are"
FIVE = "5 movies"
DRAWN = "draws of movies"
AXES = "draws in principal axes"
DRAWS_OF = (DRAWN, AXES)
"""The worlds whose seeds are pairs of halves."""


class Catalogue(NamedTuple):
    """Vectors of all users and movies with a rating to learn from, and the level that rewards are above."""

    users: FloatArray
    movies: FloatArray
    level: float


def catalogue(model: RatingModel, level: float, *, principal: bool = False) -> Catalogue:
    """Those of a model, in its own axes or in the users' principal ones, in which they are uncorrelated.

    Rotating both changes no dot product, so no rating and no reward, but it changes what x says about z.
    """
    users, movies = model.users[model.users_known], model.movies[model.movies_known]
    if principal:
        axes = np.linalg.svd(users - users.mean(axis=0), full_matrices=False)[2].T
        users, movies = users @ axes, movies @ axes
    return Catalogue(users, movies, level)


def papers(found: Catalogue) -> Catalogue:
    """The same with five movies, drawn once."""
    arms = np.random.default_rng(PAPERS_DRAW).choice(len(found.movies), N_ARMS, replace=False)
    return found._replace(movies=found.movies[arms])


def papers_world(found: Catalogue, seed: int) -> TableEnvironment:
    """All users, whatever the seed; x is their first coordinates."""
    return _table(found, np.arange(found.users.shape[1]))


def half_world(found: Catalogue, seed: int) -> TableEnvironment:
    """Draw seed // 2 of movies and of the coordinates that are x, on one half of its cut of the users."""
    draw, half = divmod(seed, 2)
    rng = np.random.default_rng([DRAWS, draw])
    arms = rng.choice(len(found.movies), N_ARMS, replace=False)
    columns = rng.permutation(found.users.shape[1])
    order = np.random.default_rng([HALVES, draw % CUTS]).permutation(len(found.users))
    users = found.users[np.array_split(order, 2)[half]]
    return _table(Catalogue(users, found.movies[arms], found.level), columns)


def _table(found: Catalogue, columns: IntArray) -> TableEnvironment:
    rewards = found.users @ found.movies.T - found.level
    x, z = np.split(found.users[:, columns], [DIM_X], axis=1)
    return TableEnvironment(x, z, rewards)


FOLDS = 5


def network(env: Any, ridge: Any = None) -> NetworkMap:
    """The paper's: two layers, 64 hidden units, ReLU, Adam at 1e-3."""
    return NetworkMap(env.dim_x, env.dim_z)


MAPS = {"network": network, "linear": c.map_on_x}
BEFORE, AFTER, POLINUCB, ROBUST = (
    each.with_options(make_map=network) for each in (c.BEFORE, c.AFTER, c.POLINUCB, c.ROBUST)
)
RIDGE_1 = (c.RANDOM, c.X_ONLY, BEFORE, AFTER, POLINUCB, c.ORACLE)
"""The paper's, as in figure 1: one constant radius, no intercept."""
LEARNT = tuple(
    each.evidence for each in (c.X_ONLY, BEFORE, AFTER, POLINUCB, c.MISSPECIFIED, ROBUST, c.ORACLE)
)
"""As a user would have them: the defaults."""


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
