"""One run: what is random comes from the seed, and a short run begins a long one."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from postserve import (
    InvalidInput,
    LinUCBOracle,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    SyntheticEnvironment,
    simulate,
)
from postserve.experiments.runner import BLOCK


def environment(seed: int = 0) -> SyntheticEnvironment:
    return SyntheticEnvironment("polynomial", dim_x=4, dim_z=2, n_arms=3, seed=seed)


def policy(env: Any) -> PoLinUCB:
    return PoLinUCB(env.n_arms, RidgeMap(env.dim_x, env.dim_z, features=env.features))


def test_a_seed_repeats_itself_and_others_differ() -> None:
    env = environment()
    first, again, other = (simulate(policy(env), env, 50, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(one, two) for one, two in zip(first, again, strict=True))
    assert not np.array_equal(first.regret, other.regret)


@pytest.mark.parametrize("short", [7, BLOCK, BLOCK + 7])
def test_a_short_run_begins_a_long_one(short: int) -> None:
    env = environment()
    long = simulate(RandomPolicy(3), env, 2 * BLOCK + 3, seed=0)
    for whole, part in zip(long, simulate(RandomPolicy(3), env, short, seed=0), strict=True):
        np.testing.assert_array_equal(whole[:short], part)


def test_regret_is_taken_at_phi_and_rewards_at_z() -> None:
    env = environment()
    run = simulate(RandomPolicy(3), env, 30, seed=5)
    rounds = env.rounds(BLOCK, np.random.default_rng(np.random.SeedSequence(5).spawn(2)[0]))
    rows = np.arange(30)
    gaps = rounds.means[:30].max(axis=1) - rounds.means[rows, run.arms]
    np.testing.assert_allclose(run.regret, np.cumsum(gaps))
    np.testing.assert_array_equal(run.rewards, rounds.rewards[rows, run.arms])


def test_an_oracle_is_shown_the_z_that_follows() -> None:
    env = environment()
    shown: list[Any] = []

    class Watched(LinUCBOracle):
        def select(self, x: Any, rng: Any, *, z: Any, arms: Any = None) -> Any:
            shown.append(z)
            return super().select(x, rng, z=z, arms=arms)

        def update(self, x: Any, arm: int, z: Any, reward: float) -> None:
            assert shown[-1] is z
            super().update(x, arm, z, reward)

    simulate(Watched(3, 4, 2), env, 20, seed=0)
    assert len(shown) == 20


@pytest.mark.parametrize("arm", [-1, 3, 1.0, None, "0"])
def test_a_choice_that_is_no_arm(arm: Any) -> None:
    class Wrong:
        def select(self, x: Any, rng: Any) -> Any:
            return SimpleNamespace(arm=arm)

        def update(self, x: Any, arm: int, z: Any, reward: float) -> None:
            raise AssertionError

    with pytest.raises(InvalidInput, match=r"the policy chose arm .*, wanted one of 0 to 2"):
        simulate(Wrong(), environment(), 5, seed=0)


@pytest.mark.parametrize("spoil", ["x", "z", "rewards", "means"])
def test_rounds_that_are_none(spoil: str) -> None:
    env = environment()
    right = env.rounds
    for wrong in (lambda array: array[:-1], lambda array: array * np.nan, lambda array: array[:, :1]):
        env.rounds = lambda n, rng, wrong=wrong: right(n, rng)._replace(  # type: ignore[method-assign]
            **{spoil: wrong(getattr(right(n, rng), spoil))}
        )
        with pytest.raises(InvalidInput, match=rf"environment.rounds\(n\).{spoil}"):
            simulate(RandomPolicy(3), env, 5, seed=0)


@pytest.mark.parametrize(("horizon", "seed"), [(0, 0), (10, -1), (2.5, 0), (True, 0)])
def test_refusals(horizon: Any, seed: Any) -> None:
    with pytest.raises(InvalidInput, match="wanted"):
        simulate(RandomPolicy(3), environment(), horizon, seed)
