"""Descriptions of policies: their content, their names, and how they are shown."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from tests.own_map import OwnTotal
from tests.untyped import untyped

import postserve
from postserve import (
    ContextMap,
    EpsilonGreedy,
    HybridMap,
    InvalidInput,
    KernelMap,
    KnownMap,
    LinUCB,
    LinUCBOracle,
    LoggedRounds,
    NeighborsMap,
    NetworkMap,
    PerArmMap,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
    SklearnMap,
)
from postserve.conformance.tools import some_rounds
from postserve.types import FloatArray, Model

N = 150


def taught(policy: Any, n: int = N, seed: int = 0) -> Any:
    rounds = some_rounds(n, 3, 2, 3, seed)
    arms = np.arange(n) % 3
    policy.update_batch(rounds.x, arms, rounds.z, rounds.rewards[np.arange(n), arms])
    return policy


def doubled(x: FloatArray) -> FloatArray:
    return np.concatenate([x, x**2])


# Content


def test_weights_pulls_and_prior_are_those_of_the_policy() -> None:
    policy = taught(PoLinUCB(3, RidgeMap(3, 2), intercept=True))
    found = policy.describe(x_names=["age", "visits", "income"], z_names=["clicks", "spend"])
    assert found.inputs == {
        "x": ("age", "visits", "income"),
        "z": ("clicks", "spend"),
        "intercept": ("intercept",),
    }
    assert np.array_equal(found.weights, policy.weights)
    assert np.array_equal(found.pulls, policy.pulls)
    assert found.arms == policy.arms == (0, 1, 2)
    assert found.prior.ridge == policy.prior.ridge
    assert found.prior_is_learnt
    text = str(found)
    assert text.startswith("PoLinUCB with RidgeMap: 3 arms\n")
    assert f"noise scale {np.sqrt(policy.prior.noise_variance[0]):.3g}" in text
    for name in ("age", "visits", "income", "clicks", "spend", "intercept", "pulls", "arm 2"):
        assert name in text
    assert max(map(len, text.splitlines()[:-2])) <= 80


def test_a_fixed_prior_is_named_so() -> None:
    text = str(taught(PoLinUCB(3, RidgeMap(3, 2), ridge=(2.0, 0.5))).describe())
    assert "Prior, fixed: ridge x 2, z 0.5." in text
    assert "noise" not in text


def test_it_is_a_value_of_its_own() -> None:
    policy = taught(LinUCB(3, 3))
    found = policy.describe()
    before = found.weights.copy(), found.pulls.copy()
    taught(policy, seed=1)
    assert np.array_equal(found.weights, before[0])
    assert np.array_equal(found.pulls, before[1])


def test_a_hybrid_model_shows_what_arms_share() -> None:
    policy = taught(PoLinUCB(3, RidgeMap(3, 2), model="hybrid", ridge=1.0))
    found = policy.describe()
    assert found.shared is not None
    assert len(found.shared) == 5
    new = policy.add_arm()  # which has learnt nothing but what is shared
    assert np.allclose(policy.describe().weights[new], found.shared)
    assert "The weights of each arm include the shared ones." in str(found)
    assert "shared z 1" in str(found)


@pytest.mark.parametrize("n_arms", [3, None])
def test_a_shared_model_has_one_column(n_arms: int | None) -> None:
    policy = PoLinUCB(n_arms, RidgeMap(3, 2), model="shared", ridge=1.0)
    x, z = np.ones(3), np.ones(2)
    policy.update(x, 1, z, 1.0)
    found = policy.describe()
    assert found.arms == ()
    assert found.weights.shape == (1, 5)
    assert found.pulls.tolist() == [1.0]
    assert ("3 arms" if n_arms else "decision sets") in str(found).splitlines()[0]


def test_predictions_that_arms_regress_on_are_named_so() -> None:
    found = taught(RobustPoLinUCB(3, RidgeMap(3, 2))).describe(z_names=["clicks", "spend"])
    assert found.inputs["z_hat"] == ("predicted clicks", "predicted spend")


def test_removed_arms_are_not_described() -> None:
    policy = taught(LinUCB(3, 3))
    policy.remove_arm(1)
    policy.add_arm()
    found = policy.describe()
    assert found.arms == (0, 2, 3)
    assert found.pulls.tolist() == [50.0, 50.0, 0.0]


def test_of_many_arms_the_first_and_the_most_pulled_are_shown() -> None:
    policy = LinUCB(1000, 2, ridge=1.0)
    for arm in (3, 700, 700, 20):
        policy.update([1.0, 2.0], arm, None, 1.0)
    found = policy.describe()
    assert found.arms[:6] == tuple(range(6))
    assert {20, 700} <= set(found.arms)
    assert len(found.arms) == 12
    assert np.array_equal(found.weights, policy.weights[list(found.arms)])
    assert "988 arms are left out" in str(found)
    assert "988 arms are left out" in found._repr_html_()
    assert "left out" not in str(LinUCB(12, 2).describe())


def test_a_policy_without_weights_says_so() -> None:
    found = RandomPolicy(4).describe(x_names=["age"])
    assert str(found) == "RandomPolicy: 4 arms\n\nNo weights are learnt."
    assert found.prior is None
    assert found.weights.size == 0


def test_epsilon_greedy_describes_what_it_wraps() -> None:
    policy = taught(EpsilonGreedy(LinUCB(3, 3), epsilon=0.2))
    found = policy.describe(["a", "b", "c"])
    assert found.policy == "EpsilonGreedy with epsilon 0.2, around LinUCB"
    assert np.array_equal(found.weights, policy.weights)
    assert policy._repr_html_() == policy.describe()._repr_html_()


def test_a_wrapped_policy_that_cannot_describe_itself_is_named() -> None:
    class Plain:
        arms, dim_x, dim_z = (0, 1), 1, None

        def select(self, x: Any, rng: Any, arms: Any = None) -> Any: ...
        def propensities(self, x: Any, arms: Any = None) -> Any: ...
        def update(self, x: Any, arm: Any, z: Any, reward: Any) -> None: ...
        def observe(self, x: Any, arm: Any, z: Any) -> Any: ...
        def credit(self, x: Any, arm: Any, z: Any, reward: Any, *, z_hat: Any = None) -> None: ...

    policy = EpsilonGreedy(Plain())
    with pytest.raises(InvalidInput, match="Plain has no describe, wanted a policy that does"):
        policy.describe()
    assert policy._repr_html_() is None


def test_merged_and_loaded_policies_are_described_alike(tmp_path: Path) -> None:
    whole = PoLinUCB(3, RidgeMap(3, 2), ridge=1.0)
    one, other = PoLinUCB(3, RidgeMap(3, 2), ridge=1.0), PoLinUCB(3, RidgeMap(3, 2), ridge=1.0)
    for policy, seeds in ((whole, (0, 1)), (one, (0,)), (other, (1,))):
        for seed in seeds:
            taught(policy, seed=seed)
    one.merge(other)
    assert np.allclose(one.describe().weights, whole.describe().weights)
    one.save(tmp_path / "policy.npz")
    assert str(postserve.load(tmp_path / "policy.npz").describe()) == str(one.describe())


# phi's error


def test_the_error_of_a_regression_is_that_of_generalised_cross_validation() -> None:
    rounds = some_rounds(40, 3, 2, 1)
    phi_hat = RidgeMap(3, 2, ridge=2.0)
    for x, z in zip(rounds.x, rounds.z, strict=True):
        phi_hat.update(x, 0, z)
    hat = rounds.x @ np.linalg.solve(rounds.x.T @ rounds.x + 2.0 * np.eye(3), rounds.x.T)
    residual = rounds.z - hat @ rounds.z
    wanted = (residual**2).sum(axis=0) / (1.0 - np.trace(hat) / 40) ** 2
    squares, pairs = phi_hat.squared_errors()
    assert pairs == 40.0
    assert squares == pytest.approx(wanted, rel=1e-9)


MAPS: dict[str, Callable[[], ContextMap]] = {
    "RidgeMap": lambda: RidgeMap(3, 2),
    "RidgeMap-intercept": lambda: RidgeMap(3, 2, ridge=1.0, intercept=True),
    "NeighborsMap": lambda: NeighborsMap(3, 2),
    "NetworkMap": lambda: NetworkMap(3, 2),
    "SklearnMap": lambda: SklearnMap(3, 2, DecisionTreeRegressor()),
    "PerArmMap": lambda: PerArmMap(RidgeMap(3, 2)),
    "HybridMap": lambda: HybridMap(3, 2),
}


@pytest.mark.parametrize("name", MAPS)
def test_each_map_knows_about_how_far_off_it_is(name: str) -> None:
    """Within a factor of two of the error on rounds that it has not seen."""
    policy = taught(PoLinUCB(3, MAPS[name]()), n=600)
    later = some_rounds(600, 3, 2, 3)
    later = later._replace(x=later.x[-300:], z=later.z[-300:])
    fresh = taught(PoLinUCB(3, MAPS[name]()), n=300)  # the first half; `later` is the second
    errors = np.array(policy.describe().map_errors)
    off = later.z - np.array([fresh.context_map.predict(x)[0] for x in later.x])
    actual = np.sqrt((off**2).mean(axis=0))
    assert (errors > 0.5 * actual).all()
    assert (errors < 2.0 * actual).all()


@pytest.mark.parametrize(
    "phi_hat",
    [
        KnownMap(3, 2, function=lambda x: x[:2]),
        KernelMap(3, 2),  # cross-validation understates it: landmarks are the pairs explained least
        PerArmMap(KnownMap(3, 2, function=lambda x: x[:2])),
    ],
)
def test_what_a_map_does_not_know_is_unknown(phi_hat: ContextMap) -> None:
    found = taught(PoLinUCB(3, phi_hat)).describe()
    assert found.map_errors == (None, None)
    assert "unknown" in str(found)


@pytest.mark.parametrize("name", MAPS)
def test_before_the_first_round_errors_are_unknown(name: str) -> None:
    assert PoLinUCB(3, MAPS[name]()).describe().map_errors == (None, None)


def test_a_map_of_ones_own_may_say_nothing_of_its_errors() -> None:
    assert set(PoLinUCB(2, OwnTotal()).describe().map_errors) == {None}


def test_names_may_be_any_list_of_them() -> None:
    policy = LinUCB(2, 2)
    for names in (["a", "b"], np.array(["a", "b"]), pd.Index(["a", "b"])):
        assert policy.describe(x_names=untyped(names)).inputs["x"] == ("a", "b")


@pytest.mark.parametrize("names_out", [None, 3, ["only one"]])
def test_a_transformer_with_odd_names(names_out: Any) -> None:
    class Odd:
        n_features_in_ = 2

        def transform(self, X: Any) -> Any:
            return X

        def get_feature_names_out(self, given: Any = None) -> Any:
            return names_out

    policy = LinUCB(2, 2, x_features=Odd())
    assert policy.describe().inputs["x"] == ("x_features[0]", "x_features[1]")
    if isinstance(names_out, list):
        with pytest.raises(InvalidInput, match="x_names gives 1 names of features, wanted 2"):
            policy.describe(x_names=["p", "q"])
    else:
        assert policy.describe(x_names=["p", "q"]).inputs["x"] == ("p", "q")


def test_errors_of_pairs_that_count_differently_are_unknown(tmp_path: Path) -> None:
    policy, other = (taught(PoLinUCB(3, RidgeMap(3, 2))) for _ in range(2))
    assert None not in policy.describe().map_errors
    policy.forget(map=0.5)
    policy.save(tmp_path / "policy.npz")
    other.merge(policy)
    for each in (policy, other, postserve.load(tmp_path / "policy.npz")):
        assert each.describe().map_errors == (None, None)


def test_an_error_is_never_below_rounding() -> None:
    rng, phi_hat = np.random.default_rng(0), RidgeMap(1, 1, intercept=True)
    for _ in range(200):
        phi_hat.update(rng.normal(size=1), 0, 1e8 + rng.normal(size=1))
    squares, pairs = phi_hat.squared_errors()
    assert np.sqrt(squares[0] / pairs) > 0.9


def test_a_fit_through_all_pairs_has_no_known_error() -> None:
    phi_hat = RidgeMap(3, 1, ridge=1e-12)
    for x in np.eye(3):
        phi_hat.update(x, 0, [1.0])
    assert PoLinUCB(2, phi_hat).describe().map_errors == (None,)


def test_without_a_map_there_is_no_column_of_errors() -> None:
    found = LinUCBOracle(2, 1, 1).describe()
    assert found.map_errors == ()
    assert "phi" not in str(found)


# Names


def test_names_of_x_and_z_may_be_the_same() -> None:
    found = taught(PoLinUCB(3, RidgeMap(3, 2))).describe(["a", "b", "c"], ["a", "b"])
    rows = [line for line in str(found).splitlines() if line.startswith("a ")]
    assert [len(row.split()) for row in rows] == [4, 5]  # only the follow-up has an error


def test_a_transformer_fitted_on_a_frame_names_its_features() -> None:
    people = pl.DataFrame({"age": [20.0, 30.0, 40.0], "town": ["a", "b", "a"]})
    features = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["town"])).fit(people)
    policy = LinUCB(2, 3, x_features=features)
    names = ("standardscaler__age", "onehotencoder__town_a", "onehotencoder__town_b")
    assert policy.describe().inputs == {"x": names, "intercept": ("intercept",)}
    with pytest.raises(InvalidInput, match=r"x_names is \['years', 'town'\].*wanted"):
        policy.describe(x_names=["years", "town"])


def test_a_transformer_fitted_on_an_array_names_its_features_by_what_it_takes() -> None:
    features = PolynomialFeatures(2, include_bias=False).fit(np.ones((1, 2)))
    policy = LinUCBOracle(2, 1, 5, z_features=features)
    assert policy.describe().inputs["z"] == ("z[0]", "z[1]", "z[0]^2", "z[0] z[1]", "z[1]^2")
    assert policy.describe(z_names=["a", "b"]).inputs["z"][3] == "a b"
    with pytest.raises(InvalidInput, match=r"z_names has 3 names, wanted 2: one per input of the trans"):
        policy.describe(z_names=["a", "b", "c"])


@pytest.mark.parametrize(
    "features", [doubled, make_pipeline(FunctionTransformer(np.negative)).fit(np.ones((1, 6)))]
)
def test_features_without_names_are_numbered_unless_named(features: Any) -> None:
    policy = LinUCB(2, 6, x_features=features)
    assert policy.describe().inputs["x"][:2] == ("x_features[0]", "x_features[1]")
    assert policy.describe(x_names=list("abcdef")).inputs["x"] == tuple("abcdef")


def test_names_of_a_log_can_be_handed_on() -> None:
    log = LoggedRounds(
        x=np.ones((2, 2)),
        arms=[0, 1],
        z=np.ones((2, 1)),
        rewards=[0.0, 1.0],
        propensities=0.5,
        x_names=["age", "visits"],
        z_names=["spend"],
    )
    found = PoLinUCB(2, RidgeMap(2, 1)).describe(log.x_names, log.z_names)
    assert found.inputs == {"x": ("age", "visits"), "z": ("spend",), "intercept": ("intercept",)}


def test_names_of_what_is_not_looked_at_are_not_either() -> None:
    policy = LinUCB(2, 1, intercept=False)
    assert policy.describe(["age"], ["spend", "clicks"]).inputs == {"x": ("age",)}


def test_wrong_names_say_what_got_wanted() -> None:
    policy = PoLinUCB(2, RidgeMap(3, 2))
    with pytest.raises(InvalidInput, match=r"^x_names has 2 names, wanted 3$"):
        policy.describe(x_names=["age", "visits"])
    with pytest.raises(InvalidInput, match=r"^z_names has 3 names, wanted 2$"):
        policy.describe(z_names=["a", "b", "c"])
    with pytest.raises(InvalidInput, match=r"^x_names is 'age', wanted a list of names$"):
        policy.describe(x_names="age")
    with pytest.raises(InvalidInput, match=r"^z_names is 7, wanted a list of names$"):
        policy.describe(z_names=untyped(7))


# In notebooks


def test_html_has_the_same_content_and_escapes_names() -> None:
    policy = taught(PoLinUCB(3, RidgeMap(3, 2), intercept=True))
    shown = policy.describe(["<b>age</b>", "a & b", '"c"'], ["<script>", "z"])._repr_html_()
    for wanted in ("&lt;b&gt;age&lt;/b&gt;", "a &amp; b", "&quot;c&quot;", "&lt;script&gt;", "intercept"):
        assert wanted in shown
    assert "<script>" not in shown
    assert shown.count("<tr>") == 1 + 1 + 6  # arms, pulls and inputs
    assert policy._repr_html_() == policy.describe()._repr_html_()


@pytest.mark.parametrize("model", ["disjoint", "shared", "hybrid"])
def test_every_model_prints_as_many_rows_as_inputs(model: Model) -> None:
    policy = taught(PoLinUCB(3, RidgeMap(3, 2), model=model))
    lines = str(policy.describe()).split("\n\n")[1].splitlines()
    assert len(lines) == 2 + 6
    assert len({len(line) for line in lines[1:]}) == 1  # the last column is full, and to the right
