"""The best of four policies: it is each of them bit by bit, and it is the right one."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.own_map import OwnTotal
from tests.untyped import untyped

import postserve
from postserve import (
    BestMap,
    BestPolicy,
    InvalidInput,
    KnownMap,
    LinUCB,
    LinUCBPhiHat,
    PerArmMap,
    PoLinUCB,
    RidgeMap,
    RobustPoLinUCB,
)
from postserve.conformance import POLICY_CHECKS
from postserve.policies import best

K, DIM_X, DIM_Z = 3, 4, 2
THETA, BETA, W = (
    np.random.default_rng(9).standard_normal(shape) for shape in ((K, DIM_X), (K, DIM_Z), (DIM_X, DIM_Z))
)


def a_map() -> RidgeMap:
    return RidgeMap(DIM_X, DIM_Z)


def four(**options: Any) -> dict[str, Any]:
    """The members as policies of their own, each with a map of its own."""
    return {
        "observed z": PoLinUCB(K, a_map(), **options),
        "predicted z": LinUCBPhiHat(K, a_map(), **options),
        "both": RobustPoLinUCB(K, a_map(), **options),
        "x alone": LinUCB(K, DIM_X, **options),
    }


def rounds(n: int, seed: int = 0, *, beta: Any = BETA) -> Any:
    """x, z and the rewards of all arms."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = rng.standard_normal(DIM_X)
        z = x @ W + 0.5 * rng.standard_normal(DIM_Z)
        yield x, z, THETA @ x + beta @ z + 0.1 * rng.standard_normal()


def expected_by(member: Any, x: Any, z_hat: Any, arm: int) -> float:
    """u·w_hat from what a policy shows of itself; `intercept=False` in all of these."""
    w = member.weights[arm]
    u = np.concatenate([x, np.tile(z_hat, (len(w) - len(x)) // len(z_hat))])
    return float(u @ w)


@pytest.mark.parametrize("early", [0, 50])
def test_members_learn_and_decide_as_policies_of_their_own_would(early: int, monkeypatch: Any) -> None:
    """All get the same feedback; but for the first rounds, the one with the least error decides."""
    monkeypatch.setattr(best, "EARLY", early)
    options: Any = {"ridge": 1.0, "arm_radius": 0.5}
    policy, alone, phi_hat = BestPolicy(K, a_map(), **options), four(**options), a_map()
    squares, decided, came = dict.fromkeys(alone, 0.0), set(), []
    for t, (x, z, rewards) in enumerate(rounds(120)):
        z_hat = phi_hat.predict(x)[0]
        name = policy.decides
        least = min(squares.values())
        assert name == "observed z" or t >= early or squares["observed z"] * t > early * least
        assert name == "observed z" or squares[name] == pytest.approx(least, rel=1e-9)
        decided.add(name)
        same = np.random.default_rng(t), np.random.default_rng(t)
        decision = policy.select(x, same[0])
        assert decision == alone[name].select(x, same[1])
        np.testing.assert_array_equal(policy.propensities(x), alone[name].propensities(x))
        came.append(float(rewards[decision.arm]))
        for each, member in alone.items():
            expected = np.clip(expected_by(member, x, z_hat, decision.arm), min(came), max(came))
            squares[each] += (
                (came[-1] - expected) ** 2 if t else 0.0
            )  # before the first, none knows the level
        for learner in (policy, *alone.values()):
            learner.update(x, decision.arm, z, float(rewards[decision.arm]))
        phi_hat.update(x, decision.arm, z)
    for each, member in alone.items():
        assert policy.errors[each] == pytest.approx(squares[each] / 119, rel=1e-9)
        np.testing.assert_array_equal(policy._members[each].weights, member.weights)
    assert len(decided) > 1 or early


def test_the_learnt_prior_is_that_of_each_policy() -> None:
    policy, alone = BestPolicy(K, a_map()), four()
    for i, (x, z, rewards) in enumerate(rounds(60)):
        for learner in (policy, *alone.values()):
            learner.update(x, i % K, z, float(rewards[i % K]))
    for each, member in alone.items():
        np.testing.assert_array_equal(policy._members[each].weights, member.weights)
        assert policy._members[each].prior == member.prior


def play(policy: Any, came: Any, seed: int = 0) -> list[int]:
    rng, chosen = np.random.default_rng(seed), []
    for x, z, rewards in came:
        arm = policy.select(x, rng).arm
        policy.update(x, arm, z, float(rewards[arm]))
        chosen.append(arm)
    return chosen


def curved(n: int, seed: int = 0) -> Any:
    """The reward depends on z, which no linear function of x predicts."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = rng.standard_normal(DIM_X)
        z = x[:DIM_Z] ** 2 + 0.3 * rng.standard_normal(DIM_Z)
        yield x, z, 3.0 * BETA @ z + 0.1 * rng.standard_normal()


def misled(n: int, seed: int = 0) -> Any:
    """The reward depends on x alone, and the map tells the opposite of z."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        x = rng.standard_normal(DIM_X)
        yield x, x[:DIM_Z], THETA @ x + 0.1 * rng.standard_normal()


def test_where_rewards_need_the_follow_up_x_alone_does_not_decide() -> None:
    policy = BestPolicy(K, KnownMap(DIM_X, DIM_Z, lambda x: x[:DIM_Z] ** 2))
    play(policy, curved(200))
    assert policy.decides != "x alone"
    assert policy.errors["x alone"] > 3.0 * policy.errors[policy.decides]


def test_where_the_map_misleads_the_observed_z_does_not_decide() -> None:
    policy = BestPolicy(K, KnownMap(DIM_X, DIM_Z, lambda x: -5.0 * x[:DIM_Z]))
    play(policy, misled(200))
    assert policy.decides in ("predicted z", "x alone")
    assert policy.errors["observed z"] > 3.0 * policy.errors[policy.decides]


def test_forgetting_lets_it_change_its_mind() -> None:
    """The map is right at first, and from then on it tells the opposite of z."""
    sign = [1.0]
    policy = BestPolicy(K, KnownMap(DIM_X, DIM_Z, lambda x: sign[0] * x[:DIM_Z] ** 2))
    play(policy, curved(300))
    before, first = policy.decides, dict(policy.errors)
    sign[0] = -1.0
    policy.forget(arms=0.01)
    assert policy.errors == pytest.approx(first)
    play(policy, curved(300, seed=1))
    assert before in ("observed z", "both")
    assert policy.decides == "predicted z"


def test_it_is_saved_and_goes_on_bit_by_bit(tmp_path: Path) -> None:
    policy = BestPolicy(K, PerArmMap(a_map()), intercept=True)
    play(policy, rounds(50))
    policy.add_arm()
    policy.remove_arm(0)
    policy.save(tmp_path / "policy.npz")
    twin = postserve.load(tmp_path / "policy.npz", kind=BestPolicy)
    assert (twin.arms, twin.decides, twin.errors) == (policy.arms, policy.decides, policy.errors)
    more = [(x, z, np.append(rewards, rewards[0])) for x, z, rewards in rounds(40, seed=1)]
    assert play(policy, more) == play(twin, more)
    assert twin.errors == policy.errors


class Counts(OwnTotal):
    """Counts what is asked of it."""

    def __init__(self) -> None:
        super().__init__()
        self.learnt, self.removed, self.kept = 0, [0][:0], 1.0

    def update(self, x: Any, arm: int, z: Any) -> None:
        super().update(x, arm, z)
        self.learnt += 1

    def remove_arm(self, arm: int) -> None:
        self.removed.append(arm)

    def forget(self, keep: float) -> None:
        self.kept *= keep


def test_all_members_share_one_map() -> None:
    policy = BestPolicy(3, Counts())
    policy.update([1.0, 2.0], 0, [3.0], 1.0)
    policy.update_batch([[1.0, 2.0], [2.0, 1.0]], [1, 2], [[1.0], [2.0]], [0.0, 1.0])
    policy.remove_arm(1)
    policy.forget(arms=0.5, map=0.25)
    phi_hat = untyped(policy.context_map)
    assert (phi_hat.learnt, phi_hat.removed, phi_hat.kept) == (3, [1], 0.25)
    assert all(member.context_map in (None, phi_hat) for member in policy._members.values())
    assert [member.arms for member in policy._members.values()] == [(0, 2)] * 4
    copied = copy.deepcopy(policy)
    copied.update([1.0, 2.0], 0, [3.0], 1.0)
    assert (untyped(copied.context_map).learnt, phi_hat.learnt) == (4, 3)


def test_a_map_that_cannot_forget_stops_all_from_forgetting() -> None:
    policy = BestPolicy(3, OwnTotal())
    policy.update([1.0, 2.0], 0, [3.0], 1.0)
    with pytest.raises(InvalidInput, match="its map cannot forget"):
        policy.forget(arms=0.5, map=0.5)
    assert [float(member.pulls.sum()) for member in policy._members.values()] == [1.0] * 4


def _range(came: Any) -> tuple[float, float]:
    served = [float(rewards[i % K]) for i, (_, _, rewards) in enumerate(came)]
    return min(served), max(served)


def test_late_feedback_is_judged_by_the_prediction_that_observe_gave() -> None:
    policy = BestPolicy(K, a_map(), ridge=1.0)
    came = list(rounds(30))
    z_hats = [policy.observe(x, i % K, z) for i, (x, z, _) in enumerate(came)]
    for i, (x, z, rewards) in enumerate(came):
        expected = expected_by(policy._members["observed z"], x, z_hats[i], i % K)
        expected = np.clip(expected, *_range(came[: i + 1]))
        before = policy.errors["observed z"] * (i - 1)
        policy.credit(x, i % K, z, float(rewards[i % K]), z_hat=z_hats[i])
        gained = policy.errors["observed z"] * i - before
        assert not i or gained == pytest.approx((rewards[i % K] - expected) ** 2, rel=1e-6, abs=1e-9)
    with pytest.raises(InvalidInput, match="z_hat is None, wanted the prediction that observe"):
        policy.credit(x, 0, z, 1.0)
    assert [float(member.pulls.sum()) for member in policy._members.values()] == [30.0] * 4


@pytest.mark.parametrize(("missing_z", "learnt"), [("impute", 2.0), ("drop", 1.0)])
def test_a_reward_without_z_is_the_same_round_for_all(missing_z: Any, learnt: float) -> None:
    policy = BestPolicy(K, a_map(), missing_z=missing_z)
    (x, z, _), (other, _, _) = rounds(2)
    policy.update(x, 0, z, 1.0)
    policy.credit(other, 1, None, 2.0)
    assert [float(member.pulls.sum()) for member in policy._members.values()] == [learnt] * 4


def test_it_says_who_decides_and_how_well_each_predicts() -> None:
    policy = BestPolicy(K, KnownMap(DIM_X, DIM_Z, lambda x: x[:DIM_Z] ** 2))
    assert "Root mean squared errors" not in str(policy.describe())
    play(policy, curved(100))
    described = policy.describe(z_names=["visits", "spend"])
    assert described.policy.startswith(f"BestPolicy, {policy.decides} decides: ")
    assert described.reward_errors == {name: error**0.5 for name, error in policy.errors.items()}
    assert f"x alone {policy.errors['x alone'] ** 0.5:.3g}" in str(described)
    assert "visits" in str(described)
    assert "x alone" in described._repr_html_()
    np.testing.assert_array_equal(described.weights, policy.best.weights)


def test_the_observed_z_decides_until_there_are_errors_enough() -> None:
    policy = BestPolicy(K, KnownMap(DIM_X, DIM_Z, lambda x: -5.0 * x[:DIM_Z]))
    came = list(misled(51))
    play(policy, came[:8])
    assert (
        policy.errors["observed z"] > 1.5 * policy.errors["x alone"]
    )  # which eight rewards may give by chance
    assert policy.decides == "observed z"
    play(policy, came[8:50])
    assert policy.errors["observed z"] > 2.0 * policy.errors["x alone"]
    assert policy.decides in ("predicted z", "x alone")
    policy.forget(arms=0.5)  # what is forgotten was seen: the errors still decide
    assert policy.decides in ("predicted z", "x alone")


def test_a_pair_of_ridges_and_unknown_options() -> None:
    policy = BestPolicy(K, a_map(), ridge=(2.0, 3.0))
    assert policy._members["x alone"].prior.ridge == {"x": 2.0}
    assert policy._members["both"].prior.ridge == {"x": 2.0, "z": 3.0, "z_hat": 3.0}
    with pytest.raises(TypeError, match="BestPolicy has no option radius"):
        untyped(BestPolicy)(K, a_map(), radius=1.0)
    with pytest.raises(InvalidInput, match="BestPolicy cannot merge: which member decides"):
        policy.merge(BestPolicy(K, a_map(), ridge=(2.0, 3.0)))


@pytest.mark.parametrize("check", POLICY_CHECKS, ids=lambda check: check.__name__)
def test_it_conforms_whoever_decides(check: Any, monkeypatch: Any) -> None:
    """From the first reward on: the rounds of most checks are too few for another member to decide."""
    monkeypatch.setattr(best, "EARLY", 0)
    check(lambda: BestPolicy(K, BestMap([a_map(), RidgeMap(DIM_X, DIM_Z, intercept=True)])))


def test_the_level_of_the_rewards_is_no_error() -> None:
    """The first reward tells it; counted, its square would take digits from all errors after it."""
    policy = BestPolicy(K, a_map())
    policy.update(np.ones(DIM_X), 0, np.ones(DIM_Z), 1e6)
    assert set(policy.errors.values()) == {0.0}
    assert "Root mean squared errors" not in str(policy.describe())
