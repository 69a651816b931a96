"""The Bayesian bound of what runs by default: by hand, monotone, above regret under the prior it knows."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.theory.test_theorem import Backwards

from postserve import InvalidInput, KnownMap, PoLinUCB, RandomPolicy, RidgeMap, confidence, simulate, theory
from postserve.types import FloatArray, Rounds

WORLD: dict[str, Any] = {
    "horizon": 3,
    "n_arms": 2,
    "dim_u": 2,
    "dim_z": 1,
    "prior_scale": 2.0,
    "noise_scale": 4.0,
    "u_bound": 1.5,
}


def bound(**changed: Any) -> theory.BayesBound:
    return theory.bayes_regret_bound(**{**WORLD, **changed})


def test_by_hand() -> None:
    """y_max = 1.5·2/4 = 3/4, so that no width is above 1; V is above T = 3, which it is cut to."""
    excess = [theory.expected_excess(math.sqrt(1.0 + math.log(1.0 + t / 4.0))) for t in range(3)]
    last = math.sqrt(1.0 + math.log(1.75))
    found = bound(map_error_sum=0.5)
    assert found.missed == pytest.approx(2.0 * 2.0 * 1.5 * sum(excess))
    potential = 16.0 * math.log(1.0 + 3.0 * 0.75**2 / 4.0)
    assert potential > 3.0
    assert found.width_term == pytest.approx(last * 4.0 * 3.0)
    longest = 2.0 * math.sqrt(1.0 + 2.0 * math.sqrt(math.log(2.0)) + 2.0 * math.log(2.0))
    assert found.map_term == pytest.approx(2.0 * longest * 0.5)
    wider = bound(map_error_sum=0.5, optimism="posterior")
    assert wider.map_term == pytest.approx((3.0 * longest + last * 2.0) * 0.5)
    fixed = bound(map_error_sum=0.5, optimism="posterior", exploration=3.0)
    assert fixed.map_term == pytest.approx((5.0 * longest + 3.0 * 2.0) * 0.5)
    assert found.total == found.missed + found.width_term + found.map_term


def test_by_hand_where_wide_rounds_are_counted() -> None:
    """y_max = 1,000: V rounds at most with all of the prior's deviation, the others in proportion."""
    quiet = bound(horizon=10**6, prior_scale=1.0, noise_scale=1e-3, u_bound=1.0, exploration=2.0)
    potential = 16.0 * math.log(1.0 + 10**12 / 4.0)
    assert quiet.width_term == pytest.approx(2.0 * (potential + 1e-3 * math.sqrt(10**6 * potential)))
    assert quiet.missed == pytest.approx(2.0 * 10**6 * theory.expected_excess(2.0))


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.integers(1, 3000), st.integers(1, 50), st.integers(1, 20))
def test_blocks_of_rounds_cost_less_than_a_hundredth(horizon: int, n_arms: int, dim: int) -> None:
    each = [
        theory.expected_excess(confidence.posterior_exploration(n_arms, n_arms * dim, t))
        for t in range(horizon)
    ]
    found = bound(horizon=horizon, n_arms=n_arms, dim_u=dim).missed / (n_arms * 2.0 * 1.5)
    assert sum(each) <= found * (1.0 + 1e-12)
    assert found <= 1.01 * sum(each)


def test_the_exploration_in_force_misses_a_root_of_the_rounds() -> None:
    """K psi(beta_t) <= K pdf(M)/M² (1 + t/(K d))^{-1/2} with M = max(1, m_K), and K pdf(M)/M² < 0.9."""
    for n_arms in np.unique(np.geomspace(1, 10**6, 400).astype(int)):
        least = max(1.0, confidence.expected_maximum(int(n_arms)))
        assert n_arms * math.exp(-least * least / 2.0) / math.sqrt(2.0 * math.pi) / least**2 < 0.9
    for n_arms, horizon in ((2, 10**3), (10, 10**5), (200, 10**6)):
        found = bound(n_arms=n_arms, horizon=horizon).missed
        assert found <= 3.0 * (1.0 + 2.0 * math.sqrt(n_arms * 2.0 * horizon))
    # A constant misses in proportion to the rounds.
    one, ten = (bound(horizon=horizon, exploration=1.0).missed for horizon in (10**5, 10**6))
    assert ten == pytest.approx(10.0 * one)
    one, hundred = (bound(horizon=horizon).missed for horizon in (10**5, 10**7))
    assert hundred < 10.0 * one


GROWING: dict[str, Any] = {
    "horizon": st.integers(1, 10**6),
    "prior_scale": st.floats(0.01, 10.0),
    "u_bound": st.floats(0.01, 10.0),
    "map_error_sum": st.floats(0.0, 10.0),
    "dim_z": st.integers(1, 50),
}


@pytest.mark.parametrize("name", GROWING)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(data=st.data())
def test_bounds_grow_with(name: str, data: st.DataObject) -> None:
    low, high = sorted([data.draw(GROWING[name]), data.draw(GROWING[name])])
    rest: Any = {"noise_scale": data.draw(st.floats(1e-3, 10.0)), "map_error_sum": 1.0}
    for optimism in ("plugin", "posterior"):
        less, more = (bound(**{**rest, name: value}, optimism=optimism) for value in (low, high))
        assert less.total <= more.total * (1.0 + 1e-12)


def test_refusals_name_the_argument() -> None:
    with pytest.raises(InvalidInput, match="prior_scale is 0, wanted a number above 0"):
        bound(prior_scale=0.0)
    with pytest.raises(InvalidInput, match="optimism is 'joint', wanted"):
        bound(optimism="joint")


# Worlds drawn from the prior that the policy has.


class Drawn:
    """w_a ~ N(0, I), x = ±0.9, z = slope x + N(0, 0.1²), rewards with noise N(0, sigma²)."""

    dim_x = dim_z = 1
    z_noise = 0.1

    def __init__(self, n_arms: int, seed: int, sigma: float, slope_scale: float) -> None:
        rng = np.random.default_rng([seed, 19])
        self.n_arms, self.sigma = n_arms, sigma
        self.weights, self.slope = rng.standard_normal((n_arms, 2)), slope_scale * rng.standard_normal()

    def phi(self, x: Any) -> FloatArray:
        return np.asarray(self.slope * np.asarray(x))

    def means(self, x: Any) -> FloatArray:
        return np.asarray(self.weights @ np.concatenate([x, self.phi(x)]))

    def rounds(self, n: int, rng: np.random.Generator) -> Rounds:
        x = rng.choice([-0.9, 0.9], size=(n, 1))
        z = self.slope * x + self.z_noise * rng.standard_normal((n, 1))
        noise = self.sigma * rng.standard_normal((n, 1))
        means = x * self.weights[:, 0] + self.slope * x * self.weights[:, 1]
        return Rounds(x, z, x * self.weights[:, 0] + z * self.weights[:, 1] + noise, means)


@pytest.mark.parametrize("known_phi", [True, False])
@pytest.mark.parametrize("optimism", ["plugin", "posterior"])
def test_the_default_is_below_its_bound_under_its_prior(optimism: Any, known_phi: bool) -> None:
    """Means over 12 draws; the bound is below a third of the largest gaps, and Random's is not below it.

    An unknown phi has the slope's own prior, N(0, 0.3²), and u_bound = 1.5 allows slopes up to 1.3.
    """
    n_arms, horizon, sigma, seeds = 3, 4000, 0.1, 12
    errors = 0.0
    if not known_phi:  # the posterior deviation of slope·x after t rounds
        ridge = (Drawn.z_noise / 0.3) ** 2
        errors = float((Drawn.z_noise * 0.9 / np.sqrt(ridge + 0.81 * np.arange(horizon))).sum())
    found = theory.bayes_regret_bound(
        horizon=horizon, n_arms=n_arms, dim_u=2, dim_z=1, prior_scale=1.0, noise_scale=sigma, u_bound=1.5,
        map_error_sum=errors, optimism=optimism,
    )  # fmt: skip
    regrets: dict[str, list[float]] = {"ours": [], "random": [], "backwards": [], "largest": []}
    for seed in range(seeds):
        env = Drawn(n_arms, seed, sigma, slope_scale=0.3)
        assert abs(env.slope) < 1.0

        def made(kind: Any, env: Drawn = env) -> Any:
            phi_hat: Any = KnownMap(1, 1, env.phi)
            if not known_phi:
                phi_hat = RidgeMap(1, 1, ridge=ridge, noise_scale=Drawn.z_noise)
            options: Any = {"ridge": sigma**2, "noise_scale": sigma, "arm_radius": "posterior"}
            return kind(n_arms, phi_hat, optimism=optimism, **options)

        policies = {"ours": made(PoLinUCB), "random": RandomPolicy(n_arms), "backwards": made(Backwards)}
        for name, policy in policies.items():
            regrets[name].append(float(simulate(policy, env, horizon, seed).regret[-1]))
        regrets["largest"].append(horizon * float(np.ptp(env.means(np.array([0.9])))))
    means = {name: float(np.mean(values)) for name, values in regrets.items()}
    assert means["ours"] <= found.total <= means["largest"] / 3.0
    assert found.total < min(means["random"], means["backwards"])
