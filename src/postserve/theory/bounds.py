"""The regret bounds with every constant, and the ridge of Algorithm 2.

docs/theory/regret.md derives them line by line. All are for gaps of at most 1 and hold with probability
1 - delta, which `shares` divides up.
"""

import math
from typing import NamedTuple

import numpy.typing as npt

from postserve import confidence
from postserve.errors import InvalidInput
from postserve.theory.potential import mean_context_bound
from postserve.theory.rates import KINDS, Kind
from postserve.validation import integer, number, one_of, scales

LEAST_DELTA = 1e-100
"""Shares of smaller ones would underflow."""


class Shares(NamedTuple):
    """The probabilities with which each arm's ellipsoid, each map and the noise may fail."""

    arm: float
    map: float
    noise: float


class RegretBound(NamedTuple):
    """A bound and its parts: what learning phi costs, and what learning the arms costs.

    `arm_radius` is zeta at the horizon, `optimistic_beta` the longest beta of an optimistic choice with it.
    """

    map_term: float
    arm_term: float
    arm_radius: float
    optimistic_beta: float

    @property
    def total(self) -> float:
        """The sum of both."""
        return self.map_term + self.arm_term


def shares(delta: float, *, n_arms: int, n_maps: int = 1) -> Shares:
    """A third for the ellipsoids of all arms, one for all maps, one for the noise of z.

    Run a policy with `delta` = shares.arm and each of its maps with shares.map, and its bound holds at delta;
    `n_maps` is n_arms with a `PerArmMap`. This is for a ridge map with map_radius="determinant", which holds
    for all rounds at once; map_radius="assumption" holds for one round, and needs delta = shares.map/T. If
    ||(x, z)|| <= u_bound is only likely, as with Gaussian z, add the probability of its failure to delta.

    >>> shares(0.06, n_arms=4)
    Shares(arm=0.005, map=0.02, noise=0.02)
    >>> shares(0.06, n_arms=4, n_maps=4).map
    0.005
    """
    third = number("delta", delta, least=LEAST_DELTA, below=1.0) / 3.0
    n_arms, n_maps = integer("n_arms", n_arms, least=1), integer("n_maps", n_maps, least=1)
    return Shares(third / n_arms, third / n_maps, third)


def assumption_constant(*, c0: float, horizon: int, delta: float, n_maps: int = 1) -> float:
    """The map's constant under Assumption 1, at every round up to the horizon: C0 log(T²/shares.map).

    ||phi_hat(x_t) - phi(x_t)|| <= constant (||x_t||²_{X^{-1}})^map_rate for all t <= T and all maps at once:
    each may fail with shares.map/T in each round. The paper divides it as delta/t, which sums to delta log T,
    and once as t/delta, which is no probability. The assumption is for one x at a time: if x is chosen by
    phi_hat, as from a decision set, it must hold for all x at once.

    >>> round(assumption_constant(c0=2.0, horizon=10, delta=0.3), 4), round(2.0 * math.log(1000.0), 4)
    (13.8155, 13.8155)
    """
    c0, horizon = number("c0", c0, least=0.0), integer("horizon", horizon, least=1)
    return c0 * (2.0 * math.log(horizon) - math.log(shares(delta, n_arms=1, n_maps=n_maps).map))


def ridge_map_constant(
    *,
    horizon: int,
    map_dim: int,
    dim_z: int,
    x_bound: float,
    map_ridge: float = 1.0,
    noise_scale: npt.ArrayLike = 1.0,
    row_bound: npt.ArrayLike = 1.0,
    delta: float,
    n_maps: int = 1,
) -> float:
    """The same for a ridge regression of z on x, at map_rate 1/2: the paper's Observation 2, explicitly.

    sqrt(sum_j (sqrt(ridge) S_j + R_j sqrt(d log(1 + T L²/(ridge d)) + 2 log(dim_z/shares.map)))²), with
    d = `map_dim` features of length at most L = `x_bound`: the largest multiple of ||x||_{X^{-1}} that
    `RidgeMap(map_radius="determinant")` can have as its radius. It holds for all x at once.

    >>> ridge_map_constant(horizon=1, map_dim=1, dim_z=1, x_bound=0.0, noise_scale=1.0, row_bound=2.0,
    ...                    delta=3.0 * math.exp(-2.0))
    4.0
    """
    horizon, map_dim = integer("horizon", horizon, least=1), integer("map_dim", map_dim, least=1)
    dim_z = integer("dim_z", dim_z, least=1)
    x_bound, map_ridge = number("x_bound", x_bound, least=0.0), number("map_ridge", map_ridge, above=0.0)
    radius = confidence.map_radius_determinant(
        width=1.0,
        log_det_ratio=_log_det(horizon, 1, map_dim, x_bound, map_ridge),
        ridge=map_ridge,
        noise_scale=scales("noise_scale", noise_scale, dim_z),
        row_bound=scales("row_bound", row_bound, dim_z),
        delta=shares(delta, n_arms=1, n_maps=n_maps).map,
        dim_z=dim_z,
    )
    return float(radius)


def regret_bound(
    kind: Kind,
    *,
    horizon: int,
    dim_u: int,
    n_arms: int = 1,
    map_rate: float,
    map_constant: float,
    u_bound: float,
    noise_scale: float,
    delta: float,
    ridge: float = 1.0,
    w_bound: float = 2.0,
    beta_bound: float = 1.0,
    z_noise_scale: float = 1.0,
    noise_factor: float = 2.0,
    map_dim: int | None = None,
    x_bound: float | None = None,
    map_ridge: float = 1.0,
) -> RegretBound:
    """The theorem's and the three propositions' bounds, with constants that hold; gaps at most 1.

    With e_t <= c (||x_t||²_{X^{-1}})^alpha, c = `map_constant` and alpha = `map_rate`; zeta the radius at T;
    b = `beta_bound` >= ||beta_a||; P_X, P_A = 2 log(det/det) of the maps' and of the arms' matrices:

    map_term  F(2 c (b + 2 zeta/sqrt(ridge)), (L_x²/map_ridge)^alpha) T^{1-alpha} min(T, P_X)^alpha
    arm_term  F(2 zeta, L_u/sqrt(ridge)) sqrt(T min(T, V)),
              V = `noise_factor` e/(e-1) (P_A + log(1/shares.noise))
    F(k, m) = min(max(1, k), k max(1, m)), for min(1, k y) <= F(k, m) min(1, y) wherever y <= m

    "polinucb" (Algorithm 1): one map, K arms. "action_dependent": K maps, and P_X gives the term K^alpha
    (pass the map_constant for n_maps = n_arms). "linear_stochastic": one map and one model; n_arms is 1 for
    any decision set. "linucb_phi_hat" (Algorithm 2, with predictions from before z came): V = P_A, zeta is
    its own, with sum_t e_t in it, and b + zeta/sqrt(ridge) replaces b + 2 zeta/sqrt(ridge).

    `u_bound` bounds what the arms regress on, and `x_bound` (by default u_bound) the map's `map_dim` features
    (by default dim_u, which is at least dim_x). Both must hold in EVERY round: for Gaussian z take a u_bound
    >= ||(x, phi(x))|| that is likely for all T of them, and add the probability of its failure to delta.
    `noise_factor` is 2 for noise of z that is symmetric given the past; otherwise pass
    `bounded_noise_factor`. `noise_scale` is the reward's, `z_noise_scale` that of beta·eps/||beta||, for
    Algorithm 2 only. For gaps up to g, divide w_bound, beta_bound and noise_scale by g, and multiply the
    bound by g.

    The paper's constants differ; docs/theory/regret.md lists where and why.

    >>> found = regret_bound("polinucb", horizon=10_000, dim_u=3, n_arms=2, map_rate=0.5, map_constant=0.1,
    ...                      u_bound=1.0, noise_scale=0.1, delta=0.05)
    >>> round(found.map_term), round(found.arm_term), round(found.total)
    (878, 9091, 9969)
    >>> regret_bound("polinucb", horizon=10_000, dim_u=3, n_arms=2, map_rate=0.5, map_constant=0.0,
    ...              u_bound=1.0, noise_scale=0.1, delta=0.05).map_term    # a known phi costs nothing
    0.0
    """
    one_of("kind", kind, KINDS)
    horizon, n_arms = integer("horizon", horizon, least=1), integer("n_arms", n_arms, least=1)
    if kind == "linear_stochastic" and n_arms != 1:
        raise InvalidInput(f"n_arms is {n_arms}, wanted 1: a decision set has one model, whatever its size")
    dim_u = integer("dim_u", dim_u, least=2)
    ridge, u_bound = number("ridge", ridge, above=0.0), number("u_bound", u_bound, above=0.0)
    w_bound, beta_bound = number("w_bound", w_bound, least=0.0), number("beta_bound", beta_bound, least=0.0)
    noise_scale = number("noise_scale", noise_scale, least=0.0)
    z_noise_scale = number("z_noise_scale", z_noise_scale, least=0.0)
    share = shares(delta, n_arms=n_arms)
    n_maps = n_arms if kind == "action_dependent" else 1
    map_dim, x_bound = dim_u if map_dim is None else map_dim, u_bound if x_bound is None else x_bound
    clipped, unclipped, longest = _map_steps(horizon, n_maps, map_rate, map_dim, x_bound, map_ridge)
    map_constant = number("map_constant", map_constant, least=0.0)
    log_det = _log_det(horizon, n_arms, dim_u, u_bound, ridge)
    common = {"ridge": ridge, "u_bound": u_bound, "w_bound": w_bound, "noise_scale": noise_scale}
    common["delta"] = share.arm
    if kind == "linucb_phi_hat":
        errors = {"map_errors": map_constant * unclipped, "z_noise_scale": z_noise_scale}
        radius = confidence.phi_hat_radius_closed_form(
            pulls=horizon, dim_u=dim_u, beta_bound=beta_bound, **common, **errors
        )
        potential = 2.0 * log_det
    else:
        radius = confidence.arm_radius_closed_form(pulls=horizon, dim_u=dim_u, **common)
        potential = float(mean_context_bound(log_det, delta=share.noise, noise_factor=noise_factor))
    zeta = float(radius)
    optimistic_beta = beta_bound + 2.0 * zeta / math.sqrt(ridge)
    # phi~ is within 2e of phi*; Algorithm 2's A is of phi_hat, and both phi~ and phi* are within e of it.
    per_error = optimistic_beta + (beta_bound if kind == "linucb_phi_hat" else optimistic_beta)
    arm_steps = math.sqrt(horizon * min(float(horizon), potential))
    return RegretBound(
        map_term=_clipping(per_error * map_constant, longest) * clipped,
        arm_term=_clipping(2.0 * zeta, u_bound / math.sqrt(ridge)) * arm_steps,
        arm_radius=zeta,
        optimistic_beta=optimistic_beta,
    )


def optimal_ridge(
    *,
    horizon: int,
    map_rate: float,
    map_constant: float,
    map_dim: int,
    u_bound: float,
    x_bound: float | None = None,
    map_ridge: float = 1.0,
    w_bound: float = 2.0,
    beta_bound: float = 1.0,
) -> float:
    """Algorithm 2's ridge, of the order T^{1-alpha}: b L_u (sum_t e_t)/w_bound.

    It minimises w_bound sqrt(ridge) + b L_u (sum_t e_t)/sqrt(ridge), the part of Algorithm 2's radius that
    grows like a power of T; the radius exceeds its minimum by at most the noise's part. It does not minimise
    the whole bound, which also has an optimistic beta and a potential, and can be several times its minimum
    while T is small. sum_t e_t is at most c max(1, L_x²/map_ridge)^alpha T^{1-alpha} P_X^alpha (the paper
    drops C0 and the maximum); e_t is not clipped at 1 in the radius.

    >>> ridge = optimal_ridge(horizon=1, map_rate=0.5, map_constant=3.0, map_dim=1, u_bound=1.0, x_bound=0.5)
    >>> round(ridge, 6), round(3.0 / 2.0 * math.sqrt(2.0 * math.log(1.25)), 6)
    (1.002071, 1.002071)
    """
    horizon, x_bound = integer("horizon", horizon, least=1), u_bound if x_bound is None else x_bound
    _, unclipped, _ = _map_steps(horizon, 1, map_rate, map_dim, x_bound, map_ridge)
    error_sum = number("map_constant", map_constant, above=0.0) * unclipped
    reach = number("beta_bound", beta_bound, above=0.0) * number("u_bound", u_bound, above=0.0)
    return reach * error_sum / number("w_bound", w_bound, above=0.0)


def _clipping(times: float, longest: float) -> float:
    """The factor f with min(1, times y) <= f min(1, y) for all y up to `longest`."""
    return min(max(1.0, times), times * max(1.0, longest))


def _map_steps(
    horizon: int, n_maps: int, map_rate: float, map_dim: int, x_bound: float, map_ridge: float
) -> tuple[float, float, float]:
    """Bounds on sum_t w_t^alpha, w_t = ||x_t||²_{X_{t-1}^{-1}}, clipped at 1 and not, and on one term."""
    alpha = number("map_rate", map_rate, above=0.0, most=0.5)
    x_bound, map_ridge = number("x_bound", x_bound, least=0.0), number("map_ridge", map_ridge, above=0.0)
    potential = 2.0 * _log_det(horizon, n_maps, integer("map_dim", map_dim, least=1), x_bound, map_ridge)
    clipped = horizon ** (1.0 - alpha) * min(float(horizon), potential) ** alpha
    longest = (x_bound**2 / map_ridge) ** alpha
    return clipped, clipped * max(1.0, longest), longest


def _log_det(rounds: int, n_models: int, dim: int, bound: float, ridge: float) -> float:
    """The most that the sum over models of log(det A/det ridge I) can be: with equal numbers of rounds."""
    return n_models * dim * math.log1p(rounds * bound**2 / (n_models * ridge * dim))
