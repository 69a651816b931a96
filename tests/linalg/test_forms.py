"""Cold, rows or dense: the form in which a model is stored shows in nothing but the storage."""

import copy
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.parts import part
from tests.stored import STATES, arrays_in, load_old

from postserve import LinUCB, PoLinUCB, RidgeMap, load
from postserve.linalg import forms
from postserve.linalg.kernels.models import (
    COLD,
    DENSE_COUNT,
    FIRST_ROW,
    GAP_COUNT,
    NOBODY,
    OWNER,
    PREVIOUS,
    ROW_COUNT,
    UNDECIDED,
)
from postserve.linalg.ridge import RidgeModels
from postserve.state import Stored
from postserve.types import FloatArray, IntArray

EPS = float(np.finfo(float).eps)


class AllDense(RidgeModels):
    """The same regressions, each dense from its first row on."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options, most_rows=0)


class Shadow:
    """The sums of each model, in full, and nothing else."""

    def __init__(self, n_models: int, dim: int, outputs: int) -> None:
        self.gram = np.zeros((n_models, dim, dim))
        self.moment = np.zeros((n_models, outputs, dim))
        self.squares = np.zeros((n_models, outputs))
        self.pulls = np.zeros(n_models)

    def learn(self, model: int, u: FloatArray, y: FloatArray) -> None:
        self.gram[model] += np.outer(u, u)
        self.moment[model] += np.outer(y, u)
        self.squares[model] += y**2
        self.pulls[model] += 1.0

    def forget(self, keep: float) -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) * keep)

    def merge(self, other: "Shadow") -> None:
        for name in vars(self):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def remove(self, model: int) -> None:
        for name in vars(self):
            setattr(self, name, np.delete(getattr(self, name), model, axis=0))

    def add(self, n_models: int) -> None:
        for name, values in list(vars(self).items()):
            setattr(self, name, np.concatenate([values, np.zeros((n_models, *values.shape[1:]))]))


class Solved:
    """Inverse, weights and log det of each model, solved outright under the ridge in force."""

    def __init__(self, models: RidgeModels, shadow: Shadow) -> None:
        A = shadow.gram + np.diag(models.ridge)
        scale = np.sqrt(np.diagonal(A, axis1=1, axis2=2))
        scales = scale[:, :, None] * scale[:, None, :]
        inverse = np.linalg.inv(A / scales)
        self.weights = np.einsum("kij,koj->koi", inverse / scales, shadow.moment)
        self.log_det = np.linalg.slogdet(A)[1] - np.log(models.ridge).sum()
        self.inverse = inverse / scales
        self.inverse[:, models.prior.zero_inputs] = 0.0
        self.inverse[:, :, models.prior.zero_inputs] = 0.0
        # Conditioning is that of the matrix in units in which its diagonal is 1.
        self.tolerance = max(1e-9, 1000.0 * EPS * float(np.linalg.cond(A / scales).max(initial=1.0)))


def close(got: Any, wanted: Any, tolerance: float, size: float | None = None) -> bool:
    """Within a tolerance, in the size of the largest, or of what was added up."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    if size is None:
        size = max(float(np.abs(wanted).max(initial=0.0)), 1e-3)
    return got.shape == wanted.shape and bool((np.abs(got - wanted) <= tolerance * size).all())


def require_equal(models: RidgeModels, shadow: Shadow, rng: np.random.Generator) -> None:
    """Sums, cache, and every way of reading them."""
    assert models.n_models == len(shadow.pulls)
    for name in ("gram", "moment", "squares", "pulls"):
        assert close(part(models, name), getattr(shadow, name), 1e-11), name
    solved = Solved(models, shadow)
    for name in ("inverse", "weights", "log_det"):
        assert close(part(models, name), getattr(solved, name), solved.tolerance), name
    n = models.n_models
    for slots in (np.arange(n), np.arange(n)[::-1].copy(), rng.permutation(n)[: 1 + n // 2]):
        for rows in {1, len(slots)}:
            require_same_reading(models, solved, slots, rng.standard_normal((rows, models.dim)))


def require_same_reading(models: RidgeModels, solved: Solved, slots: IntArray, U: FloatArray) -> None:
    tolerance, dim = solved.tolerance, models.dim
    inverse, weights = solved.inverse[slots], solved.weights[slots]
    each = np.broadcast_to(U, (len(slots), dim))
    means = np.einsum("kj,koj->ko", each, weights)
    V = np.einsum("kij,kj->ki", inverse, each)
    squares = np.vecdot(each, V)
    of_means = float((np.abs(each)[:, None] * np.abs(weights)).sum(axis=2).max())
    of_V = float((np.abs(each)[:, None] * np.abs(inverse)).sum(axis=2).max())
    of_squares = of_V * float(np.abs(each).max())

    projection = models.project(U, slots)
    assert close(projection.means, means, tolerance, of_means)
    assert close(projection.widths**2, squares, tolerance, of_squares)
    assert close(models.average(U, slots), means, tolerance, of_means)
    assert close(models.solve(U, slots), V, tolerance, of_V)
    last = slice(dim // 2, dim)
    first = slice(0, dim // 2 + 1)
    assert close(models.inverse_of(slots, first, last), inverse[:, first, last], tolerance)
    assert close(models.weights_of(slots), weights, tolerance)
    assert close(models.ellipsoid(slots).log_det, solved.log_det[slots], tolerance)

    size = dim // 3 + 1
    starts = np.array([0, dim - size]) if dim > 1 else np.array([0])
    at = [slice(start, start + size) for start in starts]
    around = models.project_around(U, slots, starts, size)
    assert close(around.means, means[:, 0], tolerance, of_means)
    assert close(around.widths**2, squares, tolerance, of_squares)
    assert close(around.beta, sum(weights[:, 0, one] for one in at), tolerance)
    assert close(around.cross, sum(V[:, one] for one in at), tolerance, of_V)
    assert close(around.block, sum(inverse[:, one, two] for one in at for two in at), tolerance)

    for radius in (np.array([0.7]), np.linspace(0.2, 1.4, len(slots))):
        exact = projection.means[:, 0] + radius * projection.widths
        scores = models.score(U, slots, radius)
        slack = 1e-12 * float(np.abs(exact).max() + np.abs(projection.means).max())
        assert abs(scores.max() - exact.max()) <= slack
        assert (scores <= exact + slack).all()
        assert exact[scores.argmax()] >= exact.max() - slack
        if len(U) == 1:
            (best,) = models.argmax_scores(U, slots, radius)
            assert best in (UNDECIDED, exact.argmax())


def forms_of(models: RidgeModels) -> list[str]:
    place = models.storage.place
    return ["dense" if at >= 0 else "cold" if at == COLD else "rows" for at in place.tolist()]


def require_sound(models: RidgeModels) -> None:
    """Places and owners, chains and counts agree with each other."""
    storage = models.storage
    for name, array in storage._asdict().items():  # kernels would be compiled anew for another layout
        assert array.flags.c_contiguous, name
        assert array.flags.writeable, name
    dense, rows, gaps, _ = storage.counts.tolist()
    owners, previous = storage.links[:rows, OWNER], storage.links[:rows, PREVIOUS]
    assert storage.place[storage.owner[:dense]].tolist() == list(range(dense))
    assert (storage.place >= 0).sum() == dense
    assert (owners == NOBODY).sum() == gaps
    assert not (rows >= forms.LEAST_ROWS and 2 * gaps > rows)
    for model, place in enumerate(storage.place.tolist()):
        chain, row = [], FIRST_ROW - place
        while place <= FIRST_ROW and row != NOBODY:
            chain.append(row)
            row = int(previous[row])
        assert chain[::-1] == np.flatnonzero(owners == model).tolist()
        assert len(chain) <= models.most_rows


# Any sequence of verbs


class Pair:
    """The models, their dense twin and the sums, through the same verbs."""

    def __init__(self, dim: int, outputs: int, ridge: Any, n_models: int, zero_verbs: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.blocks = {"x": dim} if dim == 1 else {"x": dim - dim // 3 - 1, "z": dim // 3 + 1}
        self.dim, self.outputs, self.zero_verbs = dim, outputs, zero_verbs
        self.ridge = list(ridge)[: len(self.blocks)] if isinstance(ridge, tuple) else ridge
        self.models, self.twin, self.shadow = self._fresh(n_models)

    def _fresh(self, n_models: int) -> tuple[RidgeModels, RidgeModels, Shadow]:
        options: Any = {"n_outputs": self.outputs, "ridge": self.ridge}
        return (
            RidgeModels(n_models, self.blocks, **options),
            AllDense(n_models, self.blocks, **options),
            Shadow(n_models, self.dim, self.outputs),
        )

    def _rows(self, n: int) -> tuple[FloatArray, FloatArray]:
        """Rows in units of their own; the last block and the last output are zero at first."""
        U = self.rng.standard_normal((n, self.dim)) * np.linspace(0.5, 2.0, self.dim)
        Y = U @ np.ones((self.dim, self.outputs)) + self.rng.standard_normal((n, self.outputs))
        if self.zero_verbs > 0:
            U[:, self.models.prior.block(list(self.blocks)[-1])] = 0.0
            Y[:, -1] = 0.0
        return U, Y

    def _some(self, n: int) -> IntArray:
        return self.rng.integers(self.models.n_models, size=n)

    def do(self, verb: str) -> None:
        self.zero_verbs -= 1
        getattr(self, verb)()

    def rounds(self) -> None:
        n = int(self.rng.integers(1, 5))
        for model, u, y in zip(self._some(n).tolist(), *self._rows(n), strict=True):
            self.models.update(model, u, y)
            self.twin.update(model, u, y)
            self.shadow.learn(model, u, y)

    def batch(self) -> None:
        n = int(self.rng.integers(0, 12))
        self._batch(self._some(n), *self._rows(n))

    def many_of_one(self) -> None:
        n = int(self.rng.integers(2 * self.dim - 1, 4 * self.dim + 2))
        slots = np.repeat(self._some(1), n)
        slots[self.rng.random(n) < 0.1] = self._some(1)
        self._batch(slots, *self._rows(n))

    def _batch(self, slots: IntArray, U: FloatArray, Y: FloatArray) -> None:
        self.models.update_batch(slots, U, Y)
        self.twin.update_batch(slots, U, Y)
        for model, u, y in zip(slots.tolist(), U, Y, strict=True):
            self.shadow.learn(model, u, y)

    def sums(self) -> None:
        (model,) = self._some(1).tolist()
        batches = [self._rows(3), self._rows(2)]
        self.models.learn_sums(model, batches)
        self.twin.learn_sums(model, batches)
        for U, Y in batches:
            for u, y in zip(U, Y, strict=True):
                self.shadow.learn(model, u, y)

    def forget(self) -> None:
        keep = float(self.rng.choice([1.0, 0.9, 0.3]))
        for one in (self.models, self.twin, self.shadow):
            one.forget(keep)

    def add(self) -> None:
        n = int(self.rng.integers(1, 3))
        for one in (self.models, self.twin, self.shadow):
            one.add(n)

    def remove(self) -> None:
        if self.models.n_models > 1:
            (model,) = self._some(1).tolist()
            for one in (self.models, self.twin, self.shadow):
                one.remove(model)

    def merge(self) -> None:
        other = copy.copy(self)
        other.models, other.twin, other.shadow = self._fresh(self.models.n_models)
        for verb in self.rng.choice(["rounds", "batch", "forget", "many_of_one"], size=2):
            other.do(str(verb))
        before = other.models.arrays()
        self.models.merge(other.models)
        self.twin.merge(other.twin)
        self.shadow.merge(other.shadow)
        assert all(np.array_equal(before[name], array) for name, array in other.models.arrays().items())

    def restore(self) -> None:
        fresh, twin, _ = self._fresh(1)
        fresh.restore(Stored(self.models.arrays()), self.models.n_models)
        twin.restore(Stored(self.twin.arrays()), self.twin.n_models)
        U = self.rng.standard_normal((1, self.dim))
        slots = np.arange(fresh.n_models)
        for name in ("gram", "inverse", "moment", "weights", "log_det"):
            assert np.array_equal(part(fresh, name), part(self.models, name)), name
        radius = np.array([1.0])
        assert np.array_equal(fresh.score(U, slots, radius), self.models.score(U, slots, radius))
        self.models, self.twin = fresh, twin

    def refit_prior(self) -> None:
        self.models.prior.refit(self.models)
        self.twin.prior.refit(self.twin)

    def require_equal(self) -> None:
        require_sound(self.models)
        require_sound(self.twin)
        assert "rows" not in forms_of(self.twin)
        require_equal(self.models, self.shadow, self.rng)
        require_equal(self.twin, self.shadow, self.rng)
        mine, theirs = self.models.prior, self.twin.prior
        assert mine.in_force.ridge == pytest.approx(theirs.in_force.ridge, rel=1e-6)
        assert mine.noise_variance == pytest.approx(theirs.noise_variance, rel=1e-6)
        assert self.models.updates == self.twin.updates
        assert (mine.fitted_at, mine.followed_at) == (theirs.fitted_at, theirs.followed_at)
        assert np.array_equal(mine.zero_blocks, theirs.zero_blocks)


VERBS = [
    *["rounds"] * 4,
    *["batch"] * 2,
    "many_of_one",
    "sums",
    "forget",
    "add",
    "remove",
    "merge",
    "restore",
    "refit_prior",
]


@settings(deadline=None, derandomize=True, max_examples=60)
@given(
    dim=st.integers(1, 8),
    outputs=st.integers(1, 2),
    ridge=st.sampled_from([0.01, 1.0, (0.1, 5.0), "evidence", "evidence"]),
    n_models=st.integers(1, 5),
    zero_verbs=st.integers(0, 3),
    verbs=st.lists(st.sampled_from(VERBS), min_size=4, max_size=12),
    seed=st.integers(0, 10**6),
)
def test_whatever_is_done_to_them_models_are_their_sums(
    dim: int, outputs: int, ridge: Any, n_models: int, zero_verbs: int, verbs: list[str], seed: int
) -> None:
    pair = Pair(dim, outputs, ridge, n_models, zero_verbs, seed)
    for verb in verbs:
        pair.do(verb)
        pair.require_equal()


@pytest.mark.parametrize("ridge", [0.5, "evidence"])
def test_the_same_verbs_in_wider_models_which_keep_more_rows(ridge: Any) -> None:
    """Twelve models of 24 coordinates: the log fills, and closes its gaps, more than once."""
    pair = Pair(24, 1, ridge, 12, 0, 0)
    for i in range(150):
        pair.do(VERBS[i % len(VERBS)] if i % 3 else "rounds")
        if i % 5 == 0:
            pair.require_equal()
    pair.require_equal()


# From one form to the next


def taught(dim: int, sizes: list[int], ridge: Any = 1.0, seed: int = 0) -> tuple[RidgeModels, Shadow]:
    """A model for each of the sizes, with so many rows, which come in turn."""
    rng = np.random.default_rng(seed)
    models, shadow = RidgeModels(len(sizes), {"x": dim}, ridge=ridge), Shadow(len(sizes), dim, 1)
    for turn in range(max(sizes)):
        for model, size in enumerate(sizes):
            if turn < size:
                u, y = rng.standard_normal(dim), rng.standard_normal(1)
                models.update(model, u, y)
                shadow.learn(model, u, y)
    return models, shadow


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 8, 33])
def test_a_model_is_dense_from_one_row_more_than_half_its_dimension_on(dim: int) -> None:
    half = dim // 2
    models, shadow = taught(dim, [0, half, half + 1])
    assert forms_of(models) == ["cold", "rows" if half else "cold", "dense"]
    rng = np.random.default_rng(1)
    require_equal(models, shadow, rng)
    u, y = rng.standard_normal(dim), rng.standard_normal(1)
    models.update(1, u, y)
    shadow.learn(1, u, y)
    assert forms_of(models) == ["cold", "dense", "dense"]
    require_equal(models, shadow, rng)


@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("before", [0, 3])
def test_a_batch_changes_forms_where_rounds_would(before: int, more: int) -> None:
    dim = 12
    models, shadow = taught(dim, [before, 2])
    rng = np.random.default_rng(1)
    n = dim // 2 - before + more
    slots = np.array([0] * n + [1])
    U, Y = rng.standard_normal((n + 1, dim)), rng.standard_normal((n + 1, 1))
    models.update_batch(slots, U, Y)
    for model, u, y in zip(slots.tolist(), U, Y, strict=True):
        shadow.learn(model, u, y)
    assert forms_of(models) == ["dense" if more else "rows", "rows"]
    require_sound(models)
    require_equal(models, shadow, rng)


@pytest.mark.parametrize(("ridge", "scale"), [(1e-7, 1.0), (1.0, 1e5), (1e-24, 1e-8)])
@pytest.mark.parametrize("batch", [False, True])
def test_a_row_that_would_cost_digits_makes_its_model_dense(ridge: float, scale: float, batch: bool) -> None:
    """Rows alone would leave a width of nothing but rounding where the row lies."""
    rng = np.random.default_rng(0)
    dim = 16
    models = RidgeModels(3, {"x": dim}, ridge=ridge)
    U, Y = scale * rng.standard_normal((2, dim)), rng.standard_normal((2, 1))
    if batch:
        models.update_batch(np.array([1, 1]), U, Y)
    else:
        for u, y in zip(U, Y, strict=True):
            models.update(1, u, y)
            assert forms_of(models) == ["cold", "dense", "cold"]
    assert forms_of(models) == ["cold", "dense", "cold"]
    # Of rows so long the fit is all but exact: A^{-1} U^T = U^T (U U^T + ridge)^{-1}, a matrix of 2 by 2.
    small = np.linalg.inv(U @ U.T + ridge * np.eye(2))
    tolerance = 4.0 * EPS * float((U**2).sum(axis=1).max() / ridge)  # that of any inverse of such sums
    weights = U.T @ (small @ Y[:, 0])
    assert np.abs(models.weights_of()[1, 0] - weights).max() <= tolerance * np.abs(weights).max()
    widths = models.project(U, np.array([1, 1])).widths
    assert np.allclose(widths**2, np.diagonal(U @ U.T @ small), rtol=tolerance)


@pytest.mark.parametrize(("square", "form"), [(0.99e6, "rows"), (1.01e6, "dense")])
def test_a_million_times_the_ridge_is_too_long_for_a_row(square: float, form: str) -> None:
    dim = 16
    u, y = np.zeros(dim), np.ones(1)
    u[3] = np.sqrt(2.0 * square)
    models = RidgeModels(2, {"x": dim}, ridge=2.0)
    shadow = Shadow(2, dim, 1)
    models.update(1, u, y)
    shadow.learn(1, u, y)
    assert forms_of(models) == ["cold", form]
    require_equal(models, shadow, np.random.default_rng(0))
    assert models.project(u[None], np.array([1])).widths[0] ** 2 == pytest.approx(
        square / (1.0 + square), rel=1e-9
    )


def test_rows_that_cost_digits_under_a_new_prior_become_dense_too() -> None:
    models, shadow = taught(8, [2, 1])
    assert forms_of(models) == ["rows", "rows"]
    models.prior.block_ridge[:] = 1e-9
    models.take_prior()
    assert forms_of(models) == ["dense", "dense"]
    assert close(models.gram_of(), shadow.gram, 1e-14)
    for model in range(2):
        u = np.linalg.eigh(shadow.gram[model])[1][:, -1].copy()
        direct = 1.0 / (u @ shadow.gram[model] @ u)
        assert models.project(u[None], np.array([model])).widths[0] ** 2 == pytest.approx(direct, rel=1e-6)


def test_the_log_is_compacted_when_more_than_half_of_it_are_gaps() -> None:
    dim, sizes = 20, [10] * 8
    models, shadow = taught(dim, sizes)
    rng = np.random.default_rng(1)
    assert models.storage.counts.tolist() == [0, 80, 0, 80]
    counts = []
    for model in (0, 3, 1, 6, 2):
        u, y = rng.standard_normal(dim), rng.standard_normal(1)
        models.update(model, u, y)
        shadow.learn(model, u, y)
        counts.append(models.storage.counts.tolist())
        require_sound(models)
        require_equal(models, shadow, rng)
    assert counts == [[1, 80, 10, 81], [2, 80, 20, 82], [3, 80, 30, 83], [4, 80, 40, 84], [5, 30, 0, 85]]
    for model in (4, 5, 7):  # whose chains were moved: the eleventh row still finds the ten before it
        u, y = rng.standard_normal(dim), rng.standard_normal(1)
        models.update(model, u, y)
        shadow.learn(model, u, y)
        require_equal(models, shadow, rng)
    assert forms_of(models) == ["dense"] * 8


def test_the_log_is_compacted_when_models_leave() -> None:
    models, shadow = taught(20, [10] * 8)
    rng = np.random.default_rng(1)
    for model in (7, 0, 2, 1, 1):
        models.remove(model)
        shadow.remove(model)
        require_sound(models)
        require_equal(models, shadow, rng)
    assert models.storage.counts.tolist() == [0, 30, 0, 80]


def test_a_log_of_nothing_but_gaps_is_empty() -> None:
    models, shadow = taught(4, [2] * 40)
    for _ in range(40):
        models.remove(0)
        shadow.remove(0)
    assert models.n_models == 0
    assert models.storage.counts[ROW_COUNT] - models.storage.counts[GAP_COUNT] == 0
    models.add(2)
    shadow.add(2)
    models.update(1, np.ones(4), np.ones(1))
    shadow.learn(1, np.ones(4), np.ones(1))
    require_sound(models)
    require_equal(models, shadow, np.random.default_rng(0))


@pytest.mark.parametrize("ridge", [1.0, "evidence"])
@pytest.mark.parametrize("model", range(6))
def test_a_model_of_any_form_leaves_the_others_as_they_are(model: int, ridge: Any) -> None:
    models, shadow = taught(8, [0, 3, 12, 0, 2, 20], ridge)
    rng = np.random.default_rng(1)
    assert forms_of(models) == ["cold", "rows", "dense"] * 2
    inverse, weights = (
        np.delete(models.inverse_of(), model, axis=0),
        np.delete(models.weights_of(), model, axis=0),
    )
    models.remove(model)
    shadow.remove(model)
    require_sound(models)
    assert np.array_equal(models.inverse_of(), inverse)
    assert np.array_equal(models.weights_of(), weights)
    require_equal(models, shadow, rng)
    models.add(2)  # which do not inherit anything
    shadow.add(2)
    assert forms_of(models)[-2:] == ["cold", "cold"]
    require_equal(models, shadow, rng)
    for turn in range(14):
        newcomer = 5 + turn % 2
        u, y = rng.standard_normal(8), rng.standard_normal(1)
        models.update(newcomer, u, y)
        shadow.learn(newcomer, u, y)
        require_sound(models)
    assert forms_of(models)[-2:] == ["dense", "dense"]
    require_equal(models, shadow, rng)


# Storage follows the rounds


def bytes_of(policy: LinUCB) -> int:
    return sum(array.nbytes for array in models_of(policy).storage)


def models_of(policy: LinUCB) -> RidgeModels:
    models = policy._arms.models
    assert isinstance(models, RidgeModels)
    return models


@pytest.mark.parametrize("ridge", [1.0, "evidence"])
def test_storage_follows_the_rounds_and_not_the_arms(ridge: Any) -> None:
    n, dim = 100_000, 64
    policy = LinUCB(n, dim, ridge=ridge)
    an_arm = 8 * (1 + 5)  # where it stands, and its tally
    assert bytes_of(policy) <= n * an_arm + 10_000
    rng = np.random.default_rng(0)
    dense = [7, 70_000]
    for i in range(200):
        policy.update(rng.standard_normal(dim), dense[i % 2] if i < 80 else 1000 + i, None, rng.normal())
    storage = models_of(policy).storage
    assert storage.counts[DENSE_COUNT] == 2
    assert storage.counts[ROW_COUNT] - storage.counts[GAP_COUNT] == 120
    a_row = 8 * (2 * dim + 2 + 2)
    a_dense = 8 * (dim * (dim + 1) + 2 * dim + 1)
    assert bytes_of(policy) <= n * an_arm + 2 * 200 * a_row + 4 * a_dense + 10_000
    saved = sum(array.nbytes for array in policy._arms.models.arrays().values())
    assert saved <= n * an_arm + 120 * a_row + 2 * a_dense + 10_000


def test_a_million_arms_are_served() -> None:
    n, dim = 1_000_000, 16
    policy = LinUCB(n, dim, ridge=1.0, arm_radius=1.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.standard_normal(dim)
        arm, propensity = policy.select(x, rng)
        assert propensity >= 1.0 / n
        policy.update(x, arm, None, float(x.sum()))
    assert policy.pulls.sum() == 20.0
    policy.update(np.ones(dim), n - 1, None, 5.0)
    chances = policy.propensities(np.ones(dim), [n - 1, 17, 4])
    assert len(chances) == n
    assert chances[n - 1] == chances.sum() == 1.0
    assert policy.select(np.ones(dim), rng, [5, n - 1, 9]) == (n - 1, 1.0)
    assert bytes_of(policy) < 60e6


# Ties


def identical(n_arms: int, rounds: int, *, dim: int, **options: Any) -> Iterator[LinUCB]:
    """Arms that all were taught the same rows: in turn, and with a number as ridge also arm by arm at once.

    Refits would cut such a batch at other rows of one arm than of another, and sums add up in that order.
    """
    rng = np.random.default_rng(rounds)
    X = rng.standard_normal((rounds, dim))
    rewards = X.sum(axis=1) + 0.1 * rng.standard_normal(rounds)
    policy = LinUCB(n_arms, dim, **options)
    for x, reward in zip(X, rewards, strict=True):
        for arm in policy.arms:
            policy.update(x, arm, None, reward)
    policy.refit_prior()
    yield policy
    if options["ridge"] == "evidence":
        return
    policy = LinUCB(n_arms, dim, **options)
    arms = np.repeat(np.arange(n_arms), rounds)
    policy.update_batch(np.tile(X, (n_arms, 1)), arms, None, np.tile(rewards, n_arms))
    yield policy


@pytest.mark.parametrize("ridge", [0.7, "evidence"])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("n_arms", range(2, 10))
def test_arms_that_learnt_the_same_tie_to_the_last_bit(n_arms: int, intercept: bool, ridge: Any) -> None:
    dim = 9
    rng = np.random.default_rng(0)
    for rounds, form in ((0, "cold"), (1, "rows"), (4, "rows"), (7, "dense"), (40, "dense")):
        for policy in identical(n_arms, rounds, dim=dim, ridge=ridge, intercept=intercept):
            assert forms_of(models_of(policy)) == [form] * n_arms
            for _ in range(5):
                x = rng.standard_normal(dim)
                require_tie(policy, x, n_arms)


def require_tie(policy: LinUCB, x: FloatArray, n_arms: int) -> None:
    """All of them, and any of them, with one x for all and with one row per arm."""
    everyone = np.full(n_arms, 1.0 / n_arms)
    rows = np.tile(x, (n_arms, 1))
    for context in (x, rows):
        assert np.array_equal(policy.propensities(context), everyone)
        assert policy.select(context, np.random.default_rng(0)).propensity == 1.0 / n_arms
    assert policy.select_batch(rows[:2], np.random.default_rng(0)).propensities.tolist() == [1 / n_arms] * 2
    for k in range(2, n_arms):
        some = list(range(n_arms))[-k:][::-1]
        for context in (x, rows[:k]):
            chances = policy.propensities(context, some)
            assert chances[some].tolist() == [1.0 / k] * k


@pytest.mark.parametrize("ridge", [0.7, "evidence"])
def test_arms_that_learnt_the_same_tie_among_others(ridge: Any) -> None:
    """Which come between them, in every form, and are worse."""
    dim, n_arms = 8, 14
    rng = np.random.default_rng(0)
    policy = LinUCB(n_arms, dim, ridge=ridge, exploration=0.1)
    for twins, rounds in (((1, 4, 6, 7, 12), 20), ((0, 5, 9), 3)):
        for _ in range(rounds):
            x = rng.standard_normal(dim)
            for arm in twins:
                policy.update(x, arm, None, float(x.sum()))
    for arm, rounds in ((2, 2), (3, 30), (8, 1), (10, 9), (13, 25)):
        for _ in range(rounds):
            x = rng.standard_normal(dim)
            policy.update(x, arm, None, float(-x.sum()))
    policy.refit_prior()
    x = np.ones(dim)
    for context in (x, np.tile(x, (n_arms, 1))):
        assert np.flatnonzero(policy.propensities(context)).tolist() == [1, 4, 6, 7, 12]
        assert policy.propensities(context).max() == 0.2
    few = [9, 2, 0, 8, 5, 11]
    for context in (x, np.tile(x, (len(few), 1))):
        chances = policy.propensities(context, few)
        assert np.flatnonzero(chances).tolist() == [0, 5, 9]
        assert chances.max() == 1.0 / 3.0


# Many rows at once


def polinucb(n_arms: int, dim: int, **options: Any) -> PoLinUCB:
    split = dim // 3
    return PoLinUCB(n_arms, RidgeMap(dim - split, split, ridge=options.get("ridge", "evidence")), **options)


def linucb(n_arms: int, dim: int, **options: Any) -> LinUCB:
    return LinUCB(n_arms, dim, **options)


def rounds_of(policy: Any, n: int, rng: np.random.Generator) -> tuple[FloatArray, Any, FloatArray]:
    X = rng.standard_normal((n, policy.dim_x))
    rewards = X.sum(axis=1) + 0.3 * rng.standard_normal(n)
    if policy.dim_z is None:
        return X, None, rewards
    Z = X[:, : policy.dim_z] + 0.5 * rng.standard_normal((n, policy.dim_z))
    return X, Z, rewards + Z.sum(axis=1)


def mixed(make: Any, n_arms: int, dim: int, **options: Any) -> Any:
    """A third of the arms cold, a third in rows and a third dense."""
    policy = make(n_arms, dim, **options)
    rng = np.random.default_rng(0)
    for arm in range(n_arms):
        n = (0, 1 + arm % (dim // 2), dim // 2 + 1 + arm)[arm % 3]
        X, Z, rewards = rounds_of(policy, n, rng)
        for i in range(n):
            policy.update(X[i], arm, None if Z is None else Z[i], float(rewards[i]))
    policy.refit_prior()
    assert set(forms_of(policy._arms.models)) == {"cold", "rows", "dense"}
    return policy


SETTINGS: list[dict[str, Any]] = [
    {"ridge": 1.0, "arm_radius": 1.0},
    {"ridge": 0.5, "arm_radius": "determinant"},
    {"ridge": "evidence"},
    {"ridge": "evidence", "arm_radius": "determinant", "intercept": True},
]


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize(("n_arms", "dim"), [(5, 12), (12, 12), (40, 9), (100, 6)])
@pytest.mark.parametrize("make", [linucb, polinucb])
def test_a_batch_is_chosen_for_as_row_after_row(
    make: Any, n_arms: int, dim: int, options: dict[str, Any]
) -> None:
    policy = mixed(make, n_arms, dim, **options)
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, policy.dim_x)) * np.logspace(-3, 3, 60)[:, None]
    X[7] = 0.0
    some = rng.permutation(n_arms)[: n_arms // 2 + 1].tolist()
    all_cold, all_dense = list(range(0, n_arms, 3))[::-1], list(range(2, n_arms, 3))
    for arms in (None, some, all_cold, all_dense, list(range(n_arms))[::-1], [n_arms - 1]):
        for rows in (X, X[:1], X[7:8], X[:0]):
            one, other = np.random.default_rng(2), np.random.default_rng(2)
            decisions = policy.select_batch(rows, one, arms)
            singly = [policy.select(x, other, arms) for x in rows]
            assert decisions.arms.tolist() == [decision.arm for decision in singly]
            assert decisions.propensities.tolist() == [decision.propensity for decision in singly]
            assert one.random() == other.random()


@pytest.mark.parametrize("gone", [(0, 1, 2), (8, 3, 7), (5,)])
@pytest.mark.parametrize("make", [linucb, polinucb])
def test_batches_know_arms_by_their_ids_after_others_left(make: Any, gone: tuple[int, ...]) -> None:
    policy, untouched = (mixed(make, 9, 10, ridge=1.0, arm_radius=1.0) for _ in range(2))
    for arm in gone:
        policy.remove_arm(arm)
    stay = list(policy.arms)
    rng = np.random.default_rng(1)
    X, Z, rewards = rounds_of(policy, 30, rng)
    arms = rng.choice(stay, size=30)
    for one in (policy, untouched):
        one.update_batch(X, arms, Z, rewards)
    for some in (None, stay[::-1], stay[1:4]):
        decisions = policy.select_batch(X, np.random.default_rng(2), some)
        wanted = untouched.select_batch(X, np.random.default_rng(2), some or stay)
        assert decisions.arms.tolist() == wanted.arms.tolist()
        assert decisions.propensities.tolist() == wanted.propensities.tolist()
    newcomer = policy.add_arm()
    assert newcomer == 9
    assert np.flatnonzero(policy.propensities(X[0], [newcomer])).tolist() == [len(stay)]


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("make", [linucb, polinucb])
def test_a_loaded_policy_goes_on_bit_by_bit(make: Any, options: dict[str, Any], tmp_path: Path) -> None:
    policy = mixed(make, 12, 12, **options)
    policy.remove_arm(4)
    policy.save(tmp_path / "policy.npz")
    loaded: Any = load(tmp_path / "policy.npz")
    assert forms_of(loaded._arms.models) == forms_of(policy._arms.models)
    rng = np.random.default_rng(1)
    X, Z, rewards = rounds_of(policy, 100, rng)
    for i in range(100):
        arm = policy.arms[int(rng.integers(11))]
        chosen = [one.select(X[i], np.random.default_rng(i)) for one in (policy, loaded)]
        assert chosen[0] == chosen[1]
        for one in (policy, loaded):
            one.update(X[i], arm, None if Z is None else Z[i], float(rewards[i]))
    assert np.array_equal(policy.weights, loaded.weights)
    assert np.array_equal(policy._arms.models.inverse_of(), loaded._arms.models.inverse_of())


def test_a_long_batch_is_chosen_for_piece_by_piece() -> None:
    policy = mixed(linucb, 60, 24, ridge=1.0, arm_radius=1.0)
    X = np.random.default_rng(1).standard_normal((3000, 24))
    one, other = np.random.default_rng(2), np.random.default_rng(2)
    decisions = policy.select_batch(X, one)
    singly = [policy.select(x, other) for x in X]
    assert decisions.arms.tolist() == [decision.arm for decision in singly]
    assert decisions.propensities.tolist() == [decision.propensity for decision in singly]


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize(("n_arms", "dim"), [(3, 6), (20, 9)])
@pytest.mark.parametrize("make", [linucb, polinucb])
def test_a_batch_is_learnt_as_row_after_row(
    make: Any, n_arms: int, dim: int, options: dict[str, Any]
) -> None:
    one, other = make(n_arms, dim, **options), make(n_arms, dim, **options)
    rng = np.random.default_rng(0)
    for n in (1, 0, 5, 40, 200, 3):
        X, Z, rewards = rounds_of(one, n, rng)
        arms = rng.integers(n_arms, size=n)
        arms[rng.random(n) < 0.5] = n // 3 % n_arms  # many of one
        one.update_batch(X, arms, Z, rewards)
        for i in range(n):
            other.update(X[i], int(arms[i]), None if Z is None else Z[i], float(rewards[i]))
        require_alike(one, other)
    assert one._arms.models.prior.fitted_at > 0 or options["ridge"] != "evidence"


def require_alike(one: Any, other: Any) -> None:
    learners = [(policy._arms.models, policy.context_map) for policy in (one, other)]
    for mine, theirs in zip(*learners, strict=True):
        if mine is None:
            continue
        pair = (mine, theirs) if isinstance(mine, RidgeModels) else (mine._models, theirs._models)
        assert pair[0].updates == pair[1].updates
        assert pair[0].prior.fitted_at == pair[1].prior.fitted_at
        assert pair[0].prior.in_force.ridge == pytest.approx(pair[1].prior.in_force.ridge, rel=1e-9)
        for name in ("weights", "inverse", "gram", "moment", "log_det", "pulls"):
            assert close(part(pair[0], name), part(pair[1], name), 1e-9), name
        assert close(pair[0].prior.noise_variance, pair[1].prior.noise_variance, 1e-9)


# Decisions


@pytest.mark.parametrize(
    ("n_arms", "dim", "rounds"), [(10, 105, 1000), (100, 32, 1000), (5, 32, 1000), (1000, 64, 300)]
)
def test_decisions_are_those_of_direct_solves(n_arms: int, dim: int, rounds: int) -> None:
    rng = np.random.default_rng(dim)
    policy = LinUCB(n_arms, dim, ridge=1.0, arm_radius=1.0)
    theta = rng.standard_normal((n_arms, dim)) / np.sqrt(dim)
    gram, moment = np.zeros((n_arms, dim, dim)), np.zeros((n_arms, dim))
    inverse, weights = np.repeat(np.eye(dim)[None], n_arms, axis=0), np.zeros((n_arms, dim))
    for _ in range(rounds):
        x = rng.standard_normal(dim)
        scores = weights @ x + np.sqrt((inverse @ x) @ x)
        near = np.flatnonzero(scores >= scores.max() - 1e-9 * np.abs(scores).max())
        arm, propensity = policy.select(x, rng)
        assert arm in near
        assert propensity == 1.0 / len(near)  # only arms that know nothing tie
        reward = float(theta[arm] @ x + 0.3 * rng.standard_normal())
        policy.update(x, arm, None, reward)
        gram[arm] += np.outer(x, x)
        moment[arm] += reward * x
        inverse[arm] = np.linalg.inv(gram[arm] + np.eye(dim))
        weights[arm] = inverse[arm] @ moment[arm]
    assert np.allclose(policy.weights, weights, rtol=1e-9, atol=1e-9)


def test_a_million_updates_of_an_arm_drift_nowhere() -> None:
    rng = np.random.default_rng(0)
    dim, at_once = 8, 10_000
    policy = LinUCB(2, dim, ridge=1.0, arm_radius=1.0)
    update, theta = policy._arms.models.update, rng.standard_normal(dim)
    gram, moment = np.zeros((dim, dim)), np.zeros(dim)
    for _ in range(1_000_000 // at_once):
        U = rng.standard_normal((at_once, dim))
        Y = (U @ theta + rng.standard_normal(at_once))[:, None]
        gram += U.T @ U
        moment += U.T @ Y[:, 0]
        for u, y in zip(U, Y, strict=True):
            update(1, u, y)
    direct = np.linalg.solve(gram + np.eye(dim), moment)
    assert policy.pulls.tolist() == [0.0, 1_000_000.0]
    assert np.abs(policy.weights[1] - direct).max() <= 1e-8 * np.abs(direct).max()
    inverse = np.linalg.inv(gram + np.eye(dim))
    assert close(policy._arms.models.inverse_of()[1], inverse, 1e-8)


# Threads


@pytest.fixture
def often_interrupted() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("often_interrupted")
def test_threads_decide_as_one_does() -> None:
    """Kernels share scratch; a policy of another size asks for more of it in between."""
    policies = [
        mixed(linucb, 30, 12, ridge=1.0, arm_radius=1.0),
        mixed(polinucb, 50, 9, ridge="evidence", optimism="joint"),
        mixed(polinucb, 12, 30, ridge=1.0),
    ]
    X = [np.random.default_rng(3).standard_normal((200, policy.dim_x)) for policy in policies]

    def decide(start: int) -> list[list[tuple[int, float]]]:
        found: list[list[tuple[int, float]]] = [[] for _ in policies]
        rng = np.random.default_rng(start)
        for i in range(start, start + 200):
            for policy, rows, decisions in zip(policies, X, found, strict=True):
                decisions.append(policy.select(rows[i % 200], rng))
        return found

    starts = [0, 50, 100, 150]
    alone = [decide(start) for start in starts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(decide, starts)) == alone


# States of version 1


@pytest.mark.parametrize("name", ["polinucb", "epsilon_greedy", "oracle", "linucb_phi_hat"])
def test_arms_of_version_1_that_were_pulled_are_dense_and_as_they_were(name: str, tmp_path: Path) -> None:
    policy = load_old(f"version1_{name}")
    prefix = "policy." if name == "epsilon_greedy" else ""
    models = (policy.policy if prefix else policy)._arms.models
    arrays = arrays_in(STATES / f"version1_{name}.npz")
    stored = {key.removeprefix(prefix): arrays[key] for key in arrays if key.startswith(prefix)}
    assert forms_of(models) == ["dense" if pulls > 0 else "cold" for pulls in stored["pulls"]]
    for each in ("gram", "inverse", "moment", "weights", "squares", "pulls", "log_det"):
        assert close(part(models, each), stored[each], 1e-15), each
    assert np.array_equal(models.prior.block_ridge, stored["block_ridge"])
    shadow = Shadow(models.n_models, models.dim, 1)
    for each in vars(shadow):
        setattr(shadow, each, stored[each].copy())
    rng = np.random.default_rng(0)
    require_sound(models)
    require_equal(models, shadow, rng)

    policy.save(tmp_path / "again.npz")
    again: Any = load(tmp_path / "again.npz")
    for _ in range(30):  # across refits, of both
        x, z, reward = rng.standard_normal(2), rng.standard_normal(1), float(rng.standard_normal())
        early = {"z": z} if name == "oracle" else {}
        chances = policy.propensities(x, **early)
        assert np.array_equal(chances, again.propensities(x, **early))
        arm = int(rng.integers(len(chances)))
        policy.update(x, arm, z, reward)
        again.update(x, arm, z, reward)
    assert models.pulls.sum() == stored["pulls"].sum() + 30
