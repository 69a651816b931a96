"""`exploration="auto"`: which multiplier it is, where it is 1, and that no arm is given up too early."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.untyped import untyped

import postserve
from postserve import LinUCB, LinUCBOracle, LinUCBPhiHat, PoLinTS, PoLinUCB, RidgeMap, RobustPoLinUCB
from postserve.confidence import posterior_exploration
from postserve.errors import InvalidInput
from postserve.types import Exploration

N_ARMS, DIM_X, DIM_Z, ROUNDS = 12, 2, 1, 40
MAKERS: dict[str, tuple[Any, int]] = {
    "LinUCB": (lambda **options: LinUCB(N_ARMS, DIM_X, **options), DIM_X),
    "PoLinUCB": (lambda **options: PoLinUCB(N_ARMS, RidgeMap(DIM_X, DIM_Z), **options), DIM_X + DIM_Z),
    "RobustPoLinUCB": (
        lambda **options: RobustPoLinUCB(N_ARMS, RidgeMap(DIM_X, DIM_Z), **options),
        DIM_X + 2 * DIM_Z,
    ),
    "LinUCBPhiHat": (
        lambda **options: LinUCBPhiHat(N_ARMS, RidgeMap(DIM_X, DIM_Z), **options),
        DIM_X + DIM_Z,
    ),
    "LinUCBOracle": (lambda **options: LinUCBOracle(N_ARMS, DIM_X, DIM_Z, **options), DIM_X + DIM_Z),
}


def taught(policy: Any, rounds: int = ROUNDS) -> Any:
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        x, arm = rng.standard_normal(DIM_X), int(rng.integers(N_ARMS))
        policy.update(x, arm, x[:DIM_Z], float(x.sum() * arm + rng.standard_normal()))
    return policy


def radius(policy: Any, eligible: int = N_ARMS) -> float:
    (found,) = policy._arms.radius(np.arange(eligible))
    return float(found)


def times_noise(policy: Any, eligible: int = N_ARMS) -> float:
    """The multiplier in force."""
    return radius(policy, eligible) / float(np.sqrt(policy.prior.noise_variance[0]))


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("model", ["disjoint", "hybrid"])
def test_auto_is_the_rule_at_the_eligible_arms_and_the_rounds_learnt(name: str, model: str) -> None:
    make, dim = MAKERS[name]
    policy = taught(make(model=model))
    for eligible in (1, 5, N_ARMS):
        rule = posterior_exploration(eligible, eligible * dim, ROUNDS)
        assert times_noise(policy, eligible) == pytest.approx(rule)


def test_candidates_that_share_weights_count_as_at_most_their_dimension() -> None:
    policy = taught(LinUCB(None, DIM_X, model="shared"))
    for candidates, independent in ((1, 1), (2, 2), (1000, DIM_X)):
        rule = posterior_exploration(independent, DIM_X, ROUNDS)
        assert times_noise(policy, candidates) == pytest.approx(rule)


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "options",
    [{"arm_radius": 0.7}, *({"arm_radius": form, "u_bound": 3.0} for form in ("determinant", "closed_form"))],
)
def test_auto_is_one_with_the_theorys_radii_and_with_numbers(name: str, options: dict[str, Any]) -> None:
    make, _ = MAKERS[name]
    slots = np.arange(N_ARMS)
    radii = [
        getattr(policy, "_radius", policy._arms.radius)(slots)
        for policy in (taught(make(**options)), taught(make(exploration=1.0, **options)))
    ]
    assert np.array_equal(*radii)


def test_auto_is_one_for_draws_from_the_posterior() -> None:
    explorations: tuple[Exploration, ...] = ("auto", 1.0)
    one, other = (taught(PoLinTS(N_ARMS, RidgeMap(DIM_X, DIM_Z), exploration=e)) for e in explorations)
    assert np.array_equal(one.propensities([1.0, 2.0]), other.propensities([1.0, 2.0]))


@pytest.mark.parametrize("name", [name for name in MAKERS if name != "LinUCBOracle"])
def test_auto_decides_as_its_number_does_one_by_one_and_in_batches(name: str) -> None:
    make, _ = MAKERS[name]
    policy = taught(make())
    X, some = np.random.default_rng(1).standard_normal((200, DIM_X)), [0, 2, 3, 7, 11]
    for arms, eligible in ((None, N_ARMS), (some, len(some))):
        same = taught(make(exploration=times_noise(policy, eligible)))
        one_by_one = [policy.select(x, np.random.default_rng(0), arms=arms).arm for x in X]
        assert one_by_one == [same.select(x, np.random.default_rng(0), arms=arms).arm for x in X]
        assert one_by_one == policy.select_batch(X, np.random.default_rng(0), arms=arms).arms.tolist()


def test_rounds_that_were_forgotten_merged_or_learnt_by_removed_arms_count() -> None:
    policy = taught(LinUCB(N_ARMS, DIM_X))
    policy.forget(arms=0.5)
    policy.remove_arm(3)
    rule = posterior_exploration(N_ARMS - 1, (N_ARMS - 1) * DIM_X, ROUNDS)
    assert times_noise(policy, N_ARMS - 1) == pytest.approx(rule)
    merged = taught(LinUCB(N_ARMS, DIM_X))
    merged.merge(taught(LinUCB(N_ARMS, DIM_X), 10))
    assert times_noise(merged) == pytest.approx(posterior_exploration(N_ARMS, N_ARMS * DIM_X, ROUNDS + 10))


def test_states_keep_auto_and_numbers_as_they_were(tmp_path: Path) -> None:
    explorations: tuple[Exploration, ...] = ("auto", 1.0)
    for exploration in explorations:
        policy = taught(LinUCB(N_ARMS, DIM_X, exploration=exploration))
        policy.save(tmp_path / "state")
        loaded = postserve.load(tmp_path / "state")
        assert repr(loaded) == repr(policy)
        assert radius(loaded) == radius(policy)
    assert "exploration" not in repr(LinUCB(2, 1))


def test_other_words_than_auto_are_refused() -> None:
    with pytest.raises(InvalidInput, match="exploration is 'much', wanted"):
        LinUCB(2, 1, exploration=untyped("much"))


@pytest.mark.parametrize("seed", range(5))
def test_with_one_context_every_arm_is_tried_and_regret_ends(seed: int) -> None:
    """10 arms with means N(0, 1) and noise 0.1: one standard deviation gives most arms up unseen."""
    rng, rounds = np.random.default_rng(seed), 1000
    means, policy, x, regret = rng.standard_normal(10), LinUCB(10, 1), np.ones(1), np.empty(rounds)
    for t in range(rounds):
        arm = policy.select(x, rng).arm
        regret[t] = means.max() - means[arm]
        policy.update(x, arm, None, float(means[arm] + 0.1 * rng.standard_normal()))
    assert (policy.pulls > 0.0).all()
    assert regret[rounds // 2 :].sum() < 0.1 * regret[: rounds // 2].sum()
