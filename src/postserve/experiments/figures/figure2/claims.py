"""What the paper claims of MovieLens, what was seen, and whether the gain goes with predictability."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from postserve.experiments import contenders as c
from postserve.experiments.claims import listed, verdict, with_failures
from postserve.experiments.figure import Claim
from postserve.experiments.figures.figure2 import comparisons as of
from postserve.experiments.figures.figure2 import policies
from postserve.experiments.figures.figure2.worlds import AS_THEY_ARE, AXES, DRAWN, DRAWS_OF, FIVE
from postserve.experiments.study import Study


def claims(study: Study) -> list[Claim]:
    forms = [(place, form) for place in (FIVE, DRAWN) for form in of.FORMS]
    return [
        *(_order(study, place, form) for place, form in forms),
        *(_oracle(study, place, form) for place, form in forms),
        *(_against(study, rival, form) for form in of.FORMS for rival in of.RIVALS),
        *(_counted(study, form) for form in of.FORMS),
        _predictable(study),
        _with_predictability(study),
        *(_over_draws(study, form) for form in of.FORMS),
        _as_they_are(study),
    ]


def headline(study: Study) -> str:
    """Which of LinUCB(x) and both LinUCB(phi_hat) poLinUCB does not beat, and where."""
    where = [(form, place) for form in of.FORMS for place in form.places]
    unbeaten: dict[str, list[str]] = {}
    for form, place in where:
        found = {rival: of.difference(study, place, form(c.POLINUCB), form(rival)) for rival in of.RIVALS}
        less = {rival: " (which has less)" if found[rival].above else "" for rival in of.RIVALS}
        names = [f"{rival}{less[rival]}" for rival in of.RIVALS if not found[rival].below]
        if names:
            unbeaten.setdefault(listed(names), []).append(f"in {place} with {form}")
    opening, interval = "On MovieLens poLinUCB", "by a 95% interval that excludes 0"
    if not unbeaten:
        rivals = listed([rival.name for rival in of.RIVALS])
        return f"{opening} has less regret than {rivals} everywhere, {interval}."
    words = "; than ".join(f"{names} {listed(places)}" for names, places in unbeaten.items())
    rest = sum(map(len, unbeaten.values())) < len(where)
    end = "; elsewhere it has less than all three." if rest else "."
    return f"{opening} does not have less regret, {interval}, than {words}{end}"


def _order(study: Study, place: str, form: of.Form) -> Claim:
    order = [*(form(each) for each in (c.POLINUCB, c.BEFORE, c.X_ONLY)), c.RANDOM]
    text = f"The paper's order in {place} with {form}: {' < '.join(map(str, order))}"
    return _less(study, place, pairwise(order), f"{text}, each 95% interval excluding 0.")


def _oracle(study: Study, place: str, form: of.Form) -> Claim:
    others = [c.RANDOM, *(form(each) for each in (*of.RIVALS, c.POLINUCB))]
    text = f"The paper: the oracle is best. In {place} with {form} its regret is below all others'."
    return _less(study, place, [(form(c.ORACLE), other) for other in others], text)


def _less(study: Study, place: str, pairs: Iterable[tuple[c.Contender, c.Contender]], text: str) -> Claim:
    """That the first of each pair has less regret, the interval excluding 0."""
    found = {pair: of.difference(study, place, *pair) for pair in pairs}
    failures = [f"{one} minus {other} is {d}" for (one, other), d in found.items() if not d.below]
    return with_failures(text, failures)


def _against(study: Study, rival: c.Contender, form: of.Form) -> Claim:
    ours, other = form(c.POLINUCB), form(rival)
    words = []
    for place in form.places:
        found = of.difference(study, place, ours, other)
        share = found.value / study.final(place, other).mean()
        less = f", less in {_count(study, place, [ours, other])}" if place in DRAWS_OF else ""
        words.append(f"{place}: {verdict(found, 'wins', 'loses')} ({found}, {share:+.0%}{less})")
    return Claim(f"{ours} against {other}. {'; '.join(words)}.", None)


def _counted(study: Study, form: of.Form) -> Claim:
    words = []
    for place in form.draws:
        order = [form(each) for each in (c.ORACLE, c.POLINUCB, c.BEFORE, c.X_ONLY)]
        order += [c.RANDOM] * study.has(place, c.RANDOM)
        steps = (f"{one} < {other} in {_count(study, place, [one, other])}" for one, other in pairwise(order))
        words.append(f"{place}: the paper's whole order in {_count(study, place, order)}; {', '.join(steps)}")
    return Claim(f"Draw by draw, over both halves, with {form}. {'. '.join(words)}.", None)


def _count(study: Study, place: str, order: Sequence[c.Contender]) -> str:
    held = of.in_order(study, place, order)
    return f"{held.sum()} of {len(held)} draws"


def _predictable(study: Study) -> Claim:
    words = []
    for place in (FIVE, *DRAWS_OF):
        found = {kind: of.interval(place, of.predicted(study, kind, place)) for kind in policies.MAPS}
        words.append(f"{place}: {', '.join(f'{kind} {each}' for kind, each in found.items())}")
    return Claim(f"How well x predicts z, as R² on held-out users. {'; '.join(words)}.", None)


def _with_predictability(study: Study) -> Claim:
    """The same draws in both axes: rewards are equal, what x contains and how it predicts z are not."""
    own, turned = (of.gains(study, place, of.LEARNT) for place in (DRAWN, AXES))
    found = of.interval(DRAWN, own - turned)
    text = (
        f"Expected: where x predicts z, follow-ups help more. With {of.LEARNT} poLinUCB's gain over "
        f"LinUCB(x) is {of.interval(DRAWN, own)} in {DRAWN} and {of.interval(AXES, turned)} in {AXES}, where "
        "x does not predict z linearly (users, movies and rewards are the same, but x also contains more or "
        f"less of a user). The difference is {found}."
    )
    return Claim(text, found.above)


def _over_draws(study: Study, form: of.Form) -> Claim:
    words = []
    for place in form.draws:
        gained = of.by_draw(of.gains(study, place, form))
        r_squared = {kind: of.by_draw(of.predicted(study, kind, place)) for kind in policies.MAPS}
        found = (f"{kind} {of.rank_correlation(each, gained)}" for kind, each in r_squared.items())
        words.append(f"{place}: {', '.join(found)}")
    text = f"Rank correlation over draws, of these users, of the gain over LinUCB(x) with R², {form}. "
    return Claim(f"{text}{'; '.join(words)}.", None)


def _as_they_are(study: Study) -> Claim:
    """Rewards of about 3, radii of 0.3: the first arm served looks best for ever."""
    words = []
    for form in of.FORMS:
        learners = [form(each) for each in policies.RIDGE_1 if each != c.RANDOM]
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
