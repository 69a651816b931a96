"""The prior learnt from the evidence: its objective, its schedule, and its edges."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sums import measure_units, refit

from postserve import LinUCB, PoLinUCB, RidgeMap
from postserve.linalg import evidence
from postserve.linalg.ridge import RidgeModels
from postserve.linalg.ridge import sums_of as sums_in
from postserve.types import FloatArray

BLOCKS = [4, 2]


def rounds(seed: int, n: int, n_arms: int = 3, noise: float = 0.3) -> tuple[FloatArray, Any, FloatArray]:
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((n, sum(BLOCKS))) * np.repeat([5.0, 0.1], BLOCKS)
    weights = rng.standard_normal((n_arms, sum(BLOCKS))) * np.repeat([0.2, 30.0], BLOCKS)
    arms = rng.integers(n_arms, size=n)
    return U, arms, (U * weights[arms]).sum(axis=1) + noise * rng.standard_normal(n)


def sums_of(U: FloatArray, arms: Any, r: FloatArray, n_arms: int = 3) -> evidence.Sums:
    picked = [arms == a for a in range(n_arms)]
    return evidence.Sums(
        np.array([U[a].T @ U[a] for a in picked]),
        np.array([[r[a] @ U[a]] for a in picked]),
        np.array([[r[a] @ r[a]] for a in picked]),
        np.array([float(a.sum()) for a in picked]),
    )


def objective(sums: evidence.Sums) -> evidence.Objective:
    return evidence.Objective(sums, BLOCKS, measure_units(sums, BLOCKS))


def test_the_value_is_the_gaussian_log_likelihood_of_the_rewards() -> None:
    """Against the n x n covariance sigma² I + U T U^T of each arm's rewards, in units."""
    U, arms, r = rounds(0, 25)
    sums = sums_of(U, arms, r)
    units = measure_units(sums, BLOCKS)
    V = U / np.repeat(np.sqrt(units.blocks), BLOCKS)
    y = r / np.sqrt(units.outputs[0])
    made = objective(sums)

    def direct(p: FloatArray) -> float:
        total = 0.0
        for a in range(3):
            rows, target = V[arms == a], y[arms == a]
            covariance = np.exp(p[0]) * np.eye(len(target)) + rows * np.repeat(np.exp(p[1:]), BLOCKS) @ rows.T
            total += 0.5 * (np.linalg.slogdet(covariance)[1] + target @ np.linalg.solve(covariance, target))
        off = (p - np.log([0.01, 0.5, 0.5])) / [3.0, 2.0, 2.0]
        return float(total + 0.5 * off @ off)

    rng = np.random.default_rng(1)
    for _ in range(10):
        point = made.at(rng.standard_normal(2) - 3.0)
        p = np.append(point.log_noise, point.log_noise[0] - point.log_ridge)
        assert point.value == pytest.approx(direct(p), rel=1e-9)
        for shift in (-1e-3, 1e-3):  # sigma² is the best for these lambda
            assert direct(p + shift) > point.value


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 40))
def test_gradient_and_hessian_are_those_of_the_value(seed: int, n: int) -> None:
    made = objective(sums_of(*rounds(seed, n)))
    log_ridge = np.random.default_rng(seed).standard_normal(2) - 3.0
    point = made.at(log_ridge)
    for i, step in enumerate(1e-5 * np.eye(2)):
        up, down = made.at(log_ridge + step), made.at(log_ridge - step)
        assert (up.value - down.value) / 2e-5 == pytest.approx(point.gradient[i], rel=1e-4, abs=1e-4)
        assert np.allclose((up.gradient - down.gradient) / 2e-5, point.hessian[i], rtol=1e-3, atol=1e-3)
        slopes = (up.log_noise - down.log_noise) / 2e-5
        assert slopes == pytest.approx(point.noise_slope[:, i], rel=1e-3, abs=1e-5)


def test_the_optimum_is_where_a_general_search_finds_it() -> None:
    from scipy.optimize import minimize

    def value(log_ridge: FloatArray, made: evidence.Objective) -> float:
        return made.at(log_ridge).value

    for seed in range(5):
        sums = sums_of(*rounds(seed, 60))
        found = minimize(value, [-4.0, -4.0], args=(objective(sums),), method="Nelder-Mead", tol=1e-9)
        fit = refit(sums, BLOCKS, tolerance=1e-6)
        units = measure_units(sums, BLOCKS)
        assert np.log(fit.ridge / units.blocks) == pytest.approx(found.x, abs=1e-3)


def test_variances_are_recovered() -> None:
    """20 arms of 200 rounds each: tau² of 0.04 and 900, sigma² of 0.09."""
    fits = [refit(sums_of(*rounds(s, 4000, 20), 20), BLOCKS, tolerance=1e-6) for s in range(5)]
    noise = np.exp(np.mean([np.log(fit.noise_variance[0]) for fit in fits]))
    tau2 = np.exp(np.mean([np.log(fit.noise_variance[0] / fit.ridge) for fit in fits], axis=0))
    assert noise == pytest.approx(0.09, rel=0.05)
    assert tau2 == pytest.approx([0.04, 900.0], rel=0.25)


def test_arms_never_pulled_contribute_nothing() -> None:
    sums = sums_of(*rounds(0, 40))
    padded = evidence.Sums(*(np.concatenate([part, np.zeros((5, *part.shape[1:]))]) for part in sums))
    one, other = (refit(s, BLOCKS, tolerance=1e-6) for s in (sums, padded))
    assert np.array_equal(one.ridge, other.ridge)
    assert np.array_equal(one.noise_variance, other.noise_variance)


@pytest.mark.parametrize("noise", [0.0, 1e-9, 0.3, 1e3])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 30, 300, 3000])
def test_a_refit_makes_at_most_20_evaluations_and_ends_at_a_minimum(n: int, noise: float) -> None:
    for seed in range(5):
        U, arms, r = rounds(seed, n, noise=noise)
        U[:, 0] *= 10.0**seed
        sums = sums_of(U, arms, r)
        fit = refit(sums, BLOCKS, tolerance=1e-6)
        assert fit.evaluations < evidence.MAX_EVALUATIONS == 20
        assert np.isfinite(fit.ridge).all()
        assert (fit.ridge > 0.0).all()
        units = measure_units(sums, BLOCKS)
        point = objective(sums).at(np.log(fit.ridge / units.blocks))
        assert np.abs(point.gradient).max() <= 1e-4
        assert np.linalg.eigvalsh(point.hessian).min() > 0.0
        assert fit.noise_variance[0] == pytest.approx(np.exp(point.log_noise[0]) * units.outputs[0], rel=1e-4)


def test_noiseless_rewards_stop_at_the_floor() -> None:
    U, arms, r = rounds(0, 3000, noise=0.0)
    fit = refit(sums_of(U, arms, r), BLOCKS, tolerance=1e-6)
    assert fit.noise_variance[0] == pytest.approx(1e-8 * np.mean(r**2), rel=0.02)


def test_a_zero_block_has_ridge_one_and_changes_nothing() -> None:
    U, arms, r = rounds(0, 60)
    U[:, 4:] = 0.0
    fit = refit(sums_of(U, arms, r), BLOCKS, tolerance=1e-6)
    assert fit.ridge[1] == 1.0
    assert fit.ridge[0] != 1.0


def test_zero_rewards_leave_all_scores_tied() -> None:
    policy = LinUCB(n_arms=3, dim_x=2)
    rng = np.random.default_rng(0)
    for i in range(50):
        policy.update(rng.standard_normal(2), i % 3, None, 0.0)
    assert policy.propensities([1.0, 2.0]) == pytest.approx(np.full(3, 1 / 3))
    policy.update([1.0, 2.0], 1, None, 1.0)  # the first reward that is not zero counts at once
    assert policy.propensities([1.0, 2.0]).max() == 1.0


def test_before_the_first_refit_the_prior_follows_the_moments() -> None:
    rng = np.random.default_rng(0)
    models = RidgeModels(10, {"x": 2, "z": 1})
    fits = []
    for n in range(1, 40):
        models.update(n % 10, rng.standard_normal(3), rng.standard_normal(1))
        units = measure_units(sums_in(models, np.arange(models.n_models)), [2, 1])
        at_centre = np.allclose(models.ridge[[0, 2]], 0.02 * units.blocks) and np.allclose(
            models.prior.noise_variance, 0.01 * units.outputs
        )
        assert at_centre == (n < 10)  # max(8, n_arms)
        if models.prior.fitted_at == n:
            fits.append(n)
            assert models.prior.evaluations < evidence.MAX_EVALUATIONS
    assert fits == [10, 15, 23, 35]  # then whenever half as much again has come


def test_refit_prior_depends_on_the_sums_alone() -> None:
    rng = np.random.default_rng(0)
    one, other = RidgeModels(2, {"x": 3}), RidgeModels(2, {"x": 3})
    U, y = rng.standard_normal((70, 3)), rng.standard_normal((70, 1))
    for i in range(70):
        one.update(i % 2, U[i], y[i])
        if i % 7 == 0:
            one.prior.refit(one)  # another path to the same sums
        other.update(i % 2, U[i], y[i])
    for models in (one, other):
        models.prior.refit(models)
    assert np.array_equal(one.ridge, other.ridge)
    assert np.array_equal(one.weights_of(), other.weights_of())


def test_the_schedule_counts_raw_updates_whatever_is_forgotten() -> None:
    rng = np.random.default_rng(0)
    models = RidgeModels(1, {"x": 2})
    fits = []
    for n in range(1, 30):
        models.update(0, rng.standard_normal(2), rng.standard_normal(1))
        models.forget(0.5)
        if models.prior.fitted_at == n:
            fits.append(n)
    assert fits == [8, 12, 18, 27]


def test_a_maps_outputs_are_each_in_their_own_units() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 3))
    Z = X @ rng.standard_normal((3, 2)) + 0.2 * rng.standard_normal((400, 2))
    plain, mixed = RidgeMap(3, 2), RidgeMap(3, 2)
    for x, z in zip(X, Z, strict=True):
        plain.update(x, 0, z)
        mixed.update(x, 0, z * [1.0, 2.0**20])
    assert np.array_equal(mixed.predict(X[0]), plain.predict(X[0]) * [1.0, 2.0**20])
    assert plain.prior.noise_variance == pytest.approx([0.04, 0.04], rel=0.2)


def test_a_maps_outputs_each_have_a_noise_of_their_own() -> None:
    rng = np.random.default_rng(0)
    phi_hat = RidgeMap(3, 2)
    for x in rng.standard_normal((1000, 3)):
        phi_hat.update(x, 0, [x.sum() + 0.01 * rng.standard_normal(), 10.0 * rng.standard_normal()])
    assert phi_hat.prior.noise_variance == pytest.approx([1e-4, 100.0], rel=0.2)


def test_derivatives_hold_with_several_outputs() -> None:
    U, _, r = rounds(0, 40)
    targets = np.column_stack([r, r[::-1], U[:, 0]])
    sums = evidence.Sums(
        (U.T @ U)[None], (targets.T @ U)[None], (targets**2).sum(axis=0)[None], np.array([40.0])
    )
    made = objective(sums)
    point = made.at(np.array([-3.0, -2.0]))
    for i, step in enumerate(1e-5 * np.eye(2)):
        up, down = made.at(point.log_ridge + step), made.at(point.log_ridge - step)
        assert (up.value - down.value) / 2e-5 == pytest.approx(point.gradient[i], rel=1e-4, abs=1e-4)
        assert np.allclose((up.gradient - down.gradient) / 2e-5, point.hessian[i], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(
    "world",
    [
        "noiseless",
        "constant z",
        "zero z",
        "zero rewards",
        "one arm",
        "wide",
        "constant x",
        "huge",
        "tiny",
        "vanishing",
    ],
)
def test_awkward_worlds_stay_finite_and_sensible(world: str) -> None:
    rng = np.random.default_rng(0)
    dim_x, n_arms, n = (60, 3, 40) if world == "wide" else (4, 1 if world == "one arm" else 3, 120)
    scale = {"huge": 1e40, "tiny": 1e-40, "vanishing": 1e-155}.get(world, 1.0)
    theta = rng.standard_normal((n_arms, dim_x))
    policy = PoLinUCB(n_arms, RidgeMap(dim_x, 2), optimism="joint")
    for _ in range(n):
        x = np.ones(dim_x) if world == "constant x" else rng.standard_normal(dim_x)
        z = {"constant z": np.ones(2), "zero z": np.zeros(2)}.get(world, x[:2] + rng.standard_normal(2))
        decision = policy.select(x * scale, rng)
        noise = 0.0 if world == "noiseless" else 0.1 * rng.standard_normal()
        reward = 0.0 if world == "zero rewards" else float(theta[decision.arm] @ x + z.sum() + noise)
        policy.update(x * scale, decision.arm, z * scale, reward * scale)
        assert np.isfinite(policy.weights).all()
    assert np.isfinite(policy.prior.noise_variance).all()
    assert np.isfinite(policy.context_map.radius(np.ones(dim_x) * scale)).all()
    if world in ("noiseless", "huge", "tiny", "one arm"):
        errors = policy.weights[:, :4] - theta
        assert np.abs(errors[policy.pulls > 20]).max() < 0.3
