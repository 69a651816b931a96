"""Maps that assume only that phi is smooth: nearest neighbours and kernel ridge regression."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KNeighborsRegressor
from tests.parts import part
from tests.stored import arrays_in, write_arrays
from tests.untyped import untyped

import postserve
from postserve import HolderEnvironment, InvalidInput, KernelMap, NeighborsMap, StateMismatch
from postserve.context_maps import kernel, neighbors
from postserve.context_maps.landmarks import Landmarks, matern
from postserve.linalg.ridge import RidgeModels


def teach(phi_hat: Any, X: Any, Z: Any) -> Any:
    for x, z in zip(X, Z, strict=True):
        phi_hat.update(x, 0, z)
    return phi_hat


def answers(phi_hat: Any, X: Any) -> Any:
    return np.array([phi_hat.predict(x)[0] for x in X])


def radii(phi_hat: Any, X: Any) -> Any:
    return np.array([phi_hat.radius(x)[0] for x in X])


def some_pairs(n: int, dim_x: int, seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, size=(n, dim_x))
    return X, np.hstack([np.sin(3.0 * X[:, :1]), X.sum(axis=1, keepdims=True)]) + 0.1 * rng.normal(
        size=(n, 2)
    )


def nearest_mean(X: Any, Z: Any, x: Any, k: int) -> Any:
    distance = np.linalg.norm(X - x, axis=1)
    return Z[distance <= np.sort(distance)[k - 1]].mean(axis=0)


# Nearest neighbours


@pytest.mark.parametrize("n", [5, 200, 257, 900, 1500])
@pytest.mark.parametrize("dim_x", [1, 3])
def test_neighbors_are_those_of_scikit_learn_where_nothing_ties(n: int, dim_x: int) -> None:
    X, Z = some_pairs(n, dim_x)
    phi_hat = teach(NeighborsMap(dim_x, 2, neighbors=5, own_units=False), X, Z)
    at = some_pairs(50, dim_x, seed=1)[0]
    assert np.allclose(answers(phi_hat, at), KNeighborsRegressor(5).fit(X, Z).predict(at))


@pytest.mark.parametrize("dim_x", [1, 2])
@pytest.mark.parametrize("k", [1, 3, 40])
def test_all_pairs_that_tie_with_the_last_are_averaged(dim_x: int, k: int) -> None:
    X, Z = some_pairs(1200, dim_x)
    X = np.round(4.0 * X)
    phi_hat = teach(NeighborsMap(dim_x, 2, neighbors=k, own_units=False), X, Z)
    order = np.random.default_rng(1).permutation(len(X))
    shuffled = teach(NeighborsMap(dim_x, 2, neighbors=k, own_units=False), X[order], Z[order])
    at = np.round(4.0 * some_pairs(30, dim_x, seed=2)[0]) + 0.5
    assert np.allclose(answers(phi_hat, at), [nearest_mean(X, Z, x, k) for x in at])
    assert np.allclose(answers(phi_hat, at), answers(shuffled, at))


def test_neighbors_are_near_in_units_of_each_column(tmp_path: Path) -> None:
    X, Z = some_pairs(512, 3)
    X[:, 2] = 0.1  # no spread, and so no unit
    units = np.array([1024.0, 1.0, 2.0**-20])
    plain, scaled = NeighborsMap(3, 2), NeighborsMap(3, 2)
    for start in range(0, 512, 128):
        rows = slice(start, start + 128)
        teach(plain, X[rows], Z[rows])
        teach(scaled, X[rows] * units, Z[rows])
        assert np.array_equal(answers(plain, X[:40]), answers(scaled, X[:40] * units))
    own = X / np.where(X.std(axis=0) > 1e-9, X.std(axis=0), np.inf)
    k = plain._k(512)
    assert np.allclose(answers(plain, X[:40]), [nearest_mean(own, Z, x, k) for x in own[:40]])
    plain.save(tmp_path / "map.npz")
    arrays = arrays_in(tmp_path / "map.npz")
    older = {name: arrays[name] for name in arrays if name not in ("units", "units_at", "first_z")}
    older["pairs_z"] = older["pairs_z"] + arrays["first_z"]
    write_arrays(tmp_path / "older.npz", older)
    raw = teach(postserve.load(tmp_path / "older.npz"), X, Z)
    X, Z, k = np.vstack([X, X]), np.vstack([Z, Z]), raw._k(1024)
    assert np.allclose(answers(raw, X[:40]), [nearest_mean(X, Z, x, k) for x in X[:40]])


def test_how_many_neighbors_follows_the_smoothness() -> None:
    assert [NeighborsMap(1, 1)._k(n) for n in (1, 2, 8, 1000)] == [1, 2, 4, 100]
    assert NeighborsMap(1, 1, smoothness=0.5)._k(10_000) == 100
    assert NeighborsMap(2, 1, smoothness=3.0)._k(10_000) == NeighborsMap(2, 1)._k(10_000) == 100
    assert NeighborsMap(2, 1, neighbors=7)._k(10_000) == 7
    assert NeighborsMap(3, 1, smoothness=0.5).map_rate == 0.125


def test_the_tree_is_never_seen(monkeypatch: Any, tmp_path: Path) -> None:
    X, Z = some_pairs(1000, 2)
    X[::3] = np.round(X[::3], 1)
    at = np.vstack([some_pairs(20, 2, seed=1)[0], X[:20]])
    grown = teach(NeighborsMap(2, 2), X[:700], Z[:700])
    grown.save(tmp_path / "map.npz")
    loaded = postserve.load(tmp_path / "map.npz")
    assert (grown._in_tree, loaded._in_tree) == ((0, 512), (0, 700))
    monkeypatch.setattr(neighbors, "FIRST_TREE", 10**9)
    bare = teach(NeighborsMap(2, 2), X[:700], Z[:700])
    for _ in range(2):
        assert bare._tree is None
        assert np.array_equal(answers(grown, at), answers(bare, at))
        assert np.array_equal(answers(grown, at), answers(loaded, at))
        assert np.array_equal(radii(grown, at), radii(loaded, at))
        for phi_hat in (grown, loaded, bare):
            phi_hat.forget(0.7)
            teach(phi_hat, X[700:], Z[700:])


@pytest.mark.parametrize("keep", [0.9, 0.6, 0.3, 0.01])
def test_only_pairs_that_count_are_neighbors(keep: float) -> None:
    X, Z = some_pairs(1100, 1)
    phi_hat = teach(NeighborsMap(1, 2, neighbors=4), X[:1000], Z[:1000])
    phi_hat.forget(keep)
    teach(phi_hat, X[1000:], Z[1000:])
    first = 1000 - int(np.ceil(1000 * keep))
    at = some_pairs(30, 1, seed=1)[0]
    assert np.allclose(answers(phi_hat, at), [nearest_mean(X[first:], Z[first:], x, 4) for x in at])


def test_forgetting_every_round_stays_exact() -> None:
    X, Z = some_pairs(1500, 1)
    phi_hat = NeighborsMap(1, 2, neighbors=4)
    for x, z in zip(X, Z, strict=True):
        phi_hat.update(x, 0, z)
        phi_hat.forget(0.997)
    count = phi_hat._pairs.counting()
    assert 300 < count < 340
    at = some_pairs(30, 1, seed=1)[0]
    assert np.allclose(answers(phi_hat, at), [nearest_mean(X[-count:], Z[-count:], x, 4) for x in at])


# Kernel ridge regression


@pytest.mark.parametrize("smoothness", [0.3, 0.5, 1.5, 2.0, 2.5, 7.3])
def test_the_kernel_is_the_one_of_scikit_learn(smoothness: float) -> None:
    X, Y = some_pairs(20, 2)[0], some_pairs(30, 2, seed=1)[0]
    distance = np.sqrt(((X[:, None] - Y) ** 2).sum(axis=-1))
    assert np.allclose(matern(distance, 0.7, smoothness), Matern(0.7, nu=smoothness)(X, Y))
    ends = matern(np.array([0.0, 1e-300, 1e-12, 1e60]), 0.7, smoothness)
    assert np.allclose(ends, [1.0, 1.0, 1.0, 0.0], atol=1e-3)
    assert ends[0] == 1.0


def test_the_kernel_of_a_large_smoothness_is_nearly_a_gaussian() -> None:
    distance = np.linspace(0.0, 3.0, 50)
    assert np.allclose(matern(distance, 1.0, 50.0), np.exp(-(distance**2) / 2.0), atol=0.01)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 1.1])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_it_is_exact_up_to_the_number_of_landmarks(n: int, smoothness: float) -> None:
    X, Z = some_pairs(n, 2)
    options: Any = {"smoothness": smoothness, "length_scale": 0.7, "landmarks": 60}
    phi_hat = teach(KernelMap(2, 2, ridge=(0.3, 0.6), noise_scale=np.sqrt(0.3 / 2.0), **options), X, Z)
    at = some_pairs(25, 2, seed=1)[0]

    def k(one: Any, other: Any) -> Any:
        return Matern(0.7, nu=smoothness)(one, other) + 0.3 / 0.6

    expected = KernelRidge(alpha=0.3, kernel="precomputed").fit(k(X, X), Z).predict(k(at, X))
    assert np.allclose(answers(phi_hat, at), expected, atol=1e-6)
    process = GaussianProcessRegressor(
        Matern(0.7, nu=smoothness) + ConstantKernel(0.3 / 0.6), alpha=0.3, optimizer=None
    ).fit(X, Z[:, 0])
    assert np.allclose(radii(phi_hat, at), process.predict(at, return_std=True)[1], atol=1e-6)


def test_it_stays_exact_where_few_contexts_repeat() -> None:
    rng = np.random.default_rng(0)
    X = rng.integers(5, size=(300, 1)).astype(float)
    Z = X**2 + rng.normal(size=(300, 1))
    phi_hat = teach(KernelMap(1, 1, landmarks=8, length_scale=1.0, ridge=0.5), X, Z)
    k = Matern(1.0, nu=1.5)
    exact = KernelRidge(alpha=0.5, kernel="precomputed").fit(k(X, X) + 1.0, Z)
    at = np.linspace(-1.0, 5.0, 13)[:, None]
    assert len(phi_hat._landmarks.points) == 5
    assert np.allclose(answers(phi_hat, at), exact.predict(k(at, X) + 1.0), atol=1e-6)


@pytest.mark.parametrize("n", [64, 100, 1100])
def test_beyond_it_is_the_subset_of_regressors(n: int) -> None:
    X, Z = some_pairs(n, 2)
    phi_hat = teach(KernelMap(2, 2, landmarks=16, length_scale=1.0, ridge=(0.3, 1e15)), X, Z)
    marks, at, k = phi_hat._landmarks.points, some_pairs(25, 2, seed=1)[0], Matern(1.0, nu=1.5)
    assert len(marks) == 16
    A = k(marks, X) @ k(X, marks) + 0.3 * k(marks, marks)
    assert np.allclose(answers(phi_hat, at), k(at, marks) @ np.linalg.solve(A, k(marks, X) @ Z), atol=1e-6)
    assert phi_hat._pairs.n_kept == (0 if n >= 512 else n)


def test_a_rebuild_in_blocks_is_one_in_a_whole(monkeypatch: Any) -> None:
    X, Z = some_pairs(130, 2)
    whole = teach(KernelMap(2, 2, landmarks=16), X, Z)
    monkeypatch.setattr(kernel, "BLOCK", 10)
    assert np.allclose(answers(whole, X), answers(teach(KernelMap(2, 2, landmarks=16), X, Z), X))


def test_settings_are_not_kept_by_reference() -> None:
    ridge = [0.5, 1.0]
    phi_hat = KernelMap(2, 2, ridge=ridge)
    ridge[0] = 100.0
    teach(phi_hat, *some_pairs(5, 2))
    assert phi_hat.prior.ridge == {"kernel": 0.5, "intercept": 1.0}


def test_landmarks_spread_over_the_contexts() -> None:
    landmarks = Landmarks(1, 1.5, most=9)
    landmarks.spread(np.random.default_rng(0).uniform(-1.0, 1.0, size=(2000, 1)) ** 3, length=1.0)
    gaps = np.diff(np.sort(landmarks.points.ravel()))
    assert gaps.max() < 0.4
    assert gaps.min() > 0.05
    rows = landmarks.features(landmarks.points).rows
    assert np.allclose(rows @ rows.T, Matern(1.0, nu=1.5)(landmarks.points))


def test_offsets_and_units_are_learnt() -> None:
    X, Z = some_pairs(400, 1)
    at = np.linspace(-0.9, 0.9, 20)[:, None]
    plain = answers(teach(KernelMap(1, 2), X, Z), at)
    moved = answers(teach(KernelMap(1, 2), 1e3 * X + 1e4, 1e3 * Z + 1e5), 1e3 * at + 1e4)
    assert np.abs(plain - np.hstack([np.sin(3.0 * at), at])).max() < 0.1
    assert np.abs((moved - 1e5) / 1e3 - plain).max() < 0.05


def test_columns_have_units_of_their_own() -> None:
    X, Z = some_pairs(200, 3)
    X[:, 2] = 0.1  # it has no spread, and so no unit
    plain = answers(teach(KernelMap(3, 2), X, Z), X)
    units = np.array([1024.0, 1.0, 2.0**-20])
    assert np.array_equal(answers(teach(KernelMap(3, 2), X * units, Z), X * units), plain)
    raw = KernelMap(3, 2, length_scale="raw median")
    assert not np.allclose(answers(teach(raw, X * units, Z), X * units), plain)
    far = [0.1, 0.1, 7.0], [0.1, 0.1, 9.0]
    phi_hat = teach(KernelMap(3, 2), X, Z)
    assert np.array_equal(phi_hat.predict(far[0]), phi_hat.predict(far[1]))


def test_it_learns_from_the_first_pair_on() -> None:
    phi_hat = KernelMap(2, 1)
    assert phi_hat.predict([1.0, 2.0]) == phi_hat.radius([1.0, 2.0]) == 0.0
    phi_hat.update([1.0, 2.0], 0, [5.0])
    assert phi_hat.predict([1.0, 2.0])[0, 0] == 5.0
    for _ in range(20):
        phi_hat.update([1.0, 2.0], 0, [5.0])  # no distance yet, no length scale, and no variance
    assert phi_hat.predict([1.0, 2.0])[0, 0] == 5.0
    assert phi_hat.radius([1.0, 2.0]) == 0.0
    for i in range(20):
        phi_hat.update([2.0 + i % 3, 2.0], 0, [6.0 + i % 3])
    assert 0.0 < phi_hat.radius([1.0, 2.0]) < phi_hat.radius([9.0, 2.0])


def test_noise_is_learnt_and_the_radius_is_of_the_size_of_the_error() -> None:
    env = HolderEnvironment(2.0, dim_x=2, dim_z=2, z_noise=0.3)
    rounds = env.rounds(1500, np.random.default_rng(0))
    phi_hat = teach(KernelMap(2, 2), rounds.x, rounds.z)
    phi_hat.refit_prior()
    assert np.allclose(np.sqrt(phi_hat.prior.noise_variance), 0.3, rtol=0.1)
    at = env.rounds(300, np.random.default_rng(1)).x
    errors = np.linalg.norm(answers(phi_hat, at) - env._phi(at), axis=1)
    assert 0.5 < np.sqrt((errors**2).mean() / (radii(phi_hat, at) ** 2).mean()) < 1.5
    assert phi_hat.radius([50.0, 50.0])[0] > 5.0 * radii(phi_hat, at).mean()


@pytest.mark.parametrize("n", [20, 90, 400])
def test_it_goes_on_bit_by_bit_when_loaded(n: int, tmp_path: Path) -> None:
    X, Z = some_pairs(2 * n, 2)
    phi_hat = teach(KernelMap(2, 2, landmarks=12), X[:n], Z[:n])
    phi_hat.save(tmp_path / "map.npz")
    twin = postserve.load(tmp_path / "map.npz")
    for one in (phi_hat, twin):
        one.forget(0.9)
        teach(one, X[n:], Z[n:])
    assert np.array_equal(answers(phi_hat, X), answers(twin, X))
    assert np.array_equal(radii(phi_hat, X), radii(twin, X))


def test_a_damaged_state_is_refused(tmp_path: Path) -> None:
    phi_hat = teach(KernelMap(2, 2, landmarks=12), *some_pairs(20, 2))
    for name, damaged, wanted in (
        ("rebuilt_at", np.array([-1]), "rebuilt_at"),
        ("rebuilt_at", np.array([1]), "landmarks"),
        ("landmarks_length", np.array([-1.0]), "landmarks_length"),
        ("landmarks_factor", np.zeros((12, 12)), "landmarks_factor"),
    ):
        phi_hat.save(tmp_path / "map.npz")
        write_arrays(tmp_path / "map.npz", {**arrays_in(tmp_path / "map.npz"), name: damaged})
        with pytest.raises(StateMismatch, match=wanted):
            postserve.load(tmp_path / "map.npz")


def test_rows_at_once_are_rows_one_by_one() -> None:
    X, Z = some_pairs(40, 3)
    for ridge in (0.5, "evidence"):
        one, many = (RidgeModels(1, {"x": 3}, n_outputs=2, ridge=ridge) for _ in range(2))
        for x, z in zip(X, Z, strict=True):
            one.update(0, x, z)
        many.learn_sums(0, [(X[:10], Z[:10]), (X[10:25], Z[10:25])])
        many.update_batch(np.zeros(15, dtype=np.int64), X[25:], Z[25:])
        for models in (one, many):
            models.prior.refit(models)
        for name in ("gram", "moment", "squares", "pulls", "weights", "log_det"):
            assert np.allclose(part(one, name), part(many, name)), name
        assert one.updates == many.updates == 40


# Both


@pytest.mark.parametrize(
    "make", [lambda b, d: NeighborsMap(d, 1, smoothness=b), lambda b, d: KernelMap(d, 1)]
)
@pytest.mark.parametrize(("smoothness", "dim_x"), [(0.5, 1), (1.0, 1), (0.5, 2), (1.0, 2)])
def test_the_error_falls_as_the_class_allows(make: Any, smoothness: float, dim_x: int) -> None:
    """Sixteen times the pairs: about 16^{-b/(2b + d)} of the error is left (0.4 to 0.63)."""
    env = HolderEnvironment(smoothness, dim_x=dim_x)
    rounds = env.rounds(3200, np.random.default_rng(0))
    at = env.rounds(300, np.random.default_rng(1)).x
    phi_hat = teach(make(smoothness, dim_x), rounds.x[:200], rounds.z[:200])
    early = np.abs(answers(phi_hat, at) - env._phi(at)).mean()
    teach(phi_hat, rounds.x[200:], rounds.z[200:])
    late = np.abs(answers(phi_hat, at) - env._phi(at)).mean()
    assert late < 1.15 * 16.0 ** (-smoothness / (2.0 * smoothness + dim_x)) * early


@pytest.mark.parametrize("make", [NeighborsMap, KernelMap])
def test_forgetting_lets_it_follow_a_change(make: Any) -> None:
    X, Z = some_pairs(600, 1)
    phi_hat = teach(make(1, 2), X[:400], Z[:400])
    phi_hat.forget(0.02)
    teach(phi_hat, X[400:], -Z[400:])
    at = np.linspace(-0.9, 0.9, 20)[:, None]
    assert np.abs(answers(phi_hat, at) + np.hstack([np.sin(3.0 * at), at])).mean() < 0.15


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: NeighborsMap(2, 1, smoothness=0.0), "smoothness"),
        (lambda: NeighborsMap(2, 1, smoothness=np.nan), "smoothness"),
        (lambda: NeighborsMap(2, 1, neighbors=0), "neighbors"),
        (lambda: NeighborsMap(2, 1, neighbors=untyped(2.0)), "neighbors"),
        (lambda: NeighborsMap(2, 1, map_rate=0.6), "map_rate"),
        (lambda: NeighborsMap(2, 1, ridge=0.0), "ridge"),
        (lambda: KernelMap(2, 1, smoothness=-1.0), "smoothness"),
        (lambda: KernelMap(2, 1, smoothness=51.0), "smoothness"),
        (lambda: KernelMap(2, 1, length_scale=untyped("mean")), "length_scale"),
        (lambda: KernelMap(2, 1, length_scale=0.0), "length_scale"),
        (lambda: KernelMap(2, 1, landmarks=0), "landmarks"),
        (lambda: KernelMap(2, 1, ridge=0.0), "ridge"),
        (lambda: KernelMap(2, 1, ridge=(1.0, 1.0, 1.0)), "ridge"),
        (lambda: KernelMap(2, 1, noise_scale=-1.0), "noise_scale"),
        (lambda: KernelMap(2, 1, radius_scale=-1.0), "radius_scale"),
    ],
)
def test_bad_settings_say_what_was_wanted(make: Any, wanted: str) -> None:
    with pytest.raises(InvalidInput, match=wanted) as caught:
        make()
    assert "wanted" in str(caught.value)
