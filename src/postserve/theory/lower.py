"""What policies that do not see z must lose: a lower bound."""

import math
from typing import NamedTuple

from postserve.validation import integer, number


class LowerBound(NamedTuple):
    """The regret that cannot be avoided, and the gap of the worlds in which it cannot."""

    regret: float
    gap: float


def lower_bound(
    *, horizon: int, n_arms: int, noise_scale: float, z_noise_scale: float = 0.0, beta_bound: float = 1.0
) -> LowerBound:
    """Theorem 3: without z, regret is at least s/2 (1 - 1/K)² sqrt(K T), s = sqrt(R² + b² sigma_z²).

    On average over K worlds, for every policy whose choices depend on earlier (x, r) and on chance only. In
    world j, x = 1 in every round, z ~ N(0, sigma_z²), and r = gap 1{a = j} + b z + N(0, R²), with gap =
    s (1 - 1/K) sqrt(K/T). Random loses twice the bound there. With z_noise_scale = 0 it holds for policies
    that see z too, since z then says nothing.

    >>> found = lower_bound(horizon=200, n_arms=2, noise_scale=0.3, z_noise_scale=0.4)
    >>> round(found.regret, 6), round(found.gap, 6)              # s = 1/2: 1/4 · 1/4 · 20, and 1/4 · 1/10
    (1.25, 0.025)
    """
    horizon, n_arms = integer("horizon", horizon, least=1), integer("n_arms", n_arms, least=2)
    reach = number("beta_bound", beta_bound, least=0.0) * number("z_noise_scale", z_noise_scale, least=0.0)
    noise = math.hypot(number("noise_scale", noise_scale, least=0.0), reach)
    others = 1.0 - 1.0 / n_arms
    gap = noise * others * math.sqrt(n_arms / horizon)
    return LowerBound(gap * horizon * others / 2.0, gap)
