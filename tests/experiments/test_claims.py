"""Every kind of claim fails on a planted violation, and none holds for want of seeds or of power."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
import pytest

from postserve.experiments import contenders as c
from postserve.experiments.claims import at_most, decided, ordered, unbeaten, within
from postserve.experiments.figure import Claim
from postserve.experiments.figures import (
    action_dependent,
    defaults,
    exponents,
    features,
    figure3,
    linear_stochastic,
    observation1,
    sensitivity,
)
from postserve.experiments.figures.theory import quantities as q
from postserve.experiments.figures.theory import results as theory_results
from postserve.experiments.statistics import Interval
from postserve.experiments.study import Study, recorded_rounds
from postserve.types import FloatArray, IntArray

ROUNDS = np.array([1, 10, 100, 1000, 10_000])
SEEDS = np.linspace(0.9, 1.1, 6)
"""Factors by which the curves of the seeds differ."""


def study(
    curves: Mapping[tuple[str, Any], FloatArray],
    rounds: IntArray = ROUNDS,
    seeds: Sequence[float] = tuple(SEEDS),
) -> Study:
    """Each mean curve, times the factor of each seed."""
    rows = [
        (where, str(name), seed, int(t), float(factor * value))
        for (where, name), curve in curves.items()
        for seed, factor in enumerate(seeds)
        for t, value in zip(rounds, curve, strict=True)
    ]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row"))


def finals(**values: Any) -> Study:
    """Regrets at round 1 of one environment, one per seed."""
    rows = [("e", name, seed, 1, value) for name, of in values.items() for seed, value in enumerate(of)]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row"))


def about(claims: Sequence[Claim], *words: str) -> Claim:
    (found,) = [claim for claim in claims if all(word in claim.text for word in words)]
    return found


# Sentences about policies.


def test_whether_a_value_is_at_most_a_limit() -> None:
    assert decided(Interval(1.0, 0.9, 1.1), 1.1) is True
    assert decided(Interval(1.0, 0.9, 1.1), 0.8) is False
    assert decided(Interval(1.0, 0.9, 1.1), 1.0) is None
    assert "Not decided by so many seeds" in at_most("It is small", Interval(1.0, 0.9, 1.1), 1.0).text


def test_unbeaten_is_not_easier_with_fewer_seeds() -> None:
    rng = np.random.default_rng(0)
    best, beaten = 100.0 + rng.normal(size=40), 110.0 + rng.normal(size=40)
    assert unbeaten(finals(a=best, b=beaten), "a", ["b"], 1, ["e"]).held
    planted = unbeaten(finals(a=best, b=beaten), "b", ["a"], 1, ["e"])
    assert planted.held is False
    assert "e: a has less" in planted.text
    loud = 92.0 + 10.0 * rng.normal(size=40)  # better by more than a tie, which two seeds cannot show
    assert unbeaten(finals(a=best, b=loud), "a", ["b"], 1, ["e"]).held is not True
    few = unbeaten(finals(a=best[:2], b=loud[:2]), "a", ["b"], 1, ["e"])
    assert few.held is None
    assert "Not decided by so many seeds: e: b" in few.text


def test_within_has_an_error() -> None:
    ratios = np.array([1.0, 1.18, 1.05, 1.12])
    assert within(finals(a=ratios, b=np.ones(4)), "a", "b", 1.1, 1, ["e"]).held is None
    assert within(finals(a=1.3 * ratios, b=np.ones(4)), "a", "b", 1.1, 1, ["e"]).held is False
    assert within(finals(a=0.9 * ratios, b=np.ones(4)), "a", "b", 1.1, 1, ["e"]).held


def test_an_order_fails_where_it_is_reversed() -> None:
    one, other = finals(a=[1.0, 1.1, 1.2], b=[2.0, 2.2, 2.1]), finals(a=[2.0, 2.1, 2.2], b=[1.0, 1.1, 1.2])
    assert ordered(one, ("a", "b"), 1, ["e"]).held
    assert ordered(other, ("a", "b"), 1, ["e"]).held is False


# The theory.


def theory_study(**planted: Any) -> Study:
    """Curves with which all claims hold, and some in place of them."""
    rounds = recorded_rounds(1000).astype(np.float64)
    curves: dict[tuple[str, Any], FloatArray] = {}
    for contender in q.KINDS:
        curves[q.REGRET, contender] = rounds**0.3
        curves[q.REGRET, q.bound_of(contender)] = 20.0 * rounds**0.5
    curves[q.REGRET, q.LARGEST] = 5.0 * rounds
    for lemma in q.LEMMAS:
        curves[q.SHARE, lemma] = 30.0 / rounds
        curves |= {(q.SLACK, q.power(p, lemma)): np.ones_like(rounds) for p in q.POWERS}
    for p in q.POWERS:
        curves[q.ONE, q.power(p)] = np.cumsum(np.arange(1.0, 1001.0) ** -p)[recorded_rounds(1000) - 1]
    for name, share in ((q.MEASURED, 0.1), (q.FACTOR, 0.2), (q.A_PRIORI, 0.3)):
        curves[q.GRAM, name] = np.full_like(rounds, share)
    for form in q.FORMS:
        curves |= {(q.MISSED, q.covered(form, delta)): np.full_like(rounds, 0.05) for delta in q.COVERED}
    for name, change in planted.items():
        panel, line = PLACES[name]
        curves[panel, line] = change(rounds, curves[panel, line])
    return study(curves, recorded_rounds(1000), (1.0, 1.0, 1.0))


OURS = next(iter(q.KINDS))
PLACES: dict[str, tuple[str, Any]] = {
    "regret": (q.REGRET, OURS),
    "bound": (q.REGRET, q.bound_of(OURS)),
    "slack": (q.SLACK, q.power(0.5, q.IN_Z)),
    "share": (q.SHARE, q.IN_Z),
    "left": (q.ONE, q.power(0.5)),
    "measured": (q.GRAM, q.MEASURED),
    "factor": (q.GRAM, q.FACTOR),
    "missed": (q.MISSED, q.covered("determinant form, up to t", 0.1)),
}


def test_the_theorys_claims_hold_where_nothing_is_planted() -> None:
    claims = theory_results.claims(theory_study())
    assert all(claim.held for claim in claims if claim.held is not None)
    assert sum(claim.held is not None for claim in claims) == 14


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("regret", lambda t, y: 30.0 * t**0.5, (f"{OURS}: the bound",)),
        ("slack", lambda t, y: np.where(t == 1000.0, -0.1, 1.0), ("potential lemma", q.IN_Z)),
        ("left", lambda t, y: 2.1 * y, ("At x_t = 1",)),
        ("measured", lambda t, y: 0.25 + 0.0 * t, ("worst ratio",)),
        ("factor", lambda t, y: 0.35 + 0.0 * t, ("a-priori bound",)),
        ("missed", lambda t, y: 0.11 + 0.0 * t, ("Coverage, determinant form, up to t, delta = 0.1",)),
    ],
)
def test_each_claim_of_the_theory_fails_on_a_planted_violation(name: str, change: Any, words: Any) -> None:
    claim = about(theory_results.claims(theory_study(**{name: change})), *words)
    assert claim.held is False, claim.text


def test_a_bound_above_the_largest_gap_is_not_judged() -> None:
    """Nothing can exceed it: it must not count as held."""
    claim = about(theory_results.claims(theory_study(bound=lambda t, y: 6.0 * t)), f"{OURS}: the bound")
    assert claim.held is None
    assert "no regret could have been above it" in claim.text
    early = theory_study(regret=lambda t, y: 5.0 * np.minimum(t, 10.0))  # above no bound that says something
    assert about(theory_results.claims(early), f"{OURS}: the bound").held


def test_a_lemma_whose_right_side_is_above_the_rounds_is_not_judged() -> None:
    found = theory_study(share=lambda t, y: 1.5 + 0.0 * t)
    assert about(theory_results.claims(found), "potential lemma", q.IN_Z).held is None


# Growth.


def exponents_study(powers: Mapping[str, float], peak: int = 2) -> Study:
    """Each policy's regret at its own worst noise is t^power in units of it, and less at the others."""
    curves: dict[tuple[str, Any], FloatArray] = {}
    for kind, noises in exponents.NOISES.items():
        for i, noise in enumerate(noises):
            less = 1.0 if i == min(peak, len(noises) - 1) else 0.5
            for contender in exponents.CONTENDERS:
                power = powers.get(contender.name, 1.0)
                curves[exponents.place(kind, noise), contender] = less * noise * ROUNDS**power
    return study(curves)


def test_exponents_are_those_of_the_worst_regret() -> None:
    found = exponents_study({exponents.OURS.name: 0.5, exponents.THEIRS.name: 0.7})
    claims = exponents.claims(found)
    for kind in (exponents.FAST, exponents.NEIGHBORS):
        for contender in (exponents.OURS, exponents.THEIRS):
            assert about(claims, f"{kind}: {contender}'s").held
        assert about(claims, f"{kind}: {c.RANDOM}'s").held is None
    assert "noise 60" in about(claims, f"{exponents.FAST}: {exponents.OURS}'s").text


def test_an_exponent_above_the_stated_one_fails() -> None:
    found = exponents_study({exponents.OURS.name: 0.7, exponents.THEIRS.name: 0.9})
    claims = exponents.claims(found)
    assert about(claims, f"{exponents.FAST}: {exponents.OURS}'s").held is False
    assert about(claims, f"{exponents.FAST}: {exponents.THEIRS}'s").held is False
    assert about(claims, f"{exponents.NEIGHBORS}: {exponents.OURS}'s").held


def test_who_does_not_learn_fails_though_every_single_world_may_look_flat() -> None:
    """It needs size⁸ rounds to resolve a gap of 1/size, not size², and saturates in each world for itself."""
    curves: dict[tuple[str, Any], FloatArray] = {}
    for kind, noises in exponents.NOISES.items():
        for noise in noises:
            size = noise / noises[0]
            for contender in exponents.CONTENDERS:
                flat = (
                    np.minimum(ROUNDS, 4.0 * size**2) / size
                )  # the usual price: gap 1/size, resolved in size²
                wasteful = np.minimum(ROUNDS, 4.0 * size**8) / size
                curves[exponents.place(kind, noise), contender] = noise * (
                    flat if contender == exponents.THEIRS else wasteful
                )
    claims = exponents.claims(study(curves))
    slow = about(claims, f"{exponents.FAST}: {exponents.OURS}'s")
    assert slow.held is False, slow.text


def test_where_the_smallest_gaps_are_worst_nothing_is_judged() -> None:
    found = exponents_study({exponents.OURS.name: 0.5}, peak=99)
    claim = about(exponents.claims(found), f"{exponents.FAST}: {exponents.OURS}'s")
    assert claim.held is None
    assert "smaller gaps may be worse" in claim.text


def figure3_study(power: float, seeds: Sequence[float] = tuple(SEEDS), bend: float = 0.0) -> Study:
    """Errors that fall with `power` times their class's rate; seeds differ in their slopes by `bend`."""
    rows = []
    for name, kind in figure3.classes().items():
        for map_name in kind.maps:
            for seed, factor in enumerate(seeds):
                slope = -power * kind.rate + bend * (factor - 1.0)
                rows += [
                    (name, map_name, seed, int(t), float(factor * t**slope))
                    for t in np.geomspace(10, 10_000, 25)
                ]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "error"], orient="row"))


def test_a_rate_is_reached_by_the_whole_interval() -> None:
    assert all(claim.held for claim in figure3.claims(figure3_study(1.0)))
    assert all(claim.held is False for claim in figure3.claims(figure3_study(0.5)))
    # Half of the rate, by two seeds that differ: before, so wide an interval reached every rate.
    few = figure3.claims(figure3_study(0.5, seeds=(0.9, 1.1), bend=2.0))
    assert all(claim.held is None for claim in few)


def test_features_are_compared_with_the_theorems_exponent() -> None:
    def planted(ours: float, without: float) -> list[Claim]:
        curves: dict[tuple[str, Any], FloatArray] = {}
        for noise in features.NOISES:
            for contender in features.CONTENDERS:
                power = {features.OURS: ours, features.WITHOUT: without}.get(contender, 0.8)
                curves[f"noise of z {noise:g}", contender] = np.asarray(ROUNDS**power)
        return features.claims(study(curves))

    assert about(planted(0.4, 0.9), "noise of z 1:", f"{features.OURS} grows").held
    assert about(planted(0.6, 0.9), "noise of z 1:", f"{features.OURS} grows").held is False
    assert about(planted(0.4, 0.4), "noise of z 1:", f"{features.WITHOUT} grows").held is False


def test_linear_regret_is_told_from_less() -> None:
    def planted(linear: float, curved: float) -> list[Claim]:
        powers = dict.fromkeys(observation1.LINEAR, linear) | dict.fromkeys(observation1.CURVED, curved)
        return observation1.claims(
            study({(observation1.WORLD, each): np.asarray(ROUNDS**power) for each, power in powers.items()})
        )

    assert all(claim.held for claim in planted(1.0, 0.5))
    assert all(claim.held is ("has not" in claim.text) for claim in planted(0.9, 0.5))
    assert all(claim.held is ("has not" not in claim.text) for claim in planted(1.0, 0.75))


@pytest.mark.parametrize(("power", "held"), [(0.25, True), (0.75, False), (0.0, False)])
def test_the_price_of_maps_is_between_nothing_and_the_propositions(
    power: float, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a map for each arm where one would do: K^power."""
    curves: dict[tuple[str, Any], FloatArray] = {}
    for kind in action_dependent.KINDS:
        for n in action_dependent.N_ARMS[True]:
            for contender in action_dependent.CONTENDERS:
                price = n**power if contender == action_dependent.APART else 1.0
                curves[action_dependent.place(kind, n), contender] = price * ROUNDS**0.5
    vacuous = np.full((len(SEEDS), len(ROUNDS)), 1e9)
    monkeypatch.setattr(action_dependent, "bounds", lambda study, kind: vacuous)
    claim = about(action_dependent.claims(study(curves)), "The price of a map for each arm")
    assert claim.held is held, claim.text


@pytest.mark.parametrize(("power", "held"), [(0.1, True), (0.4, False)])
def test_regret_over_candidates_fails_where_it_grows(
    power: float, held: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    curves: dict[tuple[str, Any], FloatArray] = {}
    for n in linear_stochastic.N_CANDIDATES[True]:
        for contender in linear_stochastic.CONTENDERS:
            price = n**power if contender == linear_stochastic.OURS else 1.0
            curves[linear_stochastic.place(n), contender] = price * ROUNDS**0.5
    vacuous = np.full((len(SEEDS), len(ROUNDS)), 1e9)
    monkeypatch.setattr(linear_stochastic, "bounds", lambda study, n: vacuous)
    claim = about(linear_stochastic.claims(study(curves)), "does not depend on the number of candidates")
    assert claim.held is held, claim.text


# Settings.


def sensitivity_study(left: float, constant: float, spread: Sequence[float] = (1.0, 1.02, 0.98)) -> Study:
    """LinUCB(x) has 5 times the regret where phi is learnt, `left` times where not; so has a constant."""
    rows = []
    for name, sweep in sensitivity.sweeps().items():
        for value in sweep.values:
            where = sensitivity.place(name, value)
            for contender in sensitivity.CONTENDERS:
                regret = 100.0
                if contender == sensitivity.X_ONLY:
                    regret = 100.0 * (left if where == sensitivity.place("unlearnable", 1.0) else 5.0)
                if name == "exploration" and contender == sensitivity.OURS:
                    regret = 100.0 * (constant if value == 1.0 else 2.0)
                rows += [
                    (
                        where,
                        contender.name,
                        seed,
                        1,
                        regret * (factor if contender != sensitivity.OURS else 1.0),
                    )
                    for seed, factor in enumerate(spread)
                ]
    return Study(pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row"))


def test_the_limitation_and_tuning_fail_where_they_are_not_so() -> None:
    limitation, tuning = "The limitation", "Automatic exploration needs no tuning"
    assert about(sensitivity.claims(sensitivity_study(1.1, 1.0)), limitation).held
    assert about(sensitivity.claims(sensitivity_study(2.0, 1.0)), limitation).held is False
    loud = sensitivity.claims(sensitivity_study(1.2, 1.0, spread=(0.5, 1.5)))
    assert about(loud, limitation).held is None
    assert about(sensitivity.claims(sensitivity_study(1.1, 1.0)), tuning).held
    assert about(sensitivity.claims(sensitivity_study(1.1, 0.7)), tuning).held is False


def test_a_default_that_is_beaten_fails_and_few_seeds_leave_it_open() -> None:
    family = defaults.families()[0]

    def judged(better: float, spread: Sequence[float]) -> Claim:
        rows = []
        for world in defaults.WORLDS:
            for setting in family.settings:
                planted = better if setting.name == family.settings[-1].name else 1.1
                for seed, factor in enumerate(spread):
                    own = 1.0 if setting.name == family.in_use else planted * factor
                    rows.append((world, setting.name, seed, 1, own))
        table = pl.DataFrame(rows, ["environment", "policy", "seed", "round", "regret"], orient="row")
        return defaults.claim_on(Study(table), family)

    assert judged(1.0, (0.99, 1.0, 1.01)).held
    assert judged(0.8, (0.99, 1.0, 1.01)).held is False
    assert judged(0.8, (0.7, 1.3)).held is None


def test_what_was_settled_late_is_said() -> None:
    size = exponents.FULL
    assert "raised" in exponents.settings(size)["settled late"]
    assert "1.2 times" in sensitivity.settings(size)["settled late"]
    assert "settled late" in figure3.settings(size)
