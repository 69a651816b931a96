"""Matrix Bernstein, and the paper's lemma on noisy data matrices, which follows from it."""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import integer, matrix, number

ROUNDING = 1e-12
"""How far rounding may put a value beyond a bound that it attains."""


class NoisyMatrix(NamedTuple):
    """The noisy-matrix lemma on one sequence.

    `smallest_eigenvalue` of sum_t S_t; `probability` with which the lemma promises it to be at least 0;
    `sigma_squared`, the smallest eigenvalue of E[eps eps^T]; `condition_met`, whether that is above 0.
    """

    smallest_eigenvalue: float
    probability: float
    sigma_squared: float
    condition_met: bool


def matrix_bernstein_tail(
    deviation: float, *, variance: float, bound: float, rows: int, columns: int
) -> float:
    """A bound on P(||Z|| >= deviation) for a sum Z of independent centred matrices (Tropp 2015, 6.1.1).

    (rows + columns) exp(-deviation²/2/(variance + bound deviation/3)), and never above 1; each summand
    has norm at most `bound`, and `variance` is the larger norm of sum E[X_i X_i^T] and sum E[X_i^T X_i].
    The paper's statement leaves these expectations out.

    >>> round(matrix_bernstein_tail(6.0, variance=1.0, bound=1.0, rows=1, columns=1), 6)
    0.004958
    >>> matrix_bernstein_tail(0.1, variance=1.0, bound=1.0, rows=5, columns=5)
    1.0
    """
    deviation = number("deviation", deviation, least=0.0)
    spread = number("variance", variance, least=0.0) + number("bound", bound, least=0.0) * deviation / 3.0
    sides = integer("rows", rows, least=1) + integer("columns", columns, least=1)
    if spread == 0.0:  # Z is 0
        return float(deviation == 0.0)
    return min(1.0, sides * math.exp(-(deviation**2) / 2.0 / spread))


def noisy_matrix_exponent(*, sigma_squared: float, noise_bound: float, x_bound: float) -> float:
    """r = sigma⁴/(8 L_eps² (L_eps + L_x)²), the rate in the noisy-matrix lemma's probability.

    Matrix Bernstein at deviation T sigma² with bound B = 2 L_eps L_x + L_eps² and variance T B² has an
    exponent of at least T r, as sigma <= L_eps.

    >>> noisy_matrix_exponent(sigma_squared=1.0, noise_bound=1.0, x_bound=1.0)
    0.03125
    """
    noise_bound = number("noise_bound", noise_bound, above=0.0)
    most = noise_bound**2 * (1.0 + ROUNDING)  # noise of one length in one dimension has sigma = L_eps
    sigma_squared = number("sigma_squared", sigma_squared, least=0.0, most=most)
    reach = noise_bound + number("x_bound", x_bound, least=0.0)
    return (sigma_squared / noise_bound / reach) ** 2 / 8.0


def noisy_matrix_lemma(
    X: npt.ArrayLike,
    noise: npt.ArrayLike,
    *,
    noise_covariance: npt.ArrayLike,
    noise_bound: float,
    x_bound: float | None = None,
) -> NoisyMatrix:
    """The paper's noisy-matrix lemma (appendix B.1) on one sequence: whether sum_t S_t >= 0.

    S_t = (x_t + eps_t)(x_t + eps_t)^T - x_t x_t^T; promised with probability
    1 - 2 dim exp(-T sigma⁴/(8 L_eps² (L_eps + L_x)²)), sigma² I <= E[eps eps^T] = `noise_covariance`,
    for fixed x_t and independent noise. If the noise has no part in some direction, sigma² = 0 and nothing is
    promised: the theorem applies the lemma to u = (x, z), with noise (0, eps).

    >>> X, noise = np.ones((100, 2)), np.array([[0.0, 1.0], [0.0, -1.0]] * 50)
    >>> noise[0] *= -1.0
    >>> found = noisy_matrix_lemma(X, noise, noise_covariance=np.diag([0.0, 1.0]), noise_bound=1.0)
    >>> found.condition_met, found.probability, found.smallest_eigenvalue < 0.0
    (False, 0.0, True)
    """
    X = matrix("X", X, None, None)
    n, dim = X.shape
    if not dim:
        raise InvalidInput(f"X has shape {X.shape}, wanted at least one column")
    noise = matrix("noise", noise, n, dim)
    covariance = matrix("noise_covariance", noise_covariance, dim, dim)
    if not np.array_equal(covariance, covariance.T):
        raise InvalidInput("noise_covariance is not symmetric, wanted E[eps eps^T]")
    sigma_squared = max(0.0, float(np.linalg.eigvalsh(covariance)[0]))
    noise_bound, x_bound = longest_row("noise", noise, noise_bound), longest_row("x", X, x_bound)
    exponent = noisy_matrix_exponent(sigma_squared=sigma_squared, noise_bound=noise_bound, x_bound=x_bound)
    cross = X.T @ noise
    difference = cross + cross.T + noise.T @ noise
    return NoisyMatrix(
        smallest_eigenvalue=float(np.linalg.eigvalsh(difference)[0]),
        probability=max(0.0, 1.0 - 2.0 * dim * math.exp(-n * exponent)),
        sigma_squared=sigma_squared,
        condition_met=sigma_squared > 0.0,
    )


def longest_row(name: str, rows: FloatArray, bound: float | None = None) -> float:
    """The bound on the rows' lengths, checked, or by default their largest length."""
    longest = float(np.linalg.norm(rows, axis=1).max(initial=0.0))
    if bound is None:
        return longest
    return number(f"{name}_bound", bound, least=longest * (1.0 - ROUNDING))


def lower_root(gram: FloatArray, ridge: float) -> FloatArray:
    """L of gram = L L^T, if the ridge in it is large enough."""
    try:
        return np.asarray(np.linalg.cholesky(gram), dtype=np.float64)
    except np.linalg.LinAlgError as error:
        largest = np.abs(gram).max()
        raise InvalidInput(f"ridge is {ridge:g}, wanted more: it is lost beside {largest:g}") from error
