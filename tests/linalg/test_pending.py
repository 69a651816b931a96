"""Announced rows count in the widths: against the dense joint Gaussian of all weights, by brute force."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from postserve.linalg import pending
from postserve.linalg.hybrid import HybridModels
from postserve.linalg.level import LevelModels
from postserve.linalg.pending import PendingModels, RowSum
from postserve.linalg.ridge import RidgeModels, one_regression
from postserve.types import FloatArray

DIM = 3
CENTRE = np.array([0.5, 20.0, -3.0])
BLOCKS = {"x": 1, "z": 2}
WITH_LEVEL = {**BLOCKS, "intercept": 1}
CENTRING: Any = {"x": "shrunk", "z": "full", "intercept": "none"}
KINDS: dict[str, Callable[[], Any]] = {
    "disjoint": lambda: RidgeModels(3, BLOCKS, ridge=0.7),
    "disjoint, few rows": lambda: RidgeModels(3, BLOCKS, ridge=0.7, most_rows=50),
    "disjoint, evidence": lambda: RidgeModels(3, BLOCKS),
    "level": lambda: LevelModels(3, WITH_LEVEL, centring=CENTRING),
    "shared": lambda: one_regression(BLOCKS, ridge=0.7),
    "shared, level": lambda: one_regression(WITH_LEVEL, centring=CENTRING),
    "hybrid": lambda: HybridModels(3, BLOCKS, ridge=0.7),
    "hybrid, evidence": lambda: HybridModels(3, BLOCKS),
    "hybrid, level": lambda: HybridModels(3, WITH_LEVEL, centring=CENTRING),
}


class Joint:
    """All rows, learnt with their weights and announced, of arms that are never dropped from it."""

    def __init__(self, models: Any) -> None:
        self.models = models
        self.arms = list(range(models.n_models))  # the arm of each model
        self.n_arms = len(self.arms)
        self.learnt: list[tuple[int, FloatArray, float, float]] = []
        self.announced: list[tuple[int, FloatArray]] = []

    def row(self, arm: int, u: FloatArray) -> FloatArray:
        """A row of the regression on all weights: the shared ones (or the level), then each arm's."""
        u = self.models.centred(u[None])[0]
        common = u if isinstance(self.models, HybridModels) else u[-1:]
        own = np.zeros((self.n_arms, len(u)))
        own[arm] = u
        has_common = isinstance(self.models, HybridModels | LevelModels)
        return np.concatenate([common if has_common else common[:0], own.ravel()])

    def covariance(self, *, announced: bool) -> FloatArray:
        """In units of the noise."""
        models = self.models
        if isinstance(models, HybridModels):
            own, shared = np.split(models.prior.ridge, 2)
        else:
            own, shared = models.ridge, np.zeros(int(isinstance(models, LevelModels)))
        precision = np.diag(np.concatenate([shared, np.tile(own, self.n_arms)]))
        for arm, u, _, weight in self.learnt:
            row = self.row(arm, u)
            precision += weight * row[:, None] * row
        for arm, u in self.announced if announced else []:
            row = self.row(arm, u)
            precision += row[:, None] * row
        return np.linalg.inv(precision)

    def require_agreement(self, widths: Any, probes: FloatArray) -> None:
        """Means as without announced rows, widths and blocks of the covariance with them."""
        models, n = self.models, self.models.n_models
        with_all = self.covariance(announced=True)
        moment = np.zeros(len(with_all))
        for arm, u, y, weight in self.learnt:
            centred = y if models.frame is None else float(models.frame.outputs(np.array([y]))[0])
            moment += weight * centred * self.row(arm, u)
        weights = self.covariance(announced=False) @ moment
        for probe in probes:
            at, U = np.arange(n), np.repeat(models.centred(probe[None]), n, axis=0)
            rows = np.array([self.row(arm, probe) for arm in self.arms])
            want = np.sqrt(np.einsum("ij,jk,ik->i", rows, with_all, rows))
            means, got = widths.project(U, at)
            np.testing.assert_allclose(got, want, rtol=1e-8)
            np.testing.assert_allclose(means[:, 0], rows @ weights, rtol=1e-8, atol=1e-8)
            np.testing.assert_allclose(means, models.average(U, at), rtol=0, atol=0)
            score = widths.score(probe[None], at, np.ones(1))
            np.testing.assert_allclose(score.max(), (rows @ weights + want).max(), rtol=1e-8, atol=1e-8)
            local = widths.project_around(U, at, np.array([1]), 2)
            np.testing.assert_allclose(local.widths, want, rtol=1e-8)
            np.testing.assert_allclose(local.beta, models.weights_of(at)[:, 0, 1:3], rtol=1e-12)
            steps = [self.row(arm, probe + step) - self.row(arm, probe) for arm in self.arms for step in Z]
            E = np.array(steps).reshape(n, 2, -1)
            block = np.einsum("kij,jl,kml->kim", E, with_all, E)
            np.testing.assert_allclose(local.block, block, rtol=1e-8, atol=1e-10)
            cross = np.einsum("kij,jl,kl->ki", E, with_all, rows)
            np.testing.assert_allclose(local.cross, cross, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(widths.inverse_of(at)[:, 1:3, 1:3], block, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(np.vecdot(widths.solve(U, at), U), want**2, rtol=1e-8)


Z = np.eye(DIM)[1:]


class Play:
    """Learns, announces and withdraws at random, and keeps the account of it in `joint`."""

    def __init__(self, models: Any, seed: int) -> None:
        self.models, self.widths, self.joint = models, models, Joint(models)
        self.rng = np.random.default_rng(seed)

    def draw(self) -> tuple[int, FloatArray]:
        u = self.rng.normal(size=DIM) + CENTRE
        return int(self.rng.integers(self.models.n_models)), u

    def learn(self, model: int, u: FloatArray) -> None:
        y = float(u @ [1.0, -0.5, 0.3] + 10.0 + model + self.rng.normal())
        self.models.update(model, u, np.array([y]))
        self.joint.learnt.append((self.joint.arms[model], u, y, 1.0))

    def announce(self) -> None:
        model, u = self.draw()
        self.widths = pending.announce(self.widths, model, u)
        self.joint.announced.append((self.joint.arms[model], u))

    def resolve(self, *, learn: bool) -> None:
        arm, u = self.joint.announced[int(self.rng.integers(len(self.joint.announced)))]
        model = self.joint.arms.index(arm)
        if learn:
            self.learn(model, u)
        self.widths = pending.withdraw(self.widths, model, u)
        left = [each for each in self.joint.announced if each[1] is not u]
        assert len(left) == len(self.joint.announced) - 1
        self.joint.announced = left

    def some(self, steps: int) -> None:
        for kind in self.rng.integers(5, size=steps).tolist():
            if kind <= 1:
                self.announce()
            elif kind == 2 or not self.joint.announced:
                self.learn(*self.draw())
            else:
                self.resolve(learn=kind == 3)

    def check(self) -> None:
        if isinstance(self.widths, PendingModels):
            self.widths.follow()
        self.joint.require_agreement(self.widths, self.rng.normal(size=(2, DIM)) + CENTRE)


def played(kind: str, seed: int = 0) -> Play:
    play = Play(KINDS[kind](), seed)
    for _ in range(3):
        play.announce()  # before anything is known
    for _ in range(12):
        play.learn(*play.draw())
    return play


@pytest.mark.parametrize("kind", KINDS)
def test_rows_count_in_the_widths_in_any_order_of_arrival(kind: str) -> None:
    for seed in range(3):
        play = played(kind, seed)
        for _ in range(6):
            play.some(15)
            play.check()
        while play.joint.announced:
            play.resolve(learn=False)
        assert play.widths is play.models


@pytest.mark.parametrize("kind", KINDS)
def test_forgetting_and_a_new_prior_leave_announced_rows_as_they_are(kind: str) -> None:
    play = played(kind)
    play.some(20)
    play.announce()
    play.models.forget(0.5)
    play.joint.learnt = [(arm, u, y, 0.5) for arm, u, y, _ in play.joint.learnt]
    play.widths.rebuild()
    play.check()
    play.models.prior.refit(play.models)
    play.widths.follow()
    play.check()
    twin = copy.deepcopy(play)
    for one in (twin, play):  # neither changes the other
        one.some(10)
        twin.check()
        play.check()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.startswith("shared")])
def test_models_come_and_go_with_their_announced_rows(kind: str) -> None:
    play = played(kind)
    play.some(10)
    play.announce()
    play.models.add()
    play.joint.arms.append(3)
    play.joint.n_arms += 1
    play.widths.rebuild()
    play.check()
    play.some(10)
    play.models.prior.refit(play.models)  # what a removed arm taught is weighed by this prior
    play.models.remove(1)
    play.widths.drop(1)
    gone = play.joint.arms.pop(1)
    if not isinstance(play.models, HybridModels):  # which keeps what it taught
        play.joint.learnt = [each for each in play.joint.learnt if each[0] != gone]
    play.joint.announced = [each for each in play.joint.announced if each[0] != gone]
    play.check()


def test_a_row_that_was_huge_leaves_no_error_behind() -> None:
    rng = np.random.default_rng(0)
    rows, huge = rng.normal(size=(5, 2)), np.array([1e9, 1.0])
    sums = RowSum(framed=False)
    for row in (*rows, huge):
        sums.add(row)
    sums.take(huge)
    np.testing.assert_allclose(sums.gram_at(None), rows.T @ rows, rtol=1e-12)


def test_sums_do_not_drift() -> None:
    rng = np.random.default_rng(0)
    sums, rows = RowSum(framed=True), [rng.normal(size=2) + 1e6 for _ in range(100)]
    for row in rows:
        sums.add(row)
    for _ in range(2_000):
        rows.append(rng.normal(size=2) + 1e6)
        sums.add(rows[-1])
        sums.take(rows.pop(0))
    centred = np.column_stack([np.array(rows) - 1e6, np.ones(len(rows))])
    np.testing.assert_allclose(sums.gram_at(np.array([1e6, 1e6, 0.0])), centred.T @ centred, rtol=1e-8)


def test_inputs_that_were_zero_so_far_do_not_count() -> None:
    """Their width is 0 until their first value, which alone gives them a unit."""
    models = RidgeModels(1, {"x": 1, "z": 1})
    rng = np.random.default_rng(0)
    for x in rng.normal(size=20):
        models.update(0, np.array([x, 0.0]), np.array([x + rng.normal()]))
    widths = pending.announce(models, 0, np.array([1.0, 5.0]))
    widths.rebuild()
    expected = 1.0 / (1.0 / models.inverse_of()[0, 0, 0] + 1.0)
    np.testing.assert_allclose(widths.inverse_of()[0], [[expected, 0.0], [0.0, 0.0]], rtol=1e-10)
