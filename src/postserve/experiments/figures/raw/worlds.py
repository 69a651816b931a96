"""Tables as they come, what is done to them, and the same prepared by hand.

A world gives rows in the order of a seed: `Rounds`, where every arm's reward is known, or a log. Rewards are
rounded to multiples of 1/1024, so that constants added to them cost no digit.
"""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn import datasets

from postserve.context_maps import RidgeMap
from postserve.data import LoggedRounds, actg175
from postserve.experiments import contenders as c
from postserve.experiments.figures import figure2
from postserve.experiments.figures.figure2 import worlds as movies
from postserve.experiments.figures.trials import worlds as logs
from postserve.policies import LinUCB, PoLinUCB
from postserve.types import FloatArray, Intercept, Rounds

Data = Rounds | LoggedRounds
GRID = 1024.0
ORDERS, DRAWS = 1, 2
"""Keys of random streams: orders of rows; draws of movies, of jokes, and of the columns that are x."""

DIGITS, WINE, CANCER, FOREST = "digits", "wine", "breast cancer", "like covtype"
STARS, JOKES, CD4 = "MovieLens", "Jester", "ACTG 175, CD4"
LOGGED = (CD4,)
"""Where only the reward of the arm that was served is known."""

FOREST_ROWS, FOREST_CLASSES = 2000, (0.37, 0.48, 0.06, 0.01, 0.02, 0.03, 0.03)
FOREST_MEANS = np.array([2959.0, 156, 14, 269, 46, 2350, 1980, 212, 223, 143])
FOREST_DEVIATIONS = np.array([280.0, 112, 7.5, 213, 58, 1559, 1324, 27, 20, 38])
"""Of covtype's elevation, aspect, slope, three distances, the distance to fires, and three hillshades."""


class Form(NamedTuple):
    """What is done to a table before a policy sees it, and what `intercept` its policy and map have."""

    name: str
    change: Callable[[Data], Data]
    intercept: Intercept = "auto"

    def __str__(self) -> str:
        return self.name


def _as_it_is(data: Data) -> Data:
    return data


def _minus_mean(data: Data) -> Data:
    return shifted(-_on_grid(data.rewards.mean()), data)


def shifted(by: float, data: Data) -> Data:
    """With so much added to every reward."""
    return _with_rewards(data, data.rewards + by)


def _x_plus_50(data: Data) -> Data:
    return _with_columns(data, data.x + 50.0, data.z)


def _odd_units(data: Data) -> Data:
    return _with_columns(data, *map(_odd, (data.x, data.z)))


def _odd(columns: FloatArray) -> FloatArray:
    """The first, fifth, … times 1000, the second, … times 1/1000, the third, … plus 50."""
    kind = np.arange(columns.shape[1]) % 4
    return np.asarray(columns * np.array([1e3, 1e-3, 1.0, 1.0])[kind] + np.where(kind == 2, 50.0, 0.0))


def _standardised(data: Data) -> Data:
    return _with_columns(_minus_mean(data), *map(_standard, (data.x, data.z)))


def _standard(columns: FloatArray) -> FloatArray:
    deviation = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(deviation > 0.0, deviation, 1.0))


RAW = Form("raw", _as_it_is)
CENTRED = Form("rewards centred", _minus_mean)
PLUS_100 = Form("rewards + 100", partial(shifted, 100.0))
ODD = Form("columns in odd units", _odd_units)
X_PLUS_50 = Form("x + 50", _x_plus_50)
DEFAULTS = (RAW, CENTRED, PLUS_100, ODD, X_PLUS_50)
"""With the defaults of policies and maps."""
WITH = (
    Form("by hand: rewards, intercepts", _minus_mean, True),
    Form("by hand: rewards and columns, intercepts", _standardised, True),
)
WITHOUT = (
    Form("by hand: rewards, no intercept", _minus_mean, False),
    Form("by hand: rewards and columns, no intercept", _standardised, False),
)
FORMS = (*DEFAULTS, *WITH, *WITHOUT)


def _linucb(form: Form, dims: logs.Dims) -> LinUCB:
    return LinUCB(dims.n_arms, dims.dim_x, intercept=form.intercept)


def _polinucb(form: Form, dims: logs.Dims) -> PoLinUCB:
    phi_hat = RidgeMap(dims.dim_x, dims.dim_z, intercept=form.intercept)
    return PoLinUCB(dims.n_arms, phi_hat, intercept=form.intercept)


POLICIES: dict[str, Callable[[Form, logs.Dims], Any]] = {c.X_ONLY.name: _linucb, c.POLINUCB.name: _polinucb}


class World(NamedTuple):
    """Rows by seed, and how many there are."""

    make: Callable[[int], Data]
    rows: int


def worlds(quick: bool, rows: int, data: Path | None) -> dict[str, World]:
    """All, with so many rows at most; if quick, two small ones, which need no data."""
    names = (DIGITS, WINE) if quick else (DIGITS, WINE, CANCER, FOREST)
    found = {name: World(partial(_of_table, name, rows), min(rows, len(table(name)[0]))) for name in names}
    if quick:
        return found
    model = figure2.rating_model(data)
    stars, jokes = movies.catalogue(model, 0.0), logs.complete_users(data)
    counts = actg175(data)
    counts = counts.take(np.flatnonzero(~np.isnan(counts.rewards)))
    return {
        **found,
        STARS: World(partial(_of_movies, stars, rows), min(rows, len(stars.users))),
        JOKES: World(partial(_of_jokes, jokes, rows), min(rows, len(jokes))),
        CD4: World(partial(_of_log, counts, rows), min(rows, len(counts))),
    }


@cache
def table(name: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """x, z and the reward of each arm: 1 for the class of the row, 0 for others."""
    if name == DIGITS:
        found = datasets.load_digits()
        x, last_rows = np.split(found.data, [48], axis=1)
        return x, last_rows.reshape(len(x), 4, 4).sum(axis=2), _right(found.target)
    if name == FOREST:
        return _forest()
    found = datasets.load_wine() if name == WINE else datasets.load_breast_cancer()
    x, z = np.split(found.data, [9 if name == WINE else 20], axis=1)
    return x, z, _right(found.target)


def _forest() -> tuple[FloatArray, FloatArray, FloatArray]:
    columns, classes = datasets.make_classification(
        FOREST_ROWS,
        n_features=len(FOREST_MEANS),
        n_informative=8,
        n_redundant=0,
        n_classes=len(FOREST_CLASSES),
        n_clusters_per_class=1,
        weights=list(FOREST_CLASSES),
        random_state=0,
    )
    area = np.searchsorted(np.quantile(columns[:, 0], [0.25, 0.5, 0.75]), columns[:, 0])
    columns = _standard(columns) * FOREST_DEVIATIONS + FOREST_MEANS
    return np.hstack([columns[:, :7], np.eye(4)[area]]), columns[:, 7:], _right(classes)


def _right(classes: Any) -> FloatArray:
    return np.asarray(np.eye(int(classes.max()) + 1)[classes])


def _order(n: int, rows: int, seed: int) -> Any:
    return np.random.default_rng([ORDERS, seed, n]).permutation(n)[:rows]


def _of_table(name: str, rows: int, seed: int) -> Rounds:
    x, z, rewards = table(name)
    return _rounds(x, z, rewards, _order(len(x), rows, seed))


def _of_movies(found: movies.Catalogue, rows: int, seed: int) -> Rounds:
    """Ratings that the model of figure 2 predicts; five movies and the coordinates that are x are drawn."""
    rng = np.random.default_rng([DRAWS, seed])
    arms = rng.choice(len(found.movies), movies.N_ARMS, replace=False)
    x, z = np.split(found.users[:, rng.permutation(found.users.shape[1])], [movies.DIM_X], axis=1)
    return _rounds(x, z, found.users @ found.movies[arms].T, _order(len(x), rows, seed))


def _of_jokes(ratings: FloatArray, rows: int, seed: int) -> Rounds:
    """Ratings as they were given; the jokes that are x, z and the arms are drawn."""
    jokes = np.random.default_rng([DRAWS, seed]).permutation(ratings.shape[1])
    cuts = np.cumsum([logs.JOKES_X, logs.JOKES_Z, logs.JOKES_ARMS])
    x, z, rewards, _ = np.split(ratings[:, jokes], cuts, axis=1)
    return _rounds(x, z, rewards, _order(len(x), rows, seed))


def _of_log(log: LoggedRounds, rows: int, seed: int) -> LoggedRounds:
    return log.take(_order(len(log), rows, seed))


def _rounds(x: FloatArray, z: FloatArray, rewards: FloatArray, order: Any) -> Rounds:
    rewards = _on_grid(rewards[order])
    return Rounds(x[order], z[order], rewards, rewards)


def _on_grid(values: Any) -> Any:
    return np.rint(values * GRID) / GRID


def _with_rewards(data: Data, rewards: FloatArray) -> Data:
    if isinstance(data, LoggedRounds):
        return data.changed(rewards=rewards)
    return data._replace(rewards=rewards, means=rewards)


def _with_columns(data: Data, x: FloatArray, z: FloatArray) -> Data:
    return data.changed(x=x, z=z) if isinstance(data, LoggedRounds) else data._replace(x=x, z=z)
