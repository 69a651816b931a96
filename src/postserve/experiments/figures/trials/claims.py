"""Who beats whom on the trials, with intervals over rows and orderings."""

from collections.abc import Sequence

from postserve.experiments.contenders import (
    AFTER,
    BEFORE,
    MAP_PER_ARM,
    ONE_MAP,
    ORACLE,
    POLINUCB,
    RANDOM,
    ROBUST,
    X_ONLY,
)
from postserve.experiments.figure import Claim
from postserve.experiments.figures.trials.policies import always
from postserve.experiments.figures.trials.settings import REJECTION, WEIGHTED, place
from postserve.experiments.figures.trials.worlds import CUTS, FULL, LOGGED
from postserve.experiments.halves import halves_interval
from postserve.experiments.study import Study
from postserve.experiments.tables import interval_text
from postserve.types import FloatArray

RIVALS = (X_ONLY, BEFORE, AFTER)
REPLAYED = tuple(place(trial, method) for trial in LOGGED for method in (REJECTION, WEIGHTED))
PLACES = (*REPLAYED, *FULL)


def interval(values: FloatArray) -> tuple[float, float, float]:
    """The mean of one value a seed, and its 95% interval."""
    return halves_interval(values, CUTS)


def gain(study: Study, where: str, one: str, other: str) -> tuple[float, float, float]:
    """One's value less the other's, in the same halves and orders: the mean and its 95% interval."""
    return interval(study.differences(where, one, other))


def headline(study: Study) -> str:
    """The first sentence of the report: where follow-ups did not help, as far as intervals tell."""
    words = []
    for rival in RIVALS:
        gains = {where: gain(study, where, POLINUCB, rival) for where in PLACES}
        more = [where for where, (_, low, _) in gains.items() if low > 0.0]
        less = [where for where, (_, _, high) in gains.items() if high < 0.0]
        if len(more) < len(PLACES):
            seen = (("greater", more), ("smaller", less))
            told = [f"{word} in {_listed(names)}" for word, names in seen if names]
            but = f" ({'; '.join(told)})" if told else ""
            words.append(f"{rival} in {len(PLACES) - len(more)}{but}")
    opening = f"On the trials and Jester, three data sets in {len(PLACES)} replays, poLinUCB's value is"
    if not words:
        return f"{opening} greater than that of {_listed(RIVALS)} in all, by 95% intervals that exclude 0."
    return f"{opening} not greater, by a 95% interval that excludes 0, than that of {_listed(words)} of them."


def claims(study: Study) -> list[Claim]:
    """The paper's order, that anything is learnt at all, and what else was seen."""
    return [
        *(_beats(study, POLINUCB, rival, PLACES) for rival in RIVALS),
        _beats(study, X_ONLY, RANDOM, PLACES),
        _beats(study, POLINUCB, RANDOM, PLACES),
        _compared(study, "A map that does not tell arms apart, though z does", ONE_MAP, POLINUCB, REPLAYED),
        _compared(
            study,
            "A map of its own for each arm, LinUCB(x) but for the prior",
            MAP_PER_ARM,
            X_ONLY,
            REPLAYED,
        ),
        _compared(study, "Both z and its prediction", ROBUST, POLINUCB, PLACES),
        _compared(study, "Shown z before it serves", ORACLE, POLINUCB, PLACES),
        *(_best_arm(study, trial) for trial in LOGGED),
    ]


def _beats(study: Study, one: str, other: str, places: Sequence[str]) -> Claim:
    """That one has the greater value everywhere, each interval excluding 0."""
    seen = {where: gain(study, where, one, other) for where in places}
    failures = [where for where, (_, low, _) in seen.items() if not low > 0.0]
    told = "; ".join(f"{where}: {interval_text(*found)}" for where, found in seen.items())
    return Claim(
        f"{one} has a greater value than {other}, the paired difference's 95% interval excluding 0. {told}."
        + (f" Not so on {len(failures)} of {len(places)}." if failures else ""),
        not failures,
    )


def _compared(study: Study, what: str, one: str, other: str, places: Sequence[str]) -> Claim:
    words = []
    for where in places:
        mean, low, high = gain(study, where, one, other)
        verdict = "better" if low > 0.0 else "worse" if high < 0.0 else "cannot be told apart"
        words.append(f"{where}: {verdict} ({interval_text(mean, low, high)})")
    return Claim(f"{what}: {one} against {other}. {'; '.join(words)}.", None)


def _best_arm(study: Study, trial: str) -> Claim:
    """The best single arm, chosen in hindsight, against the policies that choose by x."""
    where = place(trial, WEIGHTED)
    arms = [name for name in study.policies if name.startswith(always("")) and study.has(where, name)]
    best = max(arms, key=lambda name: float(study.final(where, name).mean()))
    told = "; ".join(f"{one}: {interval_text(*gain(study, where, one, best))}" for one in (X_ONLY, POLINUCB))
    return Claim(f"{where}: the best single arm in hindsight is {best}. Less its value, {told}.", None)


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
