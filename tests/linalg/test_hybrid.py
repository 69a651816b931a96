"""The hybrid model against the joint ridge regression over (w_0, delta_1, …, delta_K), solved outright."""

from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests import reference
from tests.sums import measure_units

from postserve.errors import StateMismatch
from postserve.linalg import evidence, forms
from postserve.linalg.hybrid import HybridModels
from postserve.linalg.hybrid_evidence import ROWS_AT_ONCE, HybridObjective, semidefinite_root
from postserve.linalg.kernels import models as kernels
from postserve.linalg.kernels.models import CACHE, PULLS, REFACTORISE_EVERY, SQUARES, SUMS
from postserve.linalg.ridge import RidgeModels
from postserve.linalg.ridge import sums_of as sums_in
from postserve.state import Stored
from postserve.types import FloatArray

EPS = float(np.finfo(float).eps)
BLOCKS = {"x": 3, "z": 2}
SIZES = list(BLOCKS.values())
DIM = sum(SIZES)


class Joint:
    """All K + 1 weight vectors as one ridge regression, in 60 digits: what the hybrid model must equal.

    `rows` are those of w_0 alone, (gram, moment), as departed arms leave them.
    """

    def __init__(self, models: HybridModels, rows: tuple[FloatArray, FloatArray] | None = None) -> None:
        n, dim = models.n_models, models.dim
        precision = np.zeros(((n + 1) * dim, (n + 1) * dim), dtype=object)
        precision[:] = Decimal(0)
        moment = np.full((n + 1) * dim, Decimal(0), dtype=object)
        own, first = decimals(np.diag(models.own.ridge)), slice(0, dim)
        precision[first, first] += decimals(np.diag(models.shared.ridge))
        if rows is not None:
            precision[first, first] += decimals(rows[0])
            moment[first] += decimals(rows[1])
        for a in range(n):
            at = slice((a + 1) * dim, (a + 2) * dim)
            S, b = decimals(models.own.gram_of()[a]), decimals(models.own.moment_of()[a, 0])
            for i in (first, at):
                moment[i] += b
                for j in (first, at):
                    precision[i, j] += S
            precision[at, at] += own
        prior = np.concatenate([models.shared.ridge, np.tile(models.own.ridge, n)])
        inverse, log_det = solved(precision)
        w = inverse @ moment
        parts = [slice((a + 1) * dim, (a + 2) * dim) for a in range(n)]
        self.weights = np.array([(w[first] + w[at]).astype(float) for at in parts])
        self.inverse = np.array(
            [
                [sum(inverse[i, j] for i in (first, a) for j in (first, b)).astype(float) for b in parts]
                for a in parts
            ]
        )
        self.log_det = log_det - float(np.log(prior).sum())


def decimals(values: FloatArray) -> Any:
    return np.array([Decimal(float(v)) for v in values.ravel()], dtype=object).reshape(values.shape)


def solved(matrix: Any) -> tuple[Any, float]:
    """Inverse and log determinant, by elimination without pivots: the matrix is positive definite."""
    n = len(matrix)
    with localcontext() as context:
        context.prec = 60
        work = np.concatenate([matrix, decimals(np.eye(n))], axis=1)
        log_det = Decimal(0)
        for i in range(n):
            log_det += work[i, i].ln()
            work[i] = work[i] / work[i, i]
            others = np.arange(n) != i
            work[others] -= np.outer(work[others, i], work[i])
        return work[:, n:], float(log_det)


def well_scaled(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, DIM))


def collinear(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, 2)) @ rng.standard_normal((2, DIM))


def badly_scaled(rng: np.random.Generator, n: int) -> FloatArray:
    return rng.standard_normal((n, DIM)) * np.logspace(-5, 5, DIM)


def teach(models: HybridModels, rng: np.random.Generator, n: int, features: Any = well_scaled) -> FloatArray:
    U = features(rng, n)
    targets = (U / np.abs(U).max(axis=0)) @ rng.standard_normal((DIM, 1)) + 0.1 * rng.standard_normal((n, 1))
    for u, y in zip(U, targets, strict=True):
        models.update(int(rng.integers(models.n_models)), u, y)
    return np.asarray(U)


def require_equal(
    models: HybridModels, rows: tuple[FloatArray, FloatArray] | None = None, least: float = 1e-9
) -> None:
    """Weights, inverses, widths, log det and every way of reading them; tolerances in each matrix's units."""
    joint = Joint(models, rows)
    arms = np.arange(models.n_models)
    everything = slice(0, models.dim)
    blocks = models.inverse_of(arms, everything, everything)
    weights = models.weights_of(arms)[:, 0]
    U = np.random.default_rng(0).standard_normal((models.n_models, models.dim))
    scales = np.sqrt(np.diagonal(models.own.gram_of(), axis1=1, axis2=2) + models.own.ridge)
    A = (models.own.gram_of() + np.diag(models.own.ridge)) / (scales[:, :, None] * scales[:, None, :])
    # The sums are rounded, and through w_0 every arm hears of the worst conditioned one.
    tolerance = max(least, 1000.0 * EPS * float(np.linalg.cond(A).max()))
    for a, scale in enumerate(scales):
        C = joint.inverse[a, a]
        size = np.outer(scale, scale)
        assert np.abs((blocks[a] - C) * size).max() <= tolerance * np.abs(C * size).max()
        wanted = joint.weights[a] * scale
        assert np.abs(weights[a] * scale - wanted).max() <= tolerance * max(np.abs(wanted).max(), 1e-9)
        u = U[a : a + 1] * scale
        means, widths = models.project(u, arms[a : a + 1])
        assert widths[0] == pytest.approx(np.sqrt(u[0] @ C @ u[0]), rel=tolerance)
        assert abs(means[0, 0] - u[0] @ joint.weights[a]) <= 10 * tolerance * max(np.abs(wanted).max(), 1e-9)
        assert np.array_equal(models.average(u, arms[a : a + 1]), means)
        got = models.solve(u, arms[a : a + 1])[0] * scale
        assert np.abs(got - C @ u[0] * scale).max() <= 10 * tolerance * np.abs(C * size).max()
    present = (
        models.ellipsoid(arms).log_det - models._gone[1]
    )  # departed arms' own weights are integrated out
    assert present == pytest.approx(np.full(models.n_models, joint.log_det), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0, [0.01, 100.0]])
@pytest.mark.parametrize("features", [well_scaled, collinear, badly_scaled])
def test_both_levels_together_are_the_joint_ridge_regression(features: Any, ridge: Any) -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(4, BLOCKS, ridge=ridge)
    require_equal(models)
    for n in (1, 3, 40, 500):
        teach(models, rng, n, features)
        # An inverse factorised while few rows made it ill conditioned carries that error along.
        require_equal(models, least=1e-7 if features is badly_scaled else 1e-9)
    models.take_prior()
    require_equal(models)
    models.forget(0.25)
    require_equal(models)
    teach(models, rng, 50, features)
    other = HybridModels(4, BLOCKS, ridge=ridge)
    teach(other, rng, 60, features)
    models.merge(other)
    require_equal(models)
    U = features(rng, 30)
    models.update_batch(np.arange(30) % 2, U, U[:, :1])
    require_equal(models)


@pytest.mark.parametrize(("own", "shared"), [(1e-6, 1e6), (1e6, 1e-6), (1e9, 1.0), (1e-9, 1.0)])
def test_priors_far_apart_cost_no_digits(own: float, shared: float) -> None:
    models = HybridModels(3, BLOCKS, ridge=own)
    models.prior.block_ridge[2:] = shared
    models.take_prior()
    teach(models, np.random.default_rng(0), 200)
    require_equal(models)
    models.take_prior()
    require_equal(models)


def test_a_cold_arm_believes_what_is_shared() -> None:
    models = HybridModels(2, BLOCKS, ridge=2.0)
    rng = np.random.default_rng(0)
    for u in rng.standard_normal((50, DIM)):
        models.update(0, u, u[:1])
    cold = np.array([1])
    assert np.allclose(models.weights_of(cold)[0], models.shared.weights_of()[0])
    block = models.inverse_of(cold, models.prior.block("x"), models.prior.block("z"))[0]
    assert np.allclose(block, models.shared.inverse_of()[0, :3, 3:])
    assert np.abs(models.weights_of(cold)).max() > 0.1
    U = np.tile(rng.standard_normal(DIM), (3, 1))
    models.add(2)
    means, widths = models.project(U, np.array([1, 2, 3]))
    assert len(set(means[:, 0])) == len(set(widths)) == 1  # cold arms tie, bit by bit


def test_what_a_removed_arm_taught_stays() -> None:
    """The others are as in the joint model in which its weights are integrated out: still there, unread."""
    rng = np.random.default_rng(0)
    models = HybridModels(4, BLOCKS, ridge=0.5)
    teach(models, rng, 100)
    joint = Joint(models)
    before = models.weights_of(np.array([0, 2, 3]))
    models.remove(1)
    models.add()
    assert np.array_equal(models.weights_of(np.arange(3)), before)
    for _ in range(2):
        kept = np.arange(3)
        assert np.allclose(models.weights_of(kept)[:, 0], joint.weights[[0, 2, 3]], rtol=1e-9, atol=1e-11)
        blocks = models.inverse_of(kept, slice(0, DIM), slice(0, DIM))
        assert np.allclose(blocks, joint.inverse[[0, 2, 3], [0, 2, 3]], rtol=1e-9, atol=1e-11)
        assert np.abs(models.weights_of(np.array([3]))).max() > 0.1  # the newcomer knows it too
        models.take_prior()  # a renewal of the shared sums knows it still
    teach(models, rng, 30)
    departed = models._departed
    require_equal(models, (departed.gram, departed.moment[0]))
    models.forget(0.5)
    assert np.array_equal(models._departed.gram, 0.5 * departed.gram)
    require_equal(models, (0.5 * departed.gram, 0.5 * departed.moment[0]))
    models.merge(HybridModels(4, BLOCKS, ridge=0.5))
    require_equal(models, (0.5 * departed.gram, 0.5 * departed.moment[0]))


@settings(deadline=None, derandomize=True, max_examples=30)
@given(
    st.integers(0, 10**6),
    st.floats(0.01, 100.0),
    st.lists(st.sampled_from(["rounds", "batch", "forget", "add", "remove", "merge", "reload"]), max_size=8),
)
def test_any_sequence_of_verbs_ends_at_the_joint_regression(
    seed: int, ridge: float, verbs: list[str]
) -> None:
    rng = np.random.default_rng(seed)
    models = HybridModels(2, BLOCKS, ridge=ridge)
    for verb in verbs:
        if verb == "rounds":
            teach(models, rng, int(rng.integers(1, 30)))
        elif verb == "batch":
            U = rng.standard_normal((5, DIM))
            models.update_batch(rng.integers(models.n_models, size=5), U, U[:, :1])
        elif verb == "forget":
            models.forget(float(rng.uniform(0.1, 1.0)))
        elif verb == "add":
            models.add()
        elif verb == "remove" and models.n_models > 1:
            models.remove(int(rng.integers(models.n_models)))
        elif verb == "merge":
            other = HybridModels(models.n_models, BLOCKS, ridge=ridge)
            teach(other, rng, 10)
            models.merge(other)
        elif verb == "reload":
            twin = HybridModels(1, BLOCKS, ridge=ridge)
            twin.restore(Stored(models.arrays()), models.n_models)
            models = twin
    departed = models._departed
    require_equal(models, (departed.gram, departed.moment[0]))
    assert models.shared.pulls[0] == pytest.approx(models.pulls.sum() + departed.pulls[0])


@pytest.mark.parametrize("ridge", [0.01, 100.0])
def test_a_hundred_thousand_rank_one_updates_stay_at_the_fresh_solution(ridge: float) -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(3, BLOCKS, ridge=ridge)
    W = rng.standard_normal((3, DIM))
    renewals = 0
    for u, noise in zip(rng.standard_normal((100_000, DIM)), rng.standard_normal(100_000), strict=True):
        arm = int(rng.integers(3))
        models.update(arm, u, np.array([W[arm] @ u + noise]))
        renewals += models._rows_since_renewal == 0
    assert renewals == 100_000 // (3 * REFACTORISE_EVERY)
    require_equal(models, least=1e-8)


def test_a_cache_that_broke_is_replaced_from_the_sums() -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(2, BLOCKS, ridge=1.0)
    teach(models, rng, 30)
    models.own.storage.symmetric[CACHE, models.own.storage.place[0]] = np.nan
    models.update(0, rng.standard_normal(DIM), np.ones(1))
    require_equal(models)


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 9), st.integers(1, 3))
def test_kernels_agree_with_the_reference(seed: int, dim: int, outputs: int) -> None:
    rng = np.random.default_rng(seed)
    root, weights = rng.standard_normal((dim, dim)), rng.standard_normal((outputs, dim))
    shared, ridge = root @ root.T, rng.uniform(0.1, 10.0, dim)
    U, V, means = (
        rng.standard_normal((6, dim)),
        rng.standard_normal((6, dim)),
        rng.standard_normal((6, outputs)),
    )
    plain = reference.add_shared_level(ridge, shared, weights, U, V, means)
    squares = np.empty(6)
    kernels.add_shared_level(ridge, forms.pack(shared), weights, U, V, means, squares)
    for compiled, wanted in zip((means, squares), plain, strict=True):
        assert np.allclose(compiled, wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max())


def test_outputs_share_a_gram_and_differ_in_their_weights() -> None:
    rng = np.random.default_rng(0)
    both = HybridModels(2, BLOCKS, n_outputs=2, ridge=1.0)
    single = [HybridModels(2, BLOCKS, ridge=1.0) for _ in range(2)]
    arms = np.array([0, 1])
    for i, (u, y) in enumerate(
        zip(rng.standard_normal((40, DIM)), rng.standard_normal((40, 2)), strict=True)
    ):
        both.update(i % 2, u, y)
        for o in range(2):
            single[o].update(i % 2, u, y[o : o + 1])
    for o in range(2):
        assert np.allclose(both.weights_of(arms)[:, o], single[o].weights_of(arms)[:, 0])
        assert np.allclose(
            both.average(U := rng.standard_normal((2, DIM)), arms)[:, o], single[o].average(U, arms)[:, 0]
        )


# Thompson sampling


@pytest.mark.parametrize("name", ["x", "z"])
def test_deviations_vary_as_the_joint_posterior_does(name: str) -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(4, BLOCKS, ridge=3.0)
    for u in rng.standard_normal((15, DIM)):
        models.update(int(rng.integers(3)), u, u[:1])
    joint, arms, block = Joint(models), np.array([3, 0, 2]), models.prior.block(name)  # 3 is cold
    U, move = np.ones((3, DIM)), rng.standard_normal((3, BLOCKS[name]))
    size = 40_000
    draws = models.deviations(U, arms, block, np.tile(move, (size, 1, 1)), rng)
    moved = U.copy()
    moved[:, block] += move
    covariance = np.einsum("id,ijde,je->ij", moved, joint.inverse[np.ix_(arms, arms)], moved)
    deviation = np.sqrt(np.diagonal(covariance))
    wanted = covariance / np.outer(deviation, deviation)
    assert np.abs(wanted[0, 1:]).max() > 0.1  # arms are correlated through w_0
    assert draws.shape == (size, 3)
    assert np.abs(draws.mean(axis=0) / deviation).max() < 0.02
    assert np.abs(np.cov(draws.T) / np.outer(deviation, deviation) - wanted).max() < 0.03


def test_deviations_follow_the_move_of_each_draw_and_need_none() -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(2, BLOCKS, ridge=1.0)
    teach(models, rng, 20)
    U, arms, block = rng.standard_normal((2, DIM)), np.array([0, 1]), models.prior.block("z")
    moves = rng.standard_normal((5, 2, 2))
    draws = models.deviations(U, arms, block, moves, np.random.default_rng(7))
    for m in range(5):
        moved = U.copy()
        moved[:, block] += moves[m]
        still = models.deviations(moved, arms, block, np.zeros((5, 2, 2)), np.random.default_rng(7))
        assert draws[m] == pytest.approx(still[m])
    nothing = models.deviations(U, arms, slice(0, 0), np.zeros((5, 2, 0)), np.random.default_rng(7))
    assert nothing == pytest.approx(models.deviations(U, arms, block, 0.0 * moves, np.random.default_rng(7)))


# The evidence


def world(
    seed: int, n: int, n_arms: int, tau0: Any, tau1: Any, noise: float = 0.3
) -> tuple[FloatArray, Any, FloatArray]:
    """Weights of standard deviation tau0 (shared) and tau1 (own), for x and z, in units of u's blocks."""
    rng = np.random.default_rng(seed)
    scale = np.repeat([5.0, 0.1], SIZES)
    weights = rng.standard_normal(DIM) * np.repeat(np.broadcast_to(tau0, 2), SIZES)
    own = rng.standard_normal((n_arms, DIM)) * np.repeat(np.broadcast_to(tau1, 2), SIZES)
    U, arms = rng.standard_normal((n, DIM)) * scale, rng.integers(n_arms, size=n)
    return U, arms, (U / scale * (weights + own[arms])).sum(axis=1) + noise * rng.standard_normal(n)


def sums_of(U: FloatArray, arms: Any, r: FloatArray, n_arms: int) -> evidence.Sums:
    picked = [arms == a for a in range(n_arms)]
    return evidence.Sums(
        np.array([U[a].T @ U[a] for a in picked]),
        np.array([[r[a] @ U[a]] for a in picked]),
        np.array([[r[a] @ r[a]] for a in picked]),
        np.array([float(a.sum()) for a in picked]),
    )


NOBODY = evidence.Sums(np.zeros((1, DIM, DIM)), np.zeros((1, 1, DIM)), np.zeros((1, 1)), np.zeros(1))


def objective(sums: evidence.Sums, departed: evidence.Sums = NOBODY) -> HybridObjective:
    return HybridObjective(sums, departed, SIZES, measure_units(sums, SIZES))


def test_the_value_is_the_gaussian_log_likelihood_of_the_rewards() -> None:
    """Against the n x n covariance of all rewards, in units: arms are correlated through w_0."""
    U, arms, r = world(0, 30, 4, 1.0, 0.5)
    sums = sums_of(U, arms, r, 5)  # the fifth arm is never pulled
    units = measure_units(sums, SIZES)
    V, y = U / np.repeat(np.sqrt(units.blocks), SIZES), r / np.sqrt(units.outputs[0])
    same = arms[:, None] == arms

    def direct(p: FloatArray) -> float:
        own, shared = (V * np.repeat(np.exp(part), SIZES) @ V.T for part in (p[1:3], p[3:]))
        covariance = np.exp(p[0]) * np.eye(len(y)) + own * same + shared
        off = (p - np.log([0.01, 0.25, 0.25, 0.25, 0.25])) / [3.0, 2.0, 2.0, 2.0, 2.0]
        value = np.linalg.slogdet(covariance)[1] + y @ np.linalg.solve(covariance, y) + off @ off
        return 0.5 * float(value)

    made, rng = objective(sums), np.random.default_rng(1)
    for _ in range(10):
        point = made.at(rng.standard_normal(4) - 3.0)
        p = np.append(point.log_noise, point.log_noise[0] - point.log_ridge)
        assert point.value == pytest.approx(direct(p), rel=1e-9)
        for shift in (-1e-3, 1e-3):  # sigma² is the best for these lambda
            assert direct(p + shift) > point.value


def require_derivatives(made: evidence.Objective, log_ridge: FloatArray) -> None:
    point = made.at(log_ridge)
    for i, step in enumerate(1e-4 * np.eye(len(log_ridge))):
        up, down = made.at(log_ridge + step), made.at(log_ridge - step)
        assert (up.value - down.value) / 2e-4 == pytest.approx(point.gradient[i], rel=1e-4, abs=1e-4)
        assert np.allclose((up.gradient - down.gradient) / 2e-4, point.hessian[i], rtol=1e-3, atol=1e-3)
        slopes = (up.log_noise - down.log_noise) / 2e-4
        assert slopes == pytest.approx(point.noise_slope[:, i], rel=1e-3, abs=1e-5)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 60), st.integers(1, 6))
def test_gradient_and_hessian_are_those_of_the_value(seed: int, n: int, n_arms: int) -> None:
    sums = sums_of(*world(seed, n, n_arms, 1.0, 1.0), n_arms)
    gone = sums_of(*world(seed + 1, 20, 1, 1.0, 1.0), 1)
    for departed in (NOBODY, gone):
        require_derivatives(objective(sums, departed), np.random.default_rng(seed).standard_normal(4) - 2.0)


def test_derivatives_hold_with_several_outputs_and_many_arms() -> None:
    U, arms, r = world(0, 9000, 1400, 1.0, 1.0)  # more arms than go through numpy at once
    sums = sums_of(U, arms, r, 1400)
    other = sums_of(U, arms, U[:, 0], 1400)
    both = evidence.Sums(
        sums.gram,
        np.concatenate([sums.moment, other.moment], axis=1),
        np.concatenate([sums.squares, other.squares], axis=1),
        sums.pulls,
    )
    nobody = evidence.Sums(NOBODY.gram, np.zeros((1, 2, DIM)), np.zeros((1, 2)), np.zeros(1))
    made = HybridObjective(both, nobody, SIZES, measure_units(both, SIZES))
    require_derivatives(made, np.array([-3.0, -2.0, -1.0, 0.0]))


def set_sums(models: HybridModels, sums: evidence.Sums) -> None:
    for model, (gram, moment, squares, pulls) in enumerate(zip(*sums, strict=True)):
        storage = models.own.storage = forms.make_dense(models.own.storage, model)
        place = storage.place[model]
        storage.symmetric[SUMS, place], storage.vectors[SUMS, place] = forms.pack(gram), moment
        storage.tally[model, PULLS], storage.tally[model, SQUARES:] = pulls, squares
    models.take_prior()


def of_rounds(models: HybridModels) -> evidence.Units:
    """The units of both levels are the same: those of u."""
    units = models.units(models.moments())
    own, shared = np.split(units.blocks, 2)
    assert np.array_equal(own, shared)
    return evidence.Units(own, units.outputs)


def test_an_arm_that_leaves_takes_no_evidence_along() -> None:
    """Under the lambda of that day its rounds say of sigma² and of the shared weights what they said."""
    sums = sums_of(*world(0, 80, 4, 1.0, 0.5), 4)
    models = HybridModels(4, BLOCKS, ridge=[0.5, 0.2])
    set_sums(models, sums)
    units = of_rounds(models)
    at = np.log(np.array([0.5, 0.2, 3.0, 0.01]) / np.tile(units.blocks, 2))
    before = HybridObjective(sums_in(models.own, np.arange(models.n_models)), NOBODY, SIZES, units).posterior(
        at
    )
    models.remove(2)
    gone = models._departed
    departed = evidence.Sums(gone.gram[None], gone.moment[None], gone.squares[None], gone.pulls)
    assert of_rounds(models).blocks == pytest.approx(units.blocks)
    made = HybridObjective(sums_in(models.own, np.arange(models.n_models)), departed, SIZES, units)
    after = made.posterior(at)
    assert made.rounds == 80.0
    assert after.residual == pytest.approx(before.residual)
    assert after.trace[2:] == pytest.approx(before.trace[2:])
    assert after.norm[0, 2:] == pytest.approx(before.norm[0, 2:])


@pytest.mark.parametrize(("tau0", "tau1"), [((3.0, 1.0), (0.1, 0.05)), ((1.0, 0.5), (3.0, 1.0)), (1.0, 1.0)])
def test_variances_are_recovered(tau0: Any, tau1: Any) -> None:
    """40 arms of 100 rounds: own variances to a quarter; few shared weights give theirs up to a factor."""
    fits = []
    for seed in range(8):
        sums = sums_of(*world(seed, 4000, 40, tau0, tau1), 40)
        fit = evidence.maximise(objective(sums), tolerance=1e-6)
        fits.append(fit.noise_variance[0] / fit.ridge * np.tile([25.0, 0.01], 2))
        assert fit.noise_variance[0] == pytest.approx(0.09, rel=0.15)
        assert fit.evaluations < evidence.MAX_EVALUATIONS
    tau2 = np.exp(np.mean(np.log(fits), axis=0))
    assert tau2[:2] == pytest.approx(np.broadcast_to(tau1, 2) ** 2, rel=0.25)
    ratio = tau2[2:] / np.broadcast_to(tau0, 2) ** 2
    assert (ratio > 1 / 3).all()
    assert (ratio < 3).all()


@pytest.mark.parametrize("noise", [0.0, 1e-9, 0.3, 1e3])
@pytest.mark.parametrize("n", [1, 2, 5, 8, 30, 300, 3000])
def test_a_refit_makes_at_most_20_evaluations_and_ends_at_a_minimum(n: int, noise: float) -> None:
    for n_arms in (1, 3, 12):
        sums = sums_of(*world(n_arms, n, n_arms, 1.0, 0.3, noise), n_arms)
        fit = evidence.maximise(objective(sums), tolerance=1e-6)
        assert fit.evaluations < evidence.MAX_EVALUATIONS == 20
        units = measure_units(sums, SIZES)
        point = objective(sums).at(np.log(fit.ridge / np.tile(units.blocks, 2)))
        assert np.abs(point.gradient).max() <= 1e-4
        assert np.linalg.eigvalsh(point.hessian).min() > 0.0


def test_the_schedule_is_that_of_the_plain_models() -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(10, BLOCKS)
    fits = []
    for n in range(1, 40):
        models.update(n % 10, rng.standard_normal(DIM), rng.standard_normal(1))
        at_centre = np.allclose(models.prior.block_ridge, 0.04 * models.units(models.moments()).blocks)
        assert at_centre == (n < 10)  # max(8, n_arms)
        if n in (1, 9, 10, 39):
            require_equal(models, least=1e-8)
        if models.prior.fitted_at == n:
            fits.append(n)
    assert fits == [10, 15, 23, 35]
    assert list(models.prior.in_force.ridge) == ["x", "z", "shared x", "shared z"]


def test_refit_prior_depends_on_the_sums_alone() -> None:
    rng = np.random.default_rng(0)
    one, other = HybridModels(3, BLOCKS), HybridModels(3, BLOCKS)
    U, y = rng.standard_normal((70, DIM)), rng.standard_normal((70, 1))
    for i in range(70):
        one.update(i % 2, U[i], y[i])
        if i % 7 == 0:
            one.prior.refit(one)  # another path to the same sums
        other.update(i % 2, U[i], y[i])
    for models in (one, other):
        models.prior.refit(models)
    for name, array in one.arrays().items():
        assert name.endswith("counts") or np.array_equal(array, other.arrays()[name]), name


@pytest.mark.parametrize("scale", [2.0**-30, 2.0**30])
@pytest.mark.parametrize("which", ["x", "z", "reward"])
def test_powers_of_two_scale_every_number_exactly(which: str, scale: float) -> None:
    rng = np.random.default_rng(0)
    U, y, arms = rng.standard_normal((300, DIM)), rng.standard_normal((300, 1)), rng.integers(4, size=300)
    U[:20, 3:] = 0.0  # z is zero at first
    by = np.ones(DIM)
    if which != "reward":
        by[RidgeModels(1, BLOCKS).prior.block(which)] = scale
    reward = scale if which == "reward" else 1.0
    every = np.arange(4)
    runs = []
    for factor, r in ((np.ones(DIM), 1.0), (by, reward)):
        models = HybridModels(4, BLOCKS)
        seen = []
        for i, (u, target, arm) in enumerate(zip(U, y, arms, strict=True)):
            models.update(int(arm), u * factor, target * r)
            means, widths = models.project(np.tile(u * factor, (4, 1)), every)
            sigma = np.sqrt(models.prior.noise_variance)
            scores = [means[:, 0] / r, widths * sigma / r]
            if i % 10 == 0:
                moves = np.zeros((2, 4, 2)) + factor[3:]
                draws = models.deviations(
                    np.tile(u * factor, (4, 1)), every, slice(3, 5), moves, np.random.default_rng(i)
                )
                scores.append(draws.ravel() * sigma / r)
            seen.append(np.concatenate(scores))
            if i == 150:
                models.remove(1)
                models.add()
            if i == 200:
                models.forget(0.5)
        runs.append((models, seen))
    (one, seen), (other, seen_again) = runs
    assert all(np.array_equal(a, b) for a, b in zip(seen, seen_again, strict=True))
    assert np.array_equal(other.weights_of(every) * by / reward, one.weights_of(every))
    everything = slice(0, DIM)
    blocks = [models.inverse_of(every, everything, everything) for models in (one, other)]
    assert np.array_equal(blocks[1] * np.outer(by, by), blocks[0])


def test_zero_blocks_and_zero_rewards_do_not_count_until_their_first_value() -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(2, BLOCKS)
    everywhere, arms = np.ones((2, DIM)), np.array([0, 1])
    assert models.project(everywhere, arms).widths.tolist() == [0.0, 0.0]
    for i in range(30):
        u = rng.standard_normal(DIM)
        u[3:] = 0.0
        models.update(i % 2, u, u[:1])
    only_z = everywhere.copy()
    only_z[:, :3] = 0.0
    assert models.project(only_z, arms).widths.tolist() == [0.0, 0.0]
    assert models.deviations(only_z, arms, slice(0, 0), np.zeros((3, 2, 0)), rng).tolist() == [[0.0, 0.0]] * 3
    models.remove(0)
    models.add()
    models.update(0, np.ones(DIM), np.ones(1))
    assert (models.project(only_z, arms).widths > 0.0).all()  # the other arm as well: w_0 has a unit now
    quiet = HybridModels(2, BLOCKS)
    for i in range(30):
        quiet.update(i % 2, rng.standard_normal(DIM), np.zeros(1))
    assert quiet.prior.noise_variance[0] == 0.0
    assert not quiet.weights_of(arms).any()


def test_all_arms_may_leave_and_what_they_taught_still_counts() -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(3, BLOCKS)
    w = rng.standard_normal(DIM)
    for i, u in enumerate(rng.standard_normal((200, DIM))):
        models.update(i % 3, u, np.array([w @ u + 0.1 * rng.standard_normal()]))
    for _ in range(3):
        models.add()
        models.remove(0)
    assert not models.pulls.any()
    models.prior.refit(models)
    assert np.abs(models.weights_of(np.arange(3))[:, 0] - w).max() < 0.1
    assert models.prior.noise_variance[0] == pytest.approx(0.01, rel=0.3)
    models.update(0, w, np.ones(1))
    assert np.isfinite(models.weights_of(np.arange(3))).all()


# State


@pytest.mark.parametrize("ridge", [0.5, "evidence"])
def test_a_reloaded_learner_goes_on_bit_by_bit(ridge: Any) -> None:
    rng = np.random.default_rng(0)
    models = HybridModels(3, BLOCKS, ridge=ridge)
    teach(models, rng, 40)
    models.remove(0)
    teach(models, rng, 20)
    twin = HybridModels(5, BLOCKS, ridge=ridge)
    twin.restore(Stored(models.arrays()), 2)
    for learner in (models, twin):
        teach(learner, np.random.default_rng(1), 60)
        learner.forget(0.9)
        teach(learner, np.random.default_rng(2), 5)
    for name, array in models.arrays().items():
        assert np.array_equal(array, twin.arrays()[name]), name


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("shared_dense_gram", np.zeros((1, DIM))),
        ("shared_dense_gram", -np.ones((1, DIM * (DIM + 1) // 2))),
        ("shared_block_ridge", np.zeros(2)),
        ("departed_gram", -np.eye(DIM)),
        ("departed_moment", np.full((1, DIM), np.nan)),
        ("departed_squares", np.full(1, -1.0)),
        ("shared_rows", np.array(-1)),
        ("shared_rows", None),
    ],
)
def test_a_state_that_is_not_one_is_refused_by_name(name: str, broken: Any) -> None:
    arrays = HybridModels(2, BLOCKS).arrays()
    if broken is None:
        del arrays[name]
    else:
        arrays[name] = broken
    with pytest.raises(StateMismatch, match=name):
        HybridModels(2, BLOCKS).restore(Stored(arrays), 2)


def test_the_ellipsoid_does_not_shrink_when_an_arm_leaves() -> None:
    """What departed arms taught still rests on their weights, which the radius must cover."""
    models = HybridModels(3, {"x": 2}, ridge=1.0)
    rng = np.random.default_rng(0)
    for i in range(60):
        models.update(i % 2, rng.normal(size=2), rng.normal(size=1))  # the third is never taught
    before = models.ellipsoid(np.array([0]))
    models.remove(2)
    assert models.ellipsoid(np.array([0])).log_det == before.log_det
    models.remove(1)
    after = models.ellipsoid(np.array([0]))
    assert after.log_det == pytest.approx(before.log_det, rel=1e-9)
    assert len(after.ridge) == len(before.ridge) - 2  # but for the arm that was never taught


@pytest.mark.parametrize("ridge", [1.0, 0.01, "evidence"])
@pytest.mark.parametrize("base", [1e6, 1e8, 1e10])
def test_collinear_rows_of_any_size_leave_sums_that_are_squares(base: float, ridge: Any) -> None:
    for seed in range(6):
        rng = np.random.default_rng(seed)
        models, along = HybridModels(2, {"x": 3}, ridge=ridge), rng.normal(size=3)
        for _ in range(40):
            models.update(0, base * rng.normal() * along, np.ones(1))
        models.forget(0.9)
        models.remove(0)
        assert (np.diagonal(models.arrays()["departed_gram"]) >= 0.0).all()
        assert (np.diagonal(models.shared.gram_of()[0]) >= 0.0).all()


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6, 1e9, 1e15])
def test_an_arm_never_served_is_told_the_same_whatever_the_size_of_x(scale: float) -> None:
    rng = np.random.default_rng(0)
    models, theta = HybridModels(3, {"x": 3}, ridge=min(scale**2, 1.0)), rng.normal(size=3)
    for i in range(400):
        u = rng.normal(size=3)
        models.update(i % 2, scale * u, np.array([u @ theta]))
    u = rng.normal(size=(1, 3))
    told = models.average(scale * u, np.array([2]))[0, 0]
    # Two arms give w_0 two thirds of what they have learnt, where both levels have the same prior.
    assert told == pytest.approx(2.0 / 3.0 * float(u[0] @ theta), rel=1e-2)


@pytest.mark.parametrize("dim", [1, 5, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 3])
@pytest.mark.parametrize("share", [0.0, 0.3, 2.0])
def test_the_root_of_a_gram_has_about_as_many_rows_as_its_rank(dim: int, share: float) -> None:
    rng, n = np.random.default_rng(0), int(share * dim)
    U = rng.normal(size=(2, n, dim))
    U[0, :, ::2] = 0.0  # as a column that has no value
    gram = U.mT @ U
    root = semidefinite_root(gram)
    assert root.shape[1] <= 1.05 * min(n, dim)  # rounding may add a few
    np.testing.assert_allclose(root.mT @ root, gram, atol=1e-11 * max(1, n))
    alone = semidefinite_root(gram[1])
    np.testing.assert_array_equal(root[1, : len(alone)], alone)


def test_nothing_has_a_root() -> None:
    assert semidefinite_root(np.empty((3, 0, 0))).shape == (3, 0, 0)
    assert semidefinite_root(np.empty((0, 2, 2))).shape == (0, 0, 2)
