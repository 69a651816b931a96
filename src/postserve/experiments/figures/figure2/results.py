"""Paired differences with 95% intervals, what the paper claims of MovieLens, and what was seen.

Intervals are over seeds with five movies, over pairs of halves in draws.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from postserve.evaluation.halves import halves_interval
from postserve.experiments import contenders as c
from postserve.experiments.claims import listed, verdict, with_failures
from postserve.experiments.figure import Claim
from postserve.experiments.figures.figure2 import worlds as w
from postserve.experiments.figures.figure2.worlds import AS_THEY_ARE, AXES, CUTS, DRAWN, DRAWS_OF, FIVE
from postserve.experiments.statistics import Interval, mean_interval
from postserve.experiments.study import Line, Study
from postserve.types import BoolArray, FloatArray

PREDICTED = "R² of z given x"
RIVALS = (c.X_ONLY, c.BEFORE, c.AFTER)


class Form(NamedTuple):
    """The prior of all policies that are compared, and where they ran with centred rewards."""

    title: str
    learnt: bool
    draws: tuple[str, ...]

    def __call__(self, contender: c.Contender) -> c.Contender:
        return contender.evidence if self.learnt else contender

    def __str__(self) -> str:
        return self.title

    @property
    def places(self) -> tuple[str, ...]:
        return (FIVE, *self.draws)


RIDGE_1 = Form("ridge 1", False, (DRAWN,))
LEARNT = Form("the learnt prior", True, DRAWS_OF)
FORMS = (RIDGE_1, LEARNT)


def prediction(kind: str, place: str) -> str:
    """The name of a map's R² in a place."""
    return f"{kind} map, {place}"


def interval(place: str, values: FloatArray) -> Interval:
    """Of the mean over seeds, which are pairs of halves in draws."""
    return Interval(*halves_interval(values, CUTS)) if place in DRAWS_OF else mean_interval(values)


def difference(study: Study, place: str, one: Line, other: Line) -> Interval:
    """One's final regret minus the other's."""
    return interval(place, study.differences(place, one, other))


def gains(study: Study, place: str, form: Form) -> FloatArray:
    """By how much poLinUCB's regret is below LinUCB(x)'s, for each seed."""
    return study.differences(place, form(c.X_ONLY), form(c.POLINUCB))


def by_draw(values: FloatArray) -> FloatArray:
    """The mean over both halves of each draw."""
    return np.asarray(values.reshape(-1, 2).mean(axis=1))


def predicted(study: Study, kind: str, place: str) -> FloatArray:
    """R² of z given x by a map, for each seed."""
    return study.final(PREDICTED, prediction(kind, place))


def in_order(study: Study, place: str, policies: Sequence[Line]) -> BoolArray:
    """For each draw, whether each policy has less regret than the next, over both halves."""
    regrets = np.array([by_draw(study.final(place, policy)) for policy in policies])
    return np.asarray((np.diff(regrets, axis=0) > 0.0).all(axis=0))


def rank_correlation(one: FloatArray, other: FloatArray) -> Interval:
    """Spearman's, with Bonett and Wright's interval; all of [-1, 1] for few draws, or for constants."""
    n = len(one)
    if n < 4 or np.ptp(one) == 0.0 or np.ptp(other) == 0.0:
        return Interval(0.0, -1.0, 1.0)
    found = float(np.clip(np.corrcoef(rankdata(one), rankdata(other))[0, 1], -1.0 + 1e-12, 1.0 - 1e-12))
    half = 1.96 * np.sqrt((1.0 + found**2 / 2.0) / (n - 3))
    low, high = np.tanh(np.arctanh(found) + np.array([-half, half]))
    return Interval(found, float(low), float(high))


def claims(study: Study) -> list[Claim]:
    forms = [(place, form) for place in (FIVE, DRAWN) for form in FORMS]
    return [
        *(_order(study, place, form) for place, form in forms),
        *(_oracle(study, place, form) for place, form in forms),
        *(_against(study, rival, form) for form in FORMS for rival in RIVALS),
        *(_counted(study, form) for form in FORMS),
        _predictable(study),
        _with_predictability(study),
        *(_over_draws(study, form) for form in FORMS),
        _as_they_are(study),
    ]


def headline(study: Study) -> str:
    """Which of LinUCB(x) and both LinUCB(phi_hat) poLinUCB does not beat, and where."""
    where = [(form, place) for form in FORMS for place in form.places]
    unbeaten: dict[str, list[str]] = {}
    for form, place in where:
        found = {rival: difference(study, place, form(c.POLINUCB), form(rival)) for rival in RIVALS}
        less = {rival: " (which has less)" if found[rival].above else "" for rival in RIVALS}
        names = [f"{rival}{less[rival]}" for rival in RIVALS if not found[rival].below]
        if names:
            unbeaten.setdefault(listed(names), []).append(f"in {place} with {form}")
    opening, excluding = "On MovieLens poLinUCB", "by a 95% interval that excludes 0"
    if not unbeaten:
        rivals = listed([rival.name for rival in RIVALS])
        return f"{opening} has less regret than {rivals} everywhere, {excluding}."
    words = "; than ".join(f"{names} {listed(places)}" for names, places in unbeaten.items())
    rest = sum(map(len, unbeaten.values())) < len(where)
    end = "; elsewhere it has less than all three." if rest else "."
    return f"{opening} does not have less regret, {excluding}, than {words}{end}"


def _order(study: Study, place: str, form: Form) -> Claim:
    order = [*(form(each) for each in (c.POLINUCB, c.BEFORE, c.X_ONLY)), c.RANDOM]
    text = f"The paper's order in {place} with {form}: {' < '.join(map(str, order))}"
    return _less(study, place, pairwise(order), f"{text}, each 95% interval excluding 0.")


def _oracle(study: Study, place: str, form: Form) -> Claim:
    others = [c.RANDOM, *(form(each) for each in (*RIVALS, c.POLINUCB))]
    text = f"The paper: the oracle is best. In {place} with {form} its regret is below all others', "
    text += "each 95% interval excluding 0."
    return _less(study, place, [(form(c.ORACLE), other) for other in others], text)


def _less(study: Study, place: str, pairs: Iterable[tuple[c.Contender, c.Contender]], text: str) -> Claim:
    """That the first of each pair has less regret, the interval excluding 0."""
    found = {pair: difference(study, place, *pair) for pair in pairs}
    failures = [f"{one} minus {other} is {d}" for (one, other), d in found.items() if not d.below]
    return with_failures(text, failures)


def _against(study: Study, rival: c.Contender, form: Form) -> Claim:
    ours, other = form(c.POLINUCB), form(rival)
    words = []
    for place in form.places:
        found = difference(study, place, ours, other)
        share = found.value / study.final(place, other).mean()
        less = f", less in {_count(study, place, [ours, other])}" if place in DRAWS_OF else ""
        words.append(f"{place}: {verdict(found, 'wins', 'loses')} ({found}, {share:+.0%}{less})")
    return Claim(f"{ours} against {other}. {'; '.join(words)}.", None)


def _counted(study: Study, form: Form) -> Claim:
    words = []
    for place in form.draws:
        order = [form(each) for each in (c.ORACLE, c.POLINUCB, c.BEFORE, c.X_ONLY)]
        order += [c.RANDOM] * study.has(place, c.RANDOM)
        steps = (f"{one} < {other} in {_count(study, place, [one, other])}" for one, other in pairwise(order))
        words.append(f"{place}: the paper's whole order in {_count(study, place, order)}; {', '.join(steps)}")
    return Claim(f"Draw by draw, over both halves, with {form}. {'. '.join(words)}.", None)


def _count(study: Study, place: str, order: Sequence[c.Contender]) -> str:
    held = in_order(study, place, order)
    return f"{held.sum()} of {len(held)} draws"


def _predictable(study: Study) -> Claim:
    words = []
    for place in (FIVE, *DRAWS_OF):
        found = {kind: interval(place, predicted(study, kind, place)) for kind in w.MAPS}
        words.append(f"{place}: {', '.join(f'{kind} {each}' for kind, each in found.items())}")
    return Claim(f"How well x predicts z, as R² on held-out users. {'; '.join(words)}.", None)


def _with_predictability(study: Study) -> Claim:
    """The same draws in both axes: rewards are equal, what x contains and how it predicts z are not."""
    own, turned = (gains(study, place, LEARNT) for place in (DRAWN, AXES))
    found = interval(DRAWN, own - turned)
    text = (
        f"Expected: where x predicts z, follow-ups help more. With {LEARNT} poLinUCB's gain over "
        f"LinUCB(x) is {interval(DRAWN, own)} in {DRAWN} and {interval(AXES, turned)} in {AXES}, where "
        "x does not predict z linearly (users, movies and rewards are the same, but x also contains more or "
        f"less of a user). The difference is {found}; held if this 95% interval is above 0."
    )
    return Claim(text, found.above)


def _over_draws(study: Study, form: Form) -> Claim:
    words = []
    for place in form.draws:
        gained = by_draw(gains(study, place, form))
        r_squared = {kind: by_draw(predicted(study, kind, place)) for kind in w.MAPS}
        found = (f"{kind} {rank_correlation(each, gained)}" for kind, each in r_squared.items())
        words.append(f"{place}: {', '.join(found)}")
    text = f"Rank correlation over draws, of these users, of the gain over LinUCB(x) with R², {form}. "
    return Claim(f"{text}{'; '.join(words)}.", None)


def _as_they_are(study: Study) -> Claim:
    """Rewards of about 3, radii of 0.3: the first arm served looks best for ever."""
    words = []
    for form in FORMS:
        learners = [form(each) for each in w.RIDGE_1 if each != c.RANDOM]
        finals = np.array([study.final(AS_THEY_ARE, each) for each in learners])
        equal = int((np.ptp(finals, axis=0) == 0.0).sum())
        ours, random = (study.final(AS_THEY_ARE, each).mean() for each in (form(c.POLINUCB), c.RANDOM))
        words.append(
            f"with {form} all policies have the very same regret in {equal} of {finals.shape[1]} seeds, "
            f"poLinUCB {ours:,.0f}, Random {random:,.0f}"
        )
    text = (
        "Dot products as they are lie far above 0, where arms that were never served start, so the first arm "
        f"served is hardly ever left: {'; '.join(words)}. Hence the mean rating is subtracted."
    )
    return Claim(text, None)
