"""Figure 2's worlds, what is measured in each of them, and the rating model behind them."""

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path

from postserve.data import find, movielens
from postserve.experiments.contenders import PAPER_RADIUS
from postserve.experiments.figure import Size
from postserve.experiments.figures.figure2.policies import learnt_prior, linear, network, ridge_one
from postserve.experiments.figures.figure2.predictability import FOLDS, r_squared_of
from postserve.experiments.figures.figure2.rating_model import (
    BIASES,
    DIM,
    MEAN,
    SWEEPS,
    VECTORS,
    RatingModel,
    Triples,
    fit_rating_model,
)
from postserve.experiments.figures.figure2.worlds import (
    CUTS,
    DIM_X,
    N_ARMS,
    catalogue,
    half_world,
    papers,
    papers_world,
)
from postserve.experiments.study import Cell, MakeEnvironment, MakePolicy, cells_of, regret_cells, seed_list

SIZE = Size(horizon=500, seeds=10, quick=False)
QUICK = Size(horizon=200, seeds=4, quick=True)
SET = "movielens-100k"

LITERAL = "5 movies, rewards as they are"
PAPERS = "5 movies"
DRAWN = "draws of movies"
AXES = "draws in principal axes"
PREDICTED = "R² of z given x"
DRAWS_OF = (DRAWN, AXES)
"""The places whose seeds are pairs of halves."""
MAPS: dict[str, MakePolicy] = {"network": network, "linear": linear}


def told_from(kind: str, place: str) -> str:
    """The name of a map's R² in a place."""
    return f"{kind} map, {place}"


def draws(size: Size) -> int:
    """How many draws of movies and splits, each on both halves of the users: 15 for each seed."""
    if size.quick and size.seeds <= CUTS:
        return max(2, size.seeds)
    return CUTS * max(1, size.seeds // CUTS if size.quick else 3 * size.seeds // 2)


def cells(size: Size, data: Path | None) -> list[Cell]:
    """Every policy in every world, and how well maps predict z there."""
    return cells_from(rating_model(data), size)


def cells_from(model: RatingModel, size: Size) -> list[Cell]:
    """The same from a rating model."""
    own, turned = (catalogue(model, model.level, principal=principal) for principal in (False, True))
    five = papers(own)
    seeds, halves = seed_list(size.seeds), seed_list(2 * draws(size))
    few: dict[str, MakeEnvironment] = {
        LITERAL: partial(papers_world, five._replace(level=0.0)),
        PAPERS: partial(papers_world, five),
    }
    many: dict[str, MakeEnvironment] = {DRAWN: partial(half_world, own), AXES: partial(half_world, turned)}
    policies = {**ridge_one(), **learnt_prior()}
    found = regret_cells(few, policies, size.horizon, seeds)
    found += regret_cells({DRAWN: many[DRAWN]}, policies, size.horizon, halves)
    found += regret_cells({AXES: many[AXES]}, learnt_prior(), size.horizon, halves)
    for place, make in ((PAPERS, few[PAPERS]), *many.items()):
        for kind, make_map in MAPS.items():
            learner = told_from(kind, place), make_map
            over = halves if place in DRAWS_OF else seeds
            found += cells_of(r_squared_of, (PREDICTED, make), learner, size.horizon, over)
    return found


def rating_model(data: Path | None) -> RatingModel:
    """The model of the ratings in the data folder, fitted once a process."""
    return _fitted(find(SET, data).resolve())


@cache
def _fitted(file: Path) -> RatingModel:
    found = movielens(file, size="100k")
    return fit_rating_model(Triples(found.users, found.movies, found.ratings))


def described(size: Size, data: Path | None) -> Mapping[str, str]:
    """The settings, for the report."""
    return described_from(rating_model(data), size)


def described_from(model: RatingModel, size: Size) -> dict[str, str]:
    """The same from a rating model."""
    train, validation, test = model.sizes
    known = f"{model.users_known.sum():,} of {len(model.users):,} users"
    movies = f"{model.movies_known.sum():,} of {len(model.movies):,} movies"
    return {
        "data": f"MovieLens 100K: {sum(model.sizes):,} ratings, split at random into {train:,} to fit, "
        f"{validation:,} to choose ridge and sweeps by, {test:,} to test; {known} and {movies} have a "
        "rating to fit and take part",
        "vectors": f"{DIM} dimensions, r ≈ user·movie, alternating least squares with the ridge weighted by "
        f"counts, ridge {model.ridge:g} and {model.sweeps} sweeps (at most {max(SWEEPS)} were tried); fitted "
        "on the first part alone",
        "test error": "root mean squared error: "
        + ", ".join(f"{model.errors[name]:.3f} ({name})" for name in (VECTORS, BIASES, MEAN))
        + f", over the {model.tested:,} test ratings whose user and movie are known",
        "x, z": f"{DIM_X} and {DIM - DIM_X} coordinates of a user drawn with replacement: the first and the "
        f"last, or in {DRAWN} at random; principal axes are the users'",
        "arms, rewards": f"{N_ARMS} movies at random, all the same for {PAPERS}; the dot product less the "
        f"mean training rating, {model.level:.2f}, or the dot product itself (rewards as they are). "
        "Regret is to the user's best of them, and the same for both",
        "rounds, seeds": f"T = {size.horizon:,}; {size.seeds} seeds with 5 movies; {draws(size)} draws of "
        f"movies and splits, each on both halves of the users, which are cut in {CUTS} ways; 95% intervals "
        "count both (experiments/halves.py)",
        "policies": f"ridge 1, a constant radius of {PAPER_RADIUS} and no intercept; and the learnt prior "
        "with an intercept; phi_hat by the paper's network, or linear in x with an intercept",
        PREDICTED: f"held-out, {FOLDS} folds of users, after as many pairs as there are rounds",
    }
