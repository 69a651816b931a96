"""Short cuts lead where the long way does: pickles, arrays of odd memory, subclasses, batches and ties."""

import pickle
from abc import ABC
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import pytest

from postserve import LinUCB, LinUCBPhiHat, PoLinTS, PoLinUCB, RidgeMap, RobustPoLinUCB
from postserve.conformance.overriding import policies_take_overridden_steps
from postserve.linalg.kernels import models as kernels
from postserve.linalg.ridge import RidgeModels
from postserve.policies.base import BasePolicy
from postserve.policies.choosing import choose
from postserve.steps import fast_path
from postserve.types import FloatArray, IntArray, MapRadius, Ridge

Learner = TypeVar("Learner", bound=BasePolicy)

rng = np.random.default_rng(0)
X, Z, REWARDS = rng.normal(size=(40, 3)), rng.normal(size=(40, 2)), rng.normal(size=40)
ARMS = rng.integers(3, size=40)


def learn(policy: Learner) -> Learner:
    for x, arm, z, reward in zip(X, ARMS.tolist(), Z, REWARDS.tolist(), strict=True):
        policy.update(x, arm, z, reward)
    return policy


@pytest.mark.parametrize(
    "policy",
    [LinUCB(3, 3), PoLinUCB(3, RidgeMap(3, 2)), PoLinUCB(3, RidgeMap(3, 2), x_features=np.negative)],
    ids=["LinUCB", "PoLinUCB", "features"],
)
def test_a_pickled_policy_goes_on_as_it_was(policy: LinUCB | PoLinUCB) -> None:
    twin = pickle.loads(pickle.dumps(learn(policy)))
    assert twin.select(X[0], np.random.default_rng(1)) == policy.select(X[0], np.random.default_rng(1))
    twin.update(X[0], 0, Z[0], 1.0)
    policy.update(X[0], 0, Z[0], 1.0)
    assert np.array_equal(twin.weights, policy.weights)


def test_a_pickled_policy_teaches_the_map_it_shows() -> None:
    twin = pickle.loads(pickle.dumps(PoLinUCB(3, RidgeMap(3, 2))))
    twin.update(X[0], 0, Z[0], 1.0)
    assert twin.context_map.weights.any()


def odd(array: FloatArray, how: str) -> FloatArray:
    """The same numbers, read-only or beside the bounds of words."""
    if how == "read-only":
        array = array.copy()
        array.flags.writeable = False
        return array
    shifted = np.zeros(array.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(array.shape)
    shifted[...] = array
    return shifted


@pytest.mark.parametrize("how", ["read-only", "unaligned"])
def test_no_kernel_is_compiled_anew_for_odd_memory(how: str) -> None:
    policy = learn(PoLinUCB(3, RidgeMap(3, 2)))

    def everything(make: Callable[[FloatArray], FloatArray]) -> None:
        policy.select(make(X[0]), np.random.default_rng(1))
        policy.select(make(X[:3]), np.random.default_rng(1))
        policy.select_batch(make(X), np.random.default_rng(1))
        policy.update(make(X[0]), 0, make(Z[0]), 1.0)
        policy.update_batch(make(X), ARMS, make(Z), make(REWARDS))

    everything(np.copy)
    before = compiled()
    everything(lambda array: odd(array, how))
    assert compiled() == before


def compiled() -> int:
    found = [getattr(kernels, name) for name in dir(kernels)]
    return sum(len(kernel.signatures) for kernel in found if hasattr(kernel, "signatures"))


def test_a_compacted_log_lies_in_memory_as_before() -> None:
    policy = LinUCB(200, 8)
    for arm in range(100):
        policy.update(np.ones(8), arm, None, 1.0)
    for arm in range(60):
        policy.remove_arm(arm)
    models = policy._arms.models
    assert isinstance(models, RidgeModels)
    storage = models.storage
    assert storage.counts[kernels.ROW_COUNT] < 100
    assert all(array.flags.c_contiguous for array in storage)


def test_equal_arms_tie_in_batches_where_means_cancel() -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        dim, n = int(random.integers(2, 40)), int(random.choice([2, 3, 5, 7, 13, 41]))
        policy = LinUCB(n, dim, ridge=1.0, exploration=0.0)
        for x in random.normal(size=(int(random.integers(1, 3 * dim)), dim)):
            reward = float(random.normal())
            for arm in range(n):
                policy.update(x, arm, None, reward)
        w = policy.weights[0]
        contexts = random.normal(size=(37, dim))
        contexts -= np.outer(contexts @ w / (w @ w), w)
        single, at_once = np.random.default_rng(1), np.random.default_rng(1)
        expected = [policy.select(x, single) for x in contexts]
        decisions = policy.select_batch(contexts, at_once)
        assert decisions.arms.tolist() == [decision.arm for decision in expected]
        assert decisions.propensities.tolist() == [decision.propensity for decision in expected]


def test_batches_choose_as_single_calls_do_where_widths_cancel() -> None:
    random = np.random.default_rng(0)
    for ridge in (1e-14, 1e-16):
        for _ in range(15):
            dim = int(random.integers(2, 12))
            policy = LinUCB(3, dim, ridge=ridge)
            plane = random.normal(size=(max(1, dim // 2), dim))
            rows = random.normal(size=(4 * dim, len(plane))) @ plane
            for arm in range(3):
                for x in random.permutation(rows):
                    policy.update(x, arm, None, 0.0)
            contexts = random.normal(size=(20, len(plane))) @ plane
            decisions = policy.select_batch(contexts, np.random.default_rng(1))
            single = np.random.default_rng(1)
            assert decisions.arms.tolist() == [policy.select(x, single).arm for x in contexts]


class CreditsTwice(LinUCB):
    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        super()._credit(x, slot, z, 2.0 * reward, z_hat)


class CreditsTwiceWithMap(PoLinUCB):
    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        super()._credit(x, slot, z, 2.0 * reward, z_hat)


class ObservesTwice(PoLinUCB):
    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        return super()._observe(x, slot, 2.0 * z)


class FillsAndCreditsTwice(PoLinUCB):
    def _fill_z_and_credit(
        self, x: FloatArray, slot: int, z: FloatArray | None, reward: float, z_hat: FloatArray | None
    ) -> None:
        super()._fill_z_and_credit(x, slot, z, 2.0 * reward, z_hat)


class FillsAndCreditsTwiceWithoutMap(LinUCB):
    def _fill_z_and_credit(
        self, x: FloatArray, slot: int, z: FloatArray | None, reward: float, z_hat: FloatArray | None
    ) -> None:
        super()._fill_z_and_credit(x, slot, z, 2.0 * reward, z_hat)


class LearnsTwice(RidgeMap):
    def _learn(self, x: FloatArray, z: FloatArray) -> None:
        super()._learn(x, 2.0 * z)


@pytest.mark.parametrize(
    "make",
    [
        lambda: CreditsTwice(3, 3),
        lambda: CreditsTwiceWithMap(3, RidgeMap(3, 2)),
        lambda: ObservesTwice(3, RidgeMap(3, 2)),
        lambda: FillsAndCreditsTwice(3, RidgeMap(3, 2)),
        lambda: FillsAndCreditsTwiceWithoutMap(3, 3),
        lambda: PoLinUCB(3, LearnsTwice(3, 2)),
    ],
)
def test_what_a_subclass_overrides_holds_in_every_way_in(make: Callable[[], Any]) -> None:
    single, at_once, in_stages = learn(make()), make(), make()
    at_once.update_batch(X, ARMS, Z, REWARDS)
    for x, arm, z, reward in zip(X, ARMS.tolist(), Z, REWARDS.tolist(), strict=True):
        in_stages.credit(x, arm, z, reward, z_hat=in_stages.observe(x, arm, z))
    for other in (at_once, in_stages):
        np.testing.assert_allclose(other.weights, single.weights, rtol=1e-6, atol=1e-9)
        if single.context_map is not None:
            ours, theirs = other.context_map.weights, single.context_map.weights
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-9)


class Clips(RidgeMap):
    def _predict(self, X: FloatArray) -> FloatArray:
        return np.clip(super()._predict(X), -0.01, 0.01)

    def _radius(self, X: FloatArray) -> FloatArray:
        return 10.0 * super()._radius(X)


def test_the_ball_of_a_subclass_is_what_it_predicts_and_its_radius() -> None:
    policy = learn(PoLinUCB(3, Clips(3, 2), optimism="joint"))
    z_hat, e, _ = policy._phi_hat.ball(X[0], np.arange(3))
    assert np.array_equal(z_hat, policy.context_map.predict(X[0])[0])
    assert np.array_equal(e, policy.context_map.radius(X[0], (0, 1, 2)))


class TenfoldRadius(RidgeMap):
    def _radius(self, X: FloatArray) -> FloatArray:
        return 10.0 * super()._radius(X)


@pytest.mark.parametrize("map_radius", ["posterior", "determinant", "assumption", 0.5])
def test_draws_at_distinct_rows_are_as_wide_as_the_radius_of_a_subclass(map_radius: MapRadius) -> None:
    plain, wide = (kind(3, 2, map_radius=map_radius) for kind in (RidgeMap, TenfoldRadius))
    for x, z in zip(X, Z, strict=True):
        plain.update(x, 0, z)
        wide.update(x, 0, z)
    for rows in (X[:1], np.repeat(X[:1], 3, axis=0), X[:3]):
        arms = range(len(rows))
        off, wide_off = (
            phi_hat.sample(rows, arms, np.random.default_rng(0), 50) - phi_hat.predict(rows, arms)
            for phi_hat in (plain, wide)
        )
        np.testing.assert_allclose(wide_off, 10.0 * off, rtol=1e-9, atol=1e-12)


class Doubles(PoLinUCB):
    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        super()._credit(x, slot, z, 2.0 * reward, z_hat)


class TriplesZ(PoLinUCB):
    def _observe(self, x: FloatArray, slot: int, z: FloatArray) -> FloatArray | None:
        return super()._observe(x, slot, 3.0 * z)


class Upside(PoLinUCB):
    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        return -super()._scores(x, slots)


class Logs(PoLinUCB):
    """Overrides ways through the steps, and calls those that it overrides."""

    def _update(self, x: FloatArray, slot: int, z: FloatArray | None, reward: float) -> None:
        super()._update(x, slot, z, reward)

    def _update_batch(
        self, X: FloatArray, slots: IntArray, Z: FloatArray | None, rewards: FloatArray
    ) -> None:
        super()._update_batch(X, slots, Z, rewards)

    def _argmax_scores(self, X: FloatArray, slots: IntArray) -> IntArray:
        best: IntArray = super()._argmax_scores(X, slots)
        return best


class CreditsDouble(BasePolicy, abstract=True):
    def _fill_z_and_credit(
        self, x: FloatArray, slot: int, z: FloatArray | None, reward: float, z_hat: FloatArray | None
    ) -> None:
        super()._fill_z_and_credit(x, slot, z, 2.0 * reward, z_hat)


class Mixin:
    def _credit(
        self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
    ) -> None:
        policy: Any = super()  # of the policy that it is mixed into
        policy._credit(x, slot, z, 2.0 * reward, z_hat)


@pytest.mark.parametrize(
    "bases",
    [
        (PoLinTS, Doubles),
        (PoLinTS, TriplesZ),
        (LinUCBPhiHat, Upside),
        (RobustPoLinUCB, Upside),
        (Logs, Doubles),
        (Logs, TriplesZ),
        (Logs, Upside),
        (PoLinUCB, CreditsDouble),
        (Mixin, PoLinUCB),
        (PoLinUCB, ABC),
    ],
    ids=lambda bases: "-".join(base.__name__ for base in bases),
)
def test_whatever_a_class_is_made_of_its_steps_are_taken(bases: tuple[type, ...]) -> None:
    kind = type("Made", bases, {})
    policies_take_overridden_steps(lambda: kind(3, RidgeMap(3, 2)))
    single, at_once, in_stages = (
        learn(kind(3, RidgeMap(3, 2))),
        kind(3, RidgeMap(3, 2)),
        kind(3, RidgeMap(3, 2)),
    )
    at_once.update_batch(X, ARMS, Z, REWARDS)
    for x, arm, z, reward in zip(X, ARMS.tolist(), Z, REWARDS.tolist(), strict=True):
        in_stages.credit(x, arm, z, reward, z_hat=in_stages.observe(x, arm, z))
    for other in (at_once, in_stages):
        np.testing.assert_allclose(other.weights, single.weights, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(
            other.context_map.weights, single.context_map.weights, rtol=1e-6, atol=1e-9
        )
    chosen = single.select_batch(X, np.random.default_rng(1)).arms.tolist()
    one_rng = np.random.default_rng(1)
    assert chosen == [single.select(x, one_rng).arm for x in X]


def test_a_fast_path_that_a_subclass_restates_is_taken() -> None:
    class Restates(LinUCB):
        _argmax_scores = LinUCB._argmax_scores

        def _credit(
            self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
        ) -> None:
            super()._credit(x, slot, z, 2.0 * reward, z_hat)

    class Below(Restates):
        def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
            return -super()._scores(x, slots)

    fast = LinUCB._argmax_scores.method
    assert LinUCB(2, 1)._argmax_scores.__func__ is Restates(2, 1)._argmax_scores.__func__ is fast
    assert Below(2, 1)._argmax_scores.__func__ is not fast
    assert Restates(2, 1)._update_batch.__func__ is not LinUCB(2, 1)._update_batch.__func__


def test_a_fast_path_without_a_general_way_is_refused_by_name() -> None:
    class Short(LinUCB):
        @fast_path
        def _shorter(self) -> int:
            return 1

    class Changed(Short):
        def _credit(
            self, x: FloatArray, slot: int, z: FloatArray, reward: float, z_hat: FloatArray | None
        ) -> None:
            pass

    assert Short(2, 1)._shorter() == 1
    with pytest.raises(TypeError, match="the fast path _shorter skips, wanted the general way"):
        Changed(2, 1)._shorter()


@pytest.mark.parametrize("scores", [[np.nan], [np.nan, 1.0], [1.0, np.nan, 0.5], [0.5, np.nan, *range(9)]])
def test_no_arm_is_chosen_by_a_score_that_is_no_number(scores: list[float]) -> None:
    with pytest.raises(ArithmeticError):
        choose(np.array(scores), np.random.default_rng(0))


class Prefers(LinUCB):
    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        return -super()._scores(x, slots)


def test_a_subclass_s_own_scores_decide_batches_too() -> None:
    policy, plain = Prefers(3, 3, ridge=1.0), LinUCB(3, 3, ridge=1.0)
    X = np.random.default_rng(0).normal(size=(30, 3))
    for each in (policy, plain):
        each.update_batch(X, np.arange(30) % 3, None, X.sum(axis=1))
    chosen = policy.select_batch(X, np.random.default_rng(0)).arms.tolist()
    rng = np.random.default_rng(0)
    assert chosen == [policy.select(x, rng).arm for x in X]
    assert chosen != plain.select_batch(X, np.random.default_rng(0)).arms.tolist()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("ridge", [0.3, "evidence"])
def test_arms_tie_where_nothing_tells_them_apart_however_they_are_stored(ridge: Ridge, seed: int) -> None:
    """One coordinate a round: on one that came to no arm, cold, few-row and dense arms are alike."""
    rng = np.random.default_rng(seed)
    policy = LinUCB(6, 6, ridge=ridge, intercept=False)
    eye = np.eye(6)
    for _ in range(80):
        policy.update(eye[rng.integers(5)], int(rng.choice(4, p=[0.7, 0.2, 0.08, 0.02])), None, rng.normal())
    if ridge == "evidence":
        policy.refit_prior()
    assert np.allclose(policy.propensities(eye[5]), 1.0 / 6.0)
