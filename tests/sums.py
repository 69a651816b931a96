"""The evidence of given sums, which the package itself computes only through its models."""

from collections.abc import Sequence

import numpy as np

from postserve.linalg import evidence


def measure_units(sums: evidence.Sums, blocks: Sequence[int]) -> evidence.Units:
    """v_j and v_r of the present sums."""
    diagonal = np.diagonal(sums.gram, axis1=1, axis2=2).sum(axis=0)
    return evidence.mean_squares(diagonal, sums.squares.sum(axis=0), float(sums.pulls.sum()), blocks)


def refit(sums: evidence.Sums, blocks: Sequence[int], *, tolerance: float) -> evidence.Fit:
    """The best prior for these sums, from a cold start."""
    objective = evidence.Objective(sums, blocks, measure_units(sums, blocks))
    return evidence.maximise(objective, tolerance=tolerance)
