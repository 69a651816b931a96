"""A version of Assumption 1 that Hölder classes can meet: the errors of a mean over neighbours, summed."""

import math

from postserve.theory.rates import holder_rate
from postserve.validation import integer, number


def neighbor_distance_bound(*, horizon: int, neighbors: int, dim: int, smoothness: float) -> float:
    """Bounds sum_t D_t^b, D_t being how far x_t is from the furthest of its nearest earlier contexts.

    For every sequence in a cube of side 1, with at most k = `neighbors` neighbours in each round and b =
    `smoothness` <= 1; distances are root mean squares over the coordinates, and D_t is 1 in rounds with too
    few earlier contexts:

    sum_t D_t^b <= T q^b (d - b q^{d-b})/(d - b),  q = min(1, 2 (k/T)^{1/d}),
    and T q (1 + log(1/q)) if d = b = 1.

    docs/theory/ellipsoid.md has the proof.

    >>> neighbor_distance_bound(horizon=800, neighbors=2, dim=2, smoothness=1.0)   # q = 1/10: 80 (2 - 1/10)
    152.0
    """
    horizon, neighbors = integer("horizon", horizon, least=1), integer("neighbors", neighbors, least=1)
    dim, b = integer("dim", dim, least=1), number("smoothness", smoothness, above=0.0, most=1.0)
    q = min(1.0, 2.0 * math.pow(neighbors / horizon, 1.0 / dim))
    larger = 1.0 + math.log(1.0 / q) if dim == b else (dim - b * math.pow(q, dim - b)) / (dim - b)
    return horizon * math.pow(q, b) * larger


def neighbors_error_bound(
    *,
    horizon: int,
    dim_x: int,
    dim_z: int,
    smoothness: float,
    holder_constant: float,
    noise_scale: float,
    delta: float,
) -> float:
    """Bounds sum_t ||phi_hat(x_t) - phi(x_t)|| of a `NeighborsMap`, from its second round on.

    R sqrt(2 dim_z log(2 dim_z T/delta)) T^{1-alpha}/(1 - alpha) + L sum_t D_t^b, alpha = b/(2b + dim_x), with
    probability 1 - delta, for ||phi(x) - phi(x')|| <= L D^b at the distance D of x from x', x in a cube of
    side 1 and R-sub-Gaussian noise of each z_j. It is O(T^{1-alpha}) up to logarithms, which is what the
    regret needs of Assumption 1. The contexts may be any that do not depend on the noise of z. The map has
    `own_units=False`.

    >>> known = dict(dim_x=1, dim_z=1, smoothness=0.5, holder_constant=1.0, delta=0.1)
    >>> round(neighbors_error_bound(horizon=10_000, noise_scale=0.0, **known))
    2628
    """
    b = number("smoothness", smoothness, above=0.0, most=1.0)
    horizon, dim_z = integer("horizon", horizon, least=1), integer("dim_z", dim_z, least=1)
    delta, alpha = number("delta", delta, above=0.0, below=1.0), holder_rate(b, dim_x)
    neighbors = math.ceil(round(math.pow(horizon, 2.0 * alpha), 9))
    noise = number("noise_scale", noise_scale, least=0.0)
    each = noise * math.sqrt(2.0 * dim_z * math.log(2.0 * dim_z * horizon / delta))
    distances = neighbor_distance_bound(horizon=horizon, neighbors=neighbors, dim=dim_x, smoothness=b)
    change = number("holder_constant", holder_constant, least=0.0) * distances
    return each * math.pow(horizon, 1.0 - alpha) / (1.0 - alpha) + change
