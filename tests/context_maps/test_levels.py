"""A constant added to every z: predictions move with it, radii stay, and older states go on as they did."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LinearRegression, PoissonRegressor
from sklearn.tree import DecisionTreeRegressor
from tests.stored import arrays_in, write_arrays

import postserve
from postserve import NeighborsMap, NetworkMap, PerArmMap, RidgeMap, SklearnMap

MAPS: dict[str, Callable[[], Any]] = {
    "neighbors": lambda: NeighborsMap(2, 2),
    "network": lambda: NetworkMap(2, 2, hidden=8),
    "forest": lambda: SklearnMap(2, 2, RandomForestRegressor(5)),
    "process": lambda: SklearnMap(2, 2, GaussianProcessRegressor(alpha=0.1)),
    "wrapped": lambda: SklearnMap(2, 2, LinearRegression(), refit_growth=1.3),
    "per arm": lambda: PerArmMap(NeighborsMap(2, 2)),
}


def some_pairs(n: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Z = np.hstack([np.sin(X[:, :1]), X.sum(axis=1, keepdims=True)]) + 0.3 * rng.normal(size=(n, 2))
    return X, np.round(1024.0 * Z) / 1024.0  # so that sums with a whole number are exact


def teach(phi_hat: Any, X: Any, Z: Any) -> Any:
    for i, (x, z) in enumerate(zip(X, Z, strict=True)):
        phi_hat.update(x, i % 3, z)
    return phi_hat


@pytest.mark.parametrize("level", [100.0, -1e6])
@pytest.mark.parametrize("name", MAPS)
def test_predictions_move_with_z_and_radii_stay(name: str, level: float) -> None:
    X, Z = some_pairs(300)
    plain, moved = MAPS[name](), MAPS[name]()
    for start in range(0, 300, 50):
        rows = slice(start, start + 50)
        teach(plain, X[rows], Z[rows])
        teach(moved, X[rows], Z[rows] + level)
        for x in X[:5]:
            off = moved.predict(x, range(4)) - level - plain.predict(x, range(4))
            assert np.abs(off).max() <= 1e-9 * max(1.0, abs(level) / 1e3)
            assert np.allclose(moved.radius(x, range(4)), plain.radius(x, range(4)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", MAPS)
def test_one_pair_says_nothing_about_errors(name: str) -> None:
    phi_hat = MAPS[name]()
    phi_hat.update([1.0, 2.0], 0, [5.0, 7.0])
    assert np.array_equal(phi_hat.predict([3.0, 4.0]), [[5.0, 7.0]])
    assert phi_hat.squared_errors()[0].tolist() == [0.0, 0.0]


def test_a_process_reverts_to_the_mean_of_z() -> None:
    X, Z = some_pairs(64)
    phi_hat = teach(SklearnMap(2, 2, GaussianProcessRegressor(alpha=0.1)), X, Z + 50.0)
    assert np.allclose(phi_hat.predict([1e6, 1e6])[0], Z.mean(axis=0) + 50.0)


def test_regressors_of_positive_numbers_learn_z_as_it_is() -> None:
    X = some_pairs(64)[0]
    for dim_z in (1, 2):
        phi_hat = SklearnMap(2, dim_z, PoissonRegressor())
        assert not phi_hat.centred
        teach(phi_hat, X, np.exp(X[:, :dim_z]))
        assert (np.array([phi_hat.predict(x)[0] for x in X]) > 0.0).all()
    with pytest.warns(UserWarning, match="another centred"):
        teach(SklearnMap(2, 1, PoissonRegressor(), centred=True), X[:8], np.exp(X[:8, :1]))


def test_arms_without_a_z_of_their_own_are_expected_at_the_mean() -> None:
    X, Z = some_pairs(30)
    phi_hat = teach(PerArmMap(NeighborsMap(2, 2)), X, Z + 100.0)
    assert np.allclose(phi_hat.predict(X[0], [7, 8]), Z.mean(axis=0) + 100.0)
    drawn = phi_hat.sample(X[0], [7], np.random.default_rng(0), 2000)[:, 0]  # which says little of one arm
    assert np.allclose(drawn.mean(axis=0), Z.mean(axis=0) + 100.0, atol=5.0 * Z.std() / np.sqrt(2000))
    assert np.allclose(drawn.std(axis=0), Z.std(axis=0), rtol=0.1)
    ridge = teach(PerArmMap(RidgeMap(2, 2, ridge=1.0)), X, Z + 100.0)
    assert np.array_equal(ridge.predict(X[0], [7]), [[0.0, 0.0]])
    warm = PerArmMap(teach(NeighborsMap(2, 2), X, Z))
    expected = warm.predict(X[0], [7])
    warm.update(X[0], 1, Z[0] + 100.0)
    assert np.array_equal(warm.predict(X[0], [7]), expected)


@pytest.mark.parametrize("name", ["neighbors", "network", "tree", "per arm"])
@pytest.mark.parametrize("n", [0, 1, 40])
def test_states_without_a_first_z_go_on_with_z_as_it_is(name: str, n: int, tmp_path: Path) -> None:
    regressor = DecisionTreeRegressor(max_depth=3)
    empty = SklearnMap(2, 2, regressor) if name == "tree" else MAPS[name]()
    X, Z = some_pairs(60)
    teach(empty, X[:n], Z[:n]).save(tmp_path / "new.npz")
    added = ("first_z", "compared", *(f"mean_{name}" for name in ("pairs", "first", "total", "squares")))
    arrays = arrays_in(tmp_path / "new.npz")
    older = {key: arrays[key] for key in arrays if key.split(".")[-1] not in added}
    for key in older:
        if key.endswith("pairs_z"):
            first = arrays[key.replace("pairs_z", "first_z")]
            older[key] = older[key] + first if len(first) else older[key]
    write_arrays(tmp_path / "older.npz", older)
    objects = {"regressor": regressor} if name == "tree" else {}
    phi_hat = postserve.load(tmp_path / "older.npz", objects=objects)
    if n == 0:
        assert np.array_equal(phi_hat.predict(X[0], [0]), [[0.0, 0.0]])
    phi_hat.update(X[0], 0, Z[0])
    if n == 0:
        assert np.allclose(phi_hat.squared_errors()[0], Z[0] ** 2)
    if name == "per arm":
        assert np.array_equal(phi_hat.predict(X[0], [9]), [[0.0, 0.0]])
    phi_hat.save(tmp_path / "again.npz")
    twin = postserve.load(tmp_path / "again.npz", objects=objects)
    for one in (phi_hat, twin):
        teach(one, X[n:], Z[n:])
    assert np.array_equal(phi_hat.predict(X[0], range(3)), twin.predict(X[0], range(3)))
