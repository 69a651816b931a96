"""Every place where the paper's text must not be followed to the letter: printed it fails, ours holds.

The printed forms live here and nowhere else.
"""

import math
from typing import Any

import numpy as np
import pytest

from postserve import KnownMap, LinUCBPhiHat, PoLinUCB, RidgeMap, confidence, theory
from postserve.types import FloatArray

# The lemmas.


def test_eigenvalue_of_a_rank_one_update() -> None:
    """Printed: 1 + ||y||. It is 1 + ||y||², without which log det is not the sum of log(1 + ||x||²)."""
    y = np.array([3.0, 4.0])
    largest = np.linalg.eigvalsh(np.eye(2) + np.outer(y, y))[-1]
    assert largest != pytest.approx(1.0 + 5.0)
    assert largest == pytest.approx(1.0 + 25.0)


def test_the_power_belongs_inside_the_sum() -> None:
    """Printed: sum_t (1 ∧ w_t)^p <= T_0 - 1 + (sum_t 1 ∧ w_t)^p. Without noise T_0 = 1; x_t = 1 breaks it."""
    widths = 1.0 / np.arange(1.0, 101.0)
    p = 0.5
    left, printed = (widths**p).sum(), widths.sum() ** p
    assert left > printed
    found = theory.elliptical_potential(np.ones((100, 1)), [[1.0]], p)
    assert found.left == pytest.approx(left)
    assert left <= found.right


def test_the_first_rounds_are_counted_by_the_ceiling() -> None:
    """Printed: T_0 - 1 <= q log(…). T_0 is the ceiling of 1 + that, so T_0 - 1 is its ceiling."""
    q = 8.0 * 1.0 * (1.0 + 0.1) ** 2
    printed = q * math.log(32.0 * 1.0 * (1.0 + 0.1) ** 2 / 0.05)
    found = theory.generalized_elliptical_potential(
        [[0.1]], [[1.0]], [[1.0]], delta=0.05, sigma_squared=1.0, noise_bound=1.0
    )
    assert found.first_round - 1 > printed
    assert found.first_round - 1 == math.ceil(printed)


@pytest.mark.parametrize("n", [100, 1000, 10_000, 100_000])
def test_the_noisy_matrix_lemma_does_not_apply_to_stacked_contexts(n: int) -> None:
    """u = (x, z): 20 of 20 runs have a negative eigenvalue; dim_x = 20, dim_z = 5.

    Printed: sum_t S_t >= 0 but for 2 d exp(-T sigma⁴/…), sigma² that of z's noise alone. sum_t S_t has a
    zero block in x beside entries that are not zero, so it never is.
    """
    negative = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.uniform(-0.1, 0.1, size=(n, 20))
        noise = np.hstack([np.zeros((n, 20)), rng.choice([-1.0, 1.0], size=(n, 5))])
        U = np.hstack([X, X @ rng.normal(size=(20, 5)) / 20.0])
        covariance = np.diag([0.0] * 20 + [1.0] * 5)
        found = theory.noisy_matrix_lemma(U, noise, noise_covariance=covariance, noise_bound=math.sqrt(5.0))
        negative += found.smallest_eigenvalue < 0.0
        assert not found.condition_met
        assert found.probability == 0.0  # nothing is promised
        factor = theory.noisy_gram_factor(U, noise[:, 20:], ridge=1.0, noise_scale=1.0, sigma=1.0)
        assert 1.0 < factor.ratio <= factor.factor
    assert negative == 20


def test_the_generalised_lemmas_argument_fails_for_stacked_contexts() -> None:
    """It needs ||u||²_{A~^{-1}} <= ||u||²_{A^{-1}}, which noise of z breaks in directions of x."""
    rng = np.random.default_rng(0)
    n = 10_000
    U = rng.normal(size=(n, 2))
    noisy = U + np.column_stack([np.zeros(n), rng.normal(size=n)])
    clean_inverse, noisy_inverse = (np.linalg.inv(np.eye(2) + rows.T @ rows) for rows in (U, noisy))
    worst = np.linalg.eigh(noisy_inverse - clean_inverse)[1][:, -1]
    assert worst @ noisy_inverse @ worst > worst @ clean_inverse @ worst
    noise = noisy - U
    ours = theory.mean_context_potential(U, noise, np.eye(2), delta=0.01)
    assert (ours.left_by_round <= ours.right_by_round).all()


def test_bernsteins_variance_is_an_expectation() -> None:
    """Printed: ||sum X_i X_i^T||, without E. A draw without any summand would make the tail too small."""
    rng, shape = np.random.default_rng(0), (20_000, 100)
    drawn = rng.choice([0.0, 1.0], p=[0.99, 0.01], size=shape) * rng.choice([-1.0, 1.0], size=shape)
    measured = (np.abs(drawn.sum(axis=1)) >= 2.0).mean()
    realised = (drawn**2).sum(axis=1)
    assert (realised == 0.0).mean() > 0.3
    printed = theory.matrix_bernstein_tail(2.0, variance=0.0, bound=1.0, rows=1, columns=1)
    ours = theory.matrix_bernstein_tail(2.0, variance=100 * 0.01, bound=1.0, rows=1, columns=1)
    assert printed == pytest.approx(2.0 * math.exp(-3.0))
    assert ours == pytest.approx(2.0 * math.exp(-1.2))
    assert 1.1 * printed < measured <= ours


# Learnability.


def test_failures_are_shared_out_over_the_rounds() -> None:
    """Printed: e^{delta/t}, e^{t/delta}. delta/t sums to more than delta, and t/delta is no probability."""
    horizon, delta = 1000, 0.3
    assert (delta / np.arange(1.0, horizon + 1.0)).sum() > 7.0 * delta
    inverted = confidence.map_radius_assumption(width=1.0, pairs=10, noise_scale=1.0, delta=10 / delta)
    assert inverted < 0.0
    each = theory.shares(delta, n_arms=1).map / horizon
    assert each * horizon == pytest.approx(delta / 3.0)
    ours = theory.assumption_constant(c0=1.0, horizon=horizon, delta=delta)
    needed = confidence.map_radius_assumption(width=1.0, pairs=horizon, noise_scale=1.0, delta=each)
    assert ours == pytest.approx(float(needed))


@pytest.mark.parametrize(("b", "d"), [(1.0, 1), (0.5, 1), (1.0, 2), (2.0, 1)])
def test_the_holder_rate_is_that_of_a_norm(b: float, d: int) -> None:
    """Printed: 2b/(2b + d). The best balance of bias h^b and deviation (n h^d)^{-1/2} falls half as fast."""
    h = np.geomspace(1e-6, 1.0, 20_001)
    sizes = np.array([1e4, 1e8])
    errors = [np.sqrt(h ** (2.0 * b) + 1.0 / (n * h**d)).min() for n in sizes]
    slope = -np.log(errors[1] / errors[0]) / np.log(sizes[1] / sizes[0])
    assert slope == pytest.approx(theory.holder_rate(b, d), abs=1e-3)
    assert slope < 2.0 * b / (2.0 * b + d) - 0.1
    assert theory.holder_rate(b, d) < 0.5  # as Assumption 1 wants; the printed one need not be


def test_observation_1_is_about_algorithms_that_are_linear_in_x() -> None:
    """Printed: any online algorithm without z has linear regret. A table over x learns it at once."""
    rng = np.random.default_rng(0)
    contexts = np.array([-3.0, -1.0, 1.0])
    means = np.column_stack([contexts + contexts**2 / 2.0, -contexts - contexts**2 / 2.0])
    # What is linear in x orders the arms by the sign of a multiple of x: not + at -3 and - at -1.
    wanted = np.sign(means[:, 0] - means[:, 1])
    assert not any((np.sign(slope * contexts) == wanted).all() for slope in (-1.0, 0.0, 1.0))
    sums, counts, regret = np.zeros((3, 2)), np.zeros((3, 2)), []
    for i in rng.integers(3, size=2000):
        arm = int(np.argmax(np.where(counts[i] > 0, sums[i] / np.maximum(counts[i], 1.0), np.inf)))
        sums[i, arm] += means[i, arm]
        counts[i, arm] += 1.0
        regret.append(means[i].max() - means[i, arm])
    assert sum(regret[100:]) == 0.0


# The theorem's constants. A map that has just its assumption, on a sequence that is as bad as it gets.


def map_errors_squared(widths: FloatArray, c0: float, map_rate: float, delta: float) -> float:
    """sum_t e_t², e_t = C0 w_t^alpha log(t T/delta), as the paper's proof has it."""
    rounds, horizon = np.arange(1.0, len(widths) + 1.0), len(widths)
    return float((c0**2 * widths ** (2.0 * map_rate) * np.log(rounds * horizon / delta) ** 2).sum())


@pytest.mark.parametrize("map_rate", [0.25, 0.5])
def test_the_maps_constant_is_squared(map_rate: float) -> None:
    """Printed: 8 C0 T^{1-2alpha} log^{2alpha}(det) log²(T/delta) for 8 sum e²; x_t = 1, C0 = 8."""
    horizon, delta, c0 = 10_000, 0.05, 8.0
    errors = 8.0 * map_errors_squared(1.0 / np.arange(1.0, horizon + 1.0), c0, map_rate, delta)
    size = horizon ** (1.0 - 2.0 * map_rate) * math.log(horizon + 1.0) ** (2.0 * map_rate)
    size *= math.log(horizon / delta) ** 2
    assert errors > 8.0 * c0 * size
    assert errors <= 8.0 * 4.0 * 4.0**map_rate * c0**2 * size


def test_the_potential_costs_a_factor_two() -> None:
    """Printed: sum e² <= 4 C0² T^{1-2alpha} log^{2alpha}(det)…; it is 2^{2alpha} of that if det doubles."""
    horizon, delta, c0, map_rate = 10_000, 0.9, 1.0, 0.5
    errors = map_errors_squared(np.ones(horizon), c0, map_rate, delta)
    size = (horizon * math.log(2.0)) ** (2.0 * map_rate) * horizon ** (1.0 - 2.0 * map_rate)
    size *= math.log(horizon / delta) ** 2
    assert errors > 4.0 * c0**2 * size
    assert errors <= 4.0 * 4.0**map_rate * c0**2 * size


def test_the_arms_term_has_a_four() -> None:
    """Printed: K zeta² d_u log(1 + T L²/(lambda d_u)) for 2 zeta² sum 1 ∧ w; in Algorithm 2's display 2 K.

    x_t = 1, one arm: it is 4 K.
    """
    found = theory.elliptical_potential(np.ones((1000, 1)), [[1.0]])
    log = math.log(1.0 + 1000.0)
    assert 2.0 * found.left > 2.0 * log
    assert 2.0 * found.left <= 4.0 * log


def test_both_weights_lie_within_zeta_of_the_estimate() -> None:
    """Printed: ||w~ - w*||_A <= zeta. Both are within zeta of w_hat, so it is 2 zeta."""
    zeta, A = 1.5, np.diag([4.0, 1.0])
    w_hat, step = np.array([0.3, 0.1]), zeta * np.array([0.5, 0.0])
    optimistic, true = w_hat + step, w_hat - step
    for w in (optimistic, true):
        assert math.sqrt((w - w_hat) @ A @ (w - w_hat)) <= zeta
    apart = math.sqrt((optimistic - true) @ A @ (optimistic - true))
    assert apart > zeta
    assert apart == pytest.approx(2.0 * zeta)


def test_the_optimistic_beta_can_be_longer_than_one() -> None:
    """Printed: ||beta~|| <= 1. The ellipsoid is not cut to the unit ball; 1 + 2 zeta/sqrt(ridge) holds."""
    ridge = 1.0
    zeta = float(
        confidence.arm_radius_closed_form(
            ridge=ridge, pulls=0, dim_u=2, noise_scale=1.0, u_bound=1.0, delta=0.05
        )
    )
    farthest = zeta / math.sqrt(ridge)  # with w_hat = 0, before the first reward
    assert farthest > 1.0
    found = theory.regret_bound(
        "polinucb",
        horizon=1,
        dim_u=2,
        map_rate=0.5,
        map_constant=1.0,
        u_bound=1.0,
        noise_scale=1.0,
        delta=0.05,
    )
    assert farthest <= found.optimistic_beta


def test_the_theorems_two_noise_constants_disagree() -> None:
    """Printed: 8 L_eps² (L_eps + L_x)² in its proof, 48 L_eps⁴ L_u² in its end, neither above the other."""

    def from_lemma(noise: float, x: float) -> float:
        return 8.0 * noise**2 * (noise + x) ** 2

    def at_the_end(noise: float, u: float) -> float:
        return 48.0 * noise**4 * u**2

    assert from_lemma(0.1, 1.0) > at_the_end(0.1, math.hypot(1.0, 1.0))
    assert from_lemma(1.0, 1.0) < at_the_end(1.0, math.hypot(1.0, 1.0))


def test_widths_are_clipped_only_where_gaps_are() -> None:
    """Printed: e_t <= C0 (1 ∧ w_t)^alpha…; Assumption 1 has w_t itself, which may be above 1.

    In the regret a gap of at most 1 clips it, at the price of max(1, constant). In Algorithm 2's radius
    nothing does, and sum e_t needs max(1, L²/ridge)^alpha.
    """
    x, ridge, horizon = 10.0, 1.0, 50
    widths = x**2 / (ridge + x**2 * np.arange(horizon))
    errors = np.sqrt(widths)
    clipped = np.sqrt(2.0 * horizon * math.log(1.0 + horizon * x**2 / ridge))
    printed_ridge = 1.0 * clipped / 2.0  # b L_u S/w_bound at L_u = 1
    ours = theory.optimal_ridge(
        horizon=horizon, map_rate=0.5, map_constant=1.0, map_dim=1, u_bound=1.0, x_bound=x, map_ridge=ridge
    )
    assert errors[0] > 1.0
    assert ours == pytest.approx(x * printed_ridge)
    assert errors.sum() <= 2.0 * ours


def test_the_theorem_is_for_gaps_of_at_most_one() -> None:
    """The paper assumes so, and figure 1's are 18 on average. One round, x = 9, theta = ±1, z = 0 and known.

    All scores tie, so the wrong arm is served to some, and costs 18. The bound is 1; in units of 18 it is 18.
    """
    phi = KnownMap(1, 1, lambda x: [0.0])
    policy = PoLinUCB(2, phi, ridge=1e-6, arm_radius="determinant", noise_scale=0.0)
    served = {policy.select([9.0], np.random.default_rng(seed)).arm for seed in range(20)}
    regret = max(9.0 - 9.0 * [1.0, -1.0][arm] for arm in served)
    constants: dict[str, Any] = {
        "horizon": 1, "dim_u": 2, "n_arms": 2, "map_rate": 0.5, "map_constant": 0.0, "u_bound": 9.0,
        "noise_scale": 0.0, "delta": 0.05, "ridge": 1e-6,
    }  # fmt: skip
    printed = theory.regret_bound("polinucb", **constants, w_bound=1.0).total
    gap = 18.0
    ours = gap * theory.regret_bound("polinucb", **constants, w_bound=1.0 / gap, beta_bound=1.0 / gap).total
    assert printed < regret <= ours * (1.0 + 1e-12)
    assert (printed, regret, ours) == pytest.approx((1.0, 18.0, 18.0))


# The propositions.


def test_separate_maps_cost_jensens_power_of_the_arms() -> None:
    """Printed: 4 K C0 …, so K^{1/2} outside the root, too much, and C0 not squared, too little."""
    n_arms, pulls, map_rate, c0, delta = 16, 500, 0.25, 8.0, 0.05
    horizon = n_arms * pulls
    widths = np.tile(1.0 / np.arange(1.0, pulls + 1.0), (n_arms, 1))
    logs = np.log(horizon / delta) ** 2
    errors = float((c0**2 * widths ** (2.0 * map_rate)).sum() * logs * 4.0)  # at log(T²/delta²) throughout
    log_det = math.log(1.0 + pulls) ** (2.0 * map_rate)
    size = 4.0 * horizon ** (1.0 - 2.0 * map_rate) * log_det * logs
    assert errors > n_arms * c0 * size
    ours = n_arms ** (2.0 * map_rate) * c0**2 * 4.0**map_rate * size
    assert errors <= ours
    assert ours < n_arms * c0**2 * 4.0**map_rate * size
    assert errors > c0**2 * 4.0**map_rate * size  # some power of K there must be
    one_map, maps = (
        theory.regret_bound(
            kind, horizon=10**15, dim_u=3, n_arms=n_arms, map_rate=map_rate, map_constant=1.0, u_bound=1.0,
            noise_scale=1.0, delta=delta,
        ).map_term
        for kind in ("polinucb", "action_dependent")
    )  # fmt: skip
    assert maps / one_map == pytest.approx(n_arms**map_rate, rel=0.05)
    assert maps / one_map < math.sqrt(n_arms) / 1.5


def test_algorithm_2s_ridge_has_the_maps_constant() -> None:
    """Printed: 2 L_u T^{1-alpha} log^alpha(det) log(T/delta), without C0: its radius is not the least."""
    horizon, dim, c0, delta = 10_000, 2, 100.0, 0.05
    constants: dict[str, Any] = {"horizon": horizon, "map_rate": 0.5, "u_bound": 1.0}
    constants["map_constant"] = theory.assumption_constant(c0=c0, horizon=horizon, delta=delta)
    log_det = dim * math.log(1.0 + horizon / dim)
    printed = 2.0 * math.sqrt(horizon * log_det) * math.log(horizon / delta)

    def radius(ridge: float) -> float:
        return theory.regret_bound(
            "linucb_phi_hat", **constants, dim_u=dim, noise_scale=1.0, delta=delta, ridge=ridge
        ).arm_radius

    assert radius(printed) > 3.0 * radius(theory.optimal_ridge(**constants, map_dim=dim))


def test_algorithm_2_regresses_on_each_rounds_own_x() -> None:
    """Printed: x_t in the loss of round s. The policy's weights are those of x_s."""
    rng = np.random.default_rng(0)
    policy = LinUCBPhiHat(1, RidgeMap(1, 1, ridge=1.0), ridge=1.0, arm_radius=1.0)
    rows, rewards = [], []
    for _ in range(50):
        x = rng.normal(size=1)
        z = 2.0 * x + rng.normal(size=1)
        z_hat = policy.context_map.predict(x, [0])[0]
        rows.append([*x, *z_hat])
        rewards.append(float(x[0] + 3.0 * z[0]))
        policy.update(x, 0, z, rewards[-1])
    U, r = np.array(rows), np.array(rewards)
    printed = np.column_stack([np.full(50, U[-1, 0]), U[:, 1]])

    def ridge_fit(rows: FloatArray) -> FloatArray:
        return np.linalg.solve(np.eye(2) + rows.T @ rows, rows.T @ r)

    np.testing.assert_allclose(policy.weights[0], ridge_fit(U), rtol=1e-9)
    assert not np.allclose(policy.weights[0], ridge_fit(printed), rtol=0.1)


def test_algorithm_2s_gram_is_of_predictions_not_of_means() -> None:
    """Printed: the potential of (x, phi(x)) in a matrix of (x, phi_hat(x)). A map that predicts 0 breaks it.

    Around phi_hat(x), as in our derivation, it is the potential lemma itself.
    """
    horizon = 1000
    means, predicted = np.tile([1.0, 1.0], (horizon, 1)), np.tile([1.0, 0.0], (horizon, 1))
    log_det = 2.0 * math.log(1.0 + horizon * 2.0 / 2.0)
    printed = theory.mean_context_potential(means, predicted - means, np.eye(2))
    assert printed.left > 10.0 * 2.0 * log_det
    assert theory.elliptical_potential(predicted, np.eye(2)).left <= 2.0 * log_det


def test_algorithm_2s_closed_form_has_the_dimension() -> None:
    """Printed without dim_u: below 8 where the determinant form, which it should bound, is above 27."""
    rng = np.random.default_rng(0)
    dim, n = 105, 1000
    U = rng.uniform(-10.0, 10.0, size=(n, dim))
    u_bound = float(np.linalg.norm(U, axis=1).max())
    log_det = float(np.linalg.slogdet(np.eye(dim) + U.T @ U)[1])
    common: dict[str, Any] = {
        "ridge": 1.0, "map_errors": 0.0, "noise_scale": 1.0, "z_noise_scale": 0.0, "u_bound": u_bound,
        "delta": 0.05, "w_bound": 0.0,
    }  # fmt: skip
    determinant = confidence.phi_hat_radius_determinant(log_det_ratio=log_det, **common)
    printed = math.sqrt(2.0 * math.log((1.0 + n * u_bound**2) / 0.025))
    assert printed < 8.0
    assert determinant > 27.0
    assert confidence.phi_hat_radius_closed_form(pulls=n, dim_u=dim, **common) >= determinant


def test_the_ellipsoids_closed_form_needs_two_dimensions() -> None:
    """Printed for any d. At d = 1 it is below the determinant form; u = (x, z) has at least 2."""
    tight = confidence.arm_radius_determinant(
        ridge=1.0, log_det_ratio=np.log(2.0), noise_scale=1.0, delta=0.05
    )
    closed = confidence.arm_radius_closed_form(
        ridge=1.0, pulls=1, dim_u=1, noise_scale=1.0, u_bound=1.0, delta=0.05
    )
    assert closed < tight
