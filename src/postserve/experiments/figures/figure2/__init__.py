"""Figure 2: cumulative regret on MovieLens."""

from functools import cache, partial
from pathlib import Path

from postserve.data import find, movielens
from postserve.evaluation.halves import halves_mean_and_error
from postserve.experiments.contenders import PAPER_RADIUS
from postserve.experiments.figure import Row, Size, contest
from postserve.experiments.figures.figure2 import rating_model as r
from postserve.experiments.figures.figure2 import worlds as w
from postserve.experiments.figures.figure2.drawing import draw as draw
from postserve.experiments.figures.figure2.results import PREDICTED, interval, prediction
from postserve.experiments.figures.figure2.results import claims as claims
from postserve.experiments.figures.figure2.results import headline as headline
from postserve.experiments.study import Cell, MakeEnvironment, Study, cells_of, seed_list

TITLE = "Figure 2: cumulative regret on MovieLens"
ABOUT = (
    "Users and movies as vectors whose dot product predicts ratings; five movies are the arms, the first 25 "
    "coordinates of a user are x, the last 7 are z. The paper shows one draw of movies and one split; here "
    "are many of each, run on both halves of the users, so that intervals include the variance of users and "
    "draws (but not of the rating model, which is the same for all). Rotating users and movies together "
    "changes no rating, but it changes what x says about z. So draws are shown in the axes of the fit and in "
    "the users' principal ones, in which x says nothing linear about z."
)
FULL, QUICK = Size(horizon=500, seeds=10), Size(horizon=200, seeds=4, quick=True)
MEASURE = "value"
SET = "movielens-100k"
DATA = (SET,)


def draws(size: Size) -> int:
    """How many draws of movies and splits, each on both halves of the users: 15 for each seed."""
    if size.quick and size.seeds <= w.CUTS:
        return max(2, size.seeds)
    return w.CUTS * max(1, size.seeds // w.CUTS if size.quick else 3 * size.seeds // 2)


def cells(size: Size, data: Path | None) -> list[Cell]:
    return cells_from(rating_model(data), size)


def cells_from(model: r.RatingModel, size: Size) -> list[Cell]:
    """Every policy in every world, and how well maps predict z there."""
    own, turned = (w.catalogue(model, model.level, principal=principal) for principal in (False, True))
    five = w.papers(own)
    worlds: dict[str, MakeEnvironment] = {
        w.AS_THEY_ARE: partial(w.papers_world, five._replace(level=0.0)),
        w.FIVE: partial(w.papers_world, five),
        w.DRAWN: partial(w.half_world, own),
        w.AXES: partial(w.half_world, turned),
    }
    seeds = {place: seed_list(2 * draws(size) if place in w.DRAWS_OF else size.seeds) for place in worlds}
    found = []
    for place, world in worlds.items():
        contenders = w.LEARNT if place == w.AXES else (*w.RIDGE_1, *w.LEARNT)
        found += contest(size, {place: world}, contenders, seeds[place])
    for place in (w.FIVE, *w.DRAWS_OF):
        for kind, make_map in w.MAPS.items():
            measure = partial(w.r_squared_of, worlds[place], make_map)
            found += cells_of(PREDICTED, prediction(kind, place), measure, size.horizon, seeds[place])
    return found


def rating_model(data: Path | None) -> r.RatingModel:
    """The model of the ratings in the data folder, fitted once per process."""
    return _fitted(find(SET, data).resolve())


@cache
def _fitted(file: Path) -> r.RatingModel:
    found = movielens(file, size="100k")
    return r.fit_rating_model(r.Triples(found.users, found.movies, found.ratings))


def summary(study: Study) -> list[Row]:
    """Values at the horizon with their intervals; where seeds are pairs of halves, these count both."""
    places = {prediction(kind, place): place for kind in w.MAPS for place in (w.FIVE, *w.DRAWS_OF)}
    rows = []
    for row in study.summary():
        values = study.final(row["environment"], row["policy"])
        place = places.get(row["policy"], row["environment"])
        _, low, high = interval(place, values)
        row |= {"low": low, "high": high}
        if place in w.DRAWS_OF:
            row["final_value_se"] = halves_mean_and_error(values, w.CUTS)[1]
        rows.append(row)
    return rows


def settings(size: Size, data: Path | None) -> dict[str, str]:
    return settings_from(rating_model(data), size)


def settings_from(model: r.RatingModel, size: Size) -> dict[str, str]:
    train, validation, test = model.sizes
    errors = ", ".join(f"{error:.3f} ({name})" for name, error in model.errors.items())
    return {
        "data": f"MovieLens 100K: {sum(model.sizes):,} ratings, split at random into {train:,} to fit, "
        f"{validation:,} to choose ridge and sweeps by, {test:,} to test. "
        f"{model.users_known.sum():,} of {len(model.users):,} users and {model.movies_known.sum():,} of "
        f"{len(model.movies):,} movies have a rating to fit and take part",
        "vectors": f"{r.DIM} dimensions, r ≈ user·movie, alternating least squares, ridge {model.ridge:g} "
        f"weighted by counts, {model.sweeps} sweeps (at most {max(r.SWEEPS)} were tried)",
        "test error": f"root mean squared error: {errors}, over the {model.tested:,} test ratings whose user "
        "and movie are known",
        "x, z": f"{w.DIM_X} and {r.DIM - w.DIM_X} coordinates of a user drawn with replacement: the first "
        f"and the last, or in {w.DRAWN} at random",
        "arms, rewards": f"{w.N_ARMS} movies at random, all the same for {w.FIVE}; the dot product minus the "
        f"mean training rating, {model.level:.2f}, or the dot product itself (rewards as they are). "
        "Regret is relative to the user's best of them, and the same for both",
        "draws": f"{draws(size)} draws of movies and splits, each on both halves of the users, which are "
        f"cut in {w.CUTS} ways; 95% intervals count both (postserve.evaluation.halves_interval)",
        "policies": f"ridge 1, a constant radius of {PAPER_RADIUS} and no intercept; and the defaults, "
        "the learnt prior and level; phi_hat by the paper's network, or linear in x",
        PREDICTED: f"held-out, {w.FOLDS} folds of users, after as many pairs as there are rounds",
    }
