"""The level of all rewards in the evidence: integrated out from the posterior of three outputs."""

import math
from typing import TYPE_CHECKING

import numpy as np

from postserve.types import FloatArray

if TYPE_CHECKING:
    from postserve.linalg.evidence import Posterior


def and_level(y: FloatArray, ones: FloatArray, axis: int = -1) -> FloatArray:
    """y, 1 and y + 1 side by side."""
    return np.concatenate([y, ones, y + ones], axis=axis)


def without_level(posterior: "Posterior", outputs: int, least: float) -> "Posterior":
    """Integrate the level out, given the posterior of the outputs y, 1 and y + 1.

    With g the weights of the output 1: the level is m = c/A_0, the weights are w - m g, and their covariance
    P + g g^T/A_0, in units of sigma². A_0 is at least `least`: below that it is rounding.
    """

    def split(quadratic: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Of a quantity that is quadratic in the output: at y, at 1, and mixed."""
        y, one, both = quadratic[:outputs], quadratic[outputs], quadratic[outputs + 1 :]
        return y, one, 0.5 * (both - y - one)

    Q, one, c = split(posterior.residual)
    norm, norm_g, norm_wg = split(posterior.norm)
    cross, cross_g, cross_wg = split(posterior.cross)
    A_0 = max(float(one), least)
    m = c / A_0
    along = norm_wg - m[:, None] * norm_g  # g_j·(w - m g)_j
    m1, m2 = m[:, None], m[:, None, None]
    return posterior._replace(
        log_det=posterior.log_det + math.log(A_0),
        residual=Q - m * c,
        trace=posterior.trace + norm_g / A_0,
        frobenius=posterior.frobenius + 2.0 * cross_g / A_0 + np.outer(norm_g, norm_g) / A_0**2,
        norm=np.maximum(norm - m1 * (2.0 * norm_wg - m1 * norm_g), 0.0),
        cross=cross - m2 * (2.0 * cross_wg - m2 * cross_g) + along[:, :, None] * along[:, None, :] / A_0,
    )
