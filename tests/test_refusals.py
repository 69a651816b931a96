"""Bad arguments are refused with a message (what, got, wanted), and change nothing."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from tests.conformance.test_conformance import MAPS, POLICIES
from tests.untyped import untyped

from postserve import (
    Decision,
    EpsilonGreedy,
    InvalidInput,
    KnownMap,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    NetworkMap,
    PerArmMap,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    SklearnMap,
    SyntheticEnvironment,
)
from postserve.conformance.tools import same, snapshot
from postserve.protocols import Forgets
from postserve.types import FloatArray


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: LinUCB(0, 2), "n_arms"),
        (lambda: LinUCB(untyped(2.0), 2), "n_arms"),
        (lambda: LinUCB(2, 0), "dim_x"),
        (lambda: LinUCB(2, 2, ridge=0.0), "ridge"),
        (lambda: LinUCB(2, 2, ridge=-1.0), "ridge"),
        (lambda: LinUCB(2, 2, ridge=untyped("lasso")), "ridge"),
        (lambda: LinUCB(2, 2, ridge=np.nan), "ridge"),
        (lambda: LinUCB(2, 2, ridge=(1.0, 2.0)), "no z"),
        (lambda: LinUCB(2, 2, ridge=untyped(np.array([[1.0]]))), "ridge"),
        (lambda: LinUCB(2, 2, ridge=1e-320), "ridge"),
        (lambda: LinUCB(2, 2, ridge=True), "ridge"),
        (lambda: PoLinUCB(2, untyped(RidgeMap)), "context map"),
        (lambda: PerArmMap(untyped(RidgeMap)), "context map"),
        (lambda: EpsilonGreedy(untyped(LinUCB)), "chooses from x"),
        (lambda: SklearnMap(2, 1, LinearRegression), "regressor"),
        (lambda: SklearnMap(2, 1, LogisticRegression()), "regressor"),
        (lambda: RidgeMap(2, 2, noise_scale=[[1.0], [1.0, 2.0]]), "noise_scale"),
        (lambda: KnownMap(2, 1, function=lambda x: ["a"]).predict([1.0, 2.0]), "function"),
        (lambda: KnownMap(2, 1, function=lambda x: x).forget(np.nan), "keep"),
        (lambda: RidgeMap(2, 1).predict([1.0, 2.0], untyped(3)), "arms"),
        (lambda: PerArmMap(RidgeMap(2, 1)).predict([1.0, 2.0], untyped(["a"])), "arms"),
        (lambda: SyntheticEnvironment("linear").rounds(3, untyped(None)), "rng"),
        (lambda: LinUCB(2, 2).update_batch([[1.0, 2.0]], [[0], [1, 2]], None, [1.0]), "arms"),
        (lambda: LinUCB(2, 2).update([1.0, 2.0], 0, None, 10**400), "reward"),
        (lambda: LinUCB(2, 2).forget(map=0.5), "no map"),
        (lambda: LinUCBOracle(2, 2, 1, ridge=(1.0, 2.0, 3.0)), "pair"),
        (lambda: LinUCBOracle(2, 2, 1, ridge=(1.0, -2.0)), "ridge"),
        (lambda: LinUCBOracle(2, 2, 1, missing_z=untyped("impute")), "missing_z"),
        (lambda: LinUCB(2, 2, delta=0.0), "delta"),
        (lambda: LinUCB(2, 2, delta=1.0), "delta"),
        (lambda: LinUCB(2, 2, arm_radius=untyped("wide")), "arm_radius"),
        (lambda: LinUCB(2, 2, arm_radius=-1.0), "arm_radius"),
        (lambda: LinUCB(2, 2, arm_radius="closed_form"), "u_bound"),
        (lambda: LinUCB(2, 2, exploration=-0.1), "exploration"),
        (lambda: LinUCB(2, 2, intercept=untyped(1)), "intercept"),
        (lambda: PoLinUCB(2, RidgeMap(2, 1), optimism=untyped("hope")), "optimism"),
        (lambda: PoLinUCB(2, RidgeMap(2, 1), missing_z=untyped("guess")), "missing_z"),
        (lambda: PoLinUCB(2, untyped(object())), "context map"),
        (lambda: LinUCBPhiHat(2, RidgeMap(2, 1), prediction=untyped("during")), "prediction"),
        (lambda: LinUCBPhiHat(2, RidgeMap(2, 1), arm_radius="determinant"), "u_bound"),
        (lambda: EpsilonGreedy(RandomPolicy(2), epsilon=1.1), "epsilon"),
        (lambda: RidgeMap(2, 1, ridge=0.0), "ridge"),
        (lambda: RidgeMap(2, 1, delta=2.0), "delta"),
        (lambda: RidgeMap(2, 1, map_rate=0.6), "map_rate"),
        (lambda: RidgeMap(2, 1, map_radius=untyped("wide")), "map_radius"),
        (lambda: RidgeMap(2, 2, noise_scale=[1.0]), "noise_scale"),
        (lambda: RidgeMap(2, 1, features=untyped(3)), "features"),
        (lambda: RidgeMap(2, 1, features=lambda x: x[5]), "features"),
        (lambda: RidgeMap(2, 1, features=lambda x: x[None]), "features"),
        (lambda: PerArmMap(untyped(3)), "context map"),
        (lambda: PerArmMap(RidgeMap(1, 1)).merge(PerArmMap(RidgeMap(2, 3))), "template.dim_x"),
        (lambda: RidgeMap(2, 1, noise_scale=True), "noise_scale"),
        (lambda: KnownMap(2, 1, function=untyped(3)), "callable"),
    ],
)
def test_bad_settings_say_what_was_wanted(make: Any, wanted: str) -> None:
    with pytest.raises(InvalidInput, match=wanted) as caught:
        make()
    assert "wanted" in str(caught.value)


def test_an_unknown_option_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="alpha"):
        untyped(LinUCB)(2, 2, alpha=1.0)


def test_features_that_fail_in_mid_run_change_nothing() -> None:
    def fragile(x: FloatArray) -> FloatArray:
        return x if x[0] < 5.0 else np.full(2, np.nan)

    policy = PoLinUCB(2, RidgeMap(2, 1, features=fragile))
    policy.update([1.0, 1.0], 0, [1.0], 1.0)
    phi_hat = policy.context_map
    assert isinstance(phi_hat, RidgeMap)
    before = policy.weights, phi_hat.weights
    with pytest.raises(InvalidInput, match="features"):
        policy.update([9.0, 1.0], 0, [1.0], 1.0)
    assert np.array_equal(policy.weights, before[0])
    assert np.array_equal(phi_hat.weights, before[1])


class OddMap(KnownMap):
    """A map that answers whatever a test sets."""

    def __init__(self, rows: Any = ((0.0, 0.0),), radius: Any = (0.0,)) -> None:
        super().__init__(2, 2, function=lambda x: x)
        self.rows, self.radii = rows, radius

    def predict(self, x: Any, arms: Any = (0,)) -> Any:
        return self.rows

    def radius(self, x: Any, arms: Any = (0,)) -> Any:
        return self.radii


@pytest.mark.parametrize(
    "answers",
    [
        {"rows": np.full((3, 2), np.nan)},
        {"rows": np.full((3, 2), 1e160)},
        {"rows": np.zeros(2)},
        {"rows": np.zeros((1, 2))},
        {"rows": None},
        {"rows": [["a", "b"]] * 3},
        {"rows": np.zeros((3, 2)), "radius": np.full(3, np.nan)},
        {"rows": np.zeros((3, 2)), "radius": -np.ones(3)},
        {"rows": np.zeros((3, 2)), "radius": [1.0]},
    ],
)
def test_what_a_map_answers_is_checked(answers: dict[str, Any]) -> None:
    policy = PoLinUCB(3, OddMap(**answers), optimism="joint")
    with pytest.raises(InvalidInput, match=r"context_map\.(predict|radius)\(x\)"):
        policy.select([1.0, 2.0], np.random.default_rng(0))


def test_a_batch_with_a_row_whose_features_fail_teaches_nothing() -> None:
    policy = PoLinUCB(2, RidgeMap(1, 1, features=lambda x: x**2))
    with pytest.raises(InvalidInput, match="features"):
        policy.update_batch([[1.0], [1e30]], [0, 1], [[1.0], [1.0]], [1.0, 1.0])
    assert policy.pulls.sum() == 0.0
    assert isinstance(policy.context_map, RidgeMap)
    assert not policy.context_map.weights.any()


def test_fractions_and_masked_arrays() -> None:
    policy = LinUCB(2, 1)
    policy.update([1.0], 0, None, untyped(Fraction(1, 2)))
    policy.forget(arms=untyped(Fraction(1, 2)))
    assert policy.pulls[0] == 0.5
    with pytest.raises(InvalidInput, match="masked"):
        policy.select(np.ma.array([9.0], mask=[True]), np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="itself"):
        policy.merge(policy)


NUMBERS = [Fraction(1, 2), Decimal("0.5"), np.float32(0.5), np.array(0.5)]


@pytest.mark.parametrize("half", NUMBERS, ids=lambda half: type(half).__name__)
@pytest.mark.parametrize("name", MAPS)
def test_a_map_forgets_by_any_kind_of_number(name: str, half: Any) -> None:
    one, other = MAPS[name](), MAPS[name]()
    rng = np.random.default_rng(0)
    for i in range(12):
        x, z = rng.normal(size=one.dim_x), rng.normal(size=one.dim_z)
        one.update(x, i % 2, z)
        other.update(x, i % 2, z)
    if not isinstance(one, Forgets) or getattr(one, "incremental", False):
        return
    one.forget(0.5)
    other.forget(half)
    assert same(snapshot(one), snapshot(other))


def test_settings_and_rewards_may_be_any_kind_of_number() -> None:
    states = []
    for half in (0.5, *map(untyped, NUMBERS)):
        phi_hat = RidgeMap(2, 1, ridge=half, radius_scale=half, delta=half, map_rate=half, map_radius=half)
        policy = PoLinUCB(2, phi_hat, ridge=half, noise_scale=half, exploration=half, arm_radius=half)
        policy.update([1.0, 2.0], 0, [3.0], half)
        policy.forget(arms=half, map=half)
        states.append(snapshot(policy))
    assert all(same(states[0], state) for state in states[1:])
    for bad in (Decimal("sNaN"), Decimal("Infinity"), np.array(np.nan), np.array(True), np.ma.masked, "0.5"):
        with pytest.raises(InvalidInput, match=r"^arms is .*, wanted a"):
            policy.forget(arms=untyped(bad))
    assert same(states[-1], snapshot(policy))


def test_a_cold_network_predicts_the_mean_whatever_the_units_of_x() -> None:
    phi_hat = NetworkMap(2, 1)
    assert phi_hat.predict([1e6, 1e6]).item() == 0.0
    phi_hat.update([1e6, 2e6], 0, [3.0])
    assert phi_hat.predict([1e9, 1e9]).item() == 3.0


def test_messages_say_what_got_wanted() -> None:
    policy = LinUCB(2, 4)
    rng = np.random.default_rng(0)
    with pytest.raises(InvalidInput, match=r"^x has shape \(3,\), wanted \(4,\)$"):
        policy.select(np.zeros(3), rng)
    with pytest.raises(InvalidInput, match=r"^x has nan at \[2\], wanted finite numbers$"):
        policy.select([0.0, 1.0, np.nan, 2.0], rng)
    with pytest.raises(InvalidInput, match=r"^arm is 7, wanted one of 0, 1$"):
        policy.update(np.zeros(4), 7, None, 1.0)
    with pytest.raises(InvalidInput, match="only arm"):
        RandomPolicy(1).remove_arm(0)


def test_integers_booleans_and_lists_are_numbers_too() -> None:
    policy = LinUCB(2, 2, exploration=1.0)
    policy.update([0, 1], 0, None, 0)
    policy.update([1, 0], untyped(np.int64(1)), None, True)
    assert policy.select(np.array([1, 0], dtype=np.int8), np.random.default_rng(0)) == Decision(1, 1.0)


def test_a_regressor_that_needs_more_pairs_says_so_and_is_tried_again() -> None:
    phi_hat = SklearnMap(1, 1, KNeighborsRegressor(20))
    for x in range(32):
        if x in (7, 15):
            with pytest.warns(UserWarning, match="first_fit"):
                phi_hat.update([x], 0, [x])
        else:
            phi_hat.update([x], 0, [x])
        if x == 20:
            assert phi_hat.predict([0.0]).item() == 10.0  # the mean, so far
    assert phi_hat.predict([0.0]).item() == pytest.approx(9.5)


@pytest.mark.parametrize("name", [*POLICIES, *MAPS])
def test_refusals_of_merge_say_what_was_wanted(name: str) -> None:
    make = {**POLICIES, **MAPS}[name]
    one, other = make(), make()
    if not hasattr(one, "merge"):
        return
    for bad in [one, None, RandomPolicy(2), *([] if one.order_free else [other])]:
        with pytest.raises(InvalidInput, match=r"cannot merge.*, wanted "):
            one.merge(untyped(bad))


def test_hybrid_models_whose_arms_went_cannot_merge_and_say_what_was_wanted() -> None:
    one, other = (LinUCB(3, 1, model="hybrid") for _ in range(2))
    for policy, arm in ((one, 0), (one, 1), (other, 0), (other, 1)):
        policy.update([1.0], arm, None, 1.0)
    for policy in (one, other):
        policy.add_arm()
    other.remove_arm(0)
    one.remove_arm(3)  # which taught nothing
    for left, right in ((one, other), (other, one)):
        with pytest.raises(InvalidInput, match=r"cannot merge.*removed arms.*, wanted a numeric ridge"):
            left.merge(right)


def test_a_removed_arm_is_named_as_such() -> None:
    policy = LinUCB(3, 1)
    policy.remove_arm(1)
    with pytest.raises(InvalidInput, match=r"arm is 1 \(it was removed\), wanted one of 0, 2"):
        policy.update([1.0], 1, None, 1.0)
