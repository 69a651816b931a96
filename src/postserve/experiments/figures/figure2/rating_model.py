"""Vectors of users and movies whose dot products predict ratings, and how well they do on others."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from postserve.types import BoolArray, FloatArray, IntArray

DIM = 32
RIDGES = (0.05, 0.07, 0.1, 0.14, 0.2)
SWEEPS = (5, 10, 20, 40, 80)
BIAS_RIDGES = (0.0, 2.0, 5.0, 10.0, 20.0)
SHARES = (0.8, 0.1, 0.1)
"""Of all ratings: to fit, to choose ridge and sweeps, and to test."""
SEED = 0


class Triples(NamedTuple):
    """Who rated what, and how."""

    users: IntArray
    movies: IntArray
    ratings: FloatArray

    def at(self, rows: IntArray | BoolArray) -> "Triples":
        return Triples(self.users[rows], self.movies[rows], self.ratings[rows])


class Split(NamedTuple):
    """Ratings to fit, to choose by, and to test with."""

    train: Triples
    validation: Triples
    test: Triples


class RatingModel(NamedTuple):
    """Vectors with r ≈ user·movie, fitted on the training ratings alone, and their errors on others.

    `users_known` and `movies_known` have a training rating; the vectors of the rest are 0. `errors` are the
    roots of the mean squared test errors, by name, over the `tested` ratings where both are known; `level`
    is the mean training rating.
    """

    users: FloatArray
    movies: FloatArray
    users_known: BoolArray
    movies_known: BoolArray
    ridge: float
    sweeps: int
    validation_error: float
    errors: dict[str, float]
    sizes: tuple[int, int, int]
    tested: int
    level: float


VECTORS, BIASES, MEAN = "vectors", "user and movie biases", "global mean"


def fit_rating_model(
    ratings: Triples,
    *,
    dim: int = DIM,
    ridges: Sequence[float] = RIDGES,
    sweeps: Sequence[int] = SWEEPS,
    seed: int = SEED,
) -> RatingModel:
    """Split once, fit on the first part, choose ridge and sweeps on the second, look once at the third."""
    counts = int(ratings.users.max()) + 1, int(ratings.movies.max()) + 1
    parts = split(ratings, seed)
    train, level = parts.train, float(parts.train.ratings.mean())
    users_known = np.bincount(train.users, minlength=counts[0]) > 0
    movies_known = np.bincount(train.movies, minlength=counts[1]) > 0
    validation, test = (part.at(users_known[part.users] & movies_known[part.movies]) for part in parts[1:])
    fits = (
        (_error(validation, _dots(users, movies, validation)), ridge, done, users, movies)
        for ridge in ridges
        for done, (users, movies) in enumerate(factors(train, counts, dim, ridge, max(sweeps), seed), start=1)
        if done in sweeps
    )
    validation_error, ridge, done, users, movies = min(fits, key=lambda fit: fit[0])
    biases = min(
        (_biases(train, counts, strength) for strength in BIAS_RIDGES),
        key=lambda sums: _error(validation, sums[validation.users, validation.movies]),
    )
    predictions = {
        VECTORS: _dots(users, movies, test),
        BIASES: biases[test.users, test.movies],
        MEAN: np.full(len(test.ratings), level),
    }
    return RatingModel(
        users=users,
        movies=movies,
        users_known=users_known,
        movies_known=movies_known,
        ridge=ridge,
        sweeps=done,
        validation_error=validation_error,
        errors={name: _error(test, predicted) for name, predicted in predictions.items()},
        sizes=(len(train.ratings), len(parts.validation.ratings), len(parts.test.ratings)),
        tested=len(test.ratings),
        level=level,
    )


def split(ratings: Triples, seed: int = SEED) -> Split:
    n = len(ratings.ratings)
    order = np.random.default_rng(seed).permutation(n)
    ends = np.cumsum(np.rint(np.array(SHARES[:2]) * n)).astype(np.int64)
    return Split(*(ratings.at(rows) for rows in np.split(order, ends)))


def factors(
    train: Triples, counts: tuple[int, int], dim: int, ridge: float, sweeps: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Vectors after each sweep of alternating least squares, users' then movies'.

    Minimises sum (r - u·m)² + ridge (sum_u n_u |u|² + sum_m n_m |m|²): with the ridge weighted by the
    number of ratings, those who rated much and those who rated little are shrunk alike.
    """
    rng = np.random.default_rng(seed)
    movies = rng.standard_normal((counts[1], dim)) / np.sqrt(dim)
    by_user, by_movie = _grouped(train.users, counts[0]), _grouped(train.movies, counts[1])
    for _ in range(sweeps):
        users = _solved(by_user, train.movies, movies, train.ratings, ridge)
        movies = _solved(by_movie, train.users, users, train.ratings, ridge)
        yield users, movies


def _grouped(ids: IntArray, count: int) -> list[IntArray]:
    ends = np.cumsum(np.bincount(ids, minlength=count))[:-1]
    return [np.asarray(rows) for rows in np.split(np.argsort(ids, kind="stable"), ends)]


def _solved(
    groups: list[IntArray], others: IntArray, vectors: FloatArray, ratings: FloatArray, ridge: float
) -> FloatArray:
    """Ridge regression of each group's ratings on the others' vectors; 0 where there are none."""
    dim = vectors.shape[1]
    grams, moments = np.tile(np.eye(dim), (len(groups), 1, 1)), np.zeros((len(groups), dim))
    for i, rows in enumerate(groups):
        if len(rows):
            seen = vectors[others[rows]]
            grams[i] = seen.T @ seen + ridge * len(rows) * np.eye(dim)
            moments[i] = seen.T @ ratings[rows]
    return np.asarray(np.linalg.solve(grams, moments[..., None])[..., 0])


def _biases(train: Triples, counts: tuple[int, int], ridge: float, sweeps: int = 20) -> FloatArray:
    """r ≈ mean + users[u] + movies[m], by alternating ridge regression: one row per user."""
    mean = float(train.ratings.mean())
    users, movies = np.zeros(counts[0]), np.zeros(counts[1])
    for _ in range(sweeps):
        users = _shrunk(train.users, train.ratings - mean - movies[train.movies], counts[0], ridge)
        movies = _shrunk(train.movies, train.ratings - mean - users[train.users], counts[1], ridge)
    return mean + users[:, None] + movies


def _shrunk(ids: IntArray, left: FloatArray, count: int, ridge: float) -> FloatArray:
    numbers = np.bincount(ids, minlength=count)
    sums = np.bincount(ids, weights=left, minlength=count)
    return np.asarray(sums / np.maximum(numbers + ridge, 1.0))


def _dots(users: FloatArray, movies: FloatArray, part: Triples) -> FloatArray:
    return np.asarray(np.einsum("nd,nd->n", users[part.users], movies[part.movies]))


def _error(part: Triples, predicted: FloatArray) -> float:
    return float(np.sqrt(np.mean((part.ratings - predicted) ** 2)))
