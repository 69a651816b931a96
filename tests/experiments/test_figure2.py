"""Figure 2: a rating model without leaks, worlds from a table, halves of the users, and plain words."""

import io
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib.image
import numpy as np
import polars as pl
import pytest

from postserve import InvalidInput, Study, TableEnvironment
from postserve.evaluation.halves import halves_interval, halves_mean_and_error
from postserve.experiments.contenders import AFTER, BEFORE, ORACLE, POLINUCB, RANDOM, X_ONLY, map_on_x
from postserve.experiments.figure import Size
from postserve.experiments.figures import figure2
from postserve.experiments.figures.figure2 import worlds
from postserve.experiments.figures.figure2.rating_model import (
    BIASES,
    MEAN,
    VECTORS,
    RatingModel,
    Triples,
    fit_rating_model,
    split,
)
from postserve.experiments.figures.figure2.results import PREDICTED, prediction, rank_correlation
from postserve.experiments.figures.figure2.worlds import (
    AS_THEY_ARE,
    AXES,
    CUTS,
    DRAWN,
    FIVE,
    LEARNT,
    MAPS,
    RIDGE_1,
    r_squared,
)
from postserve.experiments.fingerprint import fingerprint
from postserve.experiments.progress import progress_bar
from postserve.experiments.study import run_cells

SMALL = Size(horizon=20, seeds=2, quick=True)


def planted(n_users: int = 80, n_movies: int = 60, rank: int = 3) -> Triples:
    """A third of all ratings, of vectors whose dot products are no sum of biases, with noise of 0.2."""
    rng = np.random.default_rng(0)
    users, movies = rng.standard_normal((n_users, rank)), rng.standard_normal((n_movies, rank))
    who, what = np.nonzero(rng.random((n_users, n_movies)) < 0.35)
    ratings = np.einsum("nd,nd->n", users[who], movies[what]) + 0.2 * rng.standard_normal(len(who))
    return Triples(who.astype(np.int64), what.astype(np.int64), ratings + 3.0)


def fitted(ratings: Triples) -> RatingModel:
    return fit_rating_model(ratings, dim=6, ridges=(0.01, 0.03, 0.1, 0.3), sweeps=(5, 20))


def vectors(n_users: int = 60, n_movies: int = 12) -> RatingModel:
    """Vectors of 32 correlated coordinates; nobody rated the last movie, and the first user rated nothing."""
    rng = np.random.default_rng(1)
    mixed = rng.standard_normal((32, 32))
    return RatingModel(
        users=rng.standard_normal((n_users, 32)) @ mixed / 10.0 + 0.3,
        movies=rng.standard_normal((n_movies, 32)) / 3.0,
        users_known=np.arange(n_users) > 0,
        movies_known=np.arange(n_movies) < n_movies - 1,
        ridge=0.1,
        sweeps=5,
        validation_error=0.9,
        errors={VECTORS: 0.91, BIASES: 0.94, MEAN: 1.1},
        sizes=(80, 10, 10),
        tested=9,
        level=0.5,
    )


# --- The rating model


def test_vectors_find_what_biases_cannot() -> None:
    errors = fitted(planted()).errors
    assert errors[VECTORS] < 0.5 * errors[BIASES]
    assert errors[BIASES] < 1.05 * errors[MEAN]
    assert errors[VECTORS] < 0.6  # noise is 0.2


def test_biases_are_found_where_there_is_nothing_else() -> None:
    who, what, _ = planted()
    rng = np.random.default_rng(2)
    ratings = (
        rng.standard_normal(80)[who] + rng.standard_normal(60)[what] + 0.1 * rng.standard_normal(len(who))
    )
    errors = fitted(Triples(who, what, ratings)).errors
    assert errors[BIASES] < 0.2
    assert errors[BIASES] < 0.2 * errors[MEAN]


def test_ratings_are_in_one_part_each() -> None:
    ratings = planted()
    numbered = ratings._replace(ratings=np.arange(len(ratings.ratings), dtype=np.float64))
    parts = split(numbered)
    assert sorted(np.concatenate([part.ratings for part in parts])) == list(numbered.ratings)
    assert len(parts.train.ratings) == pytest.approx(0.8 * len(numbered.ratings), abs=1)
    assert len(parts.test.ratings) == pytest.approx(0.1 * len(numbered.ratings), abs=1)


def test_no_test_rating_touches_the_fit() -> None:
    ratings = planted()
    order = split(ratings._replace(ratings=np.arange(len(ratings.ratings), dtype=np.float64)))
    changed = ratings.ratings.copy()
    changed[order.test.ratings.astype(np.int64)] = -100.0
    before, after = fitted(ratings), fitted(ratings._replace(ratings=changed))
    assert np.array_equal(before.users, after.users)
    assert np.array_equal(before.movies, after.movies)
    assert (before.ridge, before.sweeps, before.level) == (after.ridge, after.sweeps, after.level)
    assert after.errors[VECTORS] > 10.0 * before.errors[VECTORS]


def test_validation_ratings_choose_but_are_not_fitted() -> None:
    ratings = planted()
    order = split(ratings._replace(ratings=np.arange(len(ratings.ratings), dtype=np.float64)))
    changed = ratings.ratings.copy()
    changed[order.validation.ratings.astype(np.int64)] += 0.01
    settled: Any = {"dim": 6, "ridges": (0.1,), "sweeps": (5,)}
    before = fit_rating_model(ratings, **settled)
    after = fit_rating_model(ratings._replace(ratings=changed), **settled)
    assert np.array_equal(before.users, after.users)
    assert before.validation_error != after.validation_error


def test_who_has_no_training_rating_is_told_apart() -> None:
    ratings = planted()
    parts = split(ratings)
    known = set(parts.train.users.tolist())
    model = fitted(
        Triples(
            np.append(ratings.users, [80, 81]),
            np.append(ratings.movies, [0, 60]),
            np.append(ratings.ratings, [3, 3]),
        )
    )
    assert known <= set(np.flatnonzero(model.users_known).tolist())
    assert np.array_equal(model.users[~model.users_known], np.zeros((int((~model.users_known).sum()), 6)))
    found = worlds.catalogue(vectors(), 0.0)
    assert (len(found.users), len(found.movies)) == (59, 11)


# --- A world from a table


def test_a_table_is_its_own_truth() -> None:
    x = np.array([[1.0, 0.0], [2.0, 0.0], [1.0, -0.0]])
    env = TableEnvironment(x, [[1.0], [2.0], [3.0]], [[0.0, 1.0], [5.0, 5.0], [2.0, 3.0]])
    assert (env.dim_x, env.dim_z, env.n_arms) == (2, 1, 2)
    assert env.phi([1.0, 0.0]).tolist() == [2.0]
    assert env.means([1.0, 0.0]).tolist() == [1.0, 2.0]
    rounds = env.rounds(200, np.random.default_rng(0))
    assert {tuple(row) for row in rounds.rewards} == {(0.0, 1.0), (5.0, 5.0), (2.0, 3.0)}
    first = rounds.x[:, 0] == 1.0
    assert (rounds.means[first] == [1.0, 2.0]).all()
    assert (rounds.means[~first] == [5.0, 5.0]).all()


def test_a_table_keeps_to_itself() -> None:
    x = np.array([[1.0], [2.0]])
    env = TableEnvironment(x, x, x)
    before = fingerprint(env)
    x[:] = 7.0
    env.means([1.0])[:] = 9.0
    env.rounds(3, np.random.default_rng(0)).x[:] = 9.0
    assert env.means([1.0]).tolist() == [1.0]
    again = pickle.loads(pickle.dumps(env))
    assert again.phi([2.0]).tolist() == [2.0]
    assert fingerprint(env) == fingerprint(again) == before
    assert fingerprint(TableEnvironment([[1.0], [2.0]], [[1.0], [2.5]], [[1.0], [2.0]])) != before


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (([[1.0]], [[1.0], [2.0]], [[1.0]]), r"z has shape \(2, 1\), wanted \(1, n\)"),
        (([[1.0]], [[1.0]], [1.0]), r"rewards has shape \(1,\), wanted \(1, n\)"),
        (([[np.nan]], [[1.0]], [[1.0]]), "x has nan"),
        ((np.empty((0, 2)), np.empty((0, 1)), np.empty((0, 1))), "wanted at least one row and one column"),
        (([[1.0]], np.empty((1, 0)), [[1.0]]), r"z has shape \(1, 0\), wanted at least one row"),
    ],
)
def test_what_is_no_table(arrays: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        TableEnvironment(*arrays)


def test_what_is_not_in_the_table_has_no_truth() -> None:
    env = TableEnvironment([[1.0]], [[1.0]], [[1.0]])
    with pytest.raises(InvalidInput, match=r"x is array\(\[1.5\]\), wanted one of the table's"):
        env.means([1.5])
    with pytest.raises(InvalidInput, match=r"x has shape \(2,\), wanted \(1,\)"):
        env.phi([1.0, 1.0])


# --- Halves


def halved(rows: Any, pairs: int, rng: np.random.Generator) -> Any:
    """The mean of each half of the rows, for random halves."""
    orders = (rng.permutation(len(rows)) for _ in range(pairs))
    return np.array([rows[half].mean() for order in orders for half in np.array_split(order, 2)])


@pytest.mark.parametrize("pairs", [5, 50])
def test_the_interval_covers_the_mean_of_the_units(pairs: int) -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for _ in range(400):
        _, low, high = halves_interval(halved(rng.exponential(size=60), pairs, rng))
        covered += low <= 1.0 <= high
    assert 0.91 <= covered / 400 <= 0.99


@pytest.mark.parametrize("pairs", [2, 10, 40])
def test_the_units_error_does_not_shrink_with_pairs(pairs: int) -> None:
    rng = np.random.default_rng(1)
    squares = [
        halves_mean_and_error(halved(rng.normal(5.0, 2.0, size=40), pairs, rng))[1] ** 2 for _ in range(800)
    ]
    assert np.mean(squares) == pytest.approx(4.0 / 40, rel=0.12)


def test_the_draws_error_does() -> None:
    rng = np.random.default_rng(2)
    draws = rng.standard_normal(400).repeat(2)  # both halves agree: the units say nothing
    assert halves_mean_and_error(draws)[1] == pytest.approx(1.0 / 20.0, rel=0.1)


@pytest.mark.parametrize("share", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("cuts", "orders"), [(16, 2), (8, 4), (10, 15)])
def test_intervals_cover_however_much_is_luck(cuts: int, orders: int, share: float) -> None:
    """Both halves of each cut, in several orders whose luck has 1/share of the units' variance."""
    rng = np.random.default_rng(3)
    covered, errors, means = 0, [], []
    for _ in range(300):
        halves = halved(rng.standard_normal(100), cuts, rng)
        luck = rng.normal(0.0, np.sqrt(0.01 / share), size=(orders, 2 * cuts))
        values = (halves + luck).ravel()
        mean, low, high = halves_interval(values, cuts)
        covered += low <= 0.0 <= high
        errors.append(halves_mean_and_error(values, cuts)[1])
        means.append(mean)
    assert covered / 300 >= 0.9
    assert 0.85 < np.sqrt(np.mean(np.square(errors))) / np.std(means) < 1.6


def test_draws_are_as_many_for_each_cut() -> None:
    with pytest.raises(
        InvalidInput, match="values are of 5 draws, wanted the same number for each of 4 cuts"
    ):
        halves_interval(np.arange(10.0), 4)
    assert halves_interval(np.arange(6.0), 4) == halves_interval(np.arange(6.0))


@pytest.mark.parametrize("values", [np.zeros(5), np.zeros(2), np.zeros(0), np.zeros((4, 4))])
def test_halves_come_in_pairs(values: Any) -> None:
    for function in (halves_mean_and_error, halves_interval):
        with pytest.raises(InvalidInput, match="values have the shape"):
            function(values)


# --- Worlds and cells


def test_both_halves_of_a_draw_have_its_arms_and_split_and_share_no_user() -> None:
    found = worlds.catalogue(vectors(), 0.5)
    first, second, other = (worlds.half_world(found, seed) for seed in (6, 7, 8))
    whole = {tuple(row) for row in np.vstack([first.x, second.x])}
    assert len(whole) == len(first.x) + len(second.x) == 59
    u = np.vstack([np.hstack([env.x, env.z]) for env in (first, second)])
    rewards = np.vstack([first.rewards, second.rewards]) + 0.5
    movies = np.linalg.lstsq(u, rewards)[0]  # one set fits both halves, which have more rows than u columns
    assert np.allclose(u @ movies, rewards)
    assert not np.allclose(np.hstack([other.x, other.z]) @ movies, other.rewards + 0.5)
    whose = [
        {round(row.sum(), 9) for row in np.hstack([env.x, env.z])}
        for env in (first, worlds.half_world(found, 6 + 2 * worlds.CUTS), second, other)
    ]
    assert whose[0] == whose[1]  # another draw, the same cut
    assert not whose[0] & whose[2]
    assert whose[3] not in (whose[0], whose[2])


def test_principal_axes_change_no_reward() -> None:
    model = vectors()
    own, turned = (worlds.catalogue(model, 0.5, principal=principal) for principal in (False, True))
    for seed in (0, 3):
        one, other = worlds.half_world(own, seed), worlds.half_world(turned, seed)
        assert np.allclose(one.rewards, other.rewards)
        assert not np.allclose(one.x, other.x)
    correlations = np.corrcoef(turned.users.T) - np.eye(32)
    assert abs(correlations).max() < 1e-6


def test_the_papers_world_is_the_same_for_every_seed() -> None:
    five = worlds.papers(worlds.catalogue(vectors(), 0.5))
    one, other = (worlds.papers_world(five, seed) for seed in (0, 9))
    assert np.array_equal(one.rewards, other.rewards)
    assert (one.dim_x, one.dim_z, one.n_arms) == (25, 7, 5)
    assert np.array_equal(np.hstack([one.x, one.z]), five.users)


def test_r_squared_is_that_of_what_can_be_told() -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 2))
    told, noise = x @ rng.standard_normal((2, 1)), rng.standard_normal((200, 1))
    for z, low, high in ((told, 0.95, 1.0), (noise, -0.2, 0.05), (np.hstack([told, noise]), 0.4, 0.52)):
        env = TableEnvironment(x, z, noise)
        assert low < r_squared(env, map_on_x, 300, np.random.default_rng(0)) <= high


def test_cells_are_known_again() -> None:
    first, second = (figure2.cells_from(vectors(), SMALL) for _ in range(2))
    assert [cell.key for cell in first] == [cell.key for cell in second]
    assert len({cell.key for cell in first}) == len(first)
    model = vectors()
    other = figure2.cells_from(model._replace(users=model.users * 1.01), SMALL)
    assert not {cell.key for cell in first} & {cell.key for cell in other}
    one = next(cell for cell in first if cell.place == DRAWN and cell.line == POLINUCB.name)
    assert np.array_equal(one.run().values, pickle.loads(pickle.dumps(one.run.func))(*one.run.args).values)  # type: ignore[attr-defined]


def test_each_place_has_seeds_of_its_own() -> None:
    cells = figure2.cells_from(vectors(), SMALL)
    seeds = {place: [c.seed for c in cells if (c.place, c.line) == place] for place in PAIRS}
    assert [seeds[place] for place in PAIRS] == [[0, 1], *([[0, 1, 2, 3]] * 3)]
    assert list(dict.fromkeys(c.line for c in cells))[:13] == [c.name for c in (*RIDGE_1, *LEARNT)]
    assert figure2.draws(figure2.FULL) == 150
    assert [figure2.draws(SMALL._replace(seeds=n)) for n in (2, 10, 11, 29)] == [2, 10, 10, 20]


PAIRS = (
    (FIVE, POLINUCB.name),
    (DRAWN, POLINUCB.name),
    (AXES, POLINUCB.evidence.name),
    (PREDICTED, prediction("network", AXES)),
)


def test_the_level_of_rewards_is_no_regret() -> None:
    """Random serves the same arms whatever the rewards are told from."""
    cells = [cell for cell in figure2.cells_from(vectors(), SMALL) if cell.line == RANDOM.name]
    ends = {(cell.place, cell.seed): cell.run().values[-1] for cell in cells}
    assert ends[AS_THEY_ARE, 0] == pytest.approx(ends[FIVE, 0])
    assert len({round(end, 9) for end in ends.values()}) == len(ends) - 2


def test_every_cell_runs() -> None:
    first = [cell for cell in figure2.cells_from(vectors(), SMALL) if cell.seed == 0]
    with progress_bar(quiet=True) as bar:
        study = run_cells(first, lambda f, items: map(f, items), None, bar, measure="value")
    assert study.environments == [AS_THEY_ARE, FIVE, DRAWN, AXES, PREDICTED]
    assert study.runs["value"].is_finite().all()


def test_without_data_it_says_what_it_wants(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"wanted a folder with ml-100k/u\.data"):
        figure2.cells(SMALL, tmp_path)


# --- Words


def hand_made(
    regrets: Mapping[tuple[str, str], float], gain_in_axes: float = 0.0, spread_by: float = 1.0
) -> Study:
    """Regret of each policy, but for what is said of (place, policy), with a little spread over seeds."""
    usual = {RANDOM: 100.0, X_ONLY: 40.0, BEFORE: 30.0, AFTER: 25.0, POLINUCB: 20.0, ORACLE: 10.0}
    by_label = {contender.label: value for contender, value in usual.items()}
    rows = []
    everyone = (*RIDGE_1, *LEARNT)
    for place, seeds, policies in (
        (AS_THEY_ARE, 4, everyone),
        (FIVE, 4, everyone),
        (DRAWN, 40, everyone),
        (AXES, 40, LEARNT),
    ):
        for policy in policies:
            value = regrets.get((place, policy.name), by_label.get(policy.label, 22.0))
            if place == AXES and policy.label == POLINUCB.label:
                value = max(value, 40.0 - gain_in_axes)
            spread = spread_by * (len(policy.label) % 7) / 10.0
            values = [value + spread * (-1) ** (seed // 2 + seed) for seed in range(seeds)]
            rows += [(place, policy.name, seed, 1, final) for seed, final in enumerate(values)]
    for place, seeds in ((FIVE, 4), (DRAWN, 40), (AXES, 40)):
        for kind in MAPS:
            name = prediction(kind, place)
            rows += [(PREDICTED, name, seed, 1, 0.3 + 0.01 * (seed // 2 % 5)) for seed in range(seeds)]
    schema = ["environment", "policy", "seed", "round", "value"]
    return Study(pl.DataFrame(rows, schema=schema, orient="row"))


def test_it_is_drawn_and_told() -> None:
    study = hand_made({})
    stream = io.BytesIO()
    figure2.draw(study).savefig(stream, format="png", dpi=50)
    assert min(matplotlib.image.imread(io.BytesIO(stream.getvalue()), format="png").shape[:2]) > 300
    assert all(claim.text.endswith(".") for claim in figure2.claims(study))
    assert figure2.settings_from(vectors(), SMALL)["data"].startswith("MovieLens 100K: 100 ratings")


def test_errors_count_the_users_of_draws() -> None:
    study = hand_made({})
    rows = {(row["environment"], row["policy"]): row for row in figure2.summary(study)}
    for pair in PAIRS[1:]:
        error = halves_mean_and_error(study.final(*pair), CUTS)[1]
        assert rows[pair]["final_value_se"] == pytest.approx(error)
    final = study.final(FIVE, X_ONLY)
    assert rows[FIVE, X_ONLY.name]["final_value_se"] == pytest.approx(final.std(ddof=1) / 2.0)


def test_the_headline_where_it_beats_nobody_anywhere() -> None:
    forms = (POLINUCB.name, POLINUCB.evidence.name)
    losing = {(place, name): 90.0 for place in (FIVE, DRAWN, AXES) for name in forms}
    found = figure2.headline(hand_made(losing))
    assert "elsewhere" not in found
    assert found.count("(which has less)") == 3
    assert found.count(" with ") == 5


def test_claims_hold_or_fail_with_the_order() -> None:
    def held(study: Study, words: str) -> list[bool | None]:
        return [claim.held for claim in figure2.claims(study) if claim.text.startswith(words)]

    good = hand_made({}, gain_in_axes=0.0)
    assert held(good, "The paper's order") == [True] * 4
    assert held(good, "The paper: the oracle") == [True] * 4
    assert held(good, "Expected: where x predicts z") == [True]
    bad = hand_made({(DRAWN, BEFORE.name): 15.0, (FIVE, ORACLE.evidence.name): 30.0}, gain_in_axes=20.0)
    assert held(bad, "The paper's order") == [True, True, False, True]
    assert held(bad, "The paper: the oracle") == [True, False, True, True]
    assert held(bad, "Expected: where x predicts z") == [False]
    texts = [claim.text for claim in figure2.claims(bad)]
    assert any("Not so: poLinUCB minus LinUCB(phi_hat, before) is +5" in text for text in texts)
    assert any("poLinUCB < LinUCB(phi_hat, before) in 0 of 20 draws" in text for text in texts)
    assert any(
        "poLinUCB < LinUCB(phi_hat, before) in 20 of 20 draws" in text
        for text in [claim.text for claim in figure2.claims(good)]
    )


def test_an_order_that_seeds_do_not_show_is_not_held() -> None:
    """Every interval must exclude 0, so fewer or louder seeds make claims harder."""
    quiet, loud = (figure2.claims(hand_made({}, spread_by=by)) for by in (1.0, 500.0))
    of_paper = [(one, other) for one, other in zip(quiet, loud, strict=True) if "The paper" in one.text]
    assert len(of_paper) == 8
    for one, other in of_paper:
        assert (one.held, other.held) == (True, False)
        assert "each 95% interval excluding 0" in one.text


def test_rank_correlation() -> None:
    rng = np.random.default_rng(0)
    one = rng.standard_normal(50)
    assert rank_correlation(one, np.exp(one)).value == pytest.approx(1.0)
    alike = rank_correlation(one, one + rng.standard_normal(50))
    assert 0.0 < alike.low < alike.value < alike.high < 1.0
    assert rank_correlation(one, np.zeros(50)) == (0.0, -1.0, 1.0)
    assert rank_correlation(one[:3], one[:3]) == (0.0, -1.0, 1.0)
