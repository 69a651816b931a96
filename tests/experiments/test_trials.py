"""The trials: halves without a row twice, what is measured in them, the sentences, and the real ones."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from postserve import LinUCB, LoggedRounds, PerArmMap, PoLinUCB, RidgeMap, Rounds, Study, replay
from postserve.data import actg175, actg175_course, hillstrom
from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    MAP_PER_ARM,
    ONE_MAP,
    ORACLE,
    POLINUCB,
    RANDOM,
    ROBUST,
    X_ONLY,
)
from postserve.experiments.figures import trials
from postserve.experiments.figures.trials import worlds
from postserve.experiments.figures.trials.r_squared import PREDICTIONS, r_squared
from postserve.experiments.figures.trials.results import (
    PLACES,
    REJECTION,
    REPLAYED,
    WEIGHTED,
    claims,
    headline,
)


def trial(n: int = 400, *, curved: bool = False, seed: int = 0) -> LoggedRounds:
    """Two arms; z follows x and the arm, the reward follows z."""
    rng = np.random.default_rng(seed)
    x, arms = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    phi = x[:, 0] ** 2 if curved else x[:, 0]
    z = np.where(arms == 1, 1.0, -1.0) * phi + 0.3 * rng.normal(size=n)
    rewards = z + 0.1 * rng.normal(size=n)
    return LoggedRounds(x=x, z=z[:, None], arms=arms, rewards=rewards, propensities=0.5)


def makers(arm_names: tuple[str, ...]) -> dict[str, Any]:
    return {each.name: each.maker for each in worlds.where_z_follows_the_arm(arm_names)}


def test_halves_of_a_cut_share_no_row() -> None:
    for n in (10, 11):
        first, second = (worlds.half(n, seed) for seed in (6, 7))
        assert len(first) == len(second) == n // 2
        assert len({*first.tolist(), *second.tolist()}) == 2 * (n // 2)
    again, other = worlds.half(50, 6 + 2 * worlds.CUTS), worlds.half(50, 8)
    assert sorted(again) == sorted(worlds.half(50, 6)) != sorted(other)
    assert again.tolist() != worlds.half(50, 6).tolist()
    log = trial(20)
    np.testing.assert_array_equal(worlds.half_of_log(log, 3).x, log.x[worlds.half(20, 3)])
    assert len(worlds.sample(1000, 400)) == 400
    assert worlds.sample(150, 400).tolist() == list(range(150))


def test_jokes_are_of_three_kinds_and_drawn_once_or_for_each_shuffle() -> None:
    ratings = np.random.default_rng(0).uniform(-10, 10, size=(60, 100))
    made = [worlds.half_of_users(ratings, fixed, seed) for fixed in (True, False) for seed in (0, 1, 2)]
    for rounds in made:
        assert isinstance(rounds, Rounds)
        assert (rounds.x.shape, rounds.z.shape, rounds.rewards.shape) == ((30, 20), (30, 40), (30, 10))

    def jokes(rounds: Rounds) -> set[int]:
        """The columns in which the first user's rewards are found."""
        return {int(np.argwhere(ratings == reward)[0, 1]) for reward in rounds.rewards[0]}

    assert jokes(made[0]) == jokes(made[1]) == jokes(made[2])
    assert jokes(made[3]) == jokes(made[4]) != jokes(made[5])


def test_serving_one_arm_is_worth_that_arms_mean() -> None:
    log = trial()
    second = makers(("a", "b"))["always b"]
    for method in (REJECTION, WEIGHTED):
        value = trials.value_of(method, lambda seed: log, second, 400, 0).values[0]
        assert value == pytest.approx(log.rewards[log.arms == 1].mean())


def test_every_policy_learns_where_there_is_something_to_learn() -> None:
    log = trial()
    made = makers(log.arm_names)
    found = {
        name: trials.value_of("weighted", lambda seed: log, make, 400, 0).values[0]
        for name, make in made.items()
    }
    learners = (X_ONLY, BEFORE, AFTER, POLINUCB, ROBUST, ORACLE, MAP_PER_ARM)
    served = {each.name for each in (*learners, RANDOM, ONE_MAP)}
    assert set(found) == {*served, "always 0", "always 1"}
    # The slope of z differs from arm to arm here, so one slope for all arms cannot fit it, nor one map.
    assert min(found[each.name] for each in (X_ONLY, ORACLE, MAP_PER_ARM)) > 0.4
    assert found[ONE_MAP.name] < found[MAP_PER_ARM.name] - 0.3


def offset_trial(n: int = 3000) -> LoggedRounds:
    """z is moved by the arm served, and the reward is z: what an arm does, it does through z."""
    rng = np.random.default_rng(1)
    x, arms = rng.normal(size=(n, 2)), rng.integers(2, size=n)
    z = x[:, 0] + np.where(arms == 1, 1.0, 0.0) + 0.3 * rng.normal(size=n)
    return LoggedRounds(x=x, z=z[:, None], arms=arms, rewards=z, propensities=0.5)


def test_a_map_that_tells_arms_apart_keeps_what_they_do_through_z() -> None:
    log = offset_trial(400)
    made = makers(log.arm_names)
    values = {
        name: trials.value_of("weighted", lambda seed: log, made[name], 400, 0).values[0]
        for name in map(str, (POLINUCB, BEFORE, ROBUST, ONE_MAP, "always 1"))
    }
    assert min(values[each.name] for each in (POLINUCB, BEFORE, ROBUST)) > values["always 1"] - 0.05
    assert values[ONE_MAP.name] < values["always 1"] - 0.2


@pytest.mark.parametrize("method", ["rejection", "weighted"])
def test_a_linear_map_of_its_own_for_each_arm_gives_linucb_back(method: Any) -> None:
    """u^T A^{-1} b = x^T A_xx^{-1} b_x at u = (x, A_zx A_xx^{-1} x), and so with the width."""
    log = offset_trial(600)
    options: dict[str, Any] = {"ridge": 1.0, "arm_radius": 0.3, "intercept": True}
    phi_hat = PerArmMap(RidgeMap(2, 1, ridge=1.0, intercept=True))
    ours = replay(PoLinUCB(2, phi_hat, **options), log, np.random.default_rng(0), method=method)
    theirs = replay(LinUCB(2, 2, **options), log, np.random.default_rng(0), method=method)
    np.testing.assert_array_equal(ours.rows, theirs.rows)
    np.testing.assert_array_equal(ours.weights, theirs.weights)


@pytest.mark.parametrize("curved", [False, True])
def test_what_can_be_predicted(curved: bool) -> None:
    log = trial(2000, curved=curved)
    halves = partial(worlds.half_of_log, log)
    z_linear, z_forest, from_x, from_x_and_z = (
        r_squared(halves, prediction, 1000, 0).values[0] for prediction in PREDICTIONS
    )
    assert from_x_and_z > 0.95
    assert z_forest > 0.8
    assert (z_linear > 0.85) != curved
    assert (from_x > 0.85) != curved


def test_rewards_that_are_missing_are_not_predicted() -> None:
    log = trial(300)
    rewards = np.where(np.arange(300) % 4 == 0, np.nan, log.rewards)
    halves = partial(worlds.half_of_log, log.changed(rewards=rewards))
    from_x = PREDICTIONS[2]
    assert r_squared(halves, from_x, 150, 0).values[0] > 0.5
    flat = partial(worlds.half_of_log, log.changed(rewards=np.zeros(300)))
    assert r_squared(flat, from_x, 150, 0).values[0] == 0.0


@pytest.mark.parametrize(("seeds", "runs"), [(2, 4), (7, 8), (32, 32), (33, 64), (80, 96)])
def test_runs_are_pairs_and_as_many_for_each_cut(seeds: int, runs: int) -> None:
    size = trials.FULL._replace(seeds=seeds)
    assert trials.orderings(size, 64_000) == runs
    assert trials.orderings(size, 2_000) == (2 * runs if seeds >= 32 else runs)


# The sentences.


def study(gains: dict[Any, float], loud: float = 0.01) -> Study:
    """Values in every place, poLinUCB's larger than each rival's by what is given, or level."""
    rng = np.random.default_rng(0)
    rows = []
    for place in PLACES:
        noise = rng.normal(size=8)
        for name in (
            RANDOM,
            X_ONLY,
            BEFORE,
            AFTER,
            ROBUST,
            ORACLE,
            ONE_MAP,
            MAP_PER_ARM,
            "always a",
            "always b",
        ):
            if name in (ONE_MAP, MAP_PER_ARM, "always a", "always b") and place not in REPLAYED:
                continue
            values = noise - gains.get(name, 0.0) + loud * rng.normal(size=8)
            rows += [(place, str(name), seed, 5, value) for seed, value in enumerate(values)]
        rows += [(place, POLINUCB.name, seed, 5, value) for seed, value in enumerate(noise)]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "value"], orient="row"))


def test_the_first_sentence_says_where_follow_ups_did_not_help() -> None:
    n = len(PLACES)
    told = headline(study({X_ONLY: 1.0, BEFORE: 1.0}))
    assert (
        f"not greater, by a 95% interval that excludes 0, than that of LinUCB(phi_hat, after) in {n} of"
        in told
    )
    assert "LinUCB(x) in" not in told
    for rival in (X_ONLY, BEFORE, AFTER):
        assert f"{rival} in {n}" in headline(study({}))
    assert "(smaller in ACTG 175" in headline(study({X_ONLY: -1.0}))
    won = headline(study({X_ONLY: 1.0, BEFORE: 1.0, AFTER: 1.0}))
    assert "poLinUCB's value is greater than that of LinUCB(x), LinUCB(phi_hat, before) and LinUCB" in won


def test_claims_hold_only_where_intervals_exclude_0() -> None:
    found = claims(study({X_ONLY: 1.0, RANDOM: 2.0}))
    held = {claim.text.split(",")[0]: claim.held for claim in found if claim.held is not None}
    assert held["poLinUCB has a greater value than LinUCB(x)"]
    assert held["poLinUCB has a greater value than Random"]
    assert held["poLinUCB has a greater value than LinUCB(phi_hat"] is False
    assert any("the best single arm in hindsight is always" in claim.text for claim in found)


def test_a_greater_value_that_seeds_do_not_show_is_not_held() -> None:
    """Each interval must exclude 0, so fewer or louder seeds make it harder; nor is a smaller one excused."""
    everyone = {X_ONLY: 1.0, BEFORE: 1.0, AFTER: 1.0, RANDOM: 2.0}
    first = [claim.held for claim in claims(study(everyone)) if claim.held is not None]
    assert first == [True] * 5
    for planted, loud in ((everyone, 5.0), (dict.fromkeys(everyone, -1.0), 0.01)):
        found = claims(study(planted, loud))
        assert [claim.held for claim in found if "poLinUCB has a greater" in claim.text] == [False] * 4
        assert "each paired 95% interval excluding 0" in found[0].text
    reversed_order = claims(study({X_ONLY: 2.0, RANDOM: 1.0}))
    assert [each.held for each in reversed_order if each.text.startswith("LinUCB(x) has")] == [False]


# The real ones.


def test_the_real_trials_are_as_described(real_data: Path) -> None:
    spend, conversion = (hillstrom(real_data, reward=reward) for reward in ("spend", "conversion"))
    assert spend.x.shape == conversion.x.shape == (64_000, 11)
    assert spend.arm_names == ("No E-Mail", "Mens E-Mail", "Womens E-Mail")
    assert np.bincount(spend.arms).tolist() == [21_306, 21_307, 21_387]
    assert conversion.rewards.sum() == 578
    assert (spend.rewards > 0.0).sum() == 578
    cd4, no_event = (actg175(real_data, reward=reward) for reward in ("cd4", "no_event"))
    assert (cd4.x.shape, cd4.z_names) == ((2139, 16), ("cd420", "cd820"))
    assert np.bincount(cd4.arms).tolist() == [532, 522, 524, 561]
    assert np.isnan(cd4.rewards).sum() == 797
    assert np.isnan(no_event.rewards).sum() == 183
    assert np.nansum(no_event.rewards) == 1635
    with_rewards = [np.nanmean(cd4.rewards[cd4.arms == arm]) for arm in range(4)]
    np.testing.assert_allclose(with_rewards, [287.6, 341.3, 354.8, 328.8], atol=0.1)
    course = actg175_course(real_data)
    assert course.sum(axis=0).tolist() == [776, 321, 183]
    weights = worlds.logs(real_data)[worlds.CD4].weights
    assert np.average(course[:, 0], weights=weights) == pytest.approx(course[:, 0].mean(), abs=0.01)
