"""Kernel ridge regression where rows of a table come again and again, each with the same z."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.stored import arrays_in, write_arrays
from tests.untyped import untyped

import postserve
from postserve import InvalidInput, KernelMap, StateMismatch
from postserve.context_maps.kernel import MOST_WAITING, SURPRISES

NOISE = 0.5


def table(n: int, dim_x: int, seed: int = 0) -> tuple[Any, Any]:
    """Distinct contexts, and one noisy z for each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, dim_x))
    return X, np.sin(2.0 * X[:, :1]) + NOISE * rng.normal(size=(n, 1))


def teach(phi_hat: Any, X: Any, Z: Any) -> Any:
    for x, z in zip(X, Z, strict=True):
        phi_hat.update(x, 0, z)
    return phi_hat


def largest_prediction(phi_hat: Any, X: Any, Z: Any) -> float:
    """The largest prediction before z came, relative to the largest z.

    Up to 24 contexts are not judged: a smooth curve through all of them may well be the truth.
    """
    largest = 0.0
    for i, (x, z) in enumerate(zip(X, Z, strict=True)):
        if len(np.unique(X[:i], axis=0)) >= 24:
            largest = max(largest, float(abs(phi_hat.predict(x)[0, 0])))
        phi_hat.update(x, 0, z)
    return largest / float(np.abs(Z).max())


@pytest.mark.parametrize("dim_x", [1, 2, 5, 10])
@pytest.mark.parametrize("order", ["drawn", "each twice", "each eight times"])
def test_predictions_stay_within_the_range_of_z(dim_x: int, order: str) -> None:
    for seed in range(4):
        X, Z = table(100, dim_x, seed)
        drawn = np.random.default_rng(seed).integers(100, size=300)
        times = {"drawn": drawn, "each twice": np.arange(100).repeat(2)}
        rows = times.get(order, np.arange(100).repeat(8))
        assert largest_prediction(KernelMap(dim_x, 1, landmarks=48), X[rows], Z[rows]) < 1.5


def test_more_rows_than_the_default_landmarks_are_no_trouble() -> None:
    X, Z = table(300, 2, seed=3)
    rows = np.random.default_rng(3).integers(300, size=900)
    assert largest_prediction(KernelMap(2, 1), X[rows], Z[rows]) < 1.5


@pytest.mark.parametrize("dim_x", [1, 2])
@pytest.mark.parametrize("apart", [0.0, 1e-9])
def test_repeats_say_little_about_other_contexts(dim_x: int, apart: float) -> None:
    """Elsewhere the map is about as good as without repeats, and its radius tells what is unknown."""
    rng = np.random.default_rng(1)
    at, rows, off, wide = rng.normal(size=(100, dim_x)), np.arange(480) % 60, [], []
    for seed in range(6):
        X, Z = table(60, dim_x, seed)
        once = teach(KernelMap(dim_x, 1), X, Z)
        often = teach(KernelMap(dim_x, 1), X[rows] + apart * rng.normal(size=(480, dim_x)), Z[rows])
        known = np.array([often.predict(x)[0] for x in X])
        assert np.median(np.abs(known - Z)) < 0.01  # two that are nearly equal share their mean
        off.append([[one.predict(x)[0, 0] - np.sin(2.0 * x[0]) for x in at] for one in (once, often)])
        wide.append([often.radius(x)[0] for x in at])
    errors = np.sqrt(np.square(off).mean(axis=(0, 2)))
    assert errors[1] < 1.6 * errors[0]
    expected = np.hypot(errors[1], NOISE)  # what is a context's own is unknown elsewhere
    assert 0.6 * expected < np.sqrt(np.square(wide).mean()) < 1.4 * expected


def test_noise_at_repeated_contexts_is_no_nugget() -> None:
    X = table(30, 1)[0][np.arange(600) % 30]
    Z = np.sin(2.0 * X) + 0.3 * np.random.default_rng(1).normal(size=X.shape)
    phi_hat = teach(KernelMap(1, 1), X, Z)
    assert phi_hat._landmarks.nugget == 0.0
    assert phi_hat.prior.noise_variance[0] == pytest.approx(0.09, rel=0.2)


def test_a_given_nugget_is_used() -> None:
    X, Z = table(20, 1)
    phi_hat = teach(KernelMap(1, 1, length_scale=1.0, ridge=(0.3, 1e15), nugget=0.5), X, Z)
    from sklearn.gaussian_process.kernels import Matern

    at = np.vstack([X[:5], np.linspace(-1.0, 1.0, 5)[:, None]])
    K, k = Matern(1.0, nu=1.5)(X), Matern(1.0, nu=1.5)(at, X) + 0.5 * (at == X.T)
    expected = k @ np.linalg.solve(K + 0.8 * np.eye(20), Z)
    assert np.allclose([phi_hat.predict(x)[0] for x in at], expected, atol=1e-6)


def test_a_bad_nugget_is_refused() -> None:
    for bad in (-1.0, np.nan, untyped("median")):
        with pytest.raises(InvalidInput, match="nugget"):
            KernelMap(1, 1, nugget=bad)


def waiting_map() -> Any:
    """A map without room for landmarks, sure of its 16 contexts, and with two surprises that wait."""
    X, Z = table(18, 2)
    phi_hat = teach(KernelMap(2, 1, landmarks=16), X[np.arange(128) % 16], Z[np.arange(128) % 16])
    return teach(phi_hat, X[16:], 5.0 + Z[16:])


def test_one_pair_that_noise_excludes_does_not_bend_the_map() -> None:
    X, Z = (part[:16] for part in table(18, 2))
    phi_hat, elsewhere = waiting_map(), table(40, 2, seed=5)[0]
    assert phi_hat._waiting.seen == 2
    assert np.allclose([phi_hat.predict(x)[0] for x in X], Z, atol=1e-3)
    for _ in range(3):
        teach(phi_hat, elsewhere[:1], [[5.0]])
    assert phi_hat._waiting.seen == 5  # they are at three contexts
    teach(phi_hat, elsewhere[1 : SURPRISES - 2], np.full((SURPRISES - 3, 1), 5.0))
    assert phi_hat._waiting.seen == 0
    assert phi_hat.prior.noise_variance[0] > 0.01
    assert all(abs(phi_hat.predict(x)[0, 0]) < 8.0 for x in elsewhere)


def test_many_surprises_at_one_context_are_learnt() -> None:
    phi_hat = waiting_map()
    for _ in range(2 * MOST_WAITING):
        phi_hat.update([3.0, 3.0], 0, [5.0])
    assert phi_hat.predict([3.0, 3.0])[0, 0] == pytest.approx(5.0, abs=0.5)


def test_surprises_wait_in_a_saved_state_too(tmp_path: Path) -> None:
    phi_hat, more = waiting_map(), table(30, 2, seed=5)
    phi_hat.save(tmp_path / "map.npz")
    twin = postserve.load(tmp_path / "map.npz")
    for one in (phi_hat, twin):
        teach(one, *more)
    assert [phi_hat.predict(x)[0, 0] for x in more[0]] == [twin.predict(x)[0, 0] for x in more[0]]
    for name, damaged in (("landmarks_nugget", np.array([-1.0])), ("waiting_pairs_seen", np.array([99]))):
        phi_hat.save(tmp_path / "map.npz")
        write_arrays(tmp_path / "damaged.npz", {**arrays_in(tmp_path / "map.npz"), name: damaged})
        with pytest.raises(StateMismatch, match=name if name != "waiting_pairs_seen" else "pairs_x"):
            postserve.load(tmp_path / "damaged.npz")
