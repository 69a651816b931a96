"""What regressing on predictions costs: less than the paper's bound."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from postserve.theory.concentration import longest_row, lower_root
from postserve.validation import matrix, number, vector


class PredictionBias(NamedTuple):
    """||sum_s e_s u_s||_{A^{-1}} and two bounds on it: by projection, and term by term as in the paper."""

    bias: float
    projected: float
    term_by_term: float


def prediction_bias(
    U: npt.ArrayLike, errors: npt.ArrayLike, *, ridge: float, u_bound: float | None = None
) -> PredictionBias:
    """The bias in Algorithm 2's radius (appendix A, the second of its four sums).

    ||sum_s e_s u_s||_{A^{-1}} <= sqrt(sum_s e_s²), and <= (L_u/sqrt(ridge)) sum_s |e_s| as the paper has it,
    A = ridge I + sum_s u_s u_s^T. The first is a projection: sum_s e_s u_s = U^T e and U A^{-1} U^T <= I.
    With it the bias grows like T^{1/2 - alpha}, not T^{1 - alpha}, and Algorithm 2's bound like T^{1-alpha},
    with a ridge of the order T^{1 - 2 alpha}: T^{1/2} at alpha = 1/2, not T^{3/4} (docs/theory/regret.md).

    >>> found = prediction_bias(np.ones((100, 1)), np.full(100, 0.1), ridge=1.0)
    >>> round(found.bias, 3), round(found.projected, 3), round(found.term_by_term, 3)
    (0.995, 1.0, 10.0)
    """
    U = matrix("U", U, None, None)
    errors = vector("errors", errors, len(U))
    ridge = number("ridge", ridge, above=0.0)
    u_bound = longest_row("u", U, u_bound)
    root = lower_root(ridge * np.eye(U.shape[1]) + U.T @ U, ridge)
    return PredictionBias(
        bias=float(np.linalg.norm(solve_triangular(root, U.T @ errors, lower=True))),
        projected=float(np.linalg.norm(errors)),
        term_by_term=u_bound / float(np.sqrt(ridge)) * float(np.abs(errors).sum()),
    )
