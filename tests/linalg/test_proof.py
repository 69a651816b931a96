"""Loaded caches against the sums: what is refused, and that rounding never is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stored import arrays_in, write_arrays

from postserve import HybridMap, PoLinUCB, RidgeMap, StateMismatch, load

MODELS = ("disjoint", "shared", "hybrid")
DERIVED = ("dense_inverse", "dense_weights", "row_g", "row_c", "dense_gram", "dense_moment", "row_u", "row_y")


def learner(model: Any, ridge: Any, rows: np.ndarray, seed: int = 0) -> PoLinUCB:
    """A policy after these contexts, some arms of which have few rows and some many."""
    rng, dim = np.random.default_rng(seed), rows.shape[1]
    context_map = HybridMap(dim, 2, ridge=ridge) if seed % 2 else RidgeMap(dim, 2, ridge=ridge)
    policy = PoLinUCB(4, context_map, model=model, ridge=ridge)
    for i, x in enumerate(rows):
        arm = 3 if i % 20 == 0 else int(rng.integers(3))
        policy.update(x, arm, rng.normal(size=2) + x[0], float(x.sum() + rng.normal()))
    return policy


@pytest.mark.parametrize("ridge", ["evidence", 0.01, 100.0])
@pytest.mark.parametrize("model", MODELS)
def test_one_number_that_doubles_is_seen(model: str, ridge: Any, tmp_path: Path) -> None:
    policy = learner(model, ridge, np.random.default_rng(0).normal(size=(60, 8)))
    policy.save(tmp_path / "state.npz")
    arrays, path, seen = arrays_in(tmp_path / "state.npz"), tmp_path / "changed.npz", 0
    for name, array in arrays.items():
        if name.split(".")[-1].removeprefix("shared_") in DERIVED and array.size:
            changed = array.copy()
            changed.reshape(-1)[np.abs(array).argmax()] *= 2.0
            write_arrays(path, {**arrays, name: changed})
            with pytest.raises(StateMismatch, match=r"is not what save\(\) wrote, wanted"):
                load(path)
            seen += 1
    assert seen >= 8


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("model", MODELS)
def test_rounding_is_not_refused(model: str, seed: int, tmp_path: Path) -> None:
    """Columns and rows of any size, far from 0, and collinear."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(80, 5))
    for harder in (
        rows * 10.0 ** rng.uniform(-6, 6, size=5),
        rows + 10.0 ** rng.uniform(-2, 8) * rng.normal(size=5),
        rows[:, :2] @ rng.normal(size=(2, 5)),
        rows * 10.0 ** rng.uniform(-6, 6, size=(80, 1)),
    ):
        policy = learner(model, ("evidence", 1e-6, 1.0, 1e6)[seed % 4], harder, seed)
        policy.forget(arms=0.5, map=0.9)
        policy.save(tmp_path / "state.npz")
        loaded = load(tmp_path / "state.npz", kind=PoLinUCB)
        assert np.array_equal(loaded.weights, policy.weights)
