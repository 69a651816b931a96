"""Rows that are stacked piece by piece are the rows that numpy stacks at once."""

import numpy as np
import pytest

from postserve.pieces import PIECE, stacked


@pytest.mark.parametrize("n", [0, 1, PIECE, PIECE + 1, 2 * PIECE + 1])
def test_the_pieces_are_the_whole(n: int) -> None:
    rows = [np.array([i, -i, i / 3.0]) for i in range(n)]
    found = stacked(rows)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.array(rows), strict=True)
