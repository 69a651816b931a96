"""The linear core against direct solves, and its kernels against plain numpy."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference
from tests.parts import part

from postserve.changes import commit
from postserve.linalg import bulk, cholesky, evidence
from postserve.linalg.cholesky import cholesky_inverse, factorise
from postserve.linalg.kernels import evidence as evidence_kernels
from postserve.linalg.kernels.models import CACHE, MAX_LOSS, REFACTORISE_EVERY
from postserve.linalg.level import LevelModels
from postserve.linalg.ridge import RidgeModels, one_regression, sums_of
from postserve.policies.arms import ArmModels
from postserve.types import FloatArray

EPS = float(np.finfo(float).eps)


def well_scaled(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, 12))


def collinear(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, 4)) @ rng.standard_normal((4, 12))


def badly_scaled(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, 12)) * np.logspace(-6, 6, 12)


def trained(U: FloatArray, y: FloatArray, ridge: Any) -> RidgeModels:
    models = RidgeModels(1, {"x": U.shape[1]}, n_outputs=y.shape[1], ridge=ridge)
    for u, target in zip(U, y, strict=True):
        models.update(0, u, target)
    return models


def equilibrated(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The matrix with a unit diagonal, and the scale that makes it so: what Cholesky really faces."""
    scale = np.sqrt(np.diagonal(matrix))
    return matrix / np.outer(scale, scale), scale


@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("features", [well_scaled, collinear, badly_scaled])
def test_sums_and_cache_equal_a_direct_solve_after_10_000_updates(features: Any, ridge: float) -> None:
    rng = np.random.default_rng(0)
    U = features(rng, 10_000)
    y = (U / np.abs(U).max(axis=0)) @ rng.standard_normal((12, 1)) + 0.1 * rng.standard_normal((10_000, 1))
    models = trained(U, y, ridge)
    gram, moment = U.T @ U, y.T @ U
    assert np.allclose(models.gram_of()[0], gram, rtol=1e-12, atol=1e-12 * np.abs(gram).max())
    assert np.allclose(models.moment_of()[0], moment, rtol=1e-9, atol=1e-12 * np.abs(moment).max())

    # The truth, solved in units in which the matrix has a unit diagonal: condition numbers, and so
    # the accuracy anyone can hope for, are then those of the problem, not of its units.
    scaled, scale = equilibrated(models.gram_of()[0] + ridge * np.eye(12))
    kappa = np.linalg.cond(scaled)
    tolerance = max(1e-9, 100.0 * kappa * EPS) if features is not well_scaled else 1e-9
    inverse = np.linalg.inv(scaled)
    weights = np.linalg.solve(scaled, models.moment_of()[0, 0] / scale)
    got_inverse = models.inverse_of()[0] * np.outer(scale, scale)
    assert np.abs(got_inverse - inverse).max() <= tolerance * np.abs(inverse).max()
    assert np.abs(models.weights_of()[0, 0] * scale - weights).max() <= tolerance * np.abs(weights).max()
    widths = models.project(U[:100], np.zeros(100, dtype=np.int64)).widths
    direct = np.sqrt(np.einsum("ij,jk,ik->i", U[:100] / scale, inverse, U[:100] / scale))
    assert np.abs(widths - direct).max() <= tolerance * direct.max()


def test_a_million_updates_leave_weights_and_widths_finite() -> None:
    rng = np.random.default_rng(0)
    block = 1000
    models = RidgeModels(1, {"x": 6}, ridge=0.01)
    for _ in range(1_000_000 // block):
        U = rng.standard_normal((block, 6)) * np.logspace(-3, 3, 6)
        U[:, 5] = U[:, 4]  # collinear too
        for u, y in zip(U, rng.standard_normal((block, 1)), strict=True):
            models.update(0, u, y)
    widths = models.project(U, np.zeros(block, dtype=np.int64)).widths
    assert models.pulls[0] == 1_000_000
    assert np.isfinite(models.weights_of()).all()
    assert np.isfinite(widths).all()
    assert (widths >= 0.0).all()
    direct = np.linalg.solve(models.gram_of()[0] + 0.01 * np.eye(6), models.moment_of()[0, 0])
    assert np.allclose(models.weights_of()[0, 0], direct, rtol=1e-6, atol=1e-6 * np.abs(direct).max())


def test_the_inverse_is_renewed_on_schedule() -> None:
    rng = np.random.default_rng(0)
    models = RidgeModels(1, {"x": 3}, ridge=1.0)
    U = rng.standard_normal((REFACTORISE_EVERY, 3))
    for u in U[:2]:
        models.update(0, u, np.zeros(1))
    models.storage.symmetric[CACHE] += 1e-3  # damage that rank-one updates alone would carry along
    for u in U[2:]:
        models.update(0, u, np.zeros(1))
    assert np.allclose(
        models.inverse_of()[0], np.linalg.inv(models.gram_of()[0] + np.eye(3)), rtol=1e-12, atol=0
    )


def test_the_inverse_is_renewed_when_digits_are_lost() -> None:
    """One row a trillion times the ridge leaves no digit in a rank-one update."""
    models = RidgeModels(1, {"x": 2}, ridge=1.0)
    models.update(0, np.array([1e8, 1.0]), np.zeros(1))
    direct = np.array([[2.0, -1e8], [-1e8, 1e16 + 1.0]]) / (2.0 * (1e16 + 1.0) - 1e16)
    assert np.allclose(models.inverse_of()[0], direct, rtol=1e-12, atol=0)


@pytest.mark.parametrize("ridge", [1e-6, 0.01, 1.0, 100.0])
def test_a_cold_models_width_is_the_norm_over_the_root_of_the_ridge(ridge: float) -> None:
    u = np.array([[3.0, 4.0]])
    assert RidgeModels(1, {"x": 2}, ridge=ridge).project(u, np.array([0])).widths == pytest.approx(
        5.0 / np.sqrt(ridge)
    )


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 4), st.floats(0.01, 100.0))
def test_kernels_agree_with_the_reference(seed: int, dim: int, outputs: int, ridge: float) -> None:
    """In every form: the first of four models stays cold, the last has many rows."""
    rng = np.random.default_rng(seed)
    models = RidgeModels(4, {"x": dim}, n_outputs=outputs, ridge=ridge)
    inverse = np.repeat(np.eye(dim)[None] / ridge, 4, axis=0)
    weights = np.zeros((4, outputs, dim))
    for model in [1, 2, 2, 3, 3, *[3] * dim, 1]:
        u, y = rng.standard_normal(dim), rng.standard_normal(outputs)
        q = models.learn(model, u, y)
        assert q == pytest.approx(reference.rank_one(inverse[model], weights[model], u, y), rel=1e-9)
    for got, wanted in zip(reference.full(models.storage, CACHE), (inverse, weights), strict=True):
        assert np.allclose(got, wanted, rtol=1e-9, atol=1e-12)
    assert np.allclose(models.inverse_of(), inverse, rtol=1e-9, atol=1e-12)
    assert np.allclose(models.weights_of(), weights, rtol=1e-9, atol=1e-12)
    assert np.allclose(models.gram_of() + ridge * np.eye(dim), np.linalg.inv(inverse), rtol=1e-7, atol=1e-7)
    for slots in (np.arange(4), np.array([3, 0, 2]), np.array([1])):
        for U in (rng.standard_normal((1, dim)), rng.standard_normal((len(slots), dim))):
            rows = np.broadcast_to(U, (len(slots), dim))
            means, squares = reference.project(inverse, weights, slots, rows)
            projection = models.project(U, slots)
            assert np.allclose(projection.means, means, rtol=1e-9, atol=1e-11)
            assert np.allclose(projection.widths, np.sqrt(squares), rtol=1e-7, atol=1e-7)
            assert np.allclose(models.average(U, slots), means, rtol=1e-9, atol=1e-11)
            solved = reference.solve(inverse, slots, rows)
            assert np.allclose(models.solve(U, slots), solved, rtol=1e-9, atol=1e-11)
            scores = models.score(U, slots, np.array([0.7]))
            exact = projection.means[:, 0] + 0.7 * projection.widths
            assert scores.argmax() == exact.argmax()
            assert scores.max() == pytest.approx(exact.max(), rel=1e-14)
            assert (scores <= exact + 1e-13).all()


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 4), st.integers(1, 4), st.integers(1, 3))
def test_what_the_evidence_asks_of_rows_is_what_it_asks_of_sums(
    seed: int, dim_x: int, dim_z: int, outputs: int
) -> None:
    rng = np.random.default_rng(seed)
    dim, edges = dim_x + dim_z, np.array([0, dim_x, dim_x + dim_z])
    sizes = rng.integers(1, 5, size=3)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    U, Y = rng.standard_normal((starts[-1], dim)), rng.standard_normal((starts[-1], outputs))
    ridge = np.repeat(rng.uniform(0.1, 10.0, size=2), [dim_x, dim_z])
    parts = [np.zeros(2), np.zeros((2, 2)), np.zeros((outputs, 2)), np.zeros((outputs, 2, 2))]
    residual, lost = np.zeros(outputs), np.zeros(3, dtype=np.bool_)
    work = np.empty(U.shape), np.empty(Y.shape), np.empty((outputs, dim)), np.empty((len(U), 2))
    log_det = evidence_kernels.add_row_blocks(
        starts, U, Y, ridge, edges, MAX_LOSS, *work, lost, residual, *parts
    )
    assert not lost.any()
    wanted = [part * 0.0 for part in parts]
    of_sums, compiled = np.zeros(outputs), [part * 0.0 for part in parts]
    for first, last in pairwise(starts):
        u, y = U[first:last], Y[first:last]
        factor = factorise(u.T @ u, ridge, y.T @ u)
        log_det -= factor.log_det - np.log(ridge).sum()
        moments, squares = (y.T @ u)[None], (y**2).sum(axis=0)[None]
        found = factor.inverse[None], factor.solution[None]
        evidence_kernels.add_blocks(*found, moments, squares, edges, of_sums, *compiled)
        plain = reference.blocks(factor.inverse, factor.solution, edges)
        wanted = [total + part for total, part in zip(wanted, plain, strict=True)]
    assert log_det == pytest.approx(0.0, abs=1e-9)
    assert np.allclose(residual, of_sums, atol=1e-9)
    for rows, sums, total in zip(parts, compiled, wanted, strict=True):
        assert np.allclose(sums, total, rtol=1e-9, atol=1e-12)
        assert np.allclose(rows, total, rtol=1e-7, atol=1e-9)


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 20), st.floats(1e-6, 1e3))
def test_the_compiled_cholesky_agrees_with_the_reference(seed: int, dim: int, ridge: float) -> None:
    rows = np.random.default_rng(seed).standard_normal((dim, dim))
    matrix = rows.T @ rows + ridge * np.eye(dim)
    kappa = float(np.linalg.cond(matrix))
    results = cholesky_inverse(matrix), reference.cholesky_inverse(matrix)
    for compiled, plain in zip(*(map(np.asarray, result) for result in results), strict=True):
        assert np.abs(compiled - plain).max() <= 100.0 * kappa * EPS * max(1.0, float(np.abs(plain).max()))


@pytest.mark.parametrize("dim", [1, 3, 4, 5, 8, 9, 31, 64, 105])
def test_the_compiled_cholesky_of_any_size_is_symmetric_and_scales_exactly(dim: int) -> None:
    rng = np.random.default_rng(dim)
    rows, units = rng.standard_normal((dim, dim)), 2.0 ** rng.integers(-20, 20, size=dim)
    matrix = rows.T @ rows + np.eye(dim)
    log_det, root, inverse = cholesky_inverse(np.tril(matrix))  # the lower half is enough
    _, scaled_root, scaled_inverse = cholesky_inverse(matrix * units * units[:, None])
    expected_log_det, expected_root, expected = reference.cholesky_inverse(matrix)
    assert log_det == pytest.approx(expected_log_det, rel=1e-12)
    assert np.allclose(root, expected_root, rtol=0.0, atol=1e-12)
    assert np.allclose(inverse, expected, rtol=0.0, atol=1e-12)
    assert np.array_equal(inverse, inverse.T)
    assert np.array_equal(root, np.tril(root))
    assert np.array_equal(scaled_root * units, root)
    assert np.array_equal(scaled_inverse * units * units[:, None], inverse)


@pytest.mark.parametrize("bad", range(11))
def test_no_pivot_of_a_matrix_may_be_negative(bad: int) -> None:
    matrix = np.eye(11)
    matrix[bad, bad] = -1.0
    assert np.isnan(cholesky_inverse(matrix)[0])


def test_a_matrix_that_is_not_positive_is_refused_by_both() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])
    assert np.isnan(cholesky_inverse(matrix)[0])
    assert np.isnan(reference.cholesky_inverse(matrix)[0])


def test_rounding_that_makes_a_gram_indefinite_is_mended() -> None:
    u = np.array([1e30, 1.0])
    factor = factorise(np.outer(u, u), np.array([1e-30, 1e-30]), np.array([[1.0, 1.0]]))
    assert np.isfinite(factor.inverse).all()
    assert np.isfinite(factor.solution).all()


def test_many_grams_are_factorised_as_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cholesky, "AT_ONCE", 50)  # three at once
    rng, ridge = np.random.default_rng(0), np.array([1e-30, 1e-30, 1.0, 1.0])
    rows = rng.normal(size=(7, 9, 4))
    rows[3, :, :2] = rows[3, :, :1]  # rounding makes this one indefinite
    grams, rights = rows.mT @ rows, rng.normal(size=(7, 2, 4))
    grams[3, 0, 1] = grams[3, 1, 0] = grams[3, 0, 0] * (1.0 + 1e-15)
    found = cholesky.factorise_all(grams, ridge, rights)
    for i in range(7):
        one = factorise(grams[i], ridge, rights[i])
        assert np.array_equal(found.inverse[i], one.inverse)
        assert np.allclose(found.solution[i], one.solution, rtol=1e-12, atol=0.0)
        assert found.log_det[i] == one.log_det
    assert np.isnan(cholesky.cholesky_inverse(grams[3] + np.diag(ridge))[0])
    empty = cholesky.factorise_all(np.zeros((2, 0, 0)), np.zeros(0), np.zeros((2, 1, 0)))
    assert empty.inverse.shape == (2, 0, 0)
    assert empty.log_det.tolist() == [0.0, 0.0]


@settings(deadline=None, derandomize=True, max_examples=50)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(0, 30), st.floats(0.01, 100.0))
def test_log_det_is_kept_along(seed: int, dim: int, n: int, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    models = trained(rng.standard_normal((n, dim)), rng.standard_normal((n, 1)), ridge)
    direct = np.linalg.slogdet(models.gram_of()[0] + ridge * np.eye(dim))[1] - dim * np.log(ridge)
    assert models.log_det[0] == pytest.approx(direct, rel=1e-9, abs=1e-9)


def test_outputs_share_a_gram_and_differ_in_their_weights() -> None:
    rng = np.random.default_rng(0)
    U, y = rng.standard_normal((50, 4)), rng.standard_normal((50, 3))
    models = trained(U, y, 2.0)
    assert np.allclose(models.weights_of()[0].T, np.linalg.solve(U.T @ U + 2.0 * np.eye(4), U.T @ y))


def test_forgetting_scales_the_sums_and_never_the_prior() -> None:
    rng = np.random.default_rng(0)
    U, y = rng.standard_normal((50, 4)), rng.standard_normal((50, 1))
    models = trained(U, y, 2.0)
    models.forget(0.25)
    assert np.allclose(
        models.weights_of()[0, 0], np.linalg.solve(U.T @ U / 4 + 2.0 * np.eye(4), U.T @ y[:, 0] / 4)
    )
    assert models.pulls[0] == 12.5
    assert models.updates == 50


def test_merging_adds_the_sums() -> None:
    rng = np.random.default_rng(0)
    U, y = rng.standard_normal((50, 4)), rng.standard_normal((50, 1))
    whole, half = trained(U, y, 2.0), trained(U[:20], y[:20], 2.0)
    half.merge(trained(U[20:], y[20:], 2.0))
    for name in ("gram", "moment", "squares", "pulls", "inverse", "weights", "log_det"):
        assert np.allclose(part(half, name), part(whole, name), rtol=1e-9, atol=1e-12), name


def test_models_come_and_go_without_touching_the_others() -> None:
    rng = np.random.default_rng(0)
    models = RidgeModels(3, {"x": 2}, ridge=1.0)
    for model in (0, 1, 2, 2):
        models.update(model, rng.standard_normal(2), rng.standard_normal(1))
    last = models.weights_of()[2].copy()
    models.remove(1)
    models.add()
    assert models.n_models == 3
    assert np.array_equal(models.weights_of()[1], last)
    assert models.pulls.tolist() == [1.0, 2.0, 0.0]
    assert np.array_equal(models.inverse_of()[2], np.eye(2))


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
def test_powers_of_two_scale_every_number_exactly(scale: float) -> None:
    rng = np.random.default_rng(0)
    U, y = rng.standard_normal((300, 7)), rng.standard_normal((300, 2))
    by = np.where(np.arange(7) < 4, scale, 1.0)
    fits = []
    for factor in (np.ones(7), by):
        models = RidgeModels(1, {"x": 4, "z": 3}, n_outputs=2)
        for u, target in zip(U, y, strict=True):
            models.update(0, u * factor, target)
        fits.append(models)
    one, other = fits
    assert np.array_equal(other.weights_of() * by, one.weights_of())
    assert np.array_equal(other.inverse_of() * np.outer(by, by), one.inverse_of())
    assert np.array_equal(other.prior.noise_variance, one.prior.noise_variance)


@pytest.mark.parametrize("ridge", ["evidence", 0.5])
@pytest.mark.parametrize("shared", [True, False])
def test_deviations_are_draws_from_the_posterior_at_moved_rows(shared: bool, ridge: Any) -> None:
    """Their covariance is that of u·(w - w_hat): one w for all rows where they share it."""
    rng = np.random.default_rng(0)
    blocks = {"x": 2, "z": 2}
    arms = ArmModels(2, blocks, model="shared" if shared else "disjoint", ridge=ridge)
    for i in range(30):
        arms.learn(i % 2, rng.normal(size=4) * [1, 2, 3, 0.5], reward=float(rng.normal()))
    U, move = rng.normal(size=(2, 4)), rng.normal(size=(2, 2))
    size, slots = 40_000, np.arange(2)
    moves = np.broadcast_to(move, (size, 2, 2))
    drawn, models = arms.deviations(U, slots, moves, rng), arms.models
    at = models.centred(U + np.hstack([np.zeros((2, 2)), move]))
    wanted = at @ models.inverse_of()[0] @ at.T
    if not shared:
        wanted = np.diag([at[i] @ models.inverse_of()[i] @ at[i] for i in slots])
    if isinstance(models, LevelModels):  # which both arms share
        t = [at[i] @ models._h(slots)[i] for i in slots]
        wanted[0, 1] = wanted[1, 0] = t[0] * t[1] * models._spread**2
    error = 5.0 * np.sqrt(np.outer(np.diag(wanted), np.diag(wanted)) * 2 / size)
    assert (abs(drawn.T @ drawn / size - wanted) < error).all()


def test_a_shared_model_is_one_regression_whoever_the_rows_are_of() -> None:
    rng = np.random.default_rng(0)
    shared = ArmModels(10, {"x": 3}, model="shared")
    one = one_regression({"x": 3, "intercept": 1}, centring={"x": "shrunk"})
    for i in range(40):
        u, y = rng.normal(size=3), rng.normal(size=1)
        shared.learn(i, u, reward=float(y[0]))
        one.update(0, u, y)
    commit(shared.prepare_add())
    shared.remove(0)
    slots = np.array([7, 1, 0, 3, 9])
    assert np.array_equal(shared.models.weights_of(), one.weights_of())
    assert np.array_equal(shared.weights(slots), np.repeat(shared.weights(np.array([0])), 5, axis=0))
    U = rng.normal(size=(5, 3))
    assert np.array_equal(shared.average(U, slots), one.average(one.centred(U))[:, 0])
    centred = one.centred(U)
    means, widths = one.project(centred)
    assert np.allclose(shared.score(U, slots, np.ones(1)).max(), (means[:, 0] + widths).max(), rtol=1e-12)
    for mine, plain in zip(one.project(centred), one.project(centred, slots * 0), strict=True):
        assert np.array_equal(mine, plain)
    assert np.array_equal(one.ellipsoid(slots * 0).pulls, np.full(5, 40.0))


def both(one: evidence.Posterior, other: evidence.Posterior) -> Iterator[tuple[FloatArray, FloatArray]]:
    return zip(map(np.asarray, one), map(np.asarray, other), strict=True)


def test_what_is_known_at_the_start_spares_a_factorisation_and_changes_nothing() -> None:
    rng = np.random.default_rng(0)
    models = RidgeModels(3, {"x": 3, "z": 2})
    for i in range(60):
        u = rng.normal(size=5) * [1.0, 20.0, 3.0, 0.1, 1.0]
        models.update(i % 3, u, np.array([u.sum() + rng.normal()]))
    places, units, full = models.storage.owner[:3], models.units(models.moments()), slice(0, 5)
    start = np.log(models.prior.block_ridge / units.blocks)
    plain, known = (evidence.Objective(sums_of(models, places), [3, 2], units) for _ in range(2))
    log_det = float(models.log_det[places].sum())
    known.set_known_point(start, models.inverse_of(places, full, full), models.weights_of(places), log_det)
    for wanted, got in both(plain.posterior(start), known.posterior(start)):
        assert np.allclose(got, wanted, rtol=1e-9, atol=1e-12)
    elsewhere = start + 0.5
    for wanted, got in both(plain.posterior(elsewhere), known.posterior(elsewhere)):
        assert np.array_equal(got, wanted)  # what is known holds at one lambda alone


def test_batches_find_the_same_best_by_products_and_in_turn() -> None:
    rng = np.random.default_rng(0)
    for n_models, dim in ((4, 9), (20, 6)):
        models, slots = RidgeModels(n_models, {"x": dim}, ridge=1.0), np.arange(n_models)
        for i in range(12 * n_models):
            models.update(int(i**0.5) % n_models, rng.normal(size=dim), rng.normal(size=1))
        U, radius = rng.normal(size=(200, dim)), np.array([0.5])
        one, other = np.empty(200, dtype=np.int64), np.empty(200, dtype=np.int64)
        bulk._in_turn(models.storage, U, slots, radius, one)
        bulk._by_products(models.storage, U, slots, radius, other)
        assert len(np.unique(one)) > 1
        assert np.array_equal(one, other)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_who_asks_for_a_model_that_is_gone_is_told(order: tuple[int, ...]) -> None:
    """As a thread does that took the arms before another removed one: no kernel checks its indices."""
    models, slots, u = RidgeModels(3, {"x": 2}, ridge=1.0), np.array(order), np.ones((1, 2))
    models.remove(0)
    everything = slice(0, 2)
    for ask in (
        lambda: models.score(u, np.sort(slots), np.ones(1)),
        lambda: models.project(u, slots),
        lambda: models.average(u, slots),
        lambda: models.solve(u, slots),
        lambda: models.argmax_scores(u, slots, np.ones(1)),
        lambda: models.weights_of(slots),
        lambda: models.inverse_of(slots, everything, everything),
        lambda: models.project_around(u, slots, np.array([0]), 1),
    ):
        with pytest.raises(RuntimeError, match="removed"):
            ask()
