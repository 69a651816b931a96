"""What regressions say of rows: means, widths, and what changes them."""

from typing import NamedTuple

from postserve.types import FloatArray


class Projection(NamedTuple):
    """Of each row u under its model: w·u for every output, and ||u|| in the norm of A^{-1}."""

    means: FloatArray  # (rows, n_outputs)
    widths: FloatArray  # (rows,)


class LocalProjection(NamedTuple):
    """Of each row u under its model: mean and width, and how they change if d is added to some blocks.

    w·(u + d) = mean + beta·d, and the square of the width at u + d is width² + 2 cross·d + d^T block d.
    """

    means: FloatArray  # (rows,)
    widths: FloatArray  # (rows,)
    beta: FloatArray  # (rows, size)
    cross: FloatArray  # (rows, size)
    block: FloatArray  # (rows, size, size)


class MovingProjection(NamedTuple):
    """Of each row u under its model, where a random d is added to some blocks of u: see `project_moving`.

    With w ~ N(w_hat, sigma² A^{-1}) the variance of w·(u + d) is sigma² squares + moved.
    """

    means: FloatArray  # (rows,)
    squares: FloatArray  # (rows,)
    moved: FloatArray  # (rows,)


class Ellipsoid(NamedTuple):
    """What the theory's radii need of the ellipsoid around each row's weights."""

    log_det: FloatArray  # (rows,), relative to the prior's
    pulls: FloatArray  # (rows,), the rounds it has seen
    ridge: FloatArray  # (dim,), the diagonal of its prior
    stretch: float  # the length of its rows relative to u
