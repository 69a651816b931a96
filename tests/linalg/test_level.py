"""A common level, centred columns in their own units: exact, and free of constants and of units."""

from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from postserve.linalg.frame import Frame, Moments
from postserve.linalg.hybrid import HybridModels
from postserve.linalg.level import LevelModels
from postserve.linalg.ridge import RidgeModels, one_regression
from postserve.state import Stored
from postserve.types import FloatArray, IntArray

BLOCKS = {"x": 3, "z": 2, "intercept": 1}
CENTRING: Any = {"x": "shrunk", "z": "full"}
DIM, ARMS, FLAT = 6, 4, 1e-10
Rows = tuple[FloatArray, IntArray, FloatArray]


def rows(n: int = 60, seed: int = 0) -> Rows:
    """u, arms (of four the last is served late) and outputs, on a grid on which constants are exact."""
    rng = np.random.default_rng(seed)
    U = rng.normal(size=(n, 5)) * [1.0, 2.0, 0.5, 3.0, 1.0] + [0.0, 9.0, 0.0, 50.0, -7.0]
    arms = np.where(np.arange(n) < n // 2, rng.integers(3, size=n), rng.integers(4, size=n))
    y = np.vecdot(rng.normal(size=(ARMS, 5))[arms], U - [0.0, 9.0, 0.0, 50.0, -7.0]) + arms
    y = y + 0.3 * rng.normal(size=n) + 100.0
    return np.round(U * 4096) / 4096, arms, np.round(y * 4096)[:, None] / 4096


def level_models() -> LevelModels:
    return LevelModels(ARMS, BLOCKS, centring=CENTRING)


def hybrid_models() -> HybridModels:
    return HybridModels(ARMS, BLOCKS, centring=CENTRING)


def shared_model() -> RidgeModels:
    return one_regression(BLOCKS, centring=CENTRING)


MAKERS: dict[str, Any] = {"level": level_models, "hybrid": hybrid_models, "shared": shared_model}


def teach(models: Any, U: FloatArray, arms: IntArray, Y: FloatArray) -> Any:
    for u, arm, y in zip(U, arms, Y, strict=True):
        models.update(int(arm) if models.n_models > 1 else 0, u, y)
    return models


def joint(models: LevelModels, U: FloatArray, arms: IntArray, Y: FloatArray) -> tuple[Any, Any]:
    """Mean and covariance of (m, w_1, …) in the frame, by one large regression with an almost flat m."""
    design = np.zeros((len(U), 1 + ARMS * DIM))
    design[:, 0] = 1.0
    for i, (u, arm) in enumerate(zip(models.centred(U), arms, strict=True)):
        design[i, 1 + arm * DIM : 1 + (arm + 1) * DIM] = u
    precision = design.T @ design + np.diag(np.r_[FLAT, np.tile(models.ridge, ARMS)])
    assert models.frame is not None
    inverse = np.linalg.inv(precision)
    return inverse @ design.T @ models.frame.outputs(Y)[:, 0], inverse


@pytest.mark.parametrize("n", [5, 12, 60, 300])
def test_it_is_one_large_regression_with_a_flat_level(n: int) -> None:
    U, arms, Y = rows(n)
    models = teach(level_models(), U, arms, Y)
    mean, covariance = joint(models, U, arms, Y)
    at, all_arms = models.centred(rows(1, seed=9)[0]), np.arange(ARMS)
    where = np.zeros((ARMS, len(mean)))
    where[:, 0] = 1.0
    for arm in all_arms:
        where[arm, 1 + arm * DIM : 1 + (arm + 1) * DIM] = at[0]
    within = where @ covariance @ where.T
    means, widths = models.project(at, all_arms)
    np.testing.assert_allclose(means[:, 0], where @ mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(widths**2, np.diag(within), rtol=1e-6)
    np.testing.assert_allclose(models.average(at, all_arms), means, rtol=1e-12)
    np.testing.assert_allclose(models.weights_of()[:, 0] @ at[0], means[:, 0], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(models.inverse_of() @ at[0], models.solve(at, all_arms), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(np.vecdot(models.solve(at, all_arms), at), widths**2, rtol=1e-7)
    scores = models.score(at, all_arms, np.array([2.0]))
    assert scores.max() == pytest.approx((means[:, 0] + 2.0 * widths).max(), rel=1e-12)
    draws = models.deviations(
        at, all_arms, slice(3, 5), np.zeros((40_000, ARMS, 2)), np.random.default_rng(0)
    )
    np.testing.assert_allclose(np.cov(draws.T), within, atol=5e-2 * within.max())


@pytest.mark.parametrize("n", [12, 300])
def test_moving_z_moves_means_and_widths(n: int) -> None:
    models = teach(level_models(), *rows(n))
    at, all_arms, move = models.centred(rows(1, seed=9)[0]), np.arange(ARMS), np.array([0.7, -0.4])
    around = models.project_around(at, all_arms, np.array([3]), 2)
    moved = models.project(at + np.r_[0.0, 0.0, 0.0, move, 0.0], all_arms)
    np.testing.assert_allclose(around.means + around.beta @ move, moved.means[:, 0], rtol=1e-9)
    squares = around.widths**2 + 2.0 * around.cross @ move + move @ around.block @ move
    np.testing.assert_allclose(squares, moved.widths**2, rtol=1e-7)


def test_many_rows_are_decided_as_one_by_one() -> None:
    models = teach(level_models(), *rows(200))
    U, all_arms, radius = models.centred(rows(500, seed=3)[0]), np.arange(ARMS), np.array([1.5])
    found = models.argmax_scores(U, all_arms, radius)
    one_by_one = [int(models.score(u[None], all_arms, radius).argmax()) for u in U]
    decided = found >= 0
    assert decided.mean() > 0.99
    assert found[decided].tolist() == np.array(one_by_one)[decided].tolist()


def flat_evidence(models: LevelModels, U: FloatArray, arms: IntArray, y: FloatArray, noise: float) -> float:
    """-log p(y) with the level integrated out against a flat prior, from the covariance of y."""
    F = models.centred(U)
    same = arms[:, None] == arms
    C = np.eye(len(y)) + same * ((F / models.ridge) @ F.T)
    M = np.linalg.inv(C)
    ones = np.ones(len(y))
    A_0 = ones @ M @ ones
    Q = y @ M @ y - (ones @ M @ y) ** 2 / A_0
    log_det = np.linalg.slogdet(C)[1] + np.log(A_0)
    return float(0.5 * ((len(y) - 1) * np.log(noise) + log_det + Q / noise))


def at_prior(models: LevelModels, log_ridge: FloatArray, noise: float) -> float:
    """The evidence alone, without hyperprior, at this prior: what `Objective` computes."""
    objective = models.objective(models.units(models.moments()), None)
    posterior = objective.posterior_of_outputs(log_ridge)
    unit = float(objective.units.outputs[0])
    fit = objective._degrees * np.log(noise / unit) + float(posterior.residual[0]) * unit / noise
    return float(0.5 * (fit + posterior.log_det))


@pytest.mark.parametrize("n", [12, 60])
def test_the_evidence_integrates_the_level_out(n: int) -> None:
    U, arms, Y = rows(n)
    models = teach(level_models(), U, arms, Y)
    assert models.frame is not None
    y, values = models.frame.outputs(Y)[:, 0], []
    for factor, noise in ((1.0, 0.1), (3.0, 0.5), (0.2, 2.0)):
        ridge = models.prior.block_ridge * [factor, 1.0, 1.0 / factor]
        log_ridge = np.log(ridge / models.units(models.moments()).blocks)
        sizes = np.array(models.prior.sizes)
        models.set_prior(np.repeat(ridge, sizes) * models.prior.columns)
        values.append((at_prior(models, log_ridge, noise), flat_evidence(models, U, arms, y, noise)))
    (mine, truth), *others = values
    for other, true_other in others:
        assert other - mine == pytest.approx(true_other - truth, rel=1e-7)


@pytest.mark.parametrize("name", MAKERS)
def test_derivatives_of_the_evidence(name: str) -> None:
    models = teach(MAKERS[name](), *rows(40))
    objective = models.objective(models.units(models.moments()), None)
    centre = np.random.default_rng(0).normal(size=int((objective.units.blocks > 0.0).sum())) - 1.0
    here, step = objective.at(centre), 1e-5
    for i, way in enumerate(np.eye(len(centre))):
        up, down = objective.at(centre + step * way), objective.at(centre - step * way)
        assert (up.value - down.value) / (2 * step) == pytest.approx(here.gradient[i], rel=1e-5, abs=1e-6)
        slope = (up.gradient - down.gradient) / (2 * step)
        np.testing.assert_allclose(slope, here.hessian[i], rtol=1e-4, atol=1e-5)


def test_the_prior_in_force_is_read_from_the_caches() -> None:
    models = teach(level_models(), *rows(200))
    units, start = models.units(models.moments()), models.prior.block_ridge
    plain, known = models.objective(units, None), models.objective(units, start)
    one, other = (each.at(np.log(start / units.blocks)) for each in (plain, known))
    assert known._known is not None
    assert one.value == pytest.approx(other.value, rel=1e-9)
    np.testing.assert_allclose(one.gradient, other.gradient, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(one.hessian, other.hessian, rtol=1e-6, atol=1e-8)


def test_a_hybrid_with_a_level_is_one_large_regression() -> None:
    U, arms, Y = rows(80)
    models = teach(hybrid_models(), U, arms, Y)
    own, shared = np.split(models.prior.ridge, 2)
    design = np.zeros((len(U), (1 + ARMS) * DIM))
    for i, (u, arm) in enumerate(zip(models.centred(U), arms, strict=True)):
        design[i, :DIM] = design[i, (1 + arm) * DIM : (2 + arm) * DIM] = u
    precision = design.T @ design + np.diag(np.r_[shared[:-1], FLAT, np.tile(own, ARMS)])
    assert models.frame is not None
    weights = np.linalg.solve(precision, design.T @ models.frame.outputs(Y)[:, 0]).reshape(1 + ARMS, DIM)
    np.testing.assert_allclose(models.weights_of()[:, 0], weights[1:] + weights[0], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", MAKERS)
def test_constants_and_units_change_no_bit(name: str) -> None:
    U, arms, Y = rows(150)
    plain = teach(MAKERS[name](), U, arms, Y)
    by = np.array([1024.0, 1.0, 1.0 / 1024.0, 4.0, 0.5])
    shifted = teach(MAKERS[name](), U + np.array([0.0, 0.0, 0.0, 100.0, -300.0]), arms, Y - 1e6)
    scaled = teach(MAKERS[name](), U * by, arms, Y * 256.0)
    assert np.array_equal(shifted.weights_of(), plain.weights_of())
    assert np.array_equal(shifted.prior.noise_variance, plain.prior.noise_variance)
    assert np.array_equal(scaled.weights_of()[..., :-1] * by, 256.0 * plain.weights_of()[..., :-1])
    assert np.array_equal(scaled.prior.noise_variance, 256.0**2 * plain.prior.noise_variance)


@pytest.mark.parametrize("name", MAKERS)
def test_an_offset_of_a_million_costs_no_digit_of_the_noise(name: str) -> None:
    U, arms, Y = rows(400)
    models = teach(MAKERS[name](), U, arms, Y + 1e6)
    models.prior.refit(models)
    assert 0.2 < np.sqrt(models.prior.noise_variance[0]) < (0.4 if name != "shared" else 10.0)


@pytest.mark.parametrize("name", MAKERS)
def test_merged_halves_are_the_whole_whatever_came_first(name: str) -> None:
    U, arms, Y = rows(100)
    whole, left, right = (MAKERS[name]() for _ in range(3))
    teach(whole, U, arms, Y)
    teach(left, U[::2], arms[::2], Y[::2])
    teach(right, U[1::2], arms[1::2], Y[1::2])
    left.merge(right)
    empty = MAKERS[name]()
    empty.merge(whole)
    whole.prior.refit(whole)
    at = rows(5, seed=4)[0]
    models = np.zeros(5, dtype=np.int64)
    for other in (left, empty):
        assert other.frame is not None
        assert whole.frame is not None
        theirs = other.average(other.centred(at), models) + other.frame.y_centre
        np.testing.assert_allclose(
            theirs, whole.average(whole.centred(at), models) + whole.frame.y_centre, rtol=1e-6
        )


@pytest.mark.parametrize("name", MAKERS)
def test_rows_at_once_are_learnt_as_one_by_one(name: str) -> None:
    U, arms, Y = rows(300)
    single, at_once = teach(MAKERS[name](), U, arms, Y), MAKERS[name]()
    models = arms if at_once.n_models > 1 else arms * 0
    for start in range(0, 300, 75):
        some = slice(start, start + 75)
        at_once.update_batch(models[some], U[some], Y[some])
    np.testing.assert_allclose(at_once.weights_of(), single.weights_of(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", MAKERS)
def test_states_go_on_bit_by_bit(name: str) -> None:
    U, arms, Y = rows(120)
    models, twin = teach(MAKERS[name](), U[:70], arms[:70], Y[:70]), MAKERS[name]()
    twin.restore(Stored({key: array.copy() for key, array in models.arrays().items()}), models.n_models)
    for each in (models, twin):
        teach(each, U[70:], arms[70:], Y[70:])
    assert np.array_equal(models.weights_of(), twin.weights_of())
    radius = np.array([1.0])
    scores = [each.score(U[:1], np.arange(models.n_models), radius) for each in (models, twin)]
    assert np.array_equal(*scores)
    at = models.centred(U[:1])
    for mine, theirs in zip(
        models.project(at, np.zeros(1, dtype=np.int64)),
        twin.project(at, np.zeros(1, dtype=np.int64)),
        strict=True,
    ):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["level", "hybrid"])
def test_arms_come_and_go_and_rounds_are_forgotten(name: str) -> None:
    U, arms, Y = rows(90)
    models: Any = teach(MAKERS[name](), U, arms, Y)
    models.forget(0.5)
    models.remove(1)
    models.add()
    mean = models.average(models.centred(U[:1]), np.array([3]))  # the newcomer's
    assert models.frame is not None
    assert abs(float(mean[0, 0] + models.frame.y_centre[0]) - 100.0) < 15.0
    for u, y in zip(U[:20], Y[:20], strict=True):
        models.update(3, u, y)
    assert np.isfinite(models.weights_of()).all()
    for _ in range(4):
        models.remove(0)
        models.add()
    assert np.isfinite(models.project(models.centred(U[:1]), np.arange(ARMS)).widths).all()


@pytest.mark.parametrize("name", MAKERS)
def test_a_copy_by_joblib_learns_on_as_the_original(name: str, tmp_path: Path) -> None:
    """Which stores every array by itself, while frame and storage share one."""
    U, arms, Y = rows(120)
    models = MAKERS[name]()
    joblib.dump(models, tmp_path / "models")
    twin = joblib.load(tmp_path / "models")
    for each in (models, twin):
        teach(each, U, arms, Y)
    assert np.array_equal(models.weights_of(), twin.weights_of())


@pytest.mark.parametrize("name", ["level", "hybrid"])
@pytest.mark.parametrize("far", [1e5, 1e7])
def test_a_first_row_that_was_far_away_costs_no_digits_once_its_arm_is_gone(name: str, far: float) -> None:
    U, arms, Y = rows(400)
    models = MAKERS[name]()
    models.update(3, U[0] + far, Y[0] + far)
    teach(models, U[:6], arms[:6] % 3, Y[:6])
    models.remove(3)
    models.add()
    teach(models, U, arms, Y)
    models.prior.refit(models)
    if name == "level":  # what a removed arm taught shared weights stays
        assert 0.2 < np.sqrt(models.prior.noise_variance[0]) < 0.4
    assert models.prior.noise_variance[0] > 0.0


@pytest.mark.parametrize("name", MAKERS)
def test_inputs_that_are_all_zero_leave_levels_and_intercepts(name: str) -> None:
    rng, models = np.random.default_rng(0), MAKERS[name]()
    for t in range(60):
        models.update(t % models.n_models, np.zeros(5), np.array([50.0 + t % 4 + 0.1 * rng.normal()]))
    at = models.centred(np.zeros((1, 5)))
    means = models.average(at, np.arange(models.n_models))[:, 0] + models.frame.y_centre[0]
    expected = 50.0 + np.arange(4.0) if models.n_models == 4 else [51.5]
    np.testing.assert_allclose(means, expected, atol=0.3)


def test_no_variance_no_choice() -> None:
    """Equal rewards tell nothing apart: all arms tie, wherever rewards lie."""
    models = level_models()
    for u, arm in zip(*rows(10)[:2], strict=True):
        models.update(int(arm), u, np.array([7.0]))
    scores = models.score(rows(1)[0], np.arange(ARMS), np.sqrt(models.prior.noise_variance))
    assert np.array_equal(scores, np.zeros(ARMS))


def test_a_zero_column_counts_from_its_first_value_on() -> None:
    U, arms, Y = rows(60)
    U[:40, 0] = U[:40, 4] = 5.0  # x's column is a constant, which is not centred; z's is no column at all
    models = teach(level_models(), U[:40], arms[:40], Y[:40])
    assert models.frame is not None
    assert models.frame.u[:, 0].sum() == 0.0
    assert models.prior.zero_inputs.tolist() == [False, False, False, False, True, False]
    teach(models, U[40:41], arms[40:41], Y[40:41])
    assert not models.prior.zero_inputs.any()


def test_a_centre_is_believed_as_far_as_rounds_tell_it_from_0() -> None:
    rng = np.random.default_rng(0)
    for mean, least, most in ((0.0, 0.0, 0.5), (0.3, 0.5, 1.0), (50.0, 0.999, 1.0)):
        X = rng.normal(size=(200, 4)) + mean
        X -= X.mean(axis=0) - mean  # so that the sample mean is the mean
        frame = Frame({"x": 4, "intercept": 1}, {"x": "shrunk"}, n_outputs=1)
        ones = np.ones((200, 1))
        rows = np.hstack([X, ones])
        frame.renew(Moments(rows.sum(axis=0), (rows**2).sum(axis=0), np.zeros(1), np.zeros(1), 200.0))
        share = frame.u[1, :4] / mean if mean else np.abs(frame.u[1, :4])
        assert ((share >= least) & (share <= most)).all()
        assert frame.u[1, 4] == 0.0
