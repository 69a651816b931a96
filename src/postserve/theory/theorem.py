"""Both algorithms' regret with the noise of z paid once: the theorems of docs/theory/theorem.md."""

import math
from typing import Any, NamedTuple

from postserve import confidence
from postserve.theory.bounds import shares
from postserve.theory.counting import MapErrors, counted_steps, most_log_det
from postserve.theory.potential import mean_context_bound
from postserve.validation import integer, number


class TheoremBound(NamedTuple):
    """A bound and its parts: what learning phi costs, what learning the arms costs; and zeta at T."""

    map_term: float
    arm_term: float
    arm_radius: float

    @property
    def total(self) -> float:
        """The sum of both."""
        return self.map_term + self.arm_term


def polinucb_bound(
    errors: MapErrors,
    *,
    horizon: int,
    dim_u: int,
    n_arms: int,
    u_bound: float,
    noise_scale: float,
    ridge: float,
    w_bound: float,
    beta_spread: float,
    delta: float,
    z_noise_floor: float = 0.0,
    z_noise_kurtosis: float = 3.0,
) -> TheoremBound:
    """Theorem 1: Algorithm 1 with plug-in optimism and one map for all arms; gaps at most 1.

    With zeta = w sqrt(ridge) + R sqrt(dim_u log(1 + T L²/(dim_u ridge)) + 2 log(1/shares.arm)),
    V = 2 e/(e-1) (2 K dim_u log(1 + T L²/(K dim_u ridge)) + log(1/shares.noise)), and D = `beta_spread` at
    least every ||beta_a - beta_a'|| (2 b always serves), with probability 1 - delta the smaller of

    D sum_t e_t + 2 zeta/sqrt(ridge) sum_t e_t + counted_steps(2 zeta, V)
    D sum_t e_t + 2 zeta/sigma sqrt(V_z sum_t e_t²) + V_z + 2 zeta sqrt(T V),  V_z = max(2, kappa) V.

    The second needs noise of z in every direction: E[(v·eps)²] >= sigma² = `z_noise_floor`² for all unit v,
    with a kurtosis of at most kappa; it is left out if sigma is 0. The noise of z is symmetric given the
    past, and ||(x, z)|| <= `u_bound` in every round. Run with optimism="plugin", arm_radius="determinant",
    delta=shares.arm, and a map that has these errors with probability 1 - shares.map. For gaps up to g,
    divide w_bound, beta_spread and noise_scale by g, and multiply the bound by g.

    >>> known: Any = {"horizon": 10**6, "dim_u": 2, "n_arms": 50, "u_bound": 1.0, "noise_scale": 1e-4,
    ...               "ridge": 2.8e-7, "w_bound": 1.0, "beta_spread": 1.0, "delta": 0.05}
    >>> for floor in (0.0, 0.1):
    ...     found = polinucb_bound(MapErrors(10_000.0, 100.0), **known, z_noise_floor=floor)
    ...     print(round(found.map_term), round(found.arm_term))
    62168 15731
    10059 46510
    """
    share = shares(delta, n_arms=n_arms)
    known = _checked(horizon, dim_u, u_bound, ridge)
    spread = number("beta_spread", beta_spread, least=0.0)
    sigma = number("z_noise_floor", z_noise_floor, least=0.0)
    kurtosis = number("z_noise_kurtosis", z_noise_kurtosis, least=1.0)
    zeta = _radius(known, number("noise_scale", noise_scale, least=0.0), w_bound, share.arm)
    grown = most_log_det(rounds=horizon, n_models=n_arms, dim=dim_u, bound=u_bound, ridge=ridge)
    potential = min(float(horizon), float(mean_context_bound(grown, delta=share.noise)))
    reach, total = 2.0 * zeta / math.sqrt(ridge), number("errors.total", errors.total, least=0.0)
    steps = counted_steps(
        2.0 * zeta, horizon=horizon, potential=potential, longest=u_bound / math.sqrt(ridge)
    )
    found = TheoremBound((spread + reach) * total, steps, zeta)
    if sigma == 0.0:
        return found
    wide = max(2.0, kurtosis) * potential
    squares = number("errors.squares", errors.squares, least=0.0)
    steps = wide + 2.0 * zeta * math.sqrt(horizon * potential)
    explored = TheoremBound(spread * total + 2.0 * zeta / sigma * math.sqrt(wide * squares), steps, zeta)
    return min(found, explored, key=lambda bound: bound.total)


def linucb_phi_hat_bound(
    errors: MapErrors,
    *,
    horizon: int,
    dim_u: int,
    n_arms: int,
    u_bound: float,
    noise_scale: float,
    z_noise_scale: float,
    ridge: float,
    w_bound: float,
    beta_bound: float,
    beta_spread: float,
    delta: float,
) -> TheoremBound:
    """Theorem 2: Algorithm 2 with the projected radius, each arm's own errors, and plug-in optimism.

    With Z = w sqrt(ridge) + sqrt(R² + b² R_z²) sqrt(dim_u log(1 + T L²/(dim_u ridge)) + 2 log(1/shares.arm)),
    V = 2 K dim_u log(1 + T L²/(K dim_u ridge)) and v the same with K = 1, with probability 1 - delta

    D sum_t e_t + min(V + S, max(1, L/sqrt(ridge)) S),  S = 2 Z sqrt(T V) + 2 b sqrt(sum_t e_t²) sqrt(T v)

    for gaps of at most 1. `u_bound` L bounds (x, phi_hat(x)), the rows that arms regress on; `z_noise_scale`
    R_z is that of beta·eps/||beta||. Run `LinUCBPhiHat` with bias="projected" and
    delta=shares.arm: its radius has sqrt(sum e_s²) over an arm's own rounds, so that the errors cost no
    sqrt(K). `arm_radius` is Z.

    >>> found = linucb_phi_hat_bound(MapErrors(10.0, 1.0), horizon=10_000, dim_u=2, n_arms=2, u_bound=1.0,
    ...     noise_scale=0.01, z_noise_scale=0.0, ridge=1.0, w_bound=0.1, beta_bound=0.1, beta_spread=0.2,
    ...     delta=0.05)
    >>> round(found.map_term), round(found.arm_term)
    (2, 357)
    """
    share = shares(delta, n_arms=n_arms)
    known = _checked(horizon, dim_u, u_bound, ridge)
    b, spread = number("beta_bound", beta_bound, least=0.0), number("beta_spread", beta_spread, least=0.0)
    noise = math.hypot(
        number("noise_scale", noise_scale, least=0.0), b * number("z_noise_scale", z_noise_scale, least=0.0)
    )
    radius = _radius(known, noise, w_bound, share.arm)
    of_all, of_one = (
        min(
            float(horizon),
            2.0 * most_log_det(rounds=horizon, n_models=n, dim=dim_u, bound=u_bound, ridge=ridge),
        )
        for n in (n_arms, 1)
    )
    bias = b * math.sqrt(number("errors.squares", errors.squares, least=0.0))
    steps = 2.0 * radius * math.sqrt(horizon * of_all) + 2.0 * bias * math.sqrt(horizon * of_one)
    longest = u_bound / math.sqrt(ridge)
    arm_term = min(of_all + steps if longest > 1.0 else steps, max(1.0, longest) * steps)
    return TheoremBound(spread * number("errors.total", errors.total, least=0.0), arm_term, radius)


def _checked(horizon: int, dim_u: int, u_bound: float, ridge: float) -> dict[str, Any]:
    return {
        "rounds": integer("horizon", horizon, least=1),
        "dim": integer("dim_u", dim_u, least=1),
        "bound": number("u_bound", u_bound, above=0.0),
        "ridge": number("ridge", ridge, above=0.0),
    }


def _radius(known: dict[str, Any], noise: float, w_bound: float, delta: float) -> float:
    """The determinant form of zeta, if one arm is served in every round."""
    radius = confidence.arm_radius_determinant(
        ridge=known["ridge"],
        log_det_ratio=most_log_det(n_models=1, **known),
        noise_scale=noise,
        delta=delta,
        w_bound=number("w_bound", w_bound, least=0.0),
    )
    return float(radius)
