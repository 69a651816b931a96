"""MovieLens as tables of users: the paper's five movies, and draws of movies, splits and halves of users."""

from typing import NamedTuple

import numpy as np

from postserve.environments import TableEnvironment
from postserve.experiments.figures.figure2.rating_model import RatingModel
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
