"""What the paper claims of MovieLens, what was seen, and whether the gain goes with what can be predicted."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from postserve.experiments.contenders import BEFORE, ORACLE, POLINUCB, RANDOM, X_ONLY
from postserve.experiments.figure import Claim
from postserve.experiments.figures.figure2.comparisons import (
    FORMS,
    PLACES,
    RIVALS,
    by_draw,
    difference,
    gains,
    in_order,
    interval,
    named,
    predicted,
    rank_correlation,
)
from postserve.experiments.figures.figure2.policies import ridge_one
from postserve.experiments.figures.figure2.settings import AXES, DRAWN, DRAWS_OF, LITERAL, MAPS, PAPERS
from postserve.experiments.study import Study

POLINUCB_IN = {form: named(POLINUCB, form) for form in FORMS}


def claims(study: Study) -> list[Claim]:
    """The paper's order and its oracle, each comparison, the draws one by one, and predictability."""
    forms = [(place, form) for place in (PAPERS, DRAWN) for form in FORMS]
    return [
        *(_order(study, place, form) for place, form in forms),
        *(_oracle(study, place, form) for place, form in forms),
        *(_against(study, rival, form) for form in FORMS for rival in RIVALS),
        *(_counted(study, form) for form in FORMS),
        _predictable(study),
        _with_predictability(study),
        *(_over_draws(study, form) for form in FORMS),
        _literal(study),
    ]


def headline(study: Study) -> str:
    """Which of LinUCB(x) and both LinUCB(phi_hat) poLinUCB does not beat, and where: one sentence."""
    where = [(form, place) for form in FORMS for place in PLACES[form]]
    unbeaten: dict[str, list[str]] = {}
    for form, place in where:
        found = {r: difference(study, place, POLINUCB_IN[form], named(r, form)) for r in RIVALS}
        names = [f"{r} (which has less)" if d.above else r for r, d in found.items() if not d.below]
        if names:
            unbeaten.setdefault(_listed(names), []).append(f"in {place} with {form}")
    if not unbeaten:
        places = _listed([f"in {place} with {form}" for form, place in where])
        return (
            f"On MovieLens poLinUCB has less regret than {_listed(RIVALS)}, {places}: every 95% interval of "
            "the difference excludes 0."
        )
    rest = sum(map(len, unbeaten.values())) < len(where)
    return (
        "On MovieLens poLinUCB does not have less regret, by a 95% interval that excludes 0, than "
        + "; than ".join(f"{names} {_listed(places)}" for names, places in unbeaten.items())
        + ("; elsewhere it has less than all three." if rest else ".")
    )


def _order(study: Study, place: str, form: str) -> Claim:
    policies = [*(named(policy, form) for policy in (POLINUCB, BEFORE, X_ONLY)), RANDOM]
    found = {pair: difference(study, place, *pair) for pair in pairwise(policies)}
    failures = [f"{one} minus {other} is {d}" for (one, other), d in found.items() if not d.below]
    text = f"The paper's order in {place} with {form}: {' < '.join(policies)}, each 95% interval excluding 0."
    return Claim(_told(text, failures), not failures)


def _oracle(study: Study, place: str, form: str) -> Claim:
    oracle = named(ORACLE, form)
    others = [RANDOM, *(named(policy, form) for policy in (*RIVALS, POLINUCB))]
    found = {other: difference(study, place, oracle, other) for other in others}
    failures = [f"{oracle} minus {other} is {d}" for other, d in found.items() if not d.below]
    text = f"The paper: the oracle is best. In {place} with {form} its regret is below all others'."
    return Claim(_told(text, failures), not failures)


def _against(study: Study, rival: str, form: str) -> Claim:
    ours, other = POLINUCB_IN[form], named(rival, form)
    words = []
    for place in PLACES[form]:
        found = difference(study, place, ours, other)
        verdict = "wins" if found.below else "loses" if found.above else "cannot be told apart"
        share = found.mean / study.final(place, other).mean()
        less = f", less in {_count(study, place, [ours, other])}" if place in DRAWS_OF else ""
        words.append(f"{place}: {verdict} ({found}, {share:+.0%}{less})")
    return Claim(f"{ours} against {other}. {'; '.join(words)}.", None)


def _counted(study: Study, form: str) -> Claim:
    words = []
    for place in PLACES[form][1:]:
        policies = [named(policy, form) for policy in (ORACLE, POLINUCB, BEFORE, X_ONLY)]
        policies += [RANDOM] * study.has(place, RANDOM)
        steps = (
            f"{one} < {other} in {_count(study, place, [one, other])}" for one, other in pairwise(policies)
        )
        words.append(
            f"{place}: the paper's whole order in {_count(study, place, policies)}; {', '.join(steps)}"
        )
    return Claim(f"Draw by draw, over both halves, with {form}. {'. '.join(words)}.", None)


def _predictable(study: Study) -> Claim:
    words = [
        f"{place}: {', '.join(f'{kind} {interval(place, predicted(study, kind, place))}' for kind in MAPS)}"
        for place in (PAPERS, *DRAWS_OF)
    ]
    return Claim(f"How much of z can be told from x, as R² on users held out. {'; '.join(words)}.", None)


def _with_predictability(study: Study) -> Claim:
    """The same draws in both axes: rewards are equal, what x holds and what it says of z are not."""
    form = FORMS[1]
    own, turned = (gains(study, place, form) for place in (DRAWN, AXES))
    found = interval(DRAWN, own - turned)
    text = (
        f"Expected: where z can be told from x, follow-ups help more. With {form} poLinUCB's gain over "
        "LinUCB(x) is "
        f"{interval(DRAWN, own)} in {DRAWN} and {interval(AXES, turned)} in {AXES}, where z cannot be told "
        "by a line; users, movies and rewards are the same, but x holds more or less of a user, too. The "
        f"difference is {found}."
    )
    return Claim(text, found.above)


def _over_draws(study: Study, form: str) -> Claim:
    words = []
    for place in PLACES[form][1:]:
        gained = by_draw(gains(study, place, form))
        found = (
            f"{kind} {rank_correlation(by_draw(predicted(study, kind, place)), gained)}" for kind in MAPS
        )
        words.append(f"{place}: {', '.join(found)}")
    text = (
        f"Rank correlation over draws, of these users, of the gain over LinUCB(x) with R², {form}. "
        f"{'; '.join(words)}."
    )
    return Claim(text, None)


def _literal(study: Study) -> Claim:
    """Rewards of about 3, radii of 0.3: what was served first looks best for ever."""
    words = []
    for form in FORMS:
        policies = [named(policy, form) for policy in ridge_one() if policy != RANDOM]
        finals = np.array([study.final(LITERAL, policy) for policy in policies])
        equal = int((np.ptp(finals, axis=0) == 0.0).sum())
        ours, random = finals[policies.index(POLINUCB_IN[form])].mean(), study.final(LITERAL, RANDOM).mean()
        words.append(
            f"with {form} all policies have the very same regret in {equal} of {finals.shape[1]} seeds, "
            f"poLinUCB {ours:,.0f}, Random {random:,.0f}"
        )
    return Claim(
        "With dot products as they are for rewards, far above 0 where arms that were never served start, the "
        f"first arm served is hardly ever left: {'; '.join(words)}. Hence the mean rating is taken off.",
        None,
    )


def _count(study: Study, place: str, policies: Sequence[str]) -> str:
    held = in_order(study, place, policies)
    return f"{held.sum()} of {len(held)} draws"


def _told(text: str, failures: Sequence[str]) -> str:
    return text + (f" Not so: {'; '.join(failures)}." if failures else "")


def _listed(names: Sequence[str], comma: str = ", ") -> str:
    return " and ".join([comma.join(names[:-1]), names[-1]] if len(names) > 1 else names)
