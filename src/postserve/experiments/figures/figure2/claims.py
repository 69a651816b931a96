"""What the paper claims of MovieLens, what was seen, and whether the gain goes with predictability."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from postserve.experiments import contenders as c
from postserve.experiments.claims import listed, with_failures
from postserve.experiments.figure import Claim
from postserve.experiments.figures.figure2 import comparisons as of
from postserve.experiments.figures.figure2 import policies
from postserve.experiments.figures.figure2.worlds import AS_THEY_ARE, AXES, DRAWN, DRAWS_OF, FIVE
from postserve.experiments.study import Study


def claims(study: Study) -> list[Claim]:
    """The paper's order and its oracle, each comparison, the draws one by one, and predictability."""
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
    """Which of LinUCB(x) and both LinUCB(phi_hat) poLinUCB does not beat, and where: one sentence."""
    where = [(form, place) for form in of.FORMS for place in form.places]
    unbeaten: dict[str, list[str]] = {}
    for form, place in where:
        found = {r: of.difference(study, place, form(c.POLINUCB), form(r)) for r in of.RIVALS}
        names = [f"{r} (which has less)" if d.above else str(r) for r, d in found.items() if not d.below]
        if names:
            unbeaten.setdefault(listed(names), []).append(f"in {place} with {form}")
    if not unbeaten:
        places = listed([f"in {place} with {form}" for form, place in where])
        return (
            f"On MovieLens poLinUCB has less regret than {listed([str(rival) for rival in of.RIVALS])}, "
            f"{places}: every 95% interval of the difference excludes 0."
        )
    rest = sum(map(len, unbeaten.values())) < len(where)
    return (
        "On MovieLens poLinUCB does not have less regret, by a 95% interval that excludes 0, than "
        + "; than ".join(f"{names} {listed(places)}" for names, places in unbeaten.items())
        + ("; elsewhere it has less than all three." if rest else ".")
    )


def _order(study: Study, place: str, form: of.Form) -> Claim:
    order = [*(form(each) for each in (c.POLINUCB, c.BEFORE, c.X_ONLY)), c.RANDOM]
    found = {pair: of.difference(study, place, *pair) for pair in pairwise(order)}
    failures = [f"{one} minus {other} is {d}" for (one, other), d in found.items() if not d.below]
    text = f"The paper's order in {place} with {form}: {' < '.join(map(str, order))}"
    return with_failures(f"{text}, each 95% interval excluding 0.", failures)


def _oracle(study: Study, place: str, form: of.Form) -> Claim:
    oracle, others = form(c.ORACLE), [c.RANDOM, *(form(each) for each in (*of.RIVALS, c.POLINUCB))]
    found = {other: of.difference(study, place, oracle, other) for other in others}
    failures = [f"{oracle} minus {other} is {d}" for other, d in found.items() if not d.below]
    text = f"The paper: the oracle is best. In {place} with {form} its regret is below all others'."
    return with_failures(text, failures)


def _against(study: Study, rival: c.Contender, form: of.Form) -> Claim:
    ours, other = form(c.POLINUCB), form(rival)
    words = []
    for place in form.places:
        found = of.difference(study, place, ours, other)
        verdict = "wins" if found.below else "loses" if found.above else "cannot be distinguished"
        share = found.mean / study.final(place, other).mean()
        less = f", less in {_count(study, place, [ours, other])}" if place in DRAWS_OF else ""
        words.append(f"{place}: {verdict} ({found}, {share:+.0%}{less})")
    return Claim(f"{ours} against {other}. {'; '.join(words)}.", None)


def _counted(study: Study, form: of.Form) -> Claim:
    words = []
    for place in form.places[1:]:
        order = [form(each) for each in (c.ORACLE, c.POLINUCB, c.BEFORE, c.X_ONLY)]
        order += [c.RANDOM] * study.has(place, c.RANDOM)
        steps = (f"{one} < {other} in {_count(study, place, [one, other])}" for one, other in pairwise(order))
        words.append(f"{place}: the paper's whole order in {_count(study, place, order)}; {', '.join(steps)}")
    return Claim(f"Draw by draw, over both halves, with {form}. {'. '.join(words)}.", None)


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
        "x does not predict z linearly; users, movies and rewards are the same, but x contains more or less "
        f"of a user, too. The difference is {found}."
    )
    return Claim(text, found.above)


def _over_draws(study: Study, form: of.Form) -> Claim:
    words = []
    for place in form.places[1:]:
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
    return Claim(
        "With dot products as they are for rewards, far above the 0 at which arms that were never served "
        f"start, the first arm served is hardly ever left: {'; '.join(words)}. Hence the mean rating is "
        "subtracted.",
        None,
    )


def _count(study: Study, place: str, order: Sequence[c.Contender]) -> str:
    held = of.in_order(study, place, order)
    return f"{held.sum()} of {len(held)} draws"
