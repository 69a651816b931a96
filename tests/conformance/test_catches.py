"""Checks must be able to fail: each of these broken policies, maps and worlds is caught."""

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.untyped import untyped

import postserve
from postserve import (
    ActionDependentEnvironment,
    CatalogueEnvironment,
    Decision,
    Decisions,
    LinUCB,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    SyntheticEnvironment,
    conformance,
)


class CountsItsSelects(LinUCB):
    calls = 0

    def select(self, *args: Any, **options: Any) -> Decision:
        self.calls += 1
        return super().select(*args, **options)


class CallableCounter(CountsItsSelects):
    def __call__(self) -> None:
        """Being callable hides nothing."""


class KeepsContexts(LinUCB):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.memory: dict[str, Any] = {}

    def update(self, x: Any, arm: int, z: Any, reward: float, **options: Any) -> None:
        super().update(x, arm, z, reward, **options)
        self.memory["last"] = x


class LiesAboutPropensities(RandomPolicy):
    def select(self, *args: Any, **options: Any) -> Decision:
        return super().select(*args, **options)._replace(propensity=1.0)


class IgnoresEligibility(RandomPolicy):
    def select(self, x: Any, rng: Any, arms: Any = None) -> Decision:
        return super().select(x, rng)


class LearnsPastItsSteps(LinUCB):
    """Right as it is; but an overridden `_credit` is not called."""

    def _fill_z_and_credit(self, x: Any, slot: int, z: Any, reward: float, z_hat: Any) -> None:
        self._arms.learn(slot, x, reward=reward)

    def _update_batch(self, X: Any, slots: Any, Z: Any, rewards: Any) -> None:
        for x, slot, reward in zip(X, slots.tolist(), rewards.tolist(), strict=True):
            self._credit(x, slot, np.empty(0), reward, None)
            self._apply()


class LearnsNothing(LinUCB):
    def _credit(self, x: Any, slot: int, z: Any, reward: float, z_hat: Any) -> None:
        """Not today."""


class TeachesNoMap(PoLinUCB):
    def _observe(self, x: Any, slot: int, z: Any) -> Any:
        return self._phi_hat.predict_one(x, slot)


class OverwritesContexts(RandomPolicy):
    def select(self, x: Any, rng: Any, arms: Any = None) -> Decision:
        decision = super().select(x, rng, arms)
        if isinstance(x, np.ndarray):
            x *= 0.0
        return decision


class RaisesOtherErrors(LinUCB):
    def update(self, x: Any, arm: int, z: Any, reward: float, **options: Any) -> None:
        try:
            super().update(x, arm, z, reward, **options)
        except ValueError as error:
            raise KeyError("what?") from error


class TakesAnyNumber(LinUCB):
    def update(self, x: Any, arm: int, z: Any, reward: Any, **options: Any) -> None:
        super().update(np.nan_to_num(x), arm, z, reward, **options)


class DependsOnOrder(LinUCB):
    def update(self, x: Any, arm: int, z: Any, reward: float, **options: Any) -> None:
        super().update(np.asarray(x) * (1.0 + self.pulls.sum()), arm, z, reward, **options)


class RefitsToDescribe(LinUCB):
    def describe(self, x_names: Any = None, z_names: Any = None) -> postserve.Description:
        self.refit_prior()
        return super().describe(x_names, z_names)


class LearnsInUnits(LinUCB):
    @property
    def scale_free(self) -> bool:
        return True


class TakesBackAnything(LinUCB):
    def withdraw(self, x: Any, arm: int, **options: Any) -> None:
        with contextlib.suppress(postserve.InvalidInput):
            super().withdraw(x, arm, **options)


class LearnsOpenRoundsTwice(LinUCB):
    def update(self, x: Any, arm: int, z: Any, reward: float, **options: Any) -> None:
        super().update(x, arm, z, reward if self._open is None else 2.0 * reward, **options)


class TakesTheOldest(PoLinUCB):
    """Takes ids, and finds rounds by x and arm."""

    def observe(self, x: Any, arm: int, z: Any, *, round_id: str | None = None) -> Any:
        if isinstance(round_id, str) and self._open is not None and self._open.has(round_id):
            round_id = next(one.round_id for one in self._open if one.z is None)
        return super().observe(x, arm, z, round_id=round_id)


class CohortsStay(LinUCB):
    def select_batch(self, *args: Any, **options: Any) -> Decisions:
        return super().select_batch(*args, **(options | {"sequential": False}))


class LosesItsState(LinUCB):
    def _arrays(self) -> Any:
        lost = ("dense_weights", "row_c")
        return {name: array * 0 if name in lost else array for name, array in super()._arrays().items()}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CountsItsSelects(3, 2), "select changed the policy"),
        (lambda: CallableCounter(3, 2), "select changed the policy"),
        (lambda: KeepsContexts(3, 2), "kept"),
        (lambda: LiesAboutPropensities(3), "propensity"),
        (lambda: IgnoresEligibility(3), "is not|drew|was accepted"),
        (lambda: IgnoresEligibility(2), "is not|drew|was accepted"),
        (lambda: OverwritesContexts(3), "select changed its inputs"),
        (lambda: RaisesOtherErrors(3, 2), "raised KeyError"),
        (lambda: TakesAnyNumber(3, 2), "NaN was accepted"),
        (lambda: DependsOnOrder(3, 2), "order|differently"),
        (lambda: LearnsInUnits(3, 2, ridge=1.0, arm_radius=1.0), "changed a choice"),
        (lambda: LosesItsState(3, 2), "loaded"),
        (lambda: TakesBackAnything(3, 2), "withdrawing .* was accepted"),
        (lambda: LearnsOpenRoundsTwice(3, 2), "taught announced rounds differently"),
        (lambda: TakesTheOldest(3, RidgeMap(2, 1)), "rounds found by their ids taught differently"),
        (lambda: CohortsStay(3, 2, ridge=1.0), "in sequence, select_batch chose"),
        (lambda: RefitsToDescribe(3, 2), "describing changed the policy"),
        (lambda: LearnsPastItsSteps(3, 2), "with _credit overridden, update_batch taught differently"),
        (lambda: LearnsNothing(3, 2), "all weights are 0"),
        (lambda: TeachesNoMap(3, RidgeMap(2, 1)), "observe taught the map nothing"),
        (lambda: object(), "has no arms"),
        (lambda: RandomPolicy(1), "two or more"),
    ],
)
def test_a_broken_policy_is_caught(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        conformance.check_policy(make)


def test_an_object_in_place_of_a_maker_is_said_plainly() -> None:
    with pytest.raises(AssertionError, match="wanted a function"):
        conformance.check_policy(untyped(RandomPolicy(3)))
    with pytest.raises(AssertionError, match="wanted a function"):
        conformance.check_context_map(untyped(RidgeMap(3, 2)))


class OneRowForAll(RidgeMap):
    def predict(self, x: Any, arms: Any = (0,)) -> Any:
        return super().predict(x, arms)[0]


class GivesItsOwnArray(RidgeMap):
    def predict(self, x: Any, arms: Any = (0,)) -> Any:
        storage = self._models.storage
        return storage.vectors[0, 0, :, :2] if storage.counts[0] else super().predict(x, arms)


class ForgetsAnything(RidgeMap):
    def forget(self, keep: float) -> None:
        """Whatever the factor."""


class LearnsFromNaN(RidgeMap):
    def update(self, x: Any, arm: int, z: Any) -> None:
        super().update(np.nan_to_num(x), arm, z)


class WidensWithAnnounced(RidgeMap):
    def _radius(self, X: Any) -> Any:
        return super()._radius(X) * (1.0 if self._widths is self._models else 2.0)


class TakesBackAnyX(RidgeMap):
    def withdraw(self, x: Any, arm: int) -> None:
        with contextlib.suppress(postserve.InvalidInput):
            super().withdraw(x, arm)


class SavesNoAnnounced(RidgeMap):
    def _arrays(self) -> Any:
        return {name: each for name, each in super()._arrays().items() if not name.startswith("pending")}


class DrawsPastItsRadius(RidgeMap):
    """Right as it is; but with `_radius` overridden, draws at distinct rows keep the old width."""

    def _deviations(self, X: Any, size: int, rng: np.random.Generator) -> Any:
        off = super()._deviations(X, size, rng)
        if (X[:1] == X).all():
            return off
        return off * (RidgeMap._radius(self, X) / self._radius(X))[:, None]


class VariesTogether(RidgeMap):
    """Says that the coordinates of phi vary as one, and draws them independently."""

    def spread_root(self, x: Any, arms: Any = (0,)) -> Any:
        return self.spread(x, arms)[:, :, None]


class WithoutLevel(RidgeMap):
    def __init__(self, dim_x: int, dim_z: int) -> None:
        super().__init__(dim_x, dim_z, intercept=False)


class LevelsTowardsZero(WithoutLevel):
    """Says that the level of z does not matter, and has a prior around 0."""

    @property
    def shift_free(self) -> bool:
        return True


class SharesOneUnit(WithoutLevel):
    """Says that each column has a unit of its own, and has one prior variance for all."""

    @property
    def column_free(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (OneRowForAll, "shape"),
        (SharesOneUnit, "column_free is True, and 1024.0 times column 0 of x"),
        (LevelsTowardsZero, "predictions of z . 100 are not those of z"),
        (DrawsPastItsRadius, "with _radius overridden, draws at rows scatter differently"),
        (VariesTogether, "draws have the covariance (?s:.*), spread_root says"),
        (GivesItsOwnArray, "own array"),
        (LearnsFromNaN, "was accepted"),
        (ForgetsAnything, "was accepted"),
        (WidensWithAnnounced, "announced rounds widened a radius"),
        (TakesBackAnyX, "withdraw with x = .* was accepted"),
        (SavesNoAnnounced, "the loaded map counts announced rounds differently"),
    ],
)
def test_a_broken_map_is_caught(kind: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        conformance.check_context_map(lambda: kind(3, 2))


class LeakyRewards(SyntheticEnvironment):
    """Says that rewards come from phi, and draws them from z."""

    def rounds(self, n: int, rng: np.random.Generator) -> Any:
        self.reward_from = "z"
        rounds = super().rounds(n, rng)
        self.reward_from = "phi"
        return rounds


class BiasedNoise(SyntheticEnvironment):
    """Noise with a mean that is not 0."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, z_noise=lambda rng, shape: rng.exponential(size=shape), **options)


@pytest.mark.parametrize(("kind", "message"), [(LeakyRewards, "follow phi"), (BiasedNoise, "off their mean")])
def test_a_broken_environment_is_caught(kind: Any, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        conformance.check_environment(lambda: kind("linear", dim_x=3, dim_z=2, n_arms=2))


class OneRowTooFew(ActionDependentEnvironment):
    """Shows the contexts of all arms but the last."""

    def rounds(self, n: int, rng: np.random.Generator) -> Any:
        rounds = super().rounds(n, rng)
        return rounds._replace(x=rounds.x[:, :-1])


class OnePhiForAll(ActionDependentEnvironment):
    """Gives phi of the first arm only."""

    def phi(self, x: Any) -> Any:
        return super().phi(x)[0]


class NoSuchOrder(CatalogueEnvironment):
    """Names its arms in falling order."""

    def rounds(self, n: int, rng: np.random.Generator) -> Any:
        rounds = super().rounds(n, rng)
        assert rounds.arms is not None
        return rounds._replace(arms=rounds.arms[:, ::-1])


class OthersRewards(CatalogueEnvironment):
    """Draws the arms of a round anew once their rewards are known."""

    def rounds(self, n: int, rng: np.random.Generator) -> Any:
        return super().rounds(n, rng)._replace(arms=self._eligible(n, rng))


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (OneRowTooFew, r"x has the shape \(500, 4, 3\), wanted \(500, 3\) or \(500, 5, 3\)"),
        (OnePhiForAll, r"phi\(x\) has the shape \(2,\), wanted \(5, 2\)"),
        (NoSuchOrder, "do not rise"),
        (OthersRewards, "does not agree with the block"),
    ],
)
def test_a_world_with_broken_rows_is_caught(kind: Any, message: str) -> None:
    more = {"n_eligible": 3} if issubclass(kind, CatalogueEnvironment) else {}
    with pytest.raises(AssertionError, match=message):
        conformance.check_environment(lambda: kind("linear", dim_x=3, dim_z=2, n_arms=5, **more))
