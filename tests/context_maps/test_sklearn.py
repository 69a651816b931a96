"""Regressors of scikit-learn as maps: when they are fitted, and how often they are asked."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, SGDRegressor
from sklearn.neighbors import KNeighborsRegressor
from tests.stored import arrays_in, load_old, write_arrays
from tests.untyped import untyped

import postserve
from postserve import InvalidInput, PoLinUCB, SklearnMap, StateMismatch, load
from postserve.conformance.tools import same, snapshot
from postserve.context_maps.sklearn import BATCH


class Watched(LinearRegression):
    """The mean of z; it notes its fits and predictions, of all clones."""

    fits: ClassVar[list[int]] = []
    predictions: ClassVar[list[int]] = []

    def fit(self, X: Any, y: Any) -> Any:
        self.fits.append(len(X))
        self.mean_ = np.mean(y, axis=0)
        return self

    def predict(self, X: Any) -> Any:
        self.predictions.append(len(X))
        return np.repeat(self.mean_[None], len(X), axis=0)


@pytest.fixture
def watched() -> Any:
    Watched.fits.clear()
    Watched.predictions.clear()
    return Watched()


def some_pairs(n: int, dim_z: int = 2, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, X @ rng.normal(size=(3, dim_z)) + 0.3 * rng.normal(size=(n, dim_z))


def teach(phi_hat: Any, X: Any, Z: Any) -> Any:
    for x, z in zip(X, Z, strict=True):
        phi_hat.update(x, 0, z)
    return phi_hat


@pytest.mark.parametrize(
    ("growth", "expected"),
    [(2.0, [8, 16, 32, 64, 128]), (1.5, [8, 12, 18, 27, 41, 62, 93, 140]), (10.0, [8, 80])],
)
def test_refits_come_when_the_pairs_have_grown(watched: Any, growth: float, expected: list[int]) -> None:
    teach(SklearnMap(3, 2, watched, refit_growth=growth), *some_pairs(200))
    assert watched.fits == expected


def test_a_growth_that_is_none_is_refused() -> None:
    for bad in (1.0, 0.5, np.nan):
        with pytest.raises(InvalidInput, match="refit_growth"):
            SklearnMap(3, 2, LinearRegression(), refit_growth=bad)


def test_learning_asks_for_few_predictions(watched: Any) -> None:
    teach(SklearnMap(3, 2, watched), *some_pairs(1000))
    of_pairs = [rows for rows in watched.predictions if rows > 1]
    assert sum(of_pairs) >= 1000 - 2 * BATCH
    assert len(watched.predictions) <= 1000 / BATCH + 2 * len(watched.fits) + 2


@pytest.mark.parametrize("n", [5, 8, 9, 40, 64, 65, 200])
def test_errors_are_those_from_before_each_pair_was_learnt(n: int) -> None:
    X, Z = some_pairs(n)
    phi_hat, expected = SklearnMap(3, 2, KNeighborsRegressor(3)), np.zeros(2)
    for x, z in zip(X, Z, strict=True):
        expected += (z - phi_hat.predict(x)[0]) ** 2 if phi_hat.is_taught(0) else 0.0
        phi_hat.update(x, 0, z)
    squares, pairs = phi_hat.squared_errors()
    assert pairs == n
    assert np.allclose(squares, expected)
    assert np.allclose(phi_hat.squared_errors()[0], expected)


def test_forgetting_weighs_all_errors_alike() -> None:
    X, Z = some_pairs(50)
    phi_hat = teach(SklearnMap(3, 2, KNeighborsRegressor(3)), X, Z)
    squares, pairs = phi_hat.squared_errors()
    phi_hat.forget(0.5)
    assert np.allclose(phi_hat.squared_errors()[0], 0.5 * squares)
    assert phi_hat.squared_errors()[1] == 0.5 * pairs


@pytest.mark.parametrize("n", [6, 50, 100])
def test_a_saved_map_goes_on_to_the_last_bit(n: int, tmp_path: Path) -> None:
    phi_hat = teach(SklearnMap(3, 2, LinearRegression(), refit_growth=1.5), *some_pairs(n))
    phi_hat.save(tmp_path / "map.npz")
    twin = postserve.load(tmp_path / "map.npz", objects={"regressor": LinearRegression()})
    X, Z = some_pairs(100, seed=1)
    for one in (phi_hat, twin):
        teach(one, X, Z)
    assert [phi_hat.radius(x)[0] for x in X] == [twin.radius(x)[0] for x in X]
    assert all(np.array_equal(phi_hat.predict(x), twin.predict(x)) for x in X)


def test_an_impossible_count_of_errors_is_refused(tmp_path: Path) -> None:
    teach(SklearnMap(3, 2, LinearRegression()), *some_pairs(200)).save(tmp_path / "map.npz")
    for count in (-1, 100, 201):
        arrays = {**arrays_in(tmp_path / "map.npz"), "compared": np.array([count])}
        write_arrays(tmp_path / "damaged.npz", arrays)
        with pytest.raises(StateMismatch, match="compared"):
            postserve.load(tmp_path / "damaged.npz", objects={"regressor": LinearRegression()})


@pytest.mark.parametrize("loss", ["squared_error", "huber"])
@pytest.mark.parametrize("dim_z", [1, 2])
def test_a_pair_that_partial_fit_would_not_survive_is_refused_and_changes_nothing(
    loss: str, dim_z: int
) -> None:
    phi_hat = teach(SklearnMap(3, dim_z, untyped(SGDRegressor)(loss=loss)), *some_pairs(20, dim_z))
    policy, rng = PoLinUCB(2, phi_hat), np.random.default_rng(0)
    before, x, z = snapshot(policy), np.full(3, 3e48), np.ones(dim_z)
    with pytest.raises(InvalidInput, match=r"regressor\.predict\(x\), after learning x, has .*wanted a norm"):
        policy.update(x, 0, z, 1.0)
    assert same(before, snapshot(policy))
    x = np.full(3, 1e15)  # large, and learnt
    policy.update(x, 0, z, 1.0)
    policy.select(x, rng)
    policy.select(np.ones(3), rng)


def test_a_regressor_that_fails_in_partial_fit_is_refused_in_words() -> None:
    phi_hat = SklearnMap(3, 1, SGDRegressor(eta0=-1.0))
    before = snapshot(phi_hat)
    with pytest.raises(InvalidInput, match=r"partial_fit\(x, z\) fails \(.*eta0.*\), wanted"):
        phi_hat.update(np.ones(3), 0, [1.0])
    assert same(before, snapshot(phi_hat))


def test_a_map_of_version_1_is_not_centred_however_often_it_is_saved(tmp_path: Path) -> None:
    """It holds z as it is, and its settings do not say so."""
    phi_hat = first = load_old("version1_sklearn")
    assert first.predict([0.3, 0.4]) == pytest.approx(7.32410491)  # as the code that saved it did
    for _ in range(2):
        phi_hat.save(tmp_path / "map.npz")
        phi_hat = load(tmp_path / "map.npz", objects={"regressor": LinearRegression()})
        assert not phi_hat.centred
    X, Z = some_pairs(40, 1)
    for each in (first, phi_hat):
        teach(each, X[:, :2], Z)
    assert np.array_equal(first.predict([0.3, 0.4]), phi_hat.predict([0.3, 0.4]))
