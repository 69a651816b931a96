"""Contexts of their own for each arm, decision sets, feature maps and Thompson sampling."""

import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler
from tests.own_map import OwnTotal
from tests.stored import load_old
from tests.untyped import untyped

from postserve import (
    EpsilonGreedy,
    InvalidInput,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    PerArmMap,
    PoLinTS,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    RobustPoLinUCB,
    StateMismatch,
    load,
)
from postserve.policies import inputs
from postserve.types import Model

MODELS: tuple[Model, ...] = ("disjoint", "shared", "hybrid")

# Contexts of their own for each arm

ACTION_DEPENDENT: dict[str, Callable[[Model], Any]] = {
    "PoLinUCB": lambda model: PoLinUCB(4, RidgeMap(3, 2), model=model),
    "PoLinUCB-joint": lambda model: PoLinUCB(4, RidgeMap(3, 2), model=model, optimism="joint"),
    "PoLinUCB-per-arm": lambda model: PoLinUCB(4, PerArmMap(RidgeMap(3, 2)), model=model, optimism="bound"),
    "LinUCBPhiHat": lambda model: LinUCBPhiHat(4, RidgeMap(3, 2), model=model),
    "RobustPoLinUCB": lambda model: RobustPoLinUCB(4, RidgeMap(3, 2), model=model),
    "LinUCB": lambda model: LinUCB(4, 3, model=model, ridge=1.0, arm_radius="determinant"),
    "PoLinTS": lambda model: PoLinTS(4, RidgeMap(3, 2), model=model, draws=40),
    "EpsilonGreedy": lambda model: EpsilonGreedy(PoLinUCB(4, RidgeMap(3, 2), model=model)),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", ACTION_DEPENDENT)
def test_one_shared_context_in_every_row_decides_as_that_context(name: str, model: Model) -> None:
    plain, rows = ACTION_DEPENDENT[name](model), ACTION_DEPENDENT[name](model)
    rng = np.random.default_rng(0)
    for seed in range(300):
        x, z = rng.normal(size=3), rng.normal(size=2)
        one = plain.select(x, np.random.default_rng(seed))
        other = rows.select(np.repeat(x[None], 4, axis=0), np.random.default_rng(seed))
        assert one == other
        reward = float(x[one.arm % 3] + z[0] + rng.normal())
        plain.update(x, one.arm, z, reward)
        rows.update(x, other.arm, z, reward)


def test_each_arm_is_scored_at_its_own_row() -> None:
    policy = PoLinUCB(2, RidgeMap(1, 1))
    for x in (1.0, 2.0, 3.0, 4.0):
        for arm in (0, 1):
            policy.update([x], arm, [2 * x], reward=3 * x)
    rng = np.random.default_rng(0)
    assert policy.select([[1.0], [5.0]], rng).arm == 1
    assert policy.select([[5.0], [1.0]], rng).arm == 0
    assert policy.select([[5.0], [1.0]], rng, arms=[1, 0]).arm == 1  # rows are in the order of `arms`


def test_a_map_an_arm_predicts_at_its_own_row() -> None:
    maps = PerArmMap(RidgeMap(1, 1, ridge=1e-9))
    for x in (1.0, 2.0):
        maps.update([x], 4, [3 * x])
        maps.update([x], 7, [-x])
    np.testing.assert_allclose(maps.predict([[1.0], [2.0]], [7, 4]), [[-1.0], [6.0]], atol=1e-6)


def test_an_oracle_takes_a_row_of_z_an_arm() -> None:
    policy = LinUCBOracle(2, 1, 1)
    for z in (1.0, 2.0, 5.0, -3.0):
        for arm in (0, 1):
            policy.update([1.0], arm, [z], reward=z)
    rng = np.random.default_rng(0)
    assert policy.select([1.0], rng, z=[[1.0], [4.0]]).arm == 1
    assert policy.select([[1.0], [1.0]], rng, z=[[4.0], [1.0]]).arm == 0
    with pytest.raises(
        InvalidInput, match=r"z has shape \(3, 1\), wanted \(1,\), or \(2, 1\): one row per arm"
    ):
        policy.select([1.0], rng, z=[[1.0], [4.0], [5.0]])


# Decision sets


@pytest.mark.parametrize("ridge", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("radius", ["posterior", 0.5])
def test_a_decision_set_of_unit_vectors_times_x_is_disjoint_linucb(ridge: float, radius: Any) -> None:
    arms, dim = 5, 3
    disjoint = LinUCB(arms, dim, ridge=ridge, arm_radius=radius)
    one = LinUCB(None, arms * dim, model="shared", ridge=ridge, arm_radius=radius)
    rng = np.random.default_rng(0)
    for arm in range(arms):  # at first all tie, in one of them but for rounding
        x = rng.normal(size=dim)
        disjoint.update(x, arm, None, 1.0)
        one.update(np.kron(np.eye(arms)[arm], x), arm, None, 1.0)
    for _ in range(500):
        x = rng.normal(size=dim)
        candidates = np.kron(np.eye(arms), x)
        decision = disjoint.select(x, rng)
        assert one.select(candidates, rng) == decision
        reward = float(x.sum() * decision.arm + rng.normal())
        disjoint.update(x, decision.arm, None, reward)
        one.update(candidates[decision.arm], decision.arm, None, reward)
    np.testing.assert_allclose(one.weights.reshape(arms, dim), disjoint.weights, rtol=1e-9)


def test_equal_candidates_tie() -> None:
    policy = PoLinUCB(None, RidgeMap(5, 2), model="shared")
    rng = np.random.default_rng(0)
    for _ in range(30):
        x = rng.normal(size=5)
        policy.update(x, 0, x[:2], float(x.sum()))
    candidates = np.repeat(rng.normal(size=(1, 5)), 1001, axis=0)
    np.testing.assert_allclose(policy.propensities(candidates), 1 / 1001)


@pytest.mark.parametrize("optimism", ["plugin", "bound"])
def test_memory_is_linear_in_the_candidates(optimism: Any) -> None:
    policy = PoLinUCB(None, RidgeMap(60, 4), model="shared", optimism=optimism)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.normal(size=60)
        policy.update(x, 0, x[:4], float(x.sum()))

    def peak(n: int) -> int:
        candidates = rng.normal(size=(n, 60))
        tracemalloc.start()
        policy.select(candidates, rng)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(10)
    few, many = peak(5_000), peak(20_000)
    assert many < 4.4 * few
    assert many < 20_000 * 64 * 8 * 8  # eight times what the candidates take


def test_what_decision_sets_cannot_do_is_said() -> None:
    with pytest.raises(InvalidInput, match="model is 'disjoint', wanted 'shared' if n_arms is None"):
        LinUCB(None, 3)
    with pytest.raises(InvalidInput, match="context_map has one map per arm, wanted one for all"):
        PoLinUCB(None, PerArmMap(RidgeMap(3, 2)), model="shared")
    policy = LinUCB(None, 3, model="shared")
    with pytest.raises(InvalidInput, match=r"x has shape \(3,\), wanted \(n, 3\): one row per candidate"):
        policy.select(np.zeros(3), np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="the candidates are the arms"):
        policy.select(np.zeros((2, 3)), np.random.default_rng(0), arms=[0])


# Shared and own weights


def test_an_arm_that_comes_to_a_hybrid_knows_what_the_others_share() -> None:
    policy, apart = LinUCB(3, 2, model="hybrid"), LinUCB(3, 2)
    rng = np.random.default_rng(0)
    for i in range(120):
        x = rng.normal(size=2)
        for one in (policy, apart):
            one.update(x, i % 3, None, float(x @ [2.0, -1.0] + 0.1 * rng.normal()))
    for one in (policy, apart):
        for arm in (0, 1, 2):
            one.add_arm()
            one.remove_arm(arm)
    np.testing.assert_allclose(policy.weights, np.tile([2.0, -1.0, 0.0], (3, 1)), atol=0.1)
    assert not apart.weights[:, :2].any()


# Feature maps


def test_features_are_what_a_policy_on_the_features_learns() -> None:
    squares = PolynomialFeatures(2, include_bias=False).fit(np.zeros((1, 2)))
    given = PoLinUCB(3, RidgeMap(5, 2), x_features=squares, z_features=lambda z: [z[0], z[0] ** 2])
    by_hand = PoLinUCB(3, RidgeMap(5, 2))
    rng = np.random.default_rng(0)
    for seed in range(100):
        x, z = rng.normal(size=2), rng.normal(size=1)
        decision = given.select(x, np.random.default_rng(seed))
        X = squares.transform(x[None])[0]
        assert decision == by_hand.select(X, np.random.default_rng(seed))
        reward = float(z[0] ** 2 - x[0])
        given.update(x, decision.arm, z, reward)
        by_hand.update(X, decision.arm, [z[0], z[0] ** 2], reward)
    np.testing.assert_array_equal(given.weights, by_hand.weights)


def test_the_map_learns_the_mean_of_the_features_of_z() -> None:
    policy = PoLinUCB(2, RidgeMap(1, 1), z_features=lambda z: z**2)
    rng = np.random.default_rng(0)
    for _ in range(3000):
        policy.observe([1.0], 0, 2.0 + 0.5 * rng.normal(size=1))
    np.testing.assert_allclose(policy.context_map.predict([1.0]), [[4.25]], rtol=0.02)


PEOPLE = pl.DataFrame({"age": [20.0, 35.0, 50.0], "town": ["a", "b", "a"], "unused": [1, 2, 3]})
NAMED = ColumnTransformer(
    [("age", StandardScaler(), ["age"]), ("town", OneHotEncoder(handle_unknown="ignore"), ["town"])]
).fit(PEOPLE)


def test_named_inputs_go_through_a_column_transformer() -> None:
    named, plain = LinUCB(2, 3, x_features=NAMED), LinUCB(2, 3)
    rows = NAMED.transform(PEOPLE)
    for i, row in enumerate(PEOPLE.iter_rows(named=True)):
        named.update(row, i % 2, None, 1.0 + i)
        plain.update(rows[i], i % 2, None, 1.0 + i)
    np.testing.assert_array_equal(named.weights, plain.weights)
    asked = {"town": "b", "age": 41.0}  # in any order, and without what is not used
    x = NAMED.transform(pl.DataFrame([asked]))[0]
    np.testing.assert_array_equal(named.propensities(asked), plain.propensities(x))
    np.testing.assert_array_equal(named.propensities(PEOPLE[0]), plain.propensities(rows[0]))
    # A frame has one row per arm; so has a list of mappings.
    two = plain.propensities(rows[:2])
    np.testing.assert_array_equal(named.propensities(PEOPLE[:2]), two)
    np.testing.assert_array_equal(named.propensities(PEOPLE[:2].to_dicts()), two)
    rng = np.random.default_rng(0)
    batch = named.select_batch(PEOPLE, rng)
    assert batch.arms.tolist() == plain.select_batch(rows, rng).arms.tolist()
    named.update_batch(PEOPLE, [0, 1, 0], None, [1.0, 2.0, 3.0])
    plain.update_batch(rows, [0, 1, 0], None, [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(named.weights, plain.weights)
    wrapped = EpsilonGreedy(named, epsilon=0.2)
    np.testing.assert_allclose(wrapped.propensities(untyped(asked)).sum(), 1.0)
    assert len(wrapped.select_batch(PEOPLE, rng).arms) == 3


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_names_may_come_from_either_library(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = pytest.importorskip(library)
    monkeypatch.setattr(inputs, "FRAMES", (library,))
    people = frames.DataFrame(PEOPLE.to_dict(as_series=False))
    rows = NAMED.transform(PEOPLE)
    for x, row in (
        (people, rows),  # one row per arm
        (people[:1], rows[0]),  # one x
        (people[["town", "age", "unused"]], rows),  # in another order
        (PEOPLE.to_dicts()[2], rows[2]),
    ):
        arms = 3 if np.ndim(row) == 2 else 2
        named, plain = LinUCB(arms, 3, x_features=NAMED), LinUCB(arms, 3)
        for policy in (named, plain):
            policy.update({"age": 41.0, "town": "b"} if policy is named else row_of_41(), 1, None, 1.0)
        np.testing.assert_array_equal(named.propensities(x), plain.propensities(row))
    if library == "pandas":  # a row is a Series, with names or with numbers alone
        np.testing.assert_array_equal(named.propensities(people.iloc[0]), plain.propensities(rows[0]))
        np.testing.assert_array_equal(plain.propensities(frames.Series(rows[0])), plain.propensities(rows[0]))


def row_of_41() -> Any:
    return NAMED.transform(pl.DataFrame([{"age": 41.0, "town": "b"}]))[0]


def test_candidates_may_be_a_frame() -> None:
    policy = LinUCB(None, 3, model="shared", x_features=NAMED)
    policy.update({"age": 30.0, "town": "a"}, 0, None, 1.0)
    assert policy.propensities(PEOPLE).shape == (3,)
    assert policy.select(PEOPLE[1], np.random.default_rng(0)) == (0, 1.0)


def test_a_callable_may_take_names() -> None:
    policy = LinUCB(2, 1, x_features=lambda row: [row["age"] / 10])
    policy.update({"age": 20}, 0, None, 1.0)
    np.testing.assert_allclose(policy.weights[0], LinUCB_at_two(), rtol=1e-12)


def LinUCB_at_two() -> Any:
    plain = LinUCB(2, 1)
    plain.update([2.0], 0, None, 1.0)
    return plain.weights[0]


def test_what_a_pipeline_imputes_may_be_missing() -> None:
    pipeline = make_pipeline(SimpleImputer(), StandardScaler()).fit([[1.0, 2.0], [3.0, 6.0]])
    policy = LinUCB(2, 2, x_features=pipeline)
    policy.update([np.nan, 2.0], 0, None, 1.0)
    assert policy.pulls[0] == 1


@pytest.mark.parametrize(
    ("x", "message"),
    [
        ({"town": "a"}, "x_features failed on x .*age"),
        ({"colour": "a"}, "x has no age, town, unused, wanted age, town, unused"),
        (["a", 1.0], "x has shape .* wanted numbers in a row, or names with values"),
        ("a", "x_features failed on x|x has shape"),
        (None, "x_features failed on x|x has shape"),
        ({"age": "old", "town": "a"}, "x_features failed on x"),
        ({"age": float("nan"), "town": "a"}, r"x_features\(x\) has nan"),
    ],
)
def test_named_inputs_that_do_not_fit_are_refused(x: Any, message: str) -> None:
    policy = LinUCB(2, 3, x_features=NAMED)
    with pytest.raises(InvalidInput, match=message):
        policy.update(x, 0, None, 1.0)
    assert policy.pulls.sum() == 0


def test_features_of_another_length_are_refused() -> None:
    with pytest.raises(InvalidInput, match=r"x_features\(x\) has shape \(3,\), wanted \(4,\)"):
        LinUCB(2, 4, x_features=NAMED).update({"age": 1.0, "town": "a"}, 0, None, 1.0)
    with pytest.raises(InvalidInput, match="x_features is a int, wanted a callable or fitted transformer"):
        LinUCB(2, 4, x_features=untyped(7))


def test_names_without_features_are_refused_but_by_who_does_not_look() -> None:
    with pytest.raises(InvalidInput, match="x has names, wanted numbers, or x_features for names"):
        LinUCB(2, 3).update({"age": 1.0}, 0, None, 1.0)
    rng = np.random.default_rng(0)
    assert RandomPolicy(3).select({"age": 1.0}, rng).propensity == pytest.approx(1 / 3)
    assert RandomPolicy(3).select(PEOPLE, rng).propensity == pytest.approx(1 / 3)
    assert RandomPolicy(None).select(PEOPLE.to_dicts(), rng).propensity == pytest.approx(1 / 3)
    assert len(RandomPolicy(2).select_batch(PEOPLE, rng).arms) == 3


def test_options_a_policy_does_not_have_are_named_in_its_own_name() -> None:
    with pytest.raises(TypeError, match=r"LinUCB has no option alpha, wanted .*model, ridge"):
        untyped(LinUCB)(2, 3, alpha=1.0)
    with pytest.raises(TypeError, match="PoLinTS has no option optimism"):
        untyped(PoLinTS)(2, RidgeMap(3, 1), optimism="joint")


def test_features_are_handed_back_on_loading(tmp_path: Path) -> None:
    policy = PoLinUCB(2, RidgeMap(3, 2), x_features=NAMED, z_features=np.abs)
    policy.update({"age": 30.0, "town": "a"}, 1, [1.0, -2.0], 1.0)
    policy.save(tmp_path / "state.npz")
    with pytest.raises(StateMismatch, match="needs the object x_features"):
        load(tmp_path / "state.npz", objects={"z_features": np.abs})
    with pytest.raises(StateMismatch, match="z_features handed back answers differently"):
        load(tmp_path / "state.npz", objects={"x_features": NAMED, "z_features": np.square})
    again = load(tmp_path / "state.npz", objects={"x_features": NAMED, "z_features": np.abs}, kind=PoLinUCB)
    np.testing.assert_array_equal(again.weights, policy.weights)


# Thompson sampling


def draws_by_hand(policy: PoLinTS, x: Any, n: int) -> Any:
    """How often each arm is best when phi and every arm's weights are drawn one by one."""
    rng = np.random.default_rng(1)
    models, sigma = policy._arms.models, policy._arms.noise()
    wins = np.zeros(policy.n_arms)
    roots = np.linalg.cholesky(models.inverse_of())
    for _ in range(n):
        z = policy.context_map.sample(x, policy.arms, rng)
        w = models.weights_of()[:, 0] + sigma * np.einsum(
            "kij,kj->ki", roots, rng.normal(size=models.weights_of()[:, 0].shape)
        )
        U = models.centred(np.hstack([np.repeat(x[None], policy.n_arms, axis=0), z]))
        wins[int((U * w).sum(axis=1).argmax())] += 1
    return wins / n


def test_thompson_propensities_are_those_of_posterior_draws() -> None:
    # Without a level: draws by hand are of each arm alone, and a level is drawn for all arms together.
    policy = PoLinTS(3, RidgeMap(2, 2), draws=20_000, floor=0.0, intercept=False)
    rng = np.random.default_rng(0)
    for i in range(30):
        x, z = rng.normal(size=2), rng.normal(size=2)
        policy.update(x, i % 3, z + x, float(z[0] + 2 * rng.normal()))
    x = np.array([0.3, -0.2])
    p = policy.propensities(x)
    assert p.min() > 0.02  # all three are in the running
    np.testing.assert_allclose(p, draws_by_hand(policy, x, 20_000), atol=0.02)


def test_thompson_logs_can_be_evaluated() -> None:
    """Inverse-propensity estimates of another policy's value are unbiased: propensities are exact."""
    policy = PoLinTS(3, RidgeMap(2, 1), draws=10, floor=0.1)  # few draws: the shares are crude, yet exact
    rng = np.random.default_rng(0)
    means = np.array([1.0, 2.0, 3.0])
    values = []
    for _ in range(4000):
        x = rng.normal(size=2)
        decision = policy.select(x, rng)
        reward = float(means[decision.arm] + rng.normal())
        values.append(reward * (decision.arm == 0) / decision.propensity)  # of "always arm 0", worth 1
        if len(values) <= 100:
            policy.update(x, decision.arm, x[:1], reward)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - 1.0) < 4 * error


def test_the_floor_is_kept_and_the_stream_is_its_own() -> None:
    policy = PoLinTS(4, RidgeMap(2, 1), floor=0.2)
    rng = np.random.default_rng(0)
    for i in range(60):
        x = rng.normal(size=2)
        policy.update(x, i % 4, x[:1], float((i % 4) * 10 + rng.normal()))
    p = policy.propensities([1.0, 1.0])
    assert p.min() >= 0.05
    assert policy.propensities([1.0, 1.0], arms=[0, 2]).min() == 0.0
    one = np.random.default_rng(3)
    policy.select([1.0, 1.0], one)
    other = np.random.default_rng(3)
    other.random()  # all that it takes from the stream it is given
    assert one.random() == other.random()
    assert not np.array_equal(p, PoLinTS(4, RidgeMap(2, 1), floor=0.2, seed=1).propensities([1.0, 1.0]))


def test_a_shared_draw_moves_alike_candidates_together() -> None:
    """Two equal candidates are best together or not at all; independent draws would favour having two."""
    policy = PoLinTS(None, RidgeMap(2, 1), model="shared", draws=4000, floor=0.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        x = rng.normal(size=2)
        policy.update(x, 0, x[:1] + rng.normal(size=1), float(rng.normal()))
    a, b = np.array([1.0, 0.2]), np.array([0.9, 0.4])
    alone = policy.propensities(np.array([a, b]))
    twice = policy.propensities(np.array([a, b, b]))
    np.testing.assert_allclose([twice[0], twice[1:].sum()], alone, atol=0.03)


# State


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("polinucb", [0.0, 1.0, 0.0]),
        ("linucb_phi_hat", [0.0, 1.0]),
        ("epsilon_greedy", [0.1, 0.9]),
        ("oracle", [1.0, 0.0]),
    ],
)
def test_states_from_before_the_generalisations_load(name: str, wanted: list[float]) -> None:
    policy = load_old(f"version1_{name}")
    early = {"z": [0.5]} if name == "oracle" else {}
    np.testing.assert_allclose(policy.propensities([0.5, -0.5], **early), wanted)
    policy.update([1.0, 2.0], 0, [1.0], 1.0)


# What was refused changed nothing, and what was given is all used


class RefusesToMerge(OwnTotal):
    order_free = True

    def merge(self, other: Any) -> None:
        raise InvalidInput("not today, wanted another day")


def test_a_merge_that_the_map_refuses_changes_nothing() -> None:
    left, right = (PoLinUCB(2, RefusesToMerge()) for _ in range(2))
    for policy in (left, right):
        policy.update([1.0, 2.0], 0, [1.0], 1.0)
    with pytest.raises(InvalidInput, match="not today"):
        left.merge(right)
    assert left.pulls.tolist() == [1.0, 0.0]


def test_hybrids_with_departed_arms_say_why_they_cannot_merge() -> None:
    left, right = (LinUCB(3, 2, model="hybrid") for _ in range(2))
    for policy in (left, right):
        for arm in range(3):
            policy.update([1.0, arm], arm, None, 1.0)
        policy.remove_arm(1)
    assert not left.order_free
    with pytest.raises(InvalidInput, match="what removed arms taught was weighed by the prior of that time"):
        left.merge(right)


def test_a_batch_may_be_an_iterator_of_frames_or_of_rows() -> None:
    squares = PoLinUCB(2, RidgeMap(4, 1), x_features=lambda x: np.concatenate([x, x**2]))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5, 2, 2))
    assert len(squares.select_batch(untyped(rows for rows in X), rng).arms) == 5
    assert len(squares.select_batch(untyped(x for x in X[:, 0]), rng).arms) == 5
    assert len(squares.select_batch(np.empty((0, 2)), rng).arms) == 0
    named = LinUCB(2, 3, x_features=NAMED)
    assert len(named.select_batch([PEOPLE[0]] * 4, rng).arms) == 4
    named.update_batch(PEOPLE[:0], [], None, [])


@pytest.mark.parametrize("features", [NAMED, np.abs], ids=["transformer", "callable"])
def test_masked_entries_are_refused_before_features_see_them(features: Any) -> None:
    policy = LinUCB(2, 3, x_features=features)
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [True, False, False])
    for x in (masked, np.ma.masked_array([masked, masked], [[True, False, False]] * 2)):
        with pytest.raises(InvalidInput, match="masked"):
            policy.select(x, np.random.default_rng(0))


def test_ragged_rows_are_refused_in_words() -> None:
    policy = LinUCB(2, 2, x_features=np.abs)
    for x in ([[1, [2, 3]], [1, 2]], np.array(1.0)):
        with pytest.raises(InvalidInput, match="wanted"):
            policy.select(untyped(x), np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="wanted one x per row"):
        policy.select_batch(np.array(1.0), np.random.default_rng(0))


class DrawsOnce(OwnTotal):
    def sample(self, x: Any, arms: Any, rng: Any) -> Any:  # type: ignore[override]
        return self.predict(x, arms)


class DrawsWords(OwnTotal):
    def sample(self, x: Any, arms: Any, rng: Any, size: int | None = None) -> Any:
        return np.full((size or 1, len(arms), 1), "word")


@pytest.mark.parametrize("own", [DrawsOnce, DrawsWords])
def test_thompson_says_what_it_wants_of_a_map(own: Any) -> None:
    with pytest.raises(InvalidInput, match=r"context_map.sample\(x, arms, rng, size\) .*wanted"):
        PoLinTS(2, own()).select([1.0, 2.0], np.random.default_rng(0))
