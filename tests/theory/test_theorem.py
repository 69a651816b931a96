"""The theorems on regret: values by hand, monotone, above measured regret where they say something."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.theory.test_bounds import Signs

from postserve import (
    InvalidInput,
    LinUCBPhiHat,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    simulate,
    theory,
)
from postserve.types import FloatArray, IntArray

WORLD: dict[str, Any] = {
    "horizon": 100,
    "dim_u": 2,
    "n_arms": 2,
    "u_bound": 2.0,
    "noise_scale": 0.5,
    "ridge": 4.0,
    "w_bound": 1.5,
    "beta_spread": 0.7,
    "delta": 0.3,
}
ERRORS = theory.MapErrors(5.0, 0.5)


def first(errors: theory.MapErrors = ERRORS, **changed: Any) -> theory.TheoremBound:
    return theory.polinucb_bound(errors, **{**WORLD, **changed})


def second(errors: theory.MapErrors = ERRORS, **changed: Any) -> theory.TheoremBound:
    return theory.linucb_phi_hat_bound(
        errors, **{**WORLD, "z_noise_scale": 0.8, "beta_bound": 1.2, **changed}
    )


# By hand. A delta of 0.3 is 0.1 for the map, 0.1 for the noise, and 0.05 for each of two arms.


def test_algorithm_1_by_hand() -> None:
    zeta = 1.5 * 2.0 + 0.5 * math.sqrt(2.0 * math.log(1.0 + 400.0 / 8.0) + 2.0 * math.log(20.0))
    potential = 2.0 * math.e / (math.e - 1.0) * (8.0 * math.log(1.0 + 400.0 / 16.0) + math.log(10.0))
    found = first()
    assert found.arm_radius == pytest.approx(zeta)
    assert found.map_term == pytest.approx((0.7 + 2.0 * zeta / 2.0) * 5.0)
    assert found.arm_term == pytest.approx(2.0 * zeta * math.sqrt(100.0 * potential))  # L = sqrt(ridge)
    assert found.total == found.map_term + found.arm_term


def test_algorithm_1_by_hand_where_rounds_are_counted() -> None:
    """A small radius and a small ridge: V rounds in full, the others in proportion."""
    small: Any = {"horizon": 10**6, "ridge": 1e-6, "w_bound": 1.0, "noise_scale": 0.0}
    potential = 2.0 * math.e / (math.e - 1.0) * (8.0 * math.log(1.0 + 1e12) + math.log(10.0))
    found = first(**small)
    assert found.arm_radius == pytest.approx(1e-3)
    assert found.arm_term == pytest.approx(potential + 2e-3 * math.sqrt(1e6 * potential))
    assert found.map_term == pytest.approx(2.7 * 5.0)
    many = theory.MapErrors(1e5, 50.0)
    explored = first(many, **small, z_noise_floor=0.1, z_noise_kurtosis=1.8)  # at least 2 is counted
    assert explored.arm_term == pytest.approx(2.0 * potential + 2e-3 * math.sqrt(1e6 * potential))
    assert explored.map_term == pytest.approx(0.7e5 + 2e-2 * math.sqrt(2.0 * potential * 50.0))
    assert explored.total < first(many, **small).total


def test_algorithm_2_by_hand() -> None:
    noise = math.hypot(0.5, 1.2 * 0.8) * math.sqrt(2.0 * math.log(51.0) + 2.0 * math.log(20.0))
    steps = 2.0 * (3.0 + noise) * math.sqrt(100.0 * 8.0 * math.log(26.0))
    steps += 2.0 * 1.2 * math.sqrt(0.5) * math.sqrt(100.0 * 4.0 * math.log(51.0))
    found = second()
    assert found.arm_radius == pytest.approx(3.0 + noise)
    assert found.map_term == pytest.approx(0.7 * 5.0)
    assert found.arm_term == pytest.approx(steps)
    narrow: Any = {"noise_scale": 0.0, "z_noise_scale": 0.0, "w_bound": 0.0, "ridge": 1.0, "horizon": 10**6}
    bias = 2.0 * 1.2 * 1e-3 * math.sqrt(1e6 * 4.0 * math.log1p(2e6))
    assert second(theory.MapErrors(0.0, 1e-6), **narrow).arm_term == pytest.approx(2.0 * bias)  # L = 2
    bias *= 100.0
    potential = 8.0 * math.log1p(1e6)
    assert second(theory.MapErrors(0.0, 1e-2), **narrow).arm_term == pytest.approx(potential + bias)


def test_the_errors_of_a_ridge_map_by_hand() -> None:
    widths = 3.0 / math.log(4.0) * 2.0 * math.log(1.0 + 10.0 * 3.0 / 2.0)
    found = theory.ridge_map_errors(
        2.0, horizon=10, map_rate=0.25, map_dim=2, x_bound=math.sqrt(6.0), map_ridge=2.0
    )
    assert found.total == pytest.approx(2.0 * 10.0**0.75 * widths**0.25)
    assert found.squares == pytest.approx(4.0 * math.sqrt(10.0 * widths))


def test_the_errors_of_a_ridge_map_by_hand_where_wide_rounds_are_counted() -> None:
    grown = math.log1p(1e9)  # a small ridge: in few of many rounds is w above 1
    widths, clipped = 1e3 / math.log(1001.0) * grown, grown / math.log(2.0)
    mapped: Any = {"map_dim": 1, "x_bound": 1.0, "map_ridge": 1e-3}
    found = theory.ridge_map_errors(2.0, horizon=10**6, map_rate=0.5, **mapped)
    assert found.total == pytest.approx(2.0 * (math.sqrt(clipped * widths) + math.sqrt(1e6 * clipped)))
    assert found.squares == pytest.approx(4.0 * widths)


def test_the_lower_bound_by_hand() -> None:
    """K = 4: s/2 (3/4)² sqrt(4 T)."""
    found = theory.lower_bound(horizon=100, n_arms=4, noise_scale=3.0, z_noise_scale=2.0, beta_bound=2.0)
    assert found.regret == pytest.approx(5.0 / 2.0 * 9.0 / 16.0 * 20.0)
    assert found.gap == pytest.approx(5.0 * 0.75 * 0.2)
    assert found.regret == pytest.approx(found.gap * 100.0 * 0.75 / 2.0)  # half of what Random loses


@pytest.mark.parametrize(
    ("ask", "wanted"),
    [
        (lambda: first(u_bound=0.0), "u_bound is 0, wanted a number above 0"),
        (lambda: first(theory.MapErrors(-1.0, 0.0)), r"errors\.total is -1, wanted a number at least 0"),
        (lambda: second(ridge=-1.0), "ridge is -1, wanted a number above 0"),
        (lambda: theory.counted_steps(-1.0, horizon=1, potential=1.0), "times is -1, wanted"),
        (lambda: theory.lower_bound(horizon=9, n_arms=1, noise_scale=1.0), "n_arms is 1, wanted"),
    ],
)
def test_refusals_name_the_argument(ask: Any, wanted: str) -> None:
    with pytest.raises(InvalidInput, match=wanted):
        ask()


# Monotone.

SMALL = st.floats(0.0, 10.0)
GROWING: dict[str, Any] = {
    "horizon": st.integers(1, 10**9),
    "n_arms": st.integers(1, 200),
    "dim_u": st.integers(1, 100),
    "u_bound": st.floats(0.01, 100.0),
    "noise_scale": SMALL,
    "w_bound": SMALL,
    "beta_spread": SMALL,
    "total": SMALL,
    "squares": SMALL,
}


@pytest.mark.parametrize("name", GROWING)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_bounds_grow_with(name: str, data: st.DataObject) -> None:
    low, high = sorted([data.draw(GROWING[name]), data.draw(GROWING[name])])
    rest = {"ridge": data.draw(st.floats(1e-6, 1e3)), "noise_scale": data.draw(st.floats(0.0, 1e-2))}
    floor = data.draw(st.sampled_from([0.0, 0.1]))

    def totals(value: Any) -> list[float]:
        errors, world = ERRORS, {**rest, name: value}
        if name in ("total", "squares"):
            errors = errors._replace(**{name: world.pop(name)})
        return [first(errors, **world, z_noise_floor=floor).total, second(errors, **world).total]

    for less, more in zip(totals(low), totals(high), strict=True):
        assert less <= more * (1.0 + 1e-12)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.floats(1e-6, 0.9), st.floats(1e-6, 0.9), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_bounds_fall_with_delta_and_with_the_noise_that_explores(
    one: float, other: float, quiet: float, loud: float
) -> None:
    (strict, lax), (quiet, loud) = sorted([one, other]), sorted([quiet, loud])
    assert first(delta=lax).total <= first(delta=strict).total
    assert second(delta=lax).total <= second(delta=strict).total
    noise: Any = {"ridge": 1e-6, "noise_scale": 1e-4, "horizon": 10**6}
    assert first(**noise, z_noise_floor=loud).total <= first(**noise, z_noise_floor=quiet).total


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(2, 500), st.integers(1, 10**6), st.floats(0.0, 9.0), st.floats(0.0, 9.0))
def test_the_lower_bound_grows(n_arms: int, horizon: int, noise: float, z_noise: float) -> None:
    known: Any = {"horizon": horizon, "n_arms": n_arms, "noise_scale": noise, "z_noise_scale": z_noise}
    found = theory.lower_bound(**known).regret
    for name in known:
        assert found <= theory.lower_bound(**{**known, name: known[name] + 1}).regret


# The noise of z is paid once, and the reward's noise K times: rates.


def terms(horizon: int, n_arms: int, noise_scale: float, z_noise: float = 1.0) -> tuple[float, float]:
    """Theorem 1's two terms with ridges R² d log T/w² and sigma_z² d log T/S², for a map of 2 features."""
    ridge, map_ridge = (scale**2 * 2.0 * math.log(horizon) for scale in (noise_scale, z_noise))
    mapped: Any = {"map_dim": 2, "x_bound": 1.0, "map_ridge": map_ridge}
    constant = theory.ridge_map_constant(
        horizon=horizon, dim_z=1, noise_scale=z_noise, row_bound=1.0, delta=0.1, **mapped
    )
    errors = theory.ridge_map_errors(constant, horizon=horizon, map_rate=0.5, **mapped)
    found = theory.polinucb_bound(
        errors, horizon=horizon, dim_u=3, n_arms=n_arms, u_bound=2.0, noise_scale=noise_scale, ridge=ridge,
        w_bound=1.0, beta_spread=2.0, delta=0.1,
    )  # fmt: skip
    return found.map_term, found.arm_term


def test_the_term_of_zs_noise_is_free_of_the_arms() -> None:
    (few, _), (many, _) = terms(10**9, 2, 1e-3), terms(10**9, 2000, 1e-3)
    assert many <= 1.35 * few  # log K in zeta
    (quiet, _), (loud, _) = terms(10**12, 50, 1e-3, 1e-3), terms(10**12, 50, 1e-3, 1.0)
    assert 500.0 * quiet < loud < 1000.0 * quiet  # in proportion, up to logarithms
    (_, near), (_, far) = terms(10**12, 10, 1.0), terms(10**16, 10, 1.0)
    assert math.log10(far / near) / 4.0 == pytest.approx(0.5, abs=0.06)


def test_the_other_term_vanishes_with_the_rewards_noise() -> None:
    """But for V, K dim_u logarithms: at R = 1e-7 the rest is below a hundredth of it."""
    horizon, n_arms = 10**6, 50
    ridge = 1e-14 * 2.0 * math.log(horizon)
    grown = theory.most_log_det(rounds=horizon, n_models=n_arms, dim=3, bound=2.0, ridge=ridge)
    potential = 2.0 * math.e / (math.e - 1.0) * (2.0 * grown + math.log(30.0))
    found = terms(horizon, n_arms, 1e-7)[1]
    assert potential < found < 1.01 * potential


def test_it_is_never_above_the_bound_that_does_not_count() -> None:
    """Whatever the constants, given the same radius; and far below it where rewards have little noise."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        times, longest = 10.0 ** rng.uniform(-4.0, 2.0), 10.0 ** rng.uniform(-2.0, 5.0)
        horizon, potential = int(10.0 ** rng.uniform(0.0, 8.0)), 10.0 ** rng.uniform(-2.0, 8.0)
        found = theory.counted_steps(times, horizon=horizon, potential=potential, longest=longest)
        factor = min(max(1.0, times), times * max(1.0, longest))
        assert found <= factor * math.sqrt(horizon * min(horizon, potential)) * (1.0 + 1e-12)
    known: Any = {"horizon": 10**6, "dim_u": 2, "n_arms": 50, "u_bound": 1.0, "noise_scale": 1e-4}
    known |= {"ridge": 2.8e-7, "w_bound": 1.0, "delta": 0.05}
    counted = theory.polinucb_bound(theory.MapErrors(0.0, 0.0), beta_spread=0.0, **known)
    present = theory.regret_bound("polinucb", map_rate=0.5, map_constant=0.0, **known)
    assert (round(counted.total), round(present.total)) == (15_731, 124_052)


# Policies with the theory's radii, in a world where the bound is below a third of the largest gap per round.


class Backwards(PoLinUCB):
    """Serves the arm that looks worst."""

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        return -super()._scores(x, slots)


class BackwardsPhiHat(LinUCBPhiHat):
    """The same, of Algorithm 2."""

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        return -super()._scores(x, slots)


@pytest.mark.parametrize("b", [0.3, 1.0])
@pytest.mark.parametrize("algorithm", [1, 2])
def test_a_bound_that_says_something_is_above_the_regret(algorithm: int, b: float) -> None:
    """In all of 5 seeds at every round; a policy that serves at random or backwards violates it."""
    horizon, delta, ridge, env = 5000, 0.1, 1e-3, Signs("polinucb", b)
    noise, z_noise = (scale / math.sqrt(3.0) for scale in (env.reward_noise, env.z_noise))  # uniform
    share, gap = theory.shares(delta, n_arms=2), env.largest_gap
    mapped: Any = {"map_dim": 1, "x_bound": 1.0, "map_ridge": 1.0}
    spread: Any = {"noise_scale": z_noise, "row_bound": env.slope}

    def constant(t: int) -> float:
        return theory.ridge_map_constant(horizon=t, dim_z=1, delta=delta, **mapped, **spread)

    def bound(t: int) -> float:
        errors = theory.ridge_map_errors(constant(t), horizon=t, map_rate=0.5, **mapped)
        known: Any = {"horizon": t, "dim_u": 2, "n_arms": 2, "ridge": ridge, "delta": delta}
        known |= {"noise_scale": noise / gap, "w_bound": env.w_bound / gap, "beta_spread": 2.0 * b / gap}
        if algorithm == 1:
            longest = math.hypot(1.0, env.slope + env.z_noise)
            return gap * theory.polinucb_bound(errors, u_bound=longest, **known).total
        longest = math.hypot(1.0, env.slope + constant(horizon))  # a prediction is within the map's radius
        own: Any = {"z_noise_scale": z_noise, "beta_bound": b / gap}
        return gap * theory.linucb_phi_hat_bound(errors, u_bound=longest, **known, **own).total

    def policy(kind: Any) -> Any:
        phi_hat = RidgeMap(1, 1, ridge=1.0, map_radius="determinant", delta=share.map, **spread)
        own: Any = {"z_noise_scale": z_noise, "beta_bound": b, "bias": "projected"} if algorithm == 2 else {}
        radius: Any = {"arm_radius": "determinant", "noise_scale": noise, "w_bound": env.w_bound, **own}
        return kind(2, phi_hat, ridge=ridge, delta=share.arm, **radius)

    right, wrong = (PoLinUCB, Backwards) if algorithm == 1 else (LinUCBPhiHat, BackwardsPhiHat)
    assert bound(horizon) < gap * horizon / 3.0
    bounds = np.array([bound(t) for t in range(1, horizon + 1)])
    for seed in range(5):
        regret = simulate(policy(right), env, horizon, seed).regret
        assert (regret <= bounds).all()
    for seed in range(3):
        for violating in (RandomPolicy(2), policy(wrong)):
            assert simulate(violating, env, horizon, seed).regret[-1] > bounds[-1]
