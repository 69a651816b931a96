"""Regret bounds: values by hand, monotone where they must be, at their stated rates, above real regret."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.untyped import untyped

from postserve import (
    InvalidInput,
    LinUCBPhiHat,
    PerArmMap,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    simulate,
    theory,
)
from postserve.theory.rates import KINDS
from postserve.types import FloatArray, Rounds

CONSTANTS: dict[str, Any] = {
    "horizon": 100,
    "dim_u": 2,
    "n_arms": 2,
    "map_rate": 0.5,
    "map_constant": 0.5,
    "u_bound": 2.0,
    "noise_scale": 0.5,
    "delta": 0.3,
    "ridge": 4.0,
}


def bound(kind: Any, **changed: Any) -> theory.RegretBound:
    given = {**CONSTANTS, **changed}
    if kind == "linear_stochastic":
        given["n_arms"] = 1
    return theory.regret_bound(kind, **given)


# By hand. A delta of 0.3 is 0.1 for the map, 0.1 for the noise, and 0.05 for each of two arms.


def test_polinucb_by_hand() -> None:
    zeta = 2.0 * 2.0 + 0.5 * math.sqrt(2.0 * math.log((1.0 + 100.0 * 4.0 / 4.0) / 0.05))
    beta = 1.0 + 2.0 * zeta / 2.0
    map_potential = 2.0 * 2.0 * math.log(1.0 + 100.0 * 4.0 / (1.0 * 2.0))
    arm_potential = 2.0 * 2.0 * 2.0 * math.log(1.0 + 100.0 * 4.0 / (2.0 * 4.0 * 2.0))
    seen = 2.0 * math.e / (math.e - 1.0) * (arm_potential + math.log(10.0))
    found = bound("polinucb")
    assert found.arm_radius == pytest.approx(zeta)
    assert found.optimistic_beta == pytest.approx(beta)
    assert found.map_term == pytest.approx(2.0 * beta * 0.5 * math.sqrt(100.0 * map_potential))
    assert found.arm_term == pytest.approx(2.0 * zeta * math.sqrt(100.0 * seen))
    assert found.total == found.map_term + found.arm_term


def test_action_dependent_by_hand() -> None:
    """Two maps: their potential is 2·2 d log(1 + 100·4/(2·d)), d = 2, and all else is as above."""
    found, one_map = bound("action_dependent"), bound("polinucb")
    map_potential = 2.0 * 2.0 * 2.0 * math.log(1.0 + 100.0 * 4.0 / (2.0 * 2.0))
    factor = 2.0 * one_map.optimistic_beta * 0.5
    assert found.map_term == pytest.approx(factor * math.sqrt(100.0 * map_potential))
    assert found.arm_term == one_map.arm_term


def test_linear_stochastic_by_hand() -> None:
    """One model, so delta/3 for it and K = 1 in the potential."""
    zeta = 4.0 + 0.5 * math.sqrt(2.0 * math.log(101.0 / 0.1))
    arm_potential = 2.0 * 2.0 * math.log(1.0 + 100.0 * 4.0 / (4.0 * 2.0))
    seen = 2.0 * math.e / (math.e - 1.0) * (arm_potential + math.log(10.0))
    found = bound("linear_stochastic")
    assert found.arm_term == pytest.approx(2.0 * zeta * math.sqrt(100.0 * seen))
    with pytest.raises(InvalidInput, match="n_arms is 2, wanted 1"):
        theory.regret_bound("linear_stochastic", **CONSTANTS)


def test_linucb_phi_hat_by_hand() -> None:
    """sum e <= 0.5 sqrt(L²/map_ridge = 4) sqrt(100 P), P = 4 log 201, is in the radius, times 2/sqrt(4)."""
    potential = 4.0 * math.log(201.0)
    errors = 0.5 * 2.0 * math.sqrt(100.0 * potential)
    noise = math.hypot(0.5, 1.0) * math.sqrt(2.0 * math.log(101.0 / 0.025))
    zeta = noise + 2.0 * errors / 2.0 + 2.0 * 2.0
    found = bound("linucb_phi_hat", z_noise_scale=1.0)
    assert found.arm_radius == pytest.approx(zeta)
    assert found.map_term == pytest.approx(0.5 * (2.0 + zeta) * math.sqrt(100.0 * potential))
    arm_potential = 8.0 * math.log(26.0)
    assert found.arm_term == pytest.approx(2.0 * zeta * math.sqrt(100.0 * arm_potential))


@pytest.mark.parametrize("map_rate", [0.25, 0.5])
@pytest.mark.parametrize("times", [0.0, 0.3, 0.7, 1.0, 3.0])
def test_factors_below_one_count(times: float, map_rate: float) -> None:
    """min(1, k w^alpha) <= F (1 ∧ w)^alpha for all w <= L_x²/map_ridge = 4, and F is the least such."""
    beta = bound("polinucb").optimistic_beta
    steps = bound("polinucb", map_rate=map_rate, map_constant=1.0).map_term / (2.0 * beta)
    found = bound("polinucb", map_rate=map_rate, map_constant=times / (2.0 * beta)).map_term / steps
    w = np.append(np.geomspace(1e-6, 4.0, 10_001), 1.0)
    needed = np.minimum(1.0, times * w**map_rate) / np.minimum(1.0, w) ** map_rate
    assert found == pytest.approx(needed.max(), abs=1e-9)


def test_arms_that_are_known_cost_nothing() -> None:
    """Without noise zeta = w_bound sqrt(ridge), below 1/2: the factor is 2 zeta max(1, L_u/sqrt(ridge))."""
    noiseless: dict[str, Any] = {"noise_scale": 0.0, "w_bound": 0.01, "horizon": 10**6}
    long = bound("polinucb", **noiseless, ridge=1.0)
    potential = 8.0 * math.log(1.0 + 10**6 * 4.0 / 4.0)
    seen = 2.0 * math.e / (math.e - 1.0) * (potential + math.log(10.0))
    assert long.arm_term == pytest.approx(2.0 * 0.01 * 2.0 * math.sqrt(10**6 * seen))
    short = bound("polinucb", **noiseless, ridge=16.0)
    potential = 8.0 * math.log(1.0 + 10**6 * 4.0 / (4.0 * 16.0))
    seen = 2.0 * math.e / (math.e - 1.0) * (potential + math.log(10.0))
    assert short.arm_term == pytest.approx(2.0 * 0.04 * math.sqrt(10**6 * seen))
    for kind in KINDS:
        assert bound(kind, map_constant=0.0, w_bound=0.0, noise_scale=0.0, z_noise_scale=0.0).total == 0.0


def test_delta_is_shared_out_over_arms_and_maps() -> None:
    assert theory.shares(0.3, n_arms=2) == pytest.approx((0.05, 0.1, 0.1))
    assert theory.shares(0.3, n_arms=2, n_maps=5) == pytest.approx((0.05, 0.02, 0.1))
    constants: list[Callable[[float, int], float]] = [
        lambda delta, n: theory.assumption_constant(c0=1.0, horizon=9, delta=delta, n_maps=n),
        lambda delta, n: theory.ridge_map_constant(
            horizon=9, map_dim=2, dim_z=1, x_bound=1.0, delta=delta, n_maps=n
        ),
    ]
    for constant in constants:
        assert constant(0.3, 5) == pytest.approx(constant(0.06, 1))
    with pytest.raises(InvalidInput, match="n_maps is 0, wanted"):
        theory.shares(0.3, n_arms=1, n_maps=0)


def test_constants_of_maps_by_hand() -> None:
    assert theory.assumption_constant(c0=3.0, horizon=7, delta=0.3, n_maps=2) == pytest.approx(
        3.0 * math.log(49.0 * 2.0 / 0.1)
    )
    found = theory.ridge_map_constant(
        horizon=8,
        map_dim=2,
        dim_z=2,
        x_bound=3.0,
        map_ridge=4.0,
        noise_scale=[1.0, 0.5],
        row_bound=2.0,
        delta=0.3,
    )
    spread = math.sqrt(2.0 * math.log(1.0 + 8.0 * 9.0 / 8.0) + 2.0 * math.log(2.0 / 0.1))
    assert found == pytest.approx(math.hypot(4.0 + spread, 4.0 + 0.5 * spread))


def test_a_bound_in_units_of_the_largest_gap() -> None:
    """Rewards over g: w, beta and the noise shrink by g, radii with them, and choices stay."""
    gap = 7.0
    for kind in KINDS:
        scaled = bound(kind, **in_units(gap))
        assert scaled.total <= bound(kind).total
    assert bound("polinucb", **in_units(gap)).arm_radius * gap == pytest.approx(bound("polinucb").arm_radius)
    # Where no maximum with 1 is at work it is the very same bound.
    small, large = bound("polinucb", map_constant=10.0), bound("polinucb", map_constant=10.0, **in_units(2.0))
    assert large.total * 2.0 == pytest.approx(small.total)


def in_units(gap: float) -> dict[str, float]:
    return {"w_bound": 2.0 / gap, "beta_bound": 1.0 / gap, "noise_scale": 0.5 / gap}


# Monotone.

GROWING = {
    "horizon": st.integers(1, 10**9),
    "dim_u": st.integers(2, 200),
    "n_arms": st.integers(1, 200),
    "noise_scale": st.floats(0.0, 100.0),
    "map_constant": st.floats(0.0, 100.0),
    "u_bound": st.floats(0.01, 100.0),
    "w_bound": st.floats(0.0, 100.0),
    "beta_bound": st.floats(0.0, 100.0),
    "noise_factor": st.floats(1.0, 100.0),
    "z_noise_scale": st.floats(0.0, 100.0),
    "map_dim": st.integers(1, 200),
    "x_bound": st.floats(0.0, 100.0),
}


@pytest.mark.parametrize("name", GROWING)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_bounds_grow_with(name: str, data: st.DataObject) -> None:
    low, high = sorted([data.draw(GROWING[name]), data.draw(GROWING[name])])
    rest = {"map_rate": data.draw(st.floats(0.01, 0.5)), "ridge": data.draw(st.floats(1e-3, 1e3))}
    for kind in KINDS:
        one, other = bound(kind, **{**rest, name: low}), bound(kind, **{**rest, name: high})
        assert one.map_term <= other.map_term * (1.0 + 1e-12)
        assert one.arm_term <= other.arm_term * (1.0 + 1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(0.01, 0.5), st.floats(0.01, 0.5), st.integers(1, 10**6), st.sampled_from(KINDS))
def test_bounds_fall_with_the_maps_rate(one: float, other: float, horizon: int, kind: Any) -> None:
    """Where ||x||² is at most the map's ridge, so that no width is above 1."""
    slow, fast = sorted([one, other])
    rest = {"horizon": horizon, "x_bound": 1.0, "map_ridge": 1.0}
    slow_bound, fast_bound = bound(kind, map_rate=slow, **rest), bound(kind, map_rate=fast, **rest)
    assert fast_bound.total <= slow_bound.total * (1.0 + 1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(1e-6, 0.99), st.floats(1e-6, 0.99), st.sampled_from(KINDS))
def test_bounds_fall_with_delta(one: float, other: float, kind: Any) -> None:
    strict, lax = sorted([one, other])
    assert bound(kind, delta=lax).total <= bound(kind, delta=strict).total * (1.0 + 1e-12)


# Rates.


@pytest.mark.parametrize("map_rate", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_grow_at_their_stated_rates(kind: Any, map_rate: float) -> None:
    """Slopes of the two terms far out, where logarithms add little, in T and in n_arms."""

    def terms(horizon: int, n_arms: int) -> theory.RegretBound:
        ridge = 100.0
        if kind == "linucb_phi_hat":
            ridge = theory.optimal_ridge(
                horizon=horizon, map_rate=map_rate, map_constant=1.0, map_dim=2, u_bound=2.0
            )
        return bound(kind, horizon=horizon, n_arms=n_arms, map_rate=map_rate, map_constant=1.0, ridge=ridge)

    stated = theory.rate(kind, map_rate=map_rate)
    near, far = terms(10**15, 4), terms(10**18, 4)
    assert math.log10(far.map_term / near.map_term) / 3.0 == pytest.approx(stated.map_term.horizon, abs=0.03)
    assert math.log10(far.arm_term / near.arm_term) / 3.0 == pytest.approx(stated.arm_term.horizon, abs=0.03)
    if kind != "linear_stochastic":
        few, many = terms(10**18, 10), terms(10**18, 10_000)
        for name in ("map_term", "arm_term"):
            slope = math.log10(getattr(many, name) / getattr(few, name)) / 3.0
            assert slope <= getattr(stated, name).n_arms + 0.05
            if kind != "linucb_phi_hat":  # whose ridge is so large that arms of few rounds learn little
                assert slope == pytest.approx(getattr(stated, name).n_arms, abs=0.05)


@pytest.mark.parametrize("map_rate", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_grow_at_their_stated_rates_in_the_dimension(kind: Any, map_rate: float) -> None:
    """With the ridges that `rate` names, from 2 to 20 dimensions, far out, where logarithms move little.

    They fall with dim_u. That of Algorithm 2's arms is of T^alpha/dim_u, with so large a ridge.
    """
    horizon = 10**18

    def terms(dim: int) -> theory.RegretBound:
        world: dict[str, Any] = {
            "horizon": horizon,
            "map_rate": map_rate,
            "map_constant": 1.0,
            "u_bound": 2.0,
        }
        ridge = dim * math.log(horizon)
        if kind == "linucb_phi_hat":
            ridge = theory.optimal_ridge(**world, map_dim=dim)
        return bound(kind, **world, dim_u=dim, ridge=ridge)

    few, many = terms(2), terms(20)
    stated = theory.rate(kind, map_rate=map_rate)
    for name in ("map_term", "arm_term"):
        slope = math.log10(getattr(many, name) / getattr(few, name))
        assert slope <= getattr(stated, name).dim_u
        if (kind, name) != ("linucb_phi_hat", "arm_term"):
            assert slope == pytest.approx(getattr(stated, name).dim_u, abs=0.04)
        elif map_rate == 0.5:
            assert slope == pytest.approx(getattr(stated, name).dim_u, abs=0.06)


def test_the_optimistic_beta_needs_a_ridge_of_the_order_of_the_dimension() -> None:
    """With a constant ridge it grows like sqrt(dim_u log T); with one of that order squared it does not."""

    def beta(dim: int, ridge: float) -> float:
        return bound("polinucb", horizon=10**6, dim_u=dim, ridge=ridge, noise_scale=1.0).optimistic_beta

    constant = [beta(dim, 1.0) for dim in (10, 1000)]
    assert constant[1] / constant[0] == pytest.approx(10.0, rel=0.25)
    scaled = [beta(dim, dim * math.log(1e6)) for dim in (10, 1000)]
    assert max(scaled) < 8.0
    assert scaled[1] / scaled[0] < 1.1


def test_rates_are_those_of_the_paper_but_for_jensen() -> None:
    assert theory.rate("polinucb", map_rate=0.25) == ((0.75, 0.25, 0.0), (0.5, 1.0, 0.5))
    assert theory.rate("linucb_phi_hat", map_rate=0.25) == ((0.75, 0.25, 0.0), (0.875, 0.625, 0.5))
    assert theory.rate("action_dependent", map_rate=0.25) == ((0.75, 0.25, 0.25), (0.5, 1.0, 0.5))
    assert theory.rate("linear_stochastic", map_rate=0.25) == ((0.75, 0.25, 0.0), (0.5, 1.0, 0.0))
    assert theory.rate("polinucb", map_rate=0.25).horizon == 0.75
    with pytest.raises(InvalidInput, match=r"map_rate is 0\.6, wanted"):
        theory.rate("polinucb", map_rate=0.6)
    with pytest.raises(InvalidInput, match="kind is 'linucb', wanted one of"):
        theory.rate(untyped("linucb"), map_rate=0.5)


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("x_bound", -1.0, "x_bound is -1, wanted a number at least 0"),
        ("map_ridge", 0.0, "map_ridge is 0, wanted a number above 0"),
        ("dim_u", 1, "dim_u is 1, wanted a whole number of at least 2"),
        ("delta", 1.0, "delta is 1, wanted a number at least 1e-100 and below 1"),
    ],
)
def test_refusals_name_the_argument(name: str, value: Any, wanted: str) -> None:
    for kind in KINDS:
        with pytest.raises(InvalidInput, match=wanted):
            bound(kind, **{name: value})


# Algorithm 2's ridge.


def with_ridge(ridge: float, **constants: Any) -> theory.RegretBound:
    return bound("linucb_phi_hat", **constants, ridge=ridge)


RIDGES = 10.0 ** np.arange(-6.0, 6.5, 0.5)
"""Times the optimal one."""


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    st.integers(10, 10**9),
    st.floats(0.05, 0.5),
    st.floats(0.01, 100.0),
    st.integers(2, 50),
    st.floats(0.1, 10.0),
    st.floats(0.0, 100.0),
)
def test_the_optimal_ridges_radius_is_the_least_but_for_the_noise(
    horizon: int, map_rate: float, map_constant: float, dim: int, u_bound: float, noise: float
) -> None:
    world: dict[str, Any] = {
        "horizon": horizon,
        "map_rate": map_rate,
        "map_constant": map_constant,
        "u_bound": u_bound,
    }
    best = theory.optimal_ridge(**world, map_dim=dim)

    def radius(ridge: float, noise: float) -> float:
        return with_ridge(ridge, **world, dim_u=dim, noise_scale=noise, z_noise_scale=0.0).arm_radius

    noiseless = radius(best, 0.0)
    assert noiseless <= min(radius(best * times, 0.0) for times in RIDGES) * (1.0 + 1e-12)
    of_noise = radius(best, noise) - noiseless
    assert radius(best, noise) <= min(radius(best * times, noise) for times in RIDGES) + of_noise + 1e-9


def test_the_optimal_ridge_does_not_minimise_the_whole_bound() -> None:
    """Here the least is at a ridge so large that nothing is learnt: neither bound is below T = 1,000."""
    world: dict[str, Any] = {"horizon": 1000, "map_rate": 0.5, "map_constant": 0.01, "u_bound": 1.0}
    best = theory.optimal_ridge(**world, map_dim=50)
    totals = [with_ridge(best * times, **world, dim_u=50, noise_scale=2.0).total for times in RIDGES]
    found = with_ridge(best, **world, dim_u=50, noise_scale=2.0).total
    assert found > 8.0 * min(totals)
    assert min(totals) > 1000.0


def test_the_optimal_ridge_minimises_what_grows() -> None:
    """w sqrt(ridge) + b L S/sqrt(ridge) is 2 sqrt(w b L S) at the ridge b L S/w, and more elsewhere."""
    constants: dict[str, Any] = {"horizon": 1000, "map_rate": 0.5, "map_constant": 2.0, "u_bound": 3.0}
    best = theory.optimal_ridge(**constants, map_dim=4)

    def growing(ridge: float) -> float:
        noiseless = bound(
            "linucb_phi_hat", **constants, dim_u=4, noise_scale=0.0, z_noise_scale=0.0, ridge=ridge
        )
        return noiseless.arm_radius

    errors = 2.0 * 3.0 * math.sqrt(1000.0 * 8.0 * math.log(1.0 + 1000.0 * 9.0 / 4.0))
    assert best == pytest.approx(3.0 * errors / 2.0)
    assert growing(best) == pytest.approx(2.0 * math.sqrt(2.0 * 3.0 * errors))
    assert growing(best) < min(growing(best * 1.1), growing(best / 1.1))


# What regressing on predictions costs.


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 2**32), st.integers(1, 60), st.integers(1, 6), st.floats(1e-3, 1e3))
def test_the_prediction_bias_is_a_projection(seed: int, n: int, dim: int, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    U, errors = rng.normal(size=(n, dim)) * 10.0 ** rng.integers(-3, 4), rng.exponential(size=n)
    found = theory.prediction_bias(U, errors, ridge=ridge)
    assert found.bias <= min(found.projected, found.term_by_term) * (1.0 + 1e-9)


def test_the_papers_step_costs_algorithm_2_its_rate() -> None:
    """Errors t^{-1/2}: the bias and its projection grow like sqrt(log T), the paper's sum like sqrt(T)."""
    found = [
        theory.prediction_bias(np.ones((n, 1)), np.arange(1.0, n + 1.0) ** -0.5, ridge=1.0)
        for n in (100, 10_000)
    ]
    assert found[1].projected / found[0].projected < 1.4
    assert found[1].term_by_term / found[0].term_by_term > 9.0
    assert found[1].bias <= found[1].projected


# A policy with the theory's radii, below its bound, in a world so small that the bound says something.


class Signs:
    """x = ±1 and one post-serving context, z_a = slope_a x_a + noise; every gap is 2 (1 + 0.1 b).

    So a policy that never learns loses half the largest gap in each round, and one that learns wrongly all
    of it. u is about 1 long and the noise is small, uniform: bounded, and symmetric.
    """

    dim_x, dim_z, n_arms = 1, 1, 2
    slope, z_noise, reward_noise = 0.1, 0.02, 0.01

    def __init__(self, kind: str, b: float) -> None:
        self.rows = kind in ("action_dependent", "linear_stochastic")
        # Of two rows: weights of x, weights of z, slopes of phi, and whether x is turned around.
        self.theta, self.beta, self.slopes, self.turned = np.array(
            {
                "action_dependent": ([1, -1], [b, b], [self.slope, -self.slope], [1, 1]),
                "linear_stochastic": ([1, 1], [b, b], [self.slope, self.slope], [1, -1]),
            }.get(kind, ([1, -1], [b, -b], [self.slope, self.slope], [1, 1]))
        )
        self.largest_gap = 2.0 * (1.0 + b * self.slope)
        self.w_bound = math.hypot(1.0, b)

    def phi(self, x: Any) -> FloatArray:
        return self.slopes[:, None] * x if self.rows else self.slope * np.asarray(x)

    def means(self, x: Any) -> FloatArray:
        along = np.asarray(x)[:, 0] if self.rows else np.asarray(x)
        return np.asarray((self.theta + self.beta * self.slopes) * along)

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        x = rng.choice([-1.0, 1.0], size=(n, 1)) * self.turned
        eps = rng.uniform(-self.z_noise, self.z_noise, size=(n, 2 if self.rows else 1))
        z = self.slopes * x + eps
        eta = rng.uniform(-self.reward_noise, self.reward_noise, size=(n, 1))
        rewards, means = self.theta * x + self.beta * z + eta, (self.theta + self.beta * self.slopes) * x
        if self.rows:
            return Rounds(x[:, :, None], z[:, :, None], rewards, means)
        return Rounds(x[:, :1], z[:, :1], rewards, means)


@pytest.mark.parametrize("optimism", ["joint", "bound"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_bound_is_above_the_regret_it_bounds(kind: Any, optimism: Any) -> None:
    """At every round; and below what a policy that never learns loses, so that it could fail.

    Algorithm 2's bound has b sum_t e_t in its radius, and says something this soon only where z hardly
    matters, b = 0.1; with b = 1 it is above the largest gap in each round at this horizon.
    """
    horizon, delta, map_ridge, b = 5000, 0.1, 1.0, 0.1 if kind == "linucb_phi_hat" else 1.0
    env = Signs(kind, b)
    n_arms = 1 if kind == "linear_stochastic" else 2
    n_maps = 2 if kind == "action_dependent" else 1
    share = theory.shares(delta, n_arms=n_arms, n_maps=n_maps)
    gap, z_noise_scale = env.largest_gap, env.z_noise / math.sqrt(3.0)  # of uniform noise
    world: dict[str, Any] = {"map_dim": 1, "x_bound": 1.0, "map_ridge": map_ridge}
    spread: dict[str, Any] = {"noise_scale": z_noise_scale, "row_bound": env.slope}

    def constant(t: int) -> float:
        return theory.ridge_map_constant(horizon=t, dim_z=1, delta=delta, n_maps=n_maps, **world, **spread)

    # z is within its noise of phi(x), and a prediction within the map's radius.
    off = constant(horizon) / math.sqrt(map_ridge) if kind == "linucb_phi_hat" else env.z_noise
    u_bound, ridge = math.hypot(1.0, env.slope + off), 0.1
    own: dict[str, Any] = {}
    if kind == "linucb_phi_hat":
        own = {"z_noise_scale": z_noise_scale, "beta_bound": b}
        ridge = theory.optimal_ridge(
            horizon=horizon, map_rate=0.5, map_constant=constant(horizon), u_bound=u_bound,
            w_bound=env.w_bound, beta_bound=b, **world,
        )  # fmt: skip
    phi_hat: Any = RidgeMap(1, 1, ridge=map_ridge, map_radius="determinant", delta=share.map, **spread)
    policy = (LinUCBPhiHat if kind == "linucb_phi_hat" else PoLinUCB)(
        None if kind == "linear_stochastic" else 2,
        PerArmMap(phi_hat) if kind == "action_dependent" else phi_hat,
        model="shared" if kind == "linear_stochastic" else "disjoint",
        optimism=optimism,
        ridge=ridge,
        arm_radius="determinant",
        noise_scale=env.reward_noise / math.sqrt(3.0),
        w_bound=env.w_bound,
        u_bound=u_bound,
        delta=share.arm,
        **own,
    )

    def in_units_of_the_gap(t: int) -> float:
        return gap * theory.regret_bound(
            kind, horizon=t, dim_u=2, n_arms=n_arms, map_rate=0.5, map_constant=constant(t),
            u_bound=u_bound, noise_scale=env.reward_noise / math.sqrt(3.0) / gap, delta=delta, ridge=ridge,
            w_bound=env.w_bound / gap, beta_bound=b / gap, z_noise_scale=z_noise_scale, **world,
        ).total  # fmt: skip

    regret = simulate(policy, env, horizon, seed=0).regret
    assert (regret <= [in_units_of_the_gap(t) for t in range(1, horizon + 1)]).all()
    never_learns = simulate(RandomPolicy(2), env, horizon, seed=0).regret
    assert in_units_of_the_gap(horizon) < never_learns[-1] < gap * horizon
