"""Each policy against the plainest possible reading of its algorithm."""

import copy
import pickle
from typing import Any, cast

import numpy as np
import pytest
from tests.own_map import OwnTotal
from tests.untyped import untyped

from postserve import (
    EpsilonGreedy,
    InvalidInput,
    LinUCB,
    LinUCBOracle,
    LinUCBPhiHat,
    NetworkMap,
    PerArmMap,
    PoLinUCB,
    RidgeMap,
    RobustPoLinUCB,
    confidence,
)
from postserve.conformance.tools import some_rounds
from postserve.policies.choosing import ChoosesFromX
from postserve.policies.linear import LinearPolicy
from postserve.types import FloatArray


class DirectSolve:
    """One ridge regression per arm, solved again for each question."""

    def __init__(self, n_arms: int, dim: int, ridge: float) -> None:
        self.gram = np.repeat(ridge * np.eye(dim)[None], n_arms, axis=0)
        self.moment = np.zeros((n_arms, dim))

    def scores(self, U: FloatArray, radius: float) -> FloatArray:
        weights = np.linalg.solve(self.gram, self.moment[..., None])[..., 0]
        widths = np.sqrt(np.einsum("ai,ai->a", U, np.linalg.solve(self.gram, U[..., None])[..., 0]))
        return np.asarray((weights * U).sum(axis=1) + radius * widths)

    def update(self, arm: int, u: FloatArray, reward: float) -> None:
        self.gram[arm] += np.outer(u, u)
        self.moment[arm] += reward * u


@pytest.mark.parametrize("ridge", [0.1, 1.0, 10.0])
def test_linucb_chooses_as_a_direct_solve_over_2_000_rounds(ridge: float) -> None:
    n_arms, dim = 5, 8
    rounds = some_rounds(2000, dim, 2, n_arms)
    policy, direct = (
        LinUCB(n_arms, dim, ridge=ridge, arm_radius=1.0, exploration=1.0),
        DirectSolve(n_arms, dim, ridge),
    )
    rng = np.random.default_rng(0)
    for t in range(2000):
        x = rounds.x[t]
        scores = direct.scores(np.repeat(x[None], n_arms, axis=0), 1.0)
        arm = policy.select(x, rng).arm
        assert scores[arm] >= scores.max() - 1e-9 * abs(scores.max())  # ties of cold arms are drawn
        if t >= n_arms:
            assert arm == int(scores.argmax())
        policy.update(x, arm, None, float(rounds.rewards[t, arm]))
        direct.update(arm, x, float(rounds.rewards[t, arm]))


def _run(policy: Any, n: int = 200, seed: int = 0) -> tuple[Any, list[int]]:
    rounds = some_rounds(n, 4, 2, 3, seed)
    rng = np.random.default_rng(1)
    arms = []
    for x, z, rewards in zip(rounds.x, rounds.z, rounds.rewards, strict=True):
        arms.append(policy.select(x, rng).arm)
        policy.update(x, arms[-1], z, float(rewards[arms[-1]]))
    return rounds, arms


def _expected_choices(policy_kind: str, rounds: Any, arms: list[int], dim: int) -> None:
    """Replay Algorithm 1 or 2 with direct solves; every choice made must be its best one."""
    direct, phi = DirectSolve(3, dim, 1.0), DirectSolve(2, 4, 1.0)
    for t, arm in enumerate(arms):
        x, z = rounds.x[t], rounds.z[t]
        z_hat = phi.scores(np.repeat(x[None], 2, axis=0), 0.0)
        seen = {"robust": [x, z_hat, z_hat]}.get(policy_kind, [x, z_hat])
        scores = direct.scores(np.repeat(np.concatenate(seen)[None], 3, axis=0), 0.5)
        assert scores[arm] >= scores.max() - 1e-9 * abs(scores.max()), f"round {t}"
        for j in range(2):
            phi.update(j, x, z[j])
        after = phi.scores(np.repeat(x[None], 2, axis=0), 0.0)
        learnt = {"po": [x, z], "before": [x, z_hat], "after": [x, after], "robust": [x, z, z_hat]}[
            policy_kind
        ]
        direct.update(arm, np.concatenate(learnt), float(rounds.rewards[t, arm]))


def test_polinucb_is_algorithm_1() -> None:
    options: Any = {"ridge": 1.0, "arm_radius": 0.5}
    _expected_choices("po", *_run(PoLinUCB(3, RidgeMap(4, 2, ridge=1.0), **options)), dim=6)


@pytest.mark.parametrize("prediction", ["before", "after"])
def test_linucb_phi_hat_is_algorithm_2_in_both_readings(prediction: Any) -> None:
    policy = LinUCBPhiHat(3, RidgeMap(4, 2, ridge=1.0), prediction=prediction, ridge=1.0, arm_radius=0.5)
    _expected_choices(prediction, *_run(policy), dim=6)


def test_robust_polinucb_learns_what_was_observed_and_what_was_predicted() -> None:
    policy = RobustPoLinUCB(3, RidgeMap(4, 2, ridge=1.0), ridge=1.0, arm_radius=0.5)
    _expected_choices("robust", *_run(policy), dim=8)


def test_the_oracle_scores_at_the_realised_z() -> None:
    rounds = some_rounds(200, 4, 2, 3)
    policy, direct = LinUCBOracle(3, 4, 2, ridge=1.0, arm_radius=0.5), DirectSolve(3, 6, 1.0)
    rng = np.random.default_rng(0)
    for t in range(200):
        u = np.concatenate([rounds.x[t], rounds.z[t]])
        scores = direct.scores(np.repeat(u[None], 3, axis=0), 0.5)
        arm = policy.select(rounds.x[t], rng, z=rounds.z[t]).arm
        assert scores[arm] >= scores.max() - 1e-9 * abs(scores.max())
        policy.update(rounds.x[t], arm, rounds.z[t], float(rounds.rewards[t, arm]))
        direct.update(arm, u, float(rounds.rewards[t, arm]))


@pytest.mark.parametrize("kind", [PoLinUCB, RobustPoLinUCB])
def test_joint_optimism_is_the_maximum_over_both_confidence_sets(kind: Any) -> None:
    """Against a fine search over the sphere around phi_hat(x), both copies of z moving together."""
    phi_hat = RidgeMap(4, 2, ridge=1.0, map_radius=2.0)
    policies = {
        o: kind(3, phi_hat, ridge=1.0, arm_radius=1.5, optimism=o) for o in ("plugin", "joint", "bound")
    }
    rounds = some_rounds(30, 4, 2, 3)
    for policy in policies.values():
        for t in range(30):
            policy.update(rounds.x[t], t % 3, rounds.z[t], float(rounds.rewards[t, t % 3]))
    slots = np.arange(3)
    angles = np.linspace(0.0, 2.0 * np.pi, 20_000)
    for x in rounds.x[:5]:
        scores = {o: policy._scores(x, slots) for o, policy in policies.items()}
        policy = policies["joint"]
        z_hat, e = policy.context_map.predict(x)[0], policy.context_map.radius(x)[0]
        Z = z_hat + e * np.column_stack([np.cos(angles), np.sin(angles)])
        copies = 2 if kind is RobustPoLinUCB else 1
        best = []
        for a in range(3):
            U = np.hstack([np.repeat(x[None], len(Z), axis=0), *[Z] * copies])
            widths = np.sqrt(np.einsum("ij,jk,ik->i", U, policy._arms.models.inverse_of()[a], U))
            best.append((U @ policy.weights[a] + 1.5 * widths).max())
        assert (scores["joint"] <= scores["bound"] + 1e-9).all()
        assert (scores["joint"] >= scores["plugin"] - 1e-9).all()
        contenders = scores["bound"] >= scores["plugin"].max()
        if contenders.sum() > 1:
            assert scores["joint"][contenders] == pytest.approx(np.array(best)[contenders], rel=1e-6)
        assert int(scores["joint"].argmax()) == int(np.argmax(best))


@pytest.mark.parametrize("kind", [PoLinUCB, LinUCBPhiHat, RobustPoLinUCB])
def test_a_reward_whose_z_never_comes_follows_the_stated_choice(kind: Any) -> None:
    x = np.ones(4)

    def taught(missing_z: Any) -> Any:
        policy = kind(3, RidgeMap(4, 2, ridge=1.0), ridge=1.0, missing_z=missing_z)
        _run(policy, 30)
        return policy

    with pytest.raises(InvalidInput, match="missing_z"):
        taught("raise").update(x, 0, None, 1.0)
    policy = taught("drop")
    before = policy.weights
    policy.update(x, 0, None, 1.0)
    assert np.array_equal(policy.weights, before)
    policy = taught("impute")
    twin = taught("raise")
    z_hat = policy.context_map.predict(x)[0]
    map_before = policy.context_map.weights
    policy.update(x, 0, None, 1.0)
    assert np.array_equal(policy.context_map.weights, map_before), "an imputed z taught the map"
    twin.credit(x, 0, z_hat, 1.0, z_hat=z_hat)
    assert np.array_equal(policy.weights, twin.weights)


@pytest.mark.parametrize("kind", [LinUCBPhiHat, RobustPoLinUCB])
def test_credit_wants_the_prediction_from_before_where_it_is_needed(kind: Any) -> None:
    policy = kind(3, RidgeMap(4, 2))
    with pytest.raises(InvalidInput, match="observe"):
        policy.credit(np.ones(4), 0, np.ones(2), 1.0)
    assert policy.pulls.sum() == 0.0


def test_z_alone_teaches_the_map_and_no_arm() -> None:
    policy = PoLinUCB(3, RidgeMap(4, 2))
    z_hat = policy.observe(np.ones(4), 0, np.ones(2))
    assert z_hat is not None
    assert z_hat.tolist() == [1.0, 1.0]  # before the first z, nothing tells where z lies
    z_hat = policy.observe(np.ones(4), 0, np.zeros(2))
    assert z_hat is not None
    assert z_hat.tolist() == [1.0, 1.0]  # the prediction from before
    assert policy.context_map.predict(np.ones(4))[0] == pytest.approx([0.5, 0.5])
    assert policy.pulls.sum() == 0.0


def test_each_policy_teaches_its_own_copy_of_a_map() -> None:
    phi_hat = RidgeMap(4, 2)
    one, other = PoLinUCB(3, phi_hat), PoLinUCB(3, phi_hat)
    one.observe(np.ones(4), 0, np.ones(2))
    assert not other.context_map.predict(np.ones(4)).any()
    assert not phi_hat.predict(np.ones(4)).any()


def test_a_copy_of_a_policy_learns_on_its_own_whatever_its_map() -> None:
    policy = PoLinUCB(2, OwnTotal())
    for other in (copy.deepcopy(policy), EpsilonGreedy(policy)):
        other.update([1.0, 2.0], 0, [5.0], 1.0)
    assert policy.context_map.predict([1.0, 2.0]).item() == 0.0


def test_a_map_per_arm_keeps_follow_ups_of_arms_apart() -> None:
    policy = PoLinUCB(2, PerArmMap(RidgeMap(1, 1, ridge=0.01)), ridge=0.01, arm_radius=0.0)
    for x in (1.0, 2.0, 3.0):
        policy.update([x], 0, [x], x)  # z = x, reward = z
        policy.update([x], 1, [-x], x)  # z = -x, reward = -z
    assert policy.context_map.predict([2.0], [0, 1]).ravel() == pytest.approx([2.0, -2.0], rel=0.01)
    policy.remove_arm(1)
    assert policy.context_map.predict([2.0], [1]).ravel().tolist() == [0.0]


def test_algorithm_2s_theory_radius_counts_the_errors_of_what_it_regresses_on() -> None:
    """e_s is the radius of the map that predicted: before z_s was learnt, or after."""
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((2, 20))
    for prediction in ("before", "after"):
        phi_hat = RidgeMap(
            20, 2, ridge=1.0, map_radius="determinant", noise_scale=0.1, row_bound=np.linalg.norm(Phi, axis=1)
        )
        policy = LinUCBPhiHat(
            3, phi_hat, prediction=prediction, ridge=1.0, arm_radius="determinant", u_bound=9.0
        )
        radii = misses = 0.0
        for _ in range(30):
            x = rng.standard_normal(20)
            z = Phi @ x + 0.1 * rng.standard_normal(2)
            if prediction == "before":
                radii += policy.context_map.radius(x)[0]
                misses += float(np.linalg.norm(policy.context_map.predict(x)[0] - Phi @ x))
            slack = policy._radius(np.arange(3)).copy()
            policy.update(x, 0, z, 1.0)
            if prediction == "after":
                radii += policy.context_map.radius(x)[0]
                misses += float(np.linalg.norm(policy.context_map.predict(x)[0] - Phi @ x))
            assert (policy._radius(np.arange(3)) > slack).all(), "every arm pays, whichever was served"
        assert policy._errors.sums == pytest.approx(radii)
        assert policy._errors.sums >= misses
        policy.forget(arms=0.5)
        assert policy._errors.sums == pytest.approx(radii / 2.0)


def projected(model: str) -> LinUCBPhiHat:
    options: Any = {"arm_radius": "determinant", "bias": "projected", "model": model}
    return LinUCBPhiHat(3, RidgeMap(4, 2, ridge=1.0), ridge=1.0, **options)


def test_with_a_projected_bias_each_arm_pays_for_its_own_errors() -> None:
    """zeta of theorem 2, arm by arm, as arms come and go."""
    policy, rounds = projected("disjoint"), some_rounds(30, 4, 2, 3)
    squares: dict[int, float] = dict.fromkeys(policy.arms, 0.0)
    for t in range(30):
        arm, x = policy.arms[t % 2], rounds.x[t]
        squares[arm] += float(policy.context_map.radius(x)[0]) ** 2
        policy.update(x, arm, rounds.z[t], 1.0)
        if t == 9:
            policy.remove_arm(0)
        if t == 19:
            squares[policy.add_arm()] = 0.0
    policy.forget(arms=0.5)
    assert policy.arms == (1, 2, 3)
    expected = [squares[arm] / 2.0 for arm in policy.arms]
    assert expected[0] > expected[1] > expected[2] == 0.0
    for each in (policy, pickle.loads(pickle.dumps(policy))):
        ellipsoid = each._arms.models.ellipsoid(np.arange(3))
        zeta = confidence.phi_hat_radius_projected(
            ridge=ellipsoid.ridge, log_det_ratio=ellipsoid.log_det, error_squares=expected,
            noise_scale=1.0, z_noise_scale=1.0, delta=0.05,
        )  # fmt: skip
        np.testing.assert_allclose(each._radius(np.arange(3)), zeta)


@pytest.mark.parametrize("model", ["shared", "hybrid"])
def test_where_arms_share_a_regression_they_share_its_bias(model: str) -> None:
    policy = projected(model)
    radii = [float(policy.context_map.radius([1.0, 2.0, 3.0, 4.0])[0])]
    policy.update([1.0, 2.0, 3.0, 4.0], 0, [1.0, 2.0], 1.0)
    radii.append(float(policy.context_map.radius([4.0, 3.0, 2.0, 1.0])[0]))
    policy.update([4.0, 3.0, 2.0, 1.0], 1, [1.0, 2.0], 1.0)
    assert policy._errors.sums == pytest.approx(np.square(radii).sum())


def test_a_projected_bias_is_for_the_determinant_radius() -> None:
    with pytest.raises(InvalidInput, match="arm_radius is 'posterior', wanted 'determinant' with bias="):
        LinUCBPhiHat(3, RidgeMap(4, 2), bias="projected")
    with pytest.raises(InvalidInput, match="bias is 'summed', wanted one of 'term_by_term', 'projected'"):
        LinUCBPhiHat(3, RidgeMap(4, 2), bias=cast(Any, "summed"))


def test_algorithm_2_after_keeps_its_prediction_while_the_reward_is_late() -> None:
    rounds = some_rounds(20, 4, 2, 3)
    prompt, late = (
        LinUCBPhiHat(3, RidgeMap(4, 2, ridge=1.0), prediction="after", ridge=1.0) for _ in range(2)
    )
    for t in range(20):
        prompt.update(rounds.x[t], 0, rounds.z[t], float(rounds.rewards[t, 0]))
    kept = [late.observe(rounds.x[t], 0, rounds.z[t]) for t in range(20)]
    for t in range(20):
        late.credit(rounds.x[t], 0, rounds.z[t], float(rounds.rewards[t, 0]), z_hat=kept[t])
    assert np.allclose(late.weights, prompt.weights)


def test_a_users_own_map_merges_where_it_promises_to() -> None:
    class Adds(OwnTotal):
        order_free = True

        def merge(self, other: Any) -> None:
            self.total += other.total

    one, other = PoLinUCB(2, Adds()), PoLinUCB(2, Adds())
    one.update([1.0, 2.0], 0, [3.0], 1.0)
    other.update([1.0, 2.0], 0, [4.0], 1.0)
    assert one.order_free
    one.merge(other)
    assert one.context_map.predict([1.0, 2.0]).item() == 7.0


def test_an_error_of_the_map_counts_once() -> None:
    options: Any = {"ridge": 1.0, "arm_radius": "determinant", "u_bound": 9.0}
    for prediction in ("before", "after"):
        policies = [
            LinUCBPhiHat(2, RidgeMap(2, 1, ridge=1.0), prediction=prediction, missing_z="impute", **options)
            for _ in range(2)
        ]
        for policy, z in zip(policies, ([1.0], None), strict=True):
            z_hat = policy.observe([1.0, 2.0], 0, [1.0])
            policy.credit([1.0, 2.0], 0, z, 1.0, z_hat=z_hat)
        assert policies[0]._errors.sums == policies[1]._errors.sums > 0.0


def test_learners_that_were_not_made_alike_do_not_merge() -> None:
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    scalers = [StandardScaler().fit(rng.standard_normal((9, 2)) * scale) for scale in (1.0, 5.0)]
    one, other = (PoLinUCB(2, RidgeMap(2, 1, features=scaler)) for scaler in scalers)
    with pytest.raises(InvalidInput, match=r"context_map\.features differ"):
        one.merge(other)
    one.merge(PoLinUCB(2, RidgeMap(2, 1, features=scalers[0])))
    with pytest.raises(InvalidInput, match="exploration differ"):
        LinUCB(2, 1).merge(LinUCB(2, 1, exploration=2.0))
    with pytest.raises(InvalidInput, match="wanted a LinUCB"):
        LinUCB(2, 1).merge(LinUCBOracle(2, 1, 1))
    grown = LinUCB(2, 1)
    grown.add_arm()
    grown.remove_arm(0)
    with pytest.raises(InvalidInput, match="same arms"):
        LinUCB(2, 1).merge(grown)
    with pytest.raises(InvalidInput, match="NetworkMap, is not made of sums"):
        PoLinUCB(2, NetworkMap(2, 1)).merge(PoLinUCB(2, NetworkMap(2, 1)))


def test_ties_are_broken_at_random_and_the_propensity_says_so() -> None:
    rng = np.random.default_rng(0)
    decisions = [LinUCB(4, 2).select([1.0, 2.0], rng) for _ in range(400)]
    counts = np.bincount([decision.arm for decision in decisions], minlength=4)
    assert {decision.propensity for decision in decisions} == {0.25}
    assert (counts > 60).all()


def test_epsilon_greedy_mixes_exactly_over_the_eligible() -> None:
    policy = EpsilonGreedy(LinUCB(4, 1, ridge=1.0, arm_radius=0.0), epsilon=0.4)
    policy.update([1.0], 2, None, 1.0)
    assert policy.propensities([1.0]) == pytest.approx([0.1, 0.1, 0.7, 0.1])
    assert policy.propensities([1.0], arms=[0, 2]) == pytest.approx([0.2, 0.0, 0.8, 0.0])
    with pytest.raises(InvalidInput, match="chooses from x"):
        EpsilonGreedy(untyped(LinUCBOracle(2, 1, 1)))


def test_a_policy_that_does_not_say_how_it_scores_cannot_be_made() -> None:
    class Silent(ChoosesFromX, LinearPolicy):
        def __init__(self) -> None:
            super().__init__(2, 2, None)

    with pytest.raises(TypeError, match="_scores"):
        untyped(Silent)()
