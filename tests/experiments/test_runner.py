"""One run: what is random comes from the seed, and a short run begins a long one."""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from postserve import (
    ActionDependentEnvironment,
    CatalogueEnvironment,
    DecisionSetEnvironment,
    InvalidInput,
    LinUCBOracle,
    PoLinUCB,
    RandomPolicy,
    RidgeMap,
    Rounds,
    SyntheticEnvironment,
    simulate,
)
from postserve.experiments.runner import BLOCK
from postserve.types import FloatArray


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

        def update(self, x: Any, arm: int, z: Any, reward: float, **options: Any) -> None:
            assert shown[-1] is z
            super().update(x, arm, z, reward, **options)

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
def test_rounds_that_are_none(spoil: str, monkeypatch: pytest.MonkeyPatch) -> None:
    env = environment()
    right = env.rounds

    def spoiled(wrong: Callable[[FloatArray], FloatArray], n: int, rng: np.random.Generator) -> Rounds:
        rounds = right(n, rng)
        return Rounds(**{**rounds._asdict(), spoil: wrong(getattr(rounds, spoil))})

    for wrong in (lambda array: array[:-1], lambda array: array * np.nan, lambda array: array[:, :1]):
        monkeypatch.setattr(env, "rounds", partial(spoiled, wrong))
        with pytest.raises(InvalidInput, match=rf"environment.rounds\(n\).{spoil}"):
            simulate(RandomPolicy(3), env, 5, seed=0)


@pytest.mark.parametrize(("horizon", "seed"), [(0, 0), (10, -1), (2.5, 0), (True, 0)])
def test_refusals(horizon: Any, seed: Any) -> None:
    with pytest.raises(InvalidInput, match="wanted"):
        simulate(RandomPolicy(3), environment(), horizon, seed)


# Worlds with a context of its own for each row of a round.


class Watching:
    """Serves a random eligible arm, and keeps what it was shown."""

    def __init__(self, sees_z: bool = False) -> None:
        self.sees_z = sees_z
        self.selects: list[Any] = []
        self.updates: list[Any] = []

    def select(self, x: Any, rng: Any, **options: Any) -> Any:
        self.selects.append((x, options))
        ids = options.get("arms", np.arange(len(x)))
        return SimpleNamespace(arm=rng.choice(ids))

    def update(self, x: Any, arm: int, z: Any, reward: float) -> None:
        self.updates.append((x, arm, z, reward))


ROWS: dict[str, Any] = {
    "action-dependent": lambda: ActionDependentEnvironment("linear", dim_x=4, dim_z=2, n_arms=3),
    "decision sets": lambda: DecisionSetEnvironment("linear", dim_x=4, dim_z=2, n_candidates=7),
    "catalogue": lambda: CatalogueEnvironment("linear", dim_x=4, dim_z=2, n_arms=9, n_eligible=3),
}


@pytest.mark.parametrize("sees_z", [False, True])
@pytest.mark.parametrize("name", ROWS)
def test_rows_are_shown_and_the_served_one_is_learnt(name: str, sees_z: bool) -> None:
    env = ROWS[name]()
    watching = Watching(sees_z)
    run = simulate(watching, env, 40, seed=5)
    rounds = env.rounds(BLOCK, np.random.default_rng(np.random.SeedSequence(5).spawn(2)[0]))
    ids = np.tile(np.arange(env.n_arms), (BLOCK, 1)) if rounds.arms is None else rounds.arms
    gaps = np.zeros(40)
    for t, ((x, options), (served_x, arm, served_z, reward)) in enumerate(
        zip(watching.selects, watching.updates, strict=True)
    ):
        i = ids[t].tolist().index(arm)
        assert ("z" in options, "arms" in options) == (sees_z, rounds.arms is not None)
        np.testing.assert_array_equal(x, rounds.x[t])
        np.testing.assert_array_equal(options.get("arms", ids[t]), ids[t])
        np.testing.assert_array_equal(options.get("z", rounds.z[t]), rounds.z[t])
        np.testing.assert_array_equal(served_x, rounds.x[t, i])
        np.testing.assert_array_equal(served_z, rounds.z[t, i])
        assert (run.arms[t], run.rewards[t]) == (arm, reward) == (arm, rounds.rewards[t, i])
        gaps[t] = rounds.means[t].max() - rounds.means[t, i]
    np.testing.assert_allclose(run.regret, np.cumsum(gaps))


def test_a_short_run_begins_a_long_one_in_blocks_of_a_worlds_own() -> None:
    env = DecisionSetEnvironment("linear", dim_x=30, dim_z=2, n_candidates=2000)
    assert env.rounds_at_once == 32
    long, short = (simulate(Watching(), env, horizon, seed=0) for horizon in (40, 35))
    np.testing.assert_array_equal(long.regret[:35], short.regret)


def test_follow_ups_may_depend_on_the_arm_where_contexts_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    env = environment()
    right = env.rounds

    def rounds(n: int, rng: Any) -> Any:
        block = right(n, rng)
        return block._replace(z=block.z[:, None] + np.arange(3.0)[:, None])

    monkeypatch.setattr(env, "rounds", rounds)
    seen: list[Any] = []

    class Second:
        def select(self, x: Any, rng: Any) -> Any:
            assert x.shape == (4,)
            return SimpleNamespace(arm=1)

        def update(self, x: Any, arm: int, z: Any, reward: float) -> None:
            seen.append(z)

    simulate(Second(), env, 5, seed=0)
    block = right(BLOCK, np.random.default_rng(np.random.SeedSequence(0).spawn(2)[0]))
    np.testing.assert_array_equal(seen, block.z[:5] + 1.0)


def test_a_choice_that_is_not_eligible() -> None:
    class Wrong(Watching):
        def select(self, x: Any, rng: Any, **options: Any) -> Any:
            return SimpleNamespace(arm=next(a for a in range(9) if a not in options["arms"]))

    with pytest.raises(InvalidInput, match=r"the policy chose arm \d, wanted one of \d, \d, \d$"):
        simulate(Wrong(), ROWS["catalogue"](), 5, seed=0)


@pytest.mark.parametrize(
    ("spoil", "wrong", "message"),
    [
        ("x", lambda x: x[:, :-1], r"x has shape \(1000, 2, 4\), wanted \(1000, 3, 4\)"),
        ("x", lambda x: x[:, 0], None),
        ("z", lambda z: z[..., :1], r"z has shape \(1000, 3, 1\), wanted \(1000, 3, 2\)"),
        ("z", lambda z: z * np.inf, r"z has -?inf at"),
        ("rewards", lambda rewards: rewards[:, :2], r"rewards has shape \(1000, 2\), wanted \(1000, 3\)"),
        ("arms", lambda arms: arms[0], r"arms has shape \(3,\), wanted \(1000, k\)"),
        ("arms", lambda arms: arms * 1.0, "whole numbers"),
        ("arms", lambda arms: arms[:, ::-1], "wanted rising ones"),
        ("arms", lambda arms: arms - 5, "from 0 on"),
    ],
)
def test_rows_that_are_none(spoil: str, wrong: Any, message: str | None) -> None:
    env = ROWS["catalogue"]()
    right = env.rounds
    env.rounds = lambda n, rng: right(n, rng)._replace(**{spoil: wrong(getattr(right(n, rng), spoil))})
    if message is None:  # one x for all arms, and a z for each, is a world too
        simulate(Watching(), env, 5, seed=0)
        return
    with pytest.raises(InvalidInput, match=rf"environment.rounds\(n\)\.{message}|{message}"):
        simulate(Watching(), env, 5, seed=0)
