"""Growth against the bounds' exponents, and what is measured of the generalisations."""

from typing import Any

import numpy as np
import polars as pl
import pytest

from postserve import (
    ActionDependentEnvironment,
    DecisionSetEnvironment,
    Observation1,
    RandomPolicy,
    Study,
    SyntheticEnvironment,
    simulate,
)
from postserve.experiments.bounds import bound_over, constants, largest_gap, lies_below
from postserve.experiments.contenders import RANDOM
from postserve.experiments.figures import action_dependent, thompson
from postserve.experiments.figures.action_dependent import place
from postserve.experiments.figures.thompson import (
    LOGGERS,
    TARGET,
    WORLD,
    ByThetaAlone,
    estimated,
    estimated_regret,
)
from postserve.experiments.rates import grows_within, in_random_rounds, slope_over

T = np.array([1, 10, 100, 1000])


def study(curves: dict[tuple[str, Any], Any]) -> Study:
    """Of one curve per seed, at rounds T."""
    rows = [
        (where, str(name), seed, int(t), float(value))
        for (where, name), seeds in curves.items()
        for seed, curve in enumerate(seeds)
        for t, value in zip(T, curve, strict=True)
    ]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row"))


def test_an_exponent_is_held_against_the_bounds() -> None:
    found = study({("e", "slow"): [T**0.3, 2 * T**0.3], ("e", "fast"): [T**0.7, 2 * T**0.7]})
    assert grows_within(found, "e", "slow", 0.5).held
    claim = grows_within(found, "e", "fast", 0.5)
    assert claim.held is False
    assert "0.70 [0.70, 0.70]" in claim.text
    assert "not above 0.5, the bound's exponent." in claim.text
    flat = study({("e", "flat"): [T**0.08, 2 * T**0.08]})
    untested = grows_within(flat, "e", "flat", 0.5)
    assert untested.held is None
    assert "does not test the exponent" in untested.text
    other = grows_within(found, "e", "slow", 0.5, thompson.NO_BOUND)
    assert "not above 0.5, the exponent of poLinUCB's bound; none is proved for PoLinTS." in other.text


def test_regret_in_rounds_of_random_play() -> None:
    found = study({("e", RANDOM): [4.0 * T, 6.0 * T], ("e", "p"): [T**0.5, 3 * T**0.5]})
    (column,) = in_random_rounds(found, "p", ["e"])
    np.testing.assert_allclose(column, np.array([1.0, 3.0]) * 1000**0.5 / 5.0)


def test_a_slope_over_what_varies_has_an_interval() -> None:
    rng = np.random.default_rng(0)
    columns = [n**0.5 * np.exp(0.1 * rng.standard_normal(10)) for n in (2, 4, 8, 16)]
    slope = slope_over((2, 4, 8, 16), columns)
    assert slope.low < 0.5 < slope.high
    assert slope.high - slope.low < 0.3


def test_what_a_bound_asks_of_a_world() -> None:
    assert largest_gap(Observation1().rounds(50, np.random.default_rng(0))) == 3.0
    env = ActionDependentEnvironment("linear", dim_x=4, dim_z=2, n_arms=3, scale=5.0, z_noise=0.5)
    found = constants(env)
    corners = np.full((3, 4), 10.0 / np.sqrt(3.0))  # where h(x) is 1 in every entry
    each = [env.phi(corners * np.eye(4)[i]) for i in range(4)]
    assert found.row_bound == pytest.approx(np.linalg.norm(each, axis=0).max())
    assert 0.8 * np.sqrt(12.0) < found.feature_bound <= np.sqrt(12.0)
    assert found.u_bound > 0.8 * 20.0
    assert found.largest_gap > 10.0


@pytest.mark.parametrize("kind", ["action_dependent", "linear_stochastic"])
def test_bounds_grow_with_the_horizon_and_scale_with_the_rewards(kind: Any) -> None:
    env: Any = (
        ActionDependentEnvironment("linear", dim_x=3, dim_z=2, n_arms=4)
        if kind == "action_dependent"
        else DecisionSetEnvironment("linear", dim_x=3, dim_z=2, n_candidates=9)
    )
    bounds = bound_over(kind, env, np.array([10, 100, 1000]))
    assert (np.diff(np.log10(bounds)) > 0.3).all()
    assert np.isfinite(bounds).all()


def test_regret_above_a_bound_is_told() -> None:
    found = study({("e", RANDOM): [T, T], ("e", "p"): [T**0.5, T**0.5]})
    held = lies_below(found, "e", "p", np.array([2 * T**0.5, 3 * T**0.5]))
    assert held.held
    assert "says nothing" not in held.text
    vacuous = lies_below(found, "e", "p", np.array([2 * T, 2 * T]))
    assert vacuous.held is None
    assert "says nothing" in vacuous.text
    claim = lies_below(found, "e", "p", np.array([2 * T**0.5, T**0.5 / 2]))
    assert claim.held is False
    assert "regret is 2 of the bound" in claim.text


def test_the_price_of_maps_is_a_ratio_seed_by_seed() -> None:
    curves: dict[tuple[str, Any], Any] = {}
    for kind in ("separate", "shared"):
        for n in (2, 8):
            curves[place(kind, n), RANDOM] = [T, T]
            curves[place(kind, n), action_dependent.ONE] = [T**0.1, 3 * T**0.1]
            curves[place(kind, n), action_dependent.APART] = [n * T**0.1, 3 * n * T**0.1]
    found = study(curves)
    np.testing.assert_allclose(action_dependent.price(found), [[2.0, 2.0], [8.0, 8.0]])
    assert action_dependent.price_slope(found).value == pytest.approx(1.0)


def test_one_shared_context_is_an_action_dependent_world_too() -> None:
    """Rows that are all the same x: the runner serves and credits as in the plain world."""
    plain: Any = SyntheticEnvironment("linear", dim_x=4, dim_z=2, n_arms=3)
    rows: Any = ActionDependentEnvironment("linear", dim_x=4, dim_z=2, n_arms=3)

    def repeated(n: int, rng: Any) -> Any:
        block = plain.rounds(n, rng)
        each = [np.repeat(part[:, None], 3, axis=1) for part in (block.x, block.z)]
        return block._replace(x=each[0], z=each[1])

    rows.rounds = repeated
    one, other = (simulate(RandomPolicy(3), env, 50, seed=0) for env in (plain, rows))
    assert all(map(np.array_equal, one, other))


def test_a_log_tells_the_regret_of_another_policy_without_bias() -> None:
    """From uniform choices, whose propensities are known by heart."""

    def world(seed: int) -> SyntheticEnvironment:
        return SyntheticEnvironment("linear", dim_x=3, dim_z=2, n_arms=3, seed=seed)

    off = []
    for seed in range(60):
        told = estimated_regret(world, lambda env: RandomPolicy(env.n_arms), 40, seed).values[-1]
        off.append(told - simulate(ByThetaAlone(world(seed).theta), world(seed), 40, seed).regret[-1])
    error = np.std(off, ddof=1) / np.sqrt(len(off))
    assert abs(np.mean(off)) < 3.0 * error
    assert error > 0.0


def test_the_standard_error_of_an_estimate_is_that_of_its_terms() -> None:
    rng = np.random.default_rng(0)
    rounds = np.arange(1, 1001)
    curves = np.cumsum(5.0 + 2.0 * rng.standard_normal((50, 1000)), axis=1)
    kept = rounds[rounds % 10 == 0]
    rows = [
        (WORLD, estimated(LOGGERS[0]), seed, int(t), float(curve[t - 1]))
        for seed, curve in enumerate(curves)
        for t in kept
    ]
    found = Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row"))
    assert thompson.standard_errors(found, LOGGERS[0]).mean() == pytest.approx(2.0 * 1000**0.5, rel=0.05)
    assert TARGET.name not in found.policies
