"""What batches may be made of: nothing at all, and not of sparse matrices or of single numbers."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures
from tests.untyped import untyped

from postserve import InvalidInput, LinUCB, LinUCBOracle
from postserve.conformance.tools import same, snapshot

TRANSFORMER = PolynomialFeatures(1, include_bias=False).fit(np.zeros((1, 2)))
FEATURES = {"none": None, "callable": np.abs, "transformer": TRANSFORMER}
NO_BATCHES = [
    sparse.csr_matrix(np.eye(3, 2)),
    sparse.csr_array(np.eye(3, 2)),
    sparse.csr_matrix((0, 2)),
    np.array(1.0),
    np.array(None),
    1.0,
    {1.0, 2.0},
    object(),
]


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("batch", NO_BATCHES, ids=lambda batch: type(batch).__name__)
def test_what_is_no_batch_is_refused_in_words(batch: Any, features: Any) -> None:
    policy = LinUCBOracle(2, 2, 2, x_features=features, z_features=features)
    rows, before, rng = np.ones((3, 2)), snapshot(policy), np.random.default_rng(0)
    for X, Z in ((batch, rows), (rows, batch)):
        with pytest.raises(InvalidInput, match="wanted"):
            policy.update_batch(X, [0, 1, 0], Z, [1.0, 2.0, 3.0])
        with pytest.raises(InvalidInput, match="wanted"):
            policy.select_batch(X, rng, Z=Z)
    assert same(before, snapshot(policy))


@pytest.mark.parametrize("features", FEATURES.values(), ids=FEATURES)
@pytest.mark.parametrize("shape", [(0,), (0, 2), (0, 2, 2)])
def test_a_batch_of_nothing_gives_nothing(shape: tuple[int, ...], features: Any) -> None:
    policy = LinUCB(2, 2, x_features=features)
    assert len(policy.select_batch(np.empty(shape), np.random.default_rng(0)).arms) == 0
    if len(shape) < 3:
        policy.update_batch(np.empty(shape), [], None, [])


def test_an_empty_batch_of_the_wrong_width_is_refused() -> None:
    for X in (np.empty((0, 5)), np.empty((0, 2, 5)), np.empty((2, 2, 0))):
        with pytest.raises(InvalidInput, match="wanted"):
            LinUCB(2, 2).select_batch(untyped(X), np.random.default_rng(0))
