"""Elliptical potential lemmas: both sides on any sequence.

All of them bound sums of (1 ∧ ||x_t||²_{X_{t-1}^{-1}})^p, p in [0, 1]: the uncertainty along x_t before it
came. The matrix is made of x itself, or of x with noise.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from postserve.errors import InvalidInput
from postserve.theory.concentration import longest_row, noisy_matrix_exponent
from postserve.types import FloatArray
from postserve.validation import matrix, number, vector

MOST_ROUNDS = 2.0**62
"""A lemma that begins later is useless."""


class Potential(NamedTuple):
    """Both sides of a potential lemma after each round; the properties are the values after the last.

    `first_round` is T_0, the round at which the lemma's argument begins: 1 without noise.
    """

    left_by_round: FloatArray
    right_by_round: FloatArray
    first_round: int = 1

    @property
    def left(self) -> float:
        """The sum over the whole sequence."""
        return float(self.left_by_round[-1:].sum())  # 0 where there is no round

    @property
    def right(self) -> float:
        """Its bound."""
        return float(self.right_by_round[-1:].sum())

    @property
    def slack(self) -> float:
        """right - left, at least 0 where the lemma holds."""
        return self.right - self.left


def elliptical_potential(X: npt.ArrayLike, X0: npt.ArrayLike, p: float = 1.0) -> Potential:
    """The elliptical potential lemma (the paper's section 4) with a power, for rows x_t of any kind.

    sum_t (1 ∧ ||x_t||²_{X_{t-1}^{-1}})^p <= 2^p T^{1-p} log^p(det X_T/det X_0),
    X_t = X_0 + sum_{s<=t} x_s x_s^T; p = 1 is the original lemma.

    In its proof the paper's last display has p outside the sum, which is less than the left side (p <= 1),
    and its eigenvalue 1 + ||y|| of I + y y^T is 1 + ||y||².

    >>> found = elliptical_potential(np.ones((4, 1)), [[1.0]])   # 1 + 1/2 + 1/3 + 1/4 <= 2 log 5
    >>> round(found.left, 4), round(found.right, 4)
    (2.0833, 3.2189)
    """
    X, X0, p = _sequence(X, X0, p)
    widths = _widths(X, X, X0)
    return Potential(np.cumsum(np.minimum(widths, 1.0) ** p), _power(2.0 * np.cumsum(np.log1p(widths)), p))


def generalized_elliptical_potential(
    X: npt.ArrayLike,
    noise: npt.ArrayLike,
    X0: npt.ArrayLike,
    p: float = 1.0,
    delta: float = 0.05,
    *,
    sigma_squared: float,
    noise_bound: float,
    x_bound: float | None = None,
) -> Potential:
    """The paper's Generalized Elliptical Potential Lemma, Equation (2): noise in the data matrix.

    sum_t (1 ∧ ||x_t||²_{X~_{t-1}^{-1}})^p <= 2^p T^{1-p} log^p(det X_T/det X_0) + min(T, T_0 - 1),
    X~_t = X_0 + sum_{s<=t} (x_s + eps_s)(x_s + eps_s)^T, with probability 1 - delta, where

    T_0 = ceil(1 + q log(4 q dim/delta)),  q = 8 L_eps² (L_eps + L_x)²/sigma⁴.

    The paper has q log(…) instead of T_0 - 1, which is its ceiling. The rows x_t are fixed before the noise,
    which is independent from round to round, has mean 0, is at most `noise_bound` long, and has E[eps eps^T]
    >= `sigma_squared` I: properties of its distribution, so they have no default. `x_bound` is by default the
    longest row of x.

    >>> signs = np.array([[1.0], [-1.0]] * 200)
    >>> found = generalized_elliptical_potential(0.1 * np.ones((400, 1)), signs, [[1.0]],
    ...                                          sigma_squared=1.0, noise_bound=1.0)
    >>> found.first_round, found.left < found.right
    (66, True)
    """
    X, X0, p = _sequence(X, X0, p)
    noise = matrix("noise", noise, *X.shape)
    delta = number("delta", delta, above=0.0, below=1.0)
    noise_bound, x_bound = longest_row("noise", noise, noise_bound), longest_row("x", X, x_bound)
    rate = noisy_matrix_exponent(sigma_squared=sigma_squared, noise_bound=noise_bound, x_bound=x_bound)
    if rate == 0.0:
        raise InvalidInput("sigma_squared is 0, wanted above 0: else the lemma says nothing")
    # 1 - e^{-r} >= r/2 sums the tails from T_0 - 1 on to 4 dim e^{-r (T_0 - 1)}/r.
    exact = 1.0 + (math.log(4.0 * X.shape[1]) - math.log(delta) - math.log(rate)) / rate
    if exact > MOST_ROUNDS:
        raise InvalidInput(f"sigma_squared is {sigma_squared:g}, wanted more: T_0 would be {exact:.3g}")
    first_round = math.ceil(exact)
    clean = 2.0 * np.cumsum(np.log1p(_widths(X, X, X0)))
    left = np.cumsum(np.minimum(_widths(X, X + noise, X0), 1.0) ** p)
    rounds = np.arange(1.0, len(X) + 1.0)
    return Potential(left, _power(clean, p) + np.minimum(rounds, first_round - 1.0), first_round)


def mean_context_potential(
    X: npt.ArrayLike,
    noise: npt.ArrayLike,
    X0: npt.ArrayLike,
    p: float = 1.0,
    delta: float = 0.05,
    *,
    noise_factor: float = 2.0,
) -> Potential:
    """Our replacement of the paper's generalised lemma: it needs no noise in x and no T_0.

    sum_t (1 ∧ ||x_t||²_{X~_{t-1}^{-1}})^p
        <= T^{1-p} (c e/(e - 1) (2 log(det X~_T/det X_0) + log(1/delta)))^p,  at all T at once,

    with probability 1 - delta, X~ as in the generalised lemma. x_t may depend on the past, and the noise may
    be unbounded and have no part in some directions, as with u = (x, z). c is `noise_factor`: 2 if eps_t is
    symmetric given the past. If it has mean 0 and is bounded, c is `bounded_noise_factor`; if it has mean 0
    and a bounded kurtosis, `kurtosis_noise_factor`. docs/theory/noisy-gram.md has the proof.

    >>> X, noise = np.tile([[1.0, 2.0]], (50, 1)), np.array([[0.0, 1.0], [0.0, -1.0]] * 25)
    >>> found = mean_context_potential(X, noise, np.eye(2))
    >>> round(found.left, 2), round(found.right, 2)
    (4.68, 59.71)
    """
    X, X0, p = _sequence(X, X0, p)
    observed = X + matrix("noise", noise, *X.shape)
    left = np.cumsum(np.minimum(_widths(X, observed, X0), 1.0) ** p)
    log_det_ratio = np.cumsum(np.log1p(_widths(observed, observed, X0)))
    right = mean_context_bound(log_det_ratio, delta=delta, noise_factor=noise_factor)
    return Potential(left, _power(right, p))


def mean_context_bound(
    log_det_ratio: npt.ArrayLike, *, delta: float, noise_factor: float = 2.0
) -> FloatArray:
    """The right side of `mean_context_potential` at p = 1, from log(det X~_T/det X_0).

    >>> float(mean_context_bound(0.0, delta=np.exp(-1.0), noise_factor=1.0)) == np.e / (np.e - 1)
    True
    """
    delta = number("delta", delta, above=0.0, below=1.0)
    factor = number("noise_factor", noise_factor, least=1.0)
    grown = vector("log_det_ratio", np.atleast_1d(log_det_ratio), None)
    if grown.min(initial=0.0) < 0.0:
        raise InvalidInput(f"log_det_ratio is {grown.min():g}, wanted at least 0: matrices only grow")
    bound = factor * math.e / (math.e - 1.0) * (2.0 * grown - np.log(delta))
    return np.asarray(bound.reshape(np.shape(log_det_ratio)))


def bounded_noise_factor(*, u_bound: float, ridge: float) -> float:
    """c of `mean_context_potential` for any noise of mean 0 with ||x + eps|| <= u_bound: max(1, L²/ridge).

    `ridge` is the smallest eigenvalue of X_0. Symmetric noise needs no more than 2.

    >>> bounded_noise_factor(u_bound=3.0, ridge=1.0), bounded_noise_factor(u_bound=3.0, ridge=10.0)
    (9.0, 1.0)
    """
    return max(1.0, number("u_bound", u_bound, least=0.0) ** 2 / number("ridge", ridge, above=0.0))


def kurtosis_noise_factor(kurtosis: float) -> float:
    """c of `mean_context_potential` for noise of mean 0 whose marginals have at most this kurtosis.

    E[(b·eps)⁴] <= kurtosis E[(b·eps)²]² for every b;
    c = (kurtosis + 3 + sqrt((kurtosis + 3)(kurtosis - 1)))/2, which is below kurtosis + 2. It is the least
    such constant: a law with two values attains it. The condition is on the noise given the past. Independent
    coordinates meet it with the largest of their kurtoses, or 3 if all are below that.

    >>> kurtosis_noise_factor(1.0), kurtosis_noise_factor(4.2)   # one value in 2 draws, one in 6
    (2.0, 6.0)
    >>> round(kurtosis_noise_factor(15.0), 2)                       # z and z² of a Gaussian z
    16.94
    """
    kurtosis = number("kurtosis", kurtosis, least=1.0)
    return (kurtosis + 3.0 + math.sqrt((kurtosis + 3.0) * (kurtosis - 1.0))) / 2.0


def _sequence(X: npt.ArrayLike, X0: npt.ArrayLike, p: float) -> tuple[FloatArray, FloatArray, float]:
    X = matrix("X", X, None, None)
    X0 = matrix("X0", X0, X.shape[1], X.shape[1])
    return X, X0, number("p", p, least=0.0, most=1.0)


def _widths(measured: FloatArray, added: FloatArray, X0: FloatArray) -> FloatArray:
    """||measured_t||² in the inverse of X0 + sum_{s<t} added_s added_s^T."""
    if not np.array_equal(X0, X0.T):
        raise InvalidInput("X0 is not symmetric, wanted a positive definite matrix")
    try:
        root = np.linalg.cholesky(X0).T
    except np.linalg.LinAlgError as error:
        raise InvalidInput("X0 is not positive definite, wanted a positive definite matrix") from error
    widths = np.empty(len(measured))
    for t, (x, row) in enumerate(zip(measured, added, strict=True)):
        # The root is updated by QR, never the inverse: rows of 1e8 beside X0 = 1e-8 I cost no digits.
        half = solve_triangular(root, x, trans="T", check_finite=False)
        widths[t] = half @ half
        root = np.asarray(np.linalg.qr(np.vstack([root, row]), mode="r"))
    return widths


def _power(potential: FloatArray, p: float) -> FloatArray:
    """T^{1-p} potential_T^p at each T, which by concavity follows from a bound at p = 1."""
    rounds = np.arange(1.0, len(potential) + 1.0)
    return np.asarray(rounds ** (1.0 - p) * potential**p)
