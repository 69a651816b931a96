"""The radius of maps that keep pairs grows with the distance from what was seen."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from sklearn.linear_model import SGDRegressor
from sklearn.tree import DecisionTreeRegressor
from tests.stored import arrays_in, write_arrays

import postserve
from postserve import KernelMap, NeighborsMap, NetworkMap, PoLinUCB, SklearnMap
from postserve.context_maps.pairs import WINDOW, PairsMap
from postserve.types import FloatArray

REGRESSORS = {"tree": DecisionTreeRegressor, "partial_fit": SGDRegressor}
MAPS: dict[str, Callable[[int], PairsMap]] = {
    "neighbors": lambda dim: NeighborsMap(dim, 1),
    "rough neighbors": lambda dim: NeighborsMap(dim, 1, smoothness=0.5, own_units=False),
    "network": lambda dim: NetworkMap(dim, 1),
    "tree": lambda dim: SklearnMap(dim, 1, DecisionTreeRegressor()),
    "partial_fit": lambda dim: SklearnMap(dim, 1, SGDRegressor()),
}
each_map = pytest.mark.parametrize("name", MAPS)


def radii(phi_hat: PairsMap, *at: float) -> FloatArray:
    return np.array([phi_hat.radius([x])[0] for x in at])


def old_radius(phi_hat: PairsMap, x: FloatArray) -> float:
    """Assumption 1's, as states of earlier versions have it."""
    X, _ = phi_hat._pairs.at(np.arange(phi_hat._pairs.seen))
    width = x @ np.linalg.solve(phi_hat.ridge * np.eye(len(x)) + X.T @ X, x)
    squares, n = phi_hat.squared_errors()
    return float(np.sqrt(squares.sum() / n) * width**phi_hat.map_rate * np.log(n / phi_hat.delta))


@each_map
def test_two_pairs_at_one_say_little_about_zero(name: str) -> None:
    phi_hat = MAPS[name](1)
    phi_hat.update([1.0], 0, [1.0])
    phi_hat.update([1.0], 0, [2.0])
    away = radii(phi_hat, 1.0, 0.9, 0.5, 0.0, -1.0, -9.0)
    assert old_radius(phi_hat, np.zeros(1)) == 0.0
    assert (np.diff(away) > 0.0).all()
    np.testing.assert_allclose(radii(phi_hat, 2.0), radii(phi_hat, 0.0))  # as far on the other side


@each_map
def test_no_number_of_pairs_elsewhere_reduces_it(name: str) -> None:
    """Between two clusters phi is not seen; the assumed radius falls there, too."""
    rng, phi_hat = np.random.default_rng(0), MAPS[name](1)
    between, assumed = [], []
    for n in (50, 500):
        while phi_hat._pairs.seen < n:
            x = rng.choice([-1.0, 1.0])
            phi_hat.update([x], 0, [x + 0.3 * rng.normal()])
        between.append(radii(phi_hat, 0.01, 1.0))
        if name != "partial_fit":  # it keeps too few pairs for the direct computation
            assumed.append(old_radius(phi_hat, np.array([0.01])))
    assert between[1][1] < 0.5 * between[0][1]
    assert between[1][0] > 1.0  # the spread of z
    assert all(e < 0.2 for e in assumed[1:])
    for _ in range(200):
        phi_hat.update([0.01 * rng.normal()], 0, [0.3 * rng.normal()])
    assert radii(phi_hat, 0.01)[0] < 0.5 * between[1][0]


@each_map
def test_optimism_and_draws_explore_phi_there(name: str) -> None:
    """Arm 0 pays z, arm 1 nothing; z was -0.5 on average at 1, and is not known at 0."""
    rng, phi_hat = np.random.default_rng(0), MAPS[name](1)
    for _ in range(100):
        phi_hat.update([1.0], 0, [-0.5 + rng.normal()])
    drawn = phi_hat.sample([0.0], (0,), rng, size=400).ravel()
    assert drawn.std() == pytest.approx(phi_hat.radius([0.0])[0], rel=0.15)
    assert drawn.std() > 0.8
    assert phi_hat.predict([0.0])[0, 0] < -0.2
    wanted: dict[Literal["plugin", "joint"], int] = {"plugin": 1, "joint": 0}
    for optimism, arm_wanted in wanted.items():
        policy = PoLinUCB(2, phi_hat, optimism=optimism, ridge=1e-3, arm_radius=0.0)
        for z in (-1.0, 1.0):
            for arm, reward in enumerate((z, 0.0)):
                policy.credit([0.0], arm, [z], reward, z_hat=[z])
        assert policy.select([0.0], rng).arm == arm_wanted


@pytest.mark.parametrize("name", ["network", "tree", "partial_fit"])
def test_contexts_like_those_seen_are_not_far(name: str) -> None:
    """In 20 dimensions every context is far from every other: such a distance is usual."""
    rng, phi_hat = np.random.default_rng(0), MAPS[name](20)
    for _ in range(300):
        x = rng.normal(size=20)
        phi_hat.update(x, 0, [x[0] + 0.3 * rng.normal()])
    X = rng.normal(size=(200, 20))
    inside = np.array([phi_hat.radius(x)[0] for x in X])
    assert np.mean(inside == inside.min()) > 0.99
    assert (np.array([phi_hat.radius(4.0 * x)[0] for x in X]) > inside).all()


def test_a_column_that_never_varied_is_far_at_any_other_value() -> None:
    rng, phi_hat = np.random.default_rng(0), NetworkMap(2, 1)
    for _ in range(64):
        phi_hat.update([rng.normal(), 5.0], 0, [rng.normal()])
    same, other = phi_hat.radius([0.0, 5.0])[0], phi_hat.radius([0.0, 10.0])[0]
    assert other > same + 0.3


@each_map
def test_units_of_x_and_z_do_not_matter(name: str) -> None:
    """Powers of two; the network and the regressor of gradients are not scale-free in themselves."""
    if name in ("network", "partial_fit"):
        return
    rng = np.random.default_rng(0)
    one, other = MAPS[name](2), MAPS[name](2)
    for _ in range(100):
        x, z = rng.normal(size=2), rng.normal(size=1)
        one.update(x, 0, z)
        other.update(8.0 * x, 0, 4.0 * z)
    assert other.radius([8.0, 80.0])[0] == pytest.approx(4.0 * one.radius([1.0, 10.0])[0], rel=1e-9)


def load_again(path: Path, name: str, phi_hat: Any) -> PairsMap:
    objects = {"regressor": phi_hat.regressor} if name in REGRESSORS else {}
    loaded = postserve.load(path, objects=objects)
    assert isinstance(loaded, PairsMap)
    return loaded


@each_map
def test_states_of_earlier_versions_go_on_as_they_did(name: str, tmp_path: Path) -> None:
    rng, phi_hat, path = np.random.default_rng(0), MAPS[name](2), tmp_path / "map.npz"
    for _ in range(40):
        x = rng.normal(size=2)
        phi_hat.update(x, 0, [x[0] + rng.normal()])
    phi_hat.save(path)
    arrays = arrays_in(path)
    del arrays["usual_distance"]
    if name == "partial_fit":  # it kept one pair
        arrays |= {side: arrays[side][-1:] for side in ("pairs_x", "pairs_z")}
        arrays["pairs_window"] = np.ones(1)
    write_arrays(path, arrays)
    older = load_again(path, name, phi_hat)
    x = np.array([1.0, -2.0])
    np.testing.assert_array_equal(older.predict(x), phi_hat.predict(x))
    assert older.radius([0.0, 0.0])[0] == 0.0
    assert older.radius(x)[0] == pytest.approx(old_radius(phi_hat, x), rel=1e-9)
    for _ in range(40):  # past the next doubling
        older.update(rng.normal(size=2), 0, rng.normal(size=1))
    assert older.radius([0.0, 0.0])[0] == 0.0
    older.save(path)
    assert load_again(path, name, older).radius(x) == older.radius(x)


@each_map
def test_states_keep_the_usual_distance(name: str, tmp_path: Path) -> None:
    rng, phi_hat, path = np.random.default_rng(0), MAPS[name](2), tmp_path / "map.npz"
    for _ in range(100):
        phi_hat.update(rng.normal(size=2), 0, rng.normal(size=1))
    phi_hat.save(path)
    loaded = load_again(path, name, phi_hat)
    for x in rng.normal(size=(20, 2)) * 3.0:
        assert loaded.radius(x) == phi_hat.radius(x)


def test_a_regressor_that_learns_pair_by_pair_keeps_a_window() -> None:
    rng, phi_hat = np.random.default_rng(0), MAPS["partial_fit"](1)
    for _ in range(20):
        phi_hat.update(rng.normal(size=1), 0, rng.normal(size=1))
    assert phi_hat._pairs.capacity == WINDOW
    assert phi_hat._pairs.n_kept == 20


# KernelMap: a posterior standard deviation.


def kernel_map_at_one_x(n: int) -> KernelMap:
    rng, phi_hat = np.random.default_rng(0), KernelMap(2, 1)
    for _ in range(n):
        phi_hat.update([1.0, 0.1], 0, [1.0 + 0.3 * rng.normal()])
    return phi_hat


def prior_radius(phi_hat: KernelMap) -> float:
    """sigma/sqrt(lambda), the prior standard deviation of phi around its level."""
    prior = phi_hat._models.prior
    return float(np.sqrt(prior.noise_variance[0] / prior.block_ridge[0]))


@pytest.mark.parametrize("n", [2, 5, 10, 50, 300])
def test_a_kernel_map_that_saw_one_x_knows_nothing_elsewhere(n: int) -> None:
    """Without a spread no column has a unit; the radius was that of the one x everywhere, 0.04 after 50.

    Pairs at one x do not separate the level of z from phi's deviation there, so the level is as uncertain as
    the latter: elsewhere the variance is twice the prior's, and that of the mean of z.
    """
    phi_hat = kernel_map_at_one_x(n)
    (there,) = phi_hat.radius([1.0, 0.1])
    for x in ([1.001, 0.1], [1.0, 0.0], [-50.0, 0.1]):
        (radius,) = phi_hat.radius(x)
        assert radius == pytest.approx(np.hypot(np.sqrt(2.0) * prior_radius(phi_hat), there))
        assert radius > 3.0 * there
    np.testing.assert_allclose(phi_hat.predict([-50.0, 0.1]), phi_hat.predict([1.0, 0.1]))  # the level


def test_a_second_x_brings_a_unit() -> None:
    phi_hat, rng = kernel_map_at_one_x(50), np.random.default_rng(1)
    for _ in range(50):
        phi_hat.update([rng.normal(), 0.1], 0, [0.3 * rng.normal()])
    near, far = (float(phi_hat.radius([x, 0.1])[0]) for x in (1.0, 50.0))
    assert near < 0.5 * far
    assert prior_radius(phi_hat) < far < np.sqrt(2.0) * prior_radius(phi_hat)


def test_a_kernel_map_of_an_earlier_version_gets_its_radius_at_the_next_rebuild(tmp_path: Path) -> None:
    """Such a state has units of 0 and answers as it did until then."""
    phi_hat, path = kernel_map_at_one_x(50), tmp_path / "map.npz"
    phi_hat.save(path)
    arrays = arrays_in(path)
    assert (arrays["landmarks_units"] == 1.0).all()
    arrays["landmarks_units"] = np.zeros(2)
    write_arrays(path, arrays)
    older = postserve.load(path)
    assert isinstance(older, KernelMap)
    there = phi_hat.radius([1.0, 0.1])
    for x in ([1.0, 0.1], [7.0, 0.1]):
        np.testing.assert_array_equal(older.radius(x), there)
        np.testing.assert_allclose(older.predict(x), phi_hat.predict(x))
    for _ in range(64 - 50):  # pairs have doubled since the last rebuild
        older.update([1.0, 0.1], 0, [1.0])
    assert older.radius([7.0, 0.1])[0] > 3.0 * older.radius([1.0, 0.1])[0]
