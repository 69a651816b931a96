"""Intervals: how often they hold the truth on simulated logs, within the error of so many logs.

benchmarks/evaluation_coverage.py does the same at full length.
"""

import math
from typing import Any

import numpy as np
import pytest
from benchmarks.evaluation_coverage import LEVEL, UNIT, World, covered, covered_throughout, spread

from postserve import evaluate
from postserve.evaluation.intervals import Kind, Range, bernstein, bootstrap, normal, sequence

LOGS = 100
FOUR_ERRORS = 4.0 * math.sqrt(LEVEL * (1.0 - LEVEL) / LOGS)


@pytest.mark.parametrize(
    ("estimator", "rounds", "gaps", "least"),
    [("ips", 420, 0.0, 90), ("dr", 420, 0.0, 90), ("dr_followups", 5000, 0.5, 470)],
)
def test_intervals_hold_the_truth_as_often_as_they_say(
    estimator: Any, rounds: int, gaps: float, least: float
) -> None:
    """From as many effective rounds on as docs/evaluation.md says."""
    world = World(worth=2.0)
    truth, effective = world.value(world.policy), 0.0
    kinds: tuple[Kind, ...] = ("normal", "bootstrap", "bernstein")
    held = dict.fromkeys(kinds, 0)
    for seed in range(LOGS):
        log = world.log(rounds, np.random.default_rng([3, seed]), gaps=gaps)
        found = evaluate(world.policy, log, estimator=estimator, reward_range=UNIT, seed=seed)
        for kind in kinds:
            held[kind] += covered(found, kind, truth, seed)
        effective += found.support.effective_rounds / LOGS
    assert effective >= least
    for kind in ("normal", "bootstrap"):
        assert abs(held[kind] / LOGS - LEVEL) <= FOUR_ERRORS, kind
    assert held["bernstein"] / LOGS >= LEVEL


@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_sequences_hold_the_truth_throughout(estimator: Any) -> None:
    world = World(worth=2.0)
    rngs = [np.random.default_rng([4, seed]) for seed in range(60)]
    assert sum(covered_throughout(world, 800, estimator, rng) for rng in rngs) >= LEVEL * len(rngs)


def test_sequences_hold_for_coins_at_all_times_where_normal_intervals_do_not() -> None:
    rng = np.random.default_rng(0)
    runs, rounds = 300, 2000
    missed_by_sequence = missed_by_normal = 0
    for _ in range(runs):
        coins = (rng.random(rounds) < 0.5).astype(float)
        low, high = sequence(coins, LEVEL, Range(0.0, 1.0))
        missed_by_sequence += bool(((low > 0.5) | (high < 0.5)).any())
        n = np.arange(1, rounds + 1)
        off = np.abs(coins.cumsum() / n - 0.5) / (0.5 / np.sqrt(n))
        missed_by_normal += bool((off[20:] > 1.96).any())
    assert missed_by_sequence <= (1.0 - LEVEL) * runs
    assert missed_by_normal > 0.2 * runs


def test_the_boundary_of_a_sequence_by_hand() -> None:
    """Howard et al. (2021), theorem 1 with eta = 2, s = 1.4, m = c = 1, and alpha = 0.05/2 for each end.

    k1² = (sqrt(2) + 1/sqrt(2))/2 + 1 = 2.06066, k2 = (sqrt(2) + 1)/2 = 1.20711 and zeta(1.4) = 3.10555. Their
    l is s log log(2 V) + log(zeta(s)/(alpha log(2)^s)) = 1.4 log log(2 V) + 5.33517: 4.82207 at V = 1, and
    7.07528 at V = 16, so that u = sqrt(k1² V l + k2² l²) + k2 l is 12.4403 and 26.0397.
    """
    low, high = sequence(np.full(100, 0.5), 0.95, Range(0.0, 1.0))  # all as expected: V is cut to 1
    np.testing.assert_allclose([0.5 - low[-1], high[-1] - 0.5], 0.124403, atol=1e-6)
    units: list[float] = []
    for n in range(1, 65):  # each is 1/2 away from the mean of those before and one of 1/2: V = 64/4
        mean = (0.5 + sum(units)) / n
        units.append(mean + 0.5 if mean <= 0.5 else mean - 0.5)
    terms = 2.0 + 4.0 * np.array(units)
    low, high = sequence(terms, 0.95, Range(2.0, 6.0))
    np.testing.assert_allclose(
        [terms.mean() - low[-1], high[-1] - terms.mean()], 4.0 * 26.0397 / 64, rtol=1e-5
    )


def test_a_sequence_follows_means_that_vary() -> None:
    rng = np.random.default_rng(0)
    means = 0.2 + 0.6 * np.linspace(0.0, 1.0, 3000)
    low, high = sequence((rng.random(3000) < means).astype(float), LEVEL, Range(0.0, 1.0))
    so_far = means.cumsum() / np.arange(1, 3001)
    assert ((low <= so_far) & (so_far <= high)).all()
    assert high[-1] - low[-1] < 0.12


def test_what_a_sequence_says_of_the_past_does_not_change_when_the_log_grows() -> None:
    world = World(worth=2.0)
    log = world.log(700, np.random.default_rng(0))
    options: Any = {"interval": "sequence", "reward_range": UNIT, "max_ratio": 10.0}
    before = evaluate(world.policy, log.take(np.arange(450)), **options).terms
    np.testing.assert_array_equal(evaluate(world.policy, log, **options).terms[:450], before)


@pytest.mark.parametrize("worth", [0.0, 6.0])
def test_follow_ups_complete_missing_rewards_without_bias(worth: float) -> None:
    found = spread(worth, logs=50, n=600)
    bias, error, deviation = found["dr_followups"]
    assert abs(bias) < 4.0 * error
    if worth == 6.0:  # z says nearly all
        assert deviation < found["dr, rows weighted"][2]
        assert abs(found["dr, complete rows"][0]) > 4.0 * found["dr, complete rows"][1]


def test_intervals_of_few_or_equal_terms() -> None:
    rng = np.random.default_rng(0)
    ones, one = np.ones(50), np.ones(1)
    assert bootstrap(ones, 0.95, rng) == normal(ones, 0.95) == (1.0, 1.0)
    assert all(math.isnan(end) for end in normal(one, 0.95))
    assert bernstein(one, 0.95, Range(0.0, 3.0)) == (0.0, 3.0)
    low, high = bernstein(ones, 0.95, Range(0.0, 3.0))
    assert 0.0 <= low < 1.0 < high <= 3.0


def test_intervals_are_wider_at_a_higher_level_and_follow_the_unit() -> None:
    terms = np.random.default_rng(0).random(500)
    kinds: Any = {
        "normal": lambda terms, level, high: normal(terms, level),
        "bootstrap": lambda terms, level, high: bootstrap(terms, level, np.random.default_rng(0)),
        "bernstein": lambda terms, level, high: bernstein(terms, level, Range(0.0, high)),
        "sequence": lambda terms, level, high: [
            float(ends[-1]) for ends in sequence(terms, level, Range(0.0, high))
        ],
    }
    for kind, ends in kinds.items():
        narrow, wide = ends(terms, 0.8, 1.0), ends(terms, 0.99, 1.0)
        assert wide[0] < narrow[0] < terms.mean() < narrow[1] < wide[1], kind
        np.testing.assert_allclose(ends(8.0 * terms, 0.8, 8.0), 8.0 * np.array(narrow), rtol=1e-12)
