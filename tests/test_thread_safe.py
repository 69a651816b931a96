"""What says that readers beside a learner see one version, and what does not."""

from typing import Any

import pytest
from tests.conformance.test_conformance import MAPS, POLICIES
from tests.own_map import OwnTotal

from postserve import BestMap, EpsilonGreedy, HybridMap, PerArmMap, PoLinUCB, RidgeMap, StagedMap

EVERYTHING = {**MAPS, **POLICIES}


class Doubled(RidgeMap):
    """It overrides a verb."""

    def predict(self, x: Any, arms: Any = (0,)) -> Any:
        return 2.0 * super().predict(x, arms)


class Halved(RidgeMap):
    """It overrides a step, and has a verb more."""

    def _predict(self, X: Any) -> Any:
        return super()._predict(X) / 2.0

    def explain(self) -> str:
        return "half"


class Vouched(Doubled):
    """It says so itself."""

    thread_safe = True


@pytest.mark.parametrize("name", EVERYTHING)
def test_ours_are_safe(name: str) -> None:
    assert EVERYTHING[name]().thread_safe


def test_users_own_are_safe_if_they_say_so() -> None:
    for phi_hat, safe in (
        (Halved(3, 2), True),
        (Doubled(3, 2), False),
        (Vouched(3, 2), True),
        (PerArmMap(Doubled(3, 2)), False),
        (BestMap([RidgeMap(3, 2), Vouched(3, 2)]), True),
        (BestMap([RidgeMap(3, 2), Doubled(3, 2)]), False),
    ):
        policy = PoLinUCB(2, phi_hat)
        found = [each.thread_safe for each in (phi_hat, policy, EpsilonGreedy(policy))]
        assert found == [safe] * 3, phi_hat
    assert not PoLinUCB(2, OwnTotal()).thread_safe


@pytest.mark.parametrize("base", [HybridMap, PerArmMap, StagedMap, BestMap])
def test_an_overridden_update_is_what_a_policy_teaches_by(base: Any) -> None:
    """Policies prepare what a map learns, but a user's own `update` is called."""

    class Capped(base):  # type: ignore[misc]
        def update(self, x: Any, arm: int, z: Any) -> None:
            super().update(x, arm, [min(float(z[0]), 1.0)])

    made = {HybridMap: (1, 1), PerArmMap: (RidgeMap(1, 1),)}.get(base, ([RidgeMap(1, 1)],))
    capped, plain = (PoLinUCB(2, kind(*made)) for kind in (Capped, base))
    for policy, z in ((capped, 5.0), (plain, 1.0)):
        for i in range(6):
            policy.update([float(i)], i % 2, [z * (i > 2)], 1.0)
    for x in (0.5, 2.0):
        ours, wanted = (policy.context_map.predict([x], [0, 1]) for policy in (capped, plain))
        assert ours.tolist() == wanted.tolist()
