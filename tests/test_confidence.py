"""Radii against values computed by hand, and against each other."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr

from postserve import confidence as c


def test_arm_radii_at_known_values() -> None:
    """2 sqrt(4) + 0.5 sqrt(3 log((1 + 10·9/4)/0.1)), and 4 + 0.5 sqrt(2 log(e^{3/2}/0.1))."""
    closed = c.arm_radius_closed_form(ridge=4.0, pulls=10, dim_u=3, noise_scale=0.5, u_bound=3.0, delta=0.1)
    assert closed == pytest.approx(4.0 + 0.5 * np.sqrt(3.0 * np.log((1.0 + 22.5) / 0.1)))
    determinant = c.arm_radius_determinant(ridge=4.0, log_det_ratio=3.0, noise_scale=0.5, delta=0.1)
    assert determinant == pytest.approx(4.0 + 0.5 * np.sqrt(2.0 * np.log(np.exp(1.5) / 0.1)))


def test_one_ridge_a_block_takes_the_safe_side() -> None:
    pair = np.array([1.0, 4.0])
    closed = c.arm_radius_closed_form(ridge=pair, pulls=7, dim_u=2, noise_scale=1.0, u_bound=2.0, delta=0.1)
    assert closed == pytest.approx(4.0 + np.sqrt(2.0 * np.log((1.0 + 28.0) / 0.1)))
    assert c.arm_radius_determinant(
        ridge=pair, log_det_ratio=0.0, noise_scale=0.0, delta=0.1
    ) == pytest.approx(4.0)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    st.integers(0, 10**6),
    st.integers(2, 8),
    st.integers(0, 60),
    st.floats(0.01, 100.0),
    st.floats(0.001, 0.5),
)
def test_the_determinant_form_is_the_tighter(seed: int, dim: int, n: int, ridge: float, delta: float) -> None:
    U = np.random.default_rng(seed).standard_normal((n, dim))
    log_det = np.linalg.slogdet(np.eye(dim) + U.T @ U / ridge)[1]
    bound = float(np.linalg.norm(U, axis=1).max(initial=1e-9))
    tight = c.arm_radius_determinant(ridge=ridge, log_det_ratio=log_det, noise_scale=1.0, delta=delta)
    loose = c.arm_radius_closed_form(
        ridge=ridge, pulls=n, dim_u=dim, noise_scale=1.0, u_bound=bound, delta=delta
    )
    assert tight <= loose + 1e-9


def test_algorithm_2s_printed_closed_form_drops_the_dimension() -> None:
    """At dim 105 it is far below the determinant form that it should bound; ours is above it."""
    rng = np.random.default_rng(0)
    dim, n, ridge, delta = 105, 1000, 1.0, 0.05
    U = rng.uniform(-1.0, 1.0, size=(n, dim))
    u_bound = float(np.linalg.norm(U, axis=1).max())
    log_det = np.linalg.slogdet(ridge * np.eye(dim) + U.T @ U)[1] - dim * np.log(ridge)
    determinant = c.phi_hat_radius_determinant(
        ridge=ridge, log_det_ratio=log_det, map_errors=0.0, noise_scale=1.0, z_noise_scale=0.0,
        u_bound=u_bound, delta=delta, w_bound=0.0,
    )  # fmt: skip
    ours = c.phi_hat_radius_closed_form(
        ridge=ridge, pulls=n, dim_u=dim, map_errors=0.0, noise_scale=1.0, z_noise_scale=0.0,
        u_bound=u_bound, delta=delta, w_bound=0.0,
    )  # fmt: skip
    printed = np.sqrt(2.0 * np.log((1.0 + n * u_bound**2 / ridge) / (delta / 2.0)))
    assert printed < 0.3 * determinant
    assert determinant <= ours


def test_algorithm_2_pays_for_the_maps_errors() -> None:
    def radius(map_errors: float) -> float:
        return float(
            c.phi_hat_radius_determinant(
                ridge=4.0, log_det_ratio=2.0, map_errors=map_errors, noise_scale=0.3, z_noise_scale=0.4,
                u_bound=3.0, delta=0.1,
            )
        )  # fmt: skip

    assert radius(0.0) == pytest.approx(0.5 * np.sqrt(2.0 * np.log(np.exp(1.0) / 0.05)) + 4.0)
    assert radius(10.0) - radius(0.0) == pytest.approx(3.0 * 10.0 / 2.0)


def test_map_radii_at_known_values() -> None:
    assert c.map_radius_assumption(
        width=0.3, pairs=50, noise_scale=[3.0, 4.0], delta=0.05, map_rate=0.25
    ) == pytest.approx(5.0 * np.sqrt(0.3) * np.log(1000.0))
    assert c.map_radius_assumption(width=0.3, pairs=0, noise_scale=1.0, delta=0.05) == pytest.approx(
        0.3 * np.log(1.0 / 0.05)
    )
    each = np.sqrt(2.0) * np.array([1.0, 3.0]) + np.array([0.5, 0.1]) * np.sqrt(1.2 + 2.0 * np.log(2.0 / 0.1))
    assert c.map_radius_determinant(
        width=0.3,
        log_det_ratio=1.2,
        ridge=2.0,
        noise_scale=[0.5, 0.1],
        row_bound=[1.0, 3.0],
        delta=0.1,
        dim_z=2,
    ) == pytest.approx(0.3 * np.linalg.norm(each))
    assert c.map_radius_posterior(width=2.0, noise_scale=[0.3, 0.4]) == pytest.approx(1.0)


@pytest.mark.parametrize("n", [*range(1, 31), 50, 100, 300, 1_000, 10_000, 100_000, 1_000_000])
def test_the_expected_maximum_of_normals_is_that_of_numerical_integration(n: int) -> None:
    """E max = ∫ (1 - F^n) over x > 0 - ∫ F^n over x < 0; the fitted formula is within 0.5% of it."""
    x = np.linspace(0.0, 12.0, 24_001)
    above, below = -np.expm1(n * log_ndtr(x)), np.exp(n * log_ndtr(-x))
    assert c.expected_maximum(n) == pytest.approx(np.trapezoid(above - below, x), rel=0.005, abs=1e-9)


def test_automatic_exploration_grows_with_the_candidates_and_with_rounds_per_weight() -> None:
    """At least 1; sqrt(m_10² + log(1 + 30/20)) with m_10 = 1.5388."""
    assert c.posterior_exploration(candidates=3, n_weights=12, rounds=0) == 1.0
    given = c.posterior_exploration(candidates=10, n_weights=20, rounds=30)
    assert given == pytest.approx(np.sqrt(1.5388**2 + np.log(2.5)), rel=0.005)
    grid = [c.posterior_exploration(k, 10, t) for t in (0, 10, 1000) for k in (4, 10, 100, 10_000)]
    assert (np.diff(np.reshape(grid, (3, 4)), axis=0) > 0.0).all()
    assert (np.diff(np.reshape(grid, (3, 4)), axis=1) > 0.0).all()
