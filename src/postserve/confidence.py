"""Every radius: of an arm's ellipsoid (zeta), of Algorithm 2's, and of the map's ball (e).

Also what multiplies zeta by default where it is the posterior standard deviation (`posterior_exploration`).

`log_det_ratio` is log(det A / det Lambda) = sum log(1 + u^T A^{-1} u), which the linear core keeps. With one
`ridge` per block, the largest multiplies the weights' bound and the smallest divides the contexts', so that
the lemmas hold.
"""

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NotRequired, TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from postserve.types import FloatArray

_STANDARD_NORMAL = NormalDist()
_BELOW_GUMBEL_MEAN = math.exp(-math.exp(-0.5772156649015329))
"""The probability that a variable with Gumbel's law is below its mean."""


def arm_radius_closed_form(
    *,
    ridge: npt.ArrayLike,
    pulls: npt.ArrayLike,
    dim_u: int,
    noise_scale: float,
    u_bound: float,
    delta: float,
    w_bound: float = 2.0,
) -> FloatArray:
    """zeta_{t,a} as printed below Equation (6); Confidence Ellipsoid lemma, second form (32).

    zeta = w_bound sqrt(ridge) + R sqrt(dim_u log((1 + n_a L_u²/ridge)/delta)), with w_bound = 2.

    >>> arm_radius_closed_form(ridge=1.0, pulls=0, dim_u=2, noise_scale=1.0, u_bound=1.0, delta=np.exp(-2))
    array(4.)
    """
    spread = np.sqrt(dim_u * _log_growth(pulls, u_bound, ridge, delta))
    return np.asarray(w_bound * _largest_root(ridge) + noise_scale * spread)


def arm_radius_determinant(
    *,
    ridge: npt.ArrayLike,
    log_det_ratio: npt.ArrayLike,
    noise_scale: float,
    delta: float,
    w_bound: float = 2.0,
) -> FloatArray:
    """zeta_{t,a} of the Confidence Ellipsoid lemma, first form (31): tighter where dim_u > 1.

    zeta = w_bound sqrt(ridge) + R sqrt(2 log(det(A)^{1/2} det(ridge I)^{-1/2}/delta)).

    >>> arm_radius_determinant(ridge=1.0, log_det_ratio=0.0, noise_scale=1.0, delta=np.exp(-2))
    array(4.)
    """
    spread = np.sqrt(_twice_log(log_det_ratio, delta))
    return np.asarray(w_bound * _largest_root(ridge) + noise_scale * spread)


class PredictionErrors(TypedDict):
    """Arguments of both forms of Algorithm 2's radius; `w_bound` is 2 and `beta_bound` 1 by default."""

    map_errors: float
    noise_scale: float
    z_noise_scale: float
    w_bound: NotRequired[float]
    beta_bound: NotRequired[float]


def phi_hat_radius_determinant(
    *,
    ridge: npt.ArrayLike,
    log_det_ratio: npt.ArrayLike,
    u_bound: float,
    delta: float,
    **errors: Unpack[PredictionErrors],
) -> FloatArray:
    """Algorithm 2's own radius (appendix A): arms that regress on predictions pay for their errors.

    zeta = sqrt(2 (B² L_eps² + R²) log(det^{1/2}…/(delta/2)))
           + B L_u (sum_s e_s)/sqrt(ridge) + w_bound sqrt(ridge),  B = beta_bound >= ||beta||,

    Equation (13) with w_bound = 2 and B = 1, the defaults, as the paper assumes; `map_errors` is sum_s e_s.

    >>> phi_hat_radius_determinant(ridge=4.0, log_det_ratio=0.0, map_errors=3.0, noise_scale=0.6,
    ...                            z_noise_scale=0.8, u_bound=2.0, delta=2 * np.exp(-2))
    array(9.)
    """
    return _phi_hat_radius(_twice_log(log_det_ratio, delta / 2.0), ridge, u_bound, **errors)


def phi_hat_radius_closed_form(
    *,
    ridge: npt.ArrayLike,
    pulls: npt.ArrayLike,
    dim_u: int,
    u_bound: float,
    delta: float,
    **errors: Unpack[PredictionErrors],
) -> FloatArray:
    """The closed form of the same, with the factor dim_u that the printed one drops.

    zeta = sqrt((B² L_eps² + R²) dim_u log((1 + n_a L_u²/ridge)/(delta/2)))
           + B L_u (sum_s e_s)/sqrt(ridge) + w_bound sqrt(ridge).

    >>> phi_hat_radius_closed_form(ridge=4.0, pulls=0, dim_u=2, map_errors=3.0, noise_scale=0.6,
    ...                            z_noise_scale=0.8, u_bound=2.0, delta=2 * np.exp(-2))
    array(9.)
    """
    growth = dim_u * _log_growth(pulls, u_bound, ridge, delta / 2.0)
    return _phi_hat_radius(growth, ridge, u_bound, **errors)


def phi_hat_radius_projected(
    *,
    ridge: npt.ArrayLike,
    log_det_ratio: npt.ArrayLike,
    error_squares: npt.ArrayLike,
    noise_scale: float,
    z_noise_scale: float,
    delta: float,
    w_bound: float = 2.0,
    beta_bound: float = 1.0,
) -> FloatArray:
    """Algorithm 2's radius with the bias of predictions as a projection, from each arm's own errors.

    zeta = w_bound sqrt(ridge) + sqrt(R² + B² R_z²) sqrt(2 log(det^{1/2}…/delta)) + B sqrt(sum_s e_s²),

    B = beta_bound >= ||beta||, and `error_squares` the sum of e_s² over the rounds in which the arm was
    served: theorem 2 of docs/theory/theorem.md, in place of Equation (13), which has B L_u (sum_s e_s of all
    rounds)/sqrt(ridge).

    >>> phi_hat_radius_projected(ridge=1.0, log_det_ratio=0.0, error_squares=9.0, noise_scale=0.6,
    ...                          z_noise_scale=0.8, delta=np.exp(-2))
    array(7.)
    """
    noise = np.hypot(noise_scale, beta_bound * z_noise_scale) * np.sqrt(_twice_log(log_det_ratio, delta))
    bias = beta_bound * np.sqrt(np.asarray(error_squares, dtype=np.float64))
    return np.asarray(w_bound * _largest_root(ridge) + noise + bias)


def map_radius_assumption(
    *, width: npt.ArrayLike, pairs: float, noise_scale: npt.ArrayLike, delta: float, map_rate: float = 0.5
) -> FloatArray:
    """e_t^delta of Assumption 1: C0 (||x||²_{X^{-1}})^map_rate log(t/delta), C0 in units of z's noise.

    >>> map_radius_assumption(width=0.25, pairs=1, noise_scale=2.0, delta=np.exp(-1), map_rate=0.5)
    array(0.5)
    """
    c0 = np.linalg.norm(np.atleast_1d(noise_scale))
    rate = np.asarray(width, dtype=np.float64) ** (2.0 * map_rate)
    return np.asarray(c0 * rate * np.log(max(pairs, 1.0) / delta))


def map_radius_distance(
    *, distance: npt.ArrayLike, spread: npt.ArrayLike, smoothness: float = 1.0
) -> FloatArray:
    """How much phi may change over a distance from what was seen, for phi of a Hölder class.

    e = ||spread|| distance^smoothness: `spread` has the standard deviation of each z_j, and distances are in
    units of the spread of x, so that phi may change by its own spread over that of x.

    >>> map_radius_distance(distance=[0.0, 4.0], spread=[3.0, 4.0], smoothness=0.5)
    array([ 0., 10.])
    """
    return np.asarray(np.asarray(distance) ** smoothness * np.linalg.norm(np.atleast_1d(spread)))


def map_radius_determinant(
    *,
    width: npt.ArrayLike,
    log_det_ratio: float,
    ridge: npt.ArrayLike,
    noise_scale: npt.ArrayLike,
    row_bound: npt.ArrayLike,
    delta: float,
    dim_z: int,
) -> FloatArray:
    """e of a ridge map by the self-normalised bound, a union over the dim_z outputs.

    e = ||f||_{F^{-1}} sqrt(sum_j (sqrt(ridge) S_j + R_j sqrt(2 log(det^{1/2}… dim_z/delta)))²).

    >>> map_radius_determinant(width=0.5, log_det_ratio=0.0, ridge=1.0, noise_scale=1.0, row_bound=2.0,
    ...                        delta=np.exp(-2), dim_z=1)
    array(2.)
    """
    noise = np.broadcast_to(np.asarray(noise_scale, dtype=np.float64), (dim_z,))
    bound = np.broadcast_to(np.asarray(row_bound, dtype=np.float64), (dim_z,))
    each = _largest_root(ridge) * bound + noise * np.sqrt(_twice_log(log_det_ratio, delta / dim_z))
    return np.asarray(np.asarray(width) * np.linalg.norm(each))


def map_radius_posterior(*, width: npt.ArrayLike, noise_scale: npt.ArrayLike) -> FloatArray:
    """e as the posterior standard deviation: sqrt(sum_j sigma_j²) ||f||_{F^{-1}}.

    >>> map_radius_posterior(width=0.5, noise_scale=[3.0, 4.0])
    array(2.5)
    """
    noise = np.asarray(noise_scale)
    return np.asarray(np.asarray(width) * math.sqrt(np.vdot(noise, noise)))


def posterior_exploration(candidates: int, n_weights: int, rounds: float) -> float:
    """How many posterior standard deviations are optimism; `exploration="auto"`.

    beta_t = sqrt(max(1, m_k)² + log(1 + t/n_weights)), where k is the number of independent `candidates`, m_k
    the expected maximum of so many standard normals, `n_weights` the number of weights learnt, those of all
    candidates together, and t the `rounds` learnt. The best of k arms is about m_k prior standard deviations
    above their mean: with a smaller multiplier, an arm that is merely good is served from then on, and the
    best one may never be tried. The second term grows, so that no arm is given up for good.

    >>> posterior_exploration(candidates=1, n_weights=3, rounds=0)
    1.0
    >>> round(posterior_exploration(candidates=50, n_weights=50, rounds=3000), 2)
    3.02
    """
    m = expected_maximum(candidates)
    return math.sqrt((m * m if m > 1.0 else 1.0) + math.log1p(rounds / n_weights))


@lru_cache(maxsize=4096)
def expected_maximum(n: int) -> float:
    """The expected maximum of n independent standard normals, with an error below 0.5%.

    The maximum is below its expectation with a probability that hardly depends on n: it rises from 1/2 at
    n = 1 to exp(-exp(-gamma)) = 0.570, that of Gumbel's law, and is fitted in log n.

    >>> [round(expected_maximum(n), 2) for n in (1, 10, 1_000_000)]
    [0.0, 1.54, 4.86]
    """
    log_n = math.log(n)
    p = 0.5 + (_BELOW_GUMBEL_MEAN - 0.5) * log_n / (log_n + 4.0)
    return 0.0 - _STANDARD_NORMAL.inv_cdf(-math.expm1(math.log(p) / n))


def _twice_log(log_det_ratio: npt.ArrayLike, delta: float) -> FloatArray:
    """2 log(det(A)^{1/2} det(Lambda)^{-1/2}/delta)."""
    return np.asarray(np.asarray(log_det_ratio, dtype=np.float64) - 2.0 * np.log(delta))


def _log_growth(pulls: npt.ArrayLike, u_bound: float, ridge: npt.ArrayLike, delta: float) -> FloatArray:
    """log((1 + n_a L_u²/ridge)/delta)."""
    rounds = np.asarray(pulls, dtype=np.float64)
    return np.asarray(np.log1p(rounds * u_bound**2 / np.asarray(ridge).min()) - np.log(delta))


def _phi_hat_radius(
    growth: FloatArray,
    ridge: npt.ArrayLike,
    u_bound: float,
    *,
    map_errors: float,
    noise_scale: float,
    z_noise_scale: float,
    w_bound: float = 2.0,
    beta_bound: float = 1.0,
) -> FloatArray:
    """Either form; `growth` is the factor of the squared noise under the root."""
    noise = np.hypot(noise_scale, beta_bound * z_noise_scale) * np.sqrt(growth)
    bias = u_bound * (beta_bound * map_errors) / math.sqrt(np.asarray(ridge).min())
    return np.asarray(noise + (bias + w_bound * _largest_root(ridge)))


def _largest_root(ridge: npt.ArrayLike) -> float:
    return math.sqrt(np.asarray(ridge).max())
