"""The Bayesian regret of what runs by default, where the prior is known: docs/theory/default.md."""

import math
from statistics import NormalDist
from typing import Literal, NamedTuple

from postserve import confidence
from postserve.theory.counting import most_log_det
from postserve.validation import integer, number, one_of, one_of_or_number

_STANDARD_NORMAL = NormalDist()
BLOCK = 0.01
"""Exploration is evaluated once for rounds t to (1 + BLOCK) t, at the first: the bound exceeds by no more."""


class BayesBound(NamedTuple):
    """A bound on the Bayesian regret, and its parts.

    `missed`: what optimism misses where an arm is better than its upper limit; `width_term`: the widths of
    the arms that were served; `map_term`: what learning phi costs.
    """

    missed: float
    width_term: float
    map_term: float

    @property
    def total(self) -> float:
        """The sum of all three."""
        return self.missed + self.width_term + self.map_term


def bayes_regret_bound(
    *,
    horizon: int,
    n_arms: int,
    dim_u: int,
    dim_z: int,
    prior_scale: float,
    noise_scale: float,
    u_bound: float,
    map_error_sum: float = 0.0,
    exploration: float | Literal["auto"] = "auto",
    optimism: Literal["plugin", "posterior"] = "plugin",
) -> BayesBound:
    """Theorem 4: weights drawn from the prior that the policy has, exploration as it is in force.

    w_a ~ N(0, tau² I) and reward noise N(0, sigma²), tau = `prior_scale` and sigma = `noise_scale`: run with
    ridge=sigma²/tau², noise_scale=sigma, arm_radius="posterior". beta_t is the exploration after t rounds,
    psi(beta) = E[(N - beta)^+] of a standard normal N, L = `u_bound` at least ||(x, phi_hat_t(x))|| and the
    root mean square of ||(x, z)||, y_max = L tau/sigma, V = 4 K dim_u log(1 + T y_max²/(K dim_u)):

    missed      K tau L sum_{t<T} psi(beta_t)
    width_term  beta_T sigma min(max(1, y_max) sqrt(T V), y_max V [y_max > 1] + sqrt(T V))
    map_term    2 B E, or with "posterior" ((2 + c) B + beta_T tau) E, c = 1 with "auto", else beta, where
                B² = tau² (dim_z + 2 sqrt(dim_z log K) + 2 log K) >= E max_a ||beta_a||²

    and E = `map_error_sum` is at least the sum over rounds of the root mean square of
    ||phi_hat_t(x_t) - phi(x_t)||, phi_hat_t being the posterior mean of phi: 0 for a known phi. One map for
    all arms. With "auto", `missed` is at most tau L (1 + 2 sqrt(K dim_u T)).

    >>> found = bayes_regret_bound(horizon=10_000, n_arms=2, dim_u=2, dim_z=1, prior_scale=1.0,
    ...                            noise_scale=0.01, u_bound=1.0)
    >>> round(found.missed), round(found.width_term), found.map_term
    (21, 859, 0.0)
    """
    horizon, n_arms = integer("horizon", horizon, least=1), integer("n_arms", n_arms, least=1)
    dim_u, dim_z = integer("dim_u", dim_u, least=1), integer("dim_z", dim_z, least=1)
    tau, sigma = number("prior_scale", prior_scale, above=0.0), number("noise_scale", noise_scale, above=0.0)
    u_bound, errors = number("u_bound", u_bound, above=0.0), number("map_error_sum", map_error_sum, least=0.0)
    exploration = one_of_or_number("exploration", exploration, ("auto",), least=0.0)
    one_of("optimism", optimism, ("plugin", "posterior"))

    def beta(rounds: int) -> float:
        if exploration == "auto":
            return confidence.posterior_exploration(n_arms, n_arms * dim_u, rounds)
        return float(exploration)

    last, widest = beta(horizon), u_bound * tau / sigma
    grown = most_log_det(rounds=horizon, n_models=n_arms, dim=dim_u, bound=widest, ridge=1.0)
    potential = min(float(horizon), 4.0 * grown)
    steps = math.sqrt(horizon * potential)
    counted = widest * potential + steps if widest > 1.0 else steps
    longest = tau * math.sqrt(dim_z + 2.0 * math.sqrt(dim_z * math.log(n_arms)) + 2.0 * math.log(n_arms))
    per_error = 2.0 * longest
    if optimism == "posterior":  # which multiplies what is not known of phi by 1 with "auto"
        per_error += (1.0 if exploration == "auto" else last) * longest + last * tau
    missed, first = 0.0, 0
    while first < horizon:
        end = min(horizon, max(first + 1, math.floor(first * (1.0 + BLOCK))))
        missed += (end - first) * expected_excess(beta(first))  # beta grows, so the first is the largest
        first = end
    return BayesBound(
        missed=n_arms * tau * u_bound * missed,
        width_term=last * sigma * min(max(1.0, widest) * steps, counted),
        map_term=per_error * errors,
    )


def expected_excess(beta: float) -> float:
    """psi(beta) = E[(N - beta)^+] of a standard normal N: what a limit of beta deviations misses on average.

    >>> round(expected_excess(0.0), 4), round(expected_excess(3.0), 6)
    (0.3989, 0.000382)
    """
    return _STANDARD_NORMAL.pdf(beta) - beta * _STANDARD_NORMAL.cdf(-beta)
