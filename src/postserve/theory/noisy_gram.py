"""The noisy Gram matrix compared with the noise-free one."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh, solve_triangular

from postserve.errors import InvalidInput
from postserve.theory.concentration import ROUNDING, lower_root
from postserve.validation import integer, matrix, number, scales


class NoisyGram(NamedTuple):
    """How far ||v||²_{A~^{-1}} can exceed ||v||²_{A^{-1}}, at worst over v.

    `ratio` is measured; `factor` bounds it on this sequence, from g² = `cross` = ||A^{-1/2} G||² and
    `smallest_noise` = lambda_min(E); `bound` is the a-priori bound on both. Infinite if there is none.
    """

    ratio: float
    factor: float
    bound: float
    cross: float
    smallest_noise: float


def noisy_gram_factor(
    U: npt.ArrayLike,
    noise: npt.ArrayLike,
    *,
    ridge: float,
    noise_scale: npt.ArrayLike,
    sigma: float,
    delta: float = 0.05,
    noise_bound: float | None = None,
) -> NoisyGram:
    """What holds for u = (x, z) instead of the noisy-matrix lemma: A~ >= (1 - g²/lambda_min(E)) A.

    A = ridge I + sum u u^T over noise-free rows u = (x, phi(x)), A~ the same over (x, phi(x) + eps),
    G = sum u eps^T, E = sum eps eps^T and g = ||A^{-1/2} G||, wherever the difference is positive: hence
    ||v||²_{A~^{-1}} <= factor ||v||²_{A^{-1}}, factor = 1/(1 - g²/lambda_min(E)). The noise enters the last
    columns of U. The paper has factor 1 here, which its lemma does not give (docs/theory/noisy-gram.md).

    `bound` puts `cross_bound` and `noise_floor` in: it is above `factor` with probability 1 - delta,
    for `noise_scale` R_j of each output's sub-Gaussian noise, and E[eps eps^T] >= sigma² I.

    >>> rng = np.random.default_rng(0)
    >>> X, noise = rng.normal(size=(1000, 3)), rng.normal(size=(1000, 2))
    >>> U = np.hstack([X, X[:, :2]])
    >>> found = noisy_gram_factor(U, noise, ridge=1.0, noise_scale=1.0, sigma=1.0)
    >>> 1.0 < found.ratio < found.factor < found.bound < 1.2
    True
    """
    U = matrix("U", U, None, None)
    noise = matrix("noise", noise, len(U), None)
    (n, dim_u), dim_z = U.shape, noise.shape[1]
    if not 0 < dim_z <= dim_u or not n:
        raise InvalidInput(f"noise has shape {noise.shape}, wanted rows, and at most {dim_u} columns")
    ridge = number("ridge", ridge, above=0.0)
    gram = ridge * np.eye(dim_u) + U.T @ U
    root = lower_root(gram, ridge)
    noisy = np.hstack([U[:, : dim_u - dim_z], U[:, dim_u - dim_z :] + noise])
    least = eigh(ridge * np.eye(dim_u) + noisy.T @ noisy, gram, eigvals_only=True)[0]
    half = solve_triangular(root, U.T @ noise, lower=True)
    cross = float(np.linalg.norm(half, 2)) ** 2
    smallest_noise = max(0.0, float(np.linalg.eigvalsh(noise.T @ noise)[0]))
    log_det, scale = 2.0 * float(np.log(np.diag(root)).sum()), scales("noise_scale", noise_scale, dim_z)
    grown = log_det - dim_u * math.log(ridge)
    bound = noisy_gram_bound(
        n=n, log_det_ratio=grown, noise_scale=scale, sigma=sigma, delta=delta, noise_bound=noise_bound
    )
    return NoisyGram(
        ratio=1.0 / float(least),
        factor=_factor(cross, smallest_noise),
        bound=bound,
        cross=cross,
        smallest_noise=smallest_noise,
    )


def noisy_gram_bound(
    *,
    n: int,
    log_det_ratio: float,
    noise_scale: npt.ArrayLike,
    sigma: float,
    delta: float = 0.05,
    noise_bound: float | None = None,
) -> float:
    """1/(1 - cross_bound/noise_floor), each at delta/2: an a-priori bound on `noisy_gram_factor`.

    It is 1 + O(dim_u dim_z log n/n), and infinite if n is too small. `noise_scale` has one entry per output.

    >>> [round(noisy_gram_bound(n=n, log_det_ratio=20.0, noise_scale=[1.0], sigma=1.0), 3)
    ...  for n in (50, 500, 5000)]
    [inf, 1.085, 1.006]
    """
    each_scale = scales("noise_scale", noise_scale, None)
    delta = number("delta", delta, above=0.0, below=1.0) / 2.0
    cross = cross_bound(log_det_ratio=log_det_ratio, noise_scale=each_scale, delta=delta)
    floor = noise_floor(n=n, dim_z=len(each_scale), sigma=sigma, delta=delta, noise_bound=noise_bound)
    return _factor(cross, floor)


def cross_bound(*, log_det_ratio: float, noise_scale: npt.ArrayLike, delta: float) -> float:
    """||A^{-1/2} sum u eps^T||² <= sum_j R_j² (log(det A/det ridge I) + 2 log(dim_z/delta)).

    The self-normalised bound, output by output: with probability 1 - delta for all n at once; rows u may
    depend on all earlier noise.

    >>> cross_bound(log_det_ratio=3.0, noise_scale=[1.0, 2.0], delta=2.0 * np.exp(-1.0))
    25.0
    """
    each_scale = scales("noise_scale", noise_scale, None)
    delta = number("delta", delta, above=0.0, below=1.0)
    each = number("log_det_ratio", log_det_ratio, least=0.0) + 2.0 * math.log(len(each_scale) / delta)
    return float((each_scale**2).sum() * each)


def noise_floor(*, n: int, dim_z: int, sigma: float, delta: float, noise_bound: float | None = None) -> float:
    """lambda_min(sum of n eps eps^T) is at least this with probability 1 - delta, E[eps eps^T] >= sigma² I.

    Gaussian noise, independent and of one covariance: sigma² (sqrt(n) - sqrt(dim_z) - sqrt(2 log(1/delta)))²
    (Davidson and Szarek). Noise at most `noise_bound` L long, with that covariance given the past: n sigma²
    (1 - sqrt(2 L² log(dim_z/delta)/(n sigma²))) (matrix Chernoff for martingales, Tropp 2011). Both are at
    least n sigma²/2 once n is a few times dim_z + log(1/delta), in units of L²/sigma². n may count an arm's
    pulls: the noise comes after the arm is chosen.

    >>> noise_floor(n=100, dim_z=4, sigma=1.0, delta=np.exp(-2.0))
    36.0
    >>> noise_floor(n=200, dim_z=1, sigma=1.0, delta=np.exp(-1.0), noise_bound=1.0)
    180.0
    """
    n, dim_z = integer("n", n, least=1), integer("dim_z", dim_z, least=1)
    delta = number("delta", delta, above=0.0, below=1.0)
    if noise_bound is None:
        root = math.sqrt(n) - math.sqrt(dim_z) - math.sqrt(-2.0 * math.log(delta))
        return number("sigma", sigma, least=0.0) ** 2 * max(0.0, root) ** 2
    length = number("noise_bound", noise_bound, above=0.0)
    mean = n * number("sigma", sigma, least=0.0, most=length * (1.0 + ROUNDING)) ** 2
    lost = length * math.sqrt(2.0 * math.log(dim_z / delta) / mean) if mean > 0.0 else 1.0
    return mean * max(0.0, 1.0 - lost)


def _factor(cross: float, floor: float) -> float:
    return 1.0 / (1.0 - cross / floor) if cross < floor else math.inf
