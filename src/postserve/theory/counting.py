"""Sums of clipped widths, by counting the wide rounds, and sums of a map's errors."""

import math
from typing import NamedTuple

from postserve.validation import integer, number


class MapErrors(NamedTuple):
    """Bounds on sum_t e_t and on sum_t e_t² over all rounds; e_t >= ||phi_hat_t(x_t) - phi(x_t)||."""

    total: float
    squares: float


def most_log_det(*, rounds: int, n_models: int, dim: int, bound: float, ridge: float) -> float:
    """The most that the sum over models of log(det A/det ridge I) can be: with equal numbers of rounds.

    >>> most_log_det(rounds=6, n_models=2, dim=1, bound=1.0, ridge=1.0) == 2.0 * math.log(4.0)
    True
    """
    return n_models * dim * math.log1p(rounds * bound**2 / (n_models * ridge * dim))


def counted_steps(times: float, *, horizon: int, potential: float, longest: float = math.inf) -> float:
    """The most that sum_t min(1, k y_t) can be, k = `times`, if sum_t 1 ∧ y_t² <= V and y_t <= `longest`.

    The smaller of min(1, k longest) V + k sqrt(T V), whose first term is 0 if no y is above 1, and of
    F sqrt(T V), F = min(max(1, k), k max(1, longest)), with V = min(T, `potential`). The first counts: at
    most V rounds have y_t > 1, and in the others k y_t is not clipped. The second is a factor for all
    rounds, and the smaller one unless k is small (docs/theory/theorem.md, lemma 2).

    >>> counted_steps(0.1, horizon=100, potential=4.0)            # 4 + 0.1 sqrt(400)
    6.0
    >>> counted_steps(3.0, horizon=100, potential=4.0)            # 3 sqrt(400)
    60.0
    >>> counted_steps(0.1, horizon=100, potential=4.0, longest=1.0)
    2.0
    """
    times, longest = number("times", times, least=0.0), float(longest)
    if times == 0.0:
        return 0.0
    horizon = integer("horizon", horizon, least=1)
    potential = min(float(horizon), number("potential", potential, least=0.0))
    steps = math.sqrt(horizon * potential)
    in_full = min(1.0, times * longest) * potential if longest > 1.0 else 0.0
    return min(in_full + times * steps, min(max(1.0, times), times * max(1.0, longest)) * steps)


def ridge_map_errors(
    map_constant: float, *, horizon: int, map_rate: float, map_dim: int, x_bound: float, map_ridge: float
) -> MapErrors:
    """sum_t e_t and sum_t e_t² of a map with e_t <= c w_t^alpha, w_t = ||x_t||²_{X_{t-1}^{-1}}.

    sum_t w_t^p, p = alpha or 2 alpha, is at most the smaller of T^{1-p} W^p and V^{1-p} W^p + T^{1-p} V^p.
    W = M/log(1 + M) G bounds sum_t w_t, since w <= M/log(1 + M) log(1 + w) for w <= M = L_x²/map_ridge;
    G = log(det X_T/det X_0) bounds sum_t log(1 + w_t). V = G/log 2 bounds sum_t 1 ∧ w_t, and so how many
    rounds have w_t > 1: only these few can be as wide as M (docs/theory/theorem.md, lemma 9).

    >>> found = ridge_map_errors(2.0, horizon=3, map_rate=0.5, map_dim=1, x_bound=1.0, map_ridge=1.0)
    >>> found.squares, round(found.total, 6) == round(math.sqrt(3.0 * found.squares), 6)
    (8.0, True)
    """
    constant = number("map_constant", map_constant, least=0.0)
    alpha = number("map_rate", map_rate, above=0.0, most=0.5)
    horizon, map_dim = integer("horizon", horizon, least=1), integer("map_dim", map_dim, least=1)
    x_bound, map_ridge = number("x_bound", x_bound, above=0.0), number("map_ridge", map_ridge, above=0.0)
    widest = x_bound**2 / map_ridge
    grown = most_log_det(rounds=horizon, n_models=1, dim=map_dim, bound=x_bound, ridge=map_ridge)
    widths = min(horizon * widest, _per_log(widest) * grown)
    clipped = min(horizon, _per_log(min(1.0, widest)) * grown)

    def most(power: float) -> float:
        counted = _holder(power, clipped, widths) + _holder(power, horizon, clipped)
        return math.pow(constant, power / alpha) * min(_holder(power, horizon, widths), counted)

    return MapErrors(most(alpha), most(2.0 * alpha))


def _holder(power: float, rounds: float, total: float) -> float:
    """The most that the sum of w^power over so many rounds can be, if that of w is `total`."""
    return math.pow(rounds, 1.0 - power) * math.pow(total, power)


def _per_log(most: float) -> float:
    """The largest w/log(1 + w) for 0 <= w <= `most`: where w is largest."""
    return most / math.log1p(most) if most > 0.0 else 1.0
