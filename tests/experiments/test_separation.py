"""What the separation figure claims, and that each claim fails where it should."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest

from postserve import PoLinUCB, RandomPolicy, RidgeMap, simulate, theory
from postserve.experiments import contenders as c
from postserve.experiments.figures import separation as s
from postserve.experiments.study import Study
from postserve.types import FloatArray, IntArray

HORIZON = s.FULL.horizon


def study(**shares: float) -> Study:
    """Regrets as shares of the largest gap times T, alike in all worlds and nearly so for all seeds."""
    usual = {"random": 0.9, "blind": 0.8, "ours": 0.01, "proved": 0.01}
    names = dict(zip(usual, (c.RANDOM, s.BLIND, s.OURS, s.PROVED), strict=True))
    rows = []
    for world, at in s.WORLDS.items():
        most = s.known(HORIZON, *at).gap * HORIZON
        for key, share in {**usual, **shares}.items():
            values = [share * most * (1.0 + 0.01 * seed) for seed in range(3)]
            rows += [(world, names[key].name, seed, HORIZON, value) for seed, value in enumerate(values)]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row"))


def test_all_claims_hold_where_policies_do_as_proved() -> None:
    assert [claim.held for claim in s.claims(study())] == [True, True, True, None]


@pytest.mark.parametrize(
    ("planted", "broken"),
    [
        ({"blind": 0.3}, 0),  # a policy without z that sees it
        ({"proved": 0.3}, 1),  # above its bound, and below what others must lose
        ({"ours": 0.6}, 2),
    ],
)
def test_a_planted_violation_breaks_its_claim(planted: dict[str, float], broken: int) -> None:
    found = [claim.held for claim in s.claims(study(**planted))]
    assert found == [i != broken for i in range(3)] + [None]


def test_the_bounds_prove_something_at_full_size() -> None:
    bounds = {name: s.known(HORIZON, *at) for name, at in s.WORLDS.items()}
    proved = [name for name, at in s.WORLDS.items() if s.upper_of_mean(HORIZON, *at) < bounds[name].lower]
    assert len(proved) == 4
    assert f"in {len(proved)} worlds: {', '.join(proved)}." in s.claims(study())[-1].text
    of_means = [s.upper_of_mean(HORIZON, *at) for at in ((5, 1e-4), (10, 1e-5), (10, 1e-4), (20, 1e-4))]
    assert [round(each) for each in of_means] == [71, 148, 173, 433]  # docs/theory/theorem.md
    informative = [name for name, found in bounds.items() if found.upper <= found.gap * HORIZON / 3.0]
    assert len(informative) == 3


def test_a_bound_that_may_fail_is_not_compared_with_a_mean() -> None:
    """With 20 arms it is below the lower bound, and its mean could be above it: in 2 delta of all runs."""
    found = s.known(HORIZON, 20, 1e-4)
    may_fail = 2.0 * s.DELTA
    mean = (1.0 - may_fail) * found.upper + may_fail * found.gap * HORIZON
    assert found.upper < found.lower < mean
    assert s.upper_of_mean(HORIZON, 20, 1e-4) < found.lower


def test_the_worlds_are_those_of_the_lower_bound() -> None:
    env, rng = s.OneBetterArm(1000, 4, 0.5, seed=3), np.random.default_rng(0)
    found = theory.lower_bound(horizon=1000, n_arms=4, noise_scale=0.5, z_noise_scale=1.0)
    drawn = env.rounds(100_000, rng)
    assert env.gap == found.gap == pytest.approx(np.ptp(env.means([1.0])))
    assert drawn.rewards.std(axis=0) == pytest.approx(np.hypot(0.5, 1.0), rel=0.02)
    assert (drawn.rewards - drawn.z).std(axis=0) == pytest.approx(0.5, rel=0.02)
    assert {s.OneBetterArm(1000, 4, 0.5, seed).best for seed in range(30)} == {0, 1, 2, 3}


def test_a_policy_that_sees_z_goes_below_what_others_must_lose() -> None:
    """And one that does not stays above it: the bound is about what is seen."""
    horizon, n_arms = 2000, 5
    lower = s.known(horizon, n_arms, 1e-3).lower
    regrets: dict[str, list[float]] = {}
    for seed in range(6):
        env: Any = s.OneBetterArm(horizon, n_arms, 1e-3, seed)
        for contender in (s.BLIND, s.OURS, s.PROVED):
            final = float(simulate(contender.maker(env), env, horizon, seed).regret[-1])
            regrets.setdefault(contender.name, []).append(final)
    assert np.mean(regrets[s.BLIND.name]) > lower
    assert max(regrets[s.OURS.name] + regrets[s.PROVED.name]) < lower / 5.0


class Worse(PoLinUCB):
    """Serves the worse of two arms."""

    worse = 0

    def _scores(self, x: FloatArray, slots: IntArray) -> FloatArray:
        return np.where(slots == self.worse, 1.0, 0.0)


def test_the_second_form_of_theorem_1_is_above_the_regret() -> None:
    """At every round, where it says something and the first form does not; other policies violate it."""
    horizon, n_arms, noise = 20_000, 2, 1e-5
    found = s.known(horizon, n_arms, noise)

    def bound(t: int, z_noise_floor: float = 1.0) -> float:
        mapped: Any = {"map_dim": 1, "x_bound": 1.0, "map_ridge": 1.0}
        constant = theory.ridge_map_constant(horizon=t, dim_z=1, delta=s.DELTA, **mapped)
        errors = theory.ridge_map_errors(constant, horizon=t, map_rate=0.5, **mapped)
        world: Any = {"dim_u": 2, "n_arms": n_arms, "u_bound": found.u_bound, "ridge": found.ridge}
        world |= {"noise_scale": noise / found.gap, "w_bound": math.hypot(1.0, found.gap) / found.gap}
        world |= {"beta_spread": 0.0, "delta": s.DELTA, "z_noise_floor": z_noise_floor}
        return found.gap * theory.polinucb_bound(errors, horizon=t, **world).total

    most = found.gap * horizon
    assert bound(horizon) == pytest.approx(found.upper)
    assert bound(horizon) < most / 3.0 < most < bound(horizon, z_noise_floor=0.0)
    rounds = np.unique(np.geomspace(1, horizon, 60).astype(int))
    bounds = np.array([bound(int(t)) for t in rounds])
    for seed in range(3):
        env: Any = s.OneBetterArm(horizon, n_arms, noise, seed)
        regret = simulate(s.PROVED.maker(env), env, horizon, seed).regret
        # Regret only grows, so that it is below the bound between two of these rounds, too.
        assert (regret[rounds[1:] - 1] <= bounds[:-1]).all()
        planted = Worse(2, RidgeMap(1, 1), ridge=1.0)
        planted.worse = 1 - env.best
        for violating in (RandomPolicy(n_arms), planted):
            assert simulate(violating, env, horizon, seed).regret[-1] > found.upper
