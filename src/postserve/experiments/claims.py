"""Sentences that compare policies, with their errors, in every environment of a study.

Where a sentence says that something is not the case, it is held only if the seeds decide it: fewer of them
have wider intervals, which can leave it undecided but make it no easier to hold.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from postserve.experiments.figure import Claim
from postserve.experiments.statistics import Interval, mean_interval
from postserve.experiments.study import Line, Study

UNDECIDED = "Not decided by so many seeds"
TIE = 0.05
"""The share of a regret that counts as none: no number of seeds shows that two regrets are equal."""


def unbeaten(study: Study, best: Line, others: Sequence[Line], horizon: int, places: Sequence[str]) -> Claim:
    """That none of the others has less regret, by more than the share `TIE` of it.

    It fails if the interval of a difference lies beyond that, and is undecided if one contains it.
    """
    failures, open_ones = [], []
    for place in places:
        limit = -TIE * float(study.final(place, best, horizon).mean())
        for other in others:
            found = mean_interval(study.differences(place, other, best, horizon))
            if found.high < limit:
                failures.append(f"{place}: {other} has less ({found})")
            elif found.low < limit:
                open_ones.append(f"{place}: {other} ({found})")
    text = (
        f"T = {horizon:,}: none has less than {1.0 - TIE:.2f} of the regret of {best}, by 95% intervals of "
    )
    return judged(_on(f"{text}paired differences", places), failures, open_ones)


def ordered(study: Study, policies: Sequence[Line], horizon: int, places: Sequence[str]) -> Claim:
    """That each has less regret than the next, the paired difference being beyond two standard errors."""
    failures = []
    for place in places:
        for one, other in pairwise(policies):
            mean, error = study.difference(place, other, one, horizon)
            if not mean > 2.0 * error:
                failures.append(f"{place}: {one} minus {other} is {_gap(-mean, error)}")
    order = " < ".join(map(str, policies))
    text = f"T = {horizon:,}: {order}, each paired difference beyond two standard errors"
    return with_failures(_on(text, places), failures)


def within(study: Study, one: Line, other: Line, limit: float, horizon: int, places: Sequence[str]) -> Claim:
    """That one's regret, as a ratio to the other's, seed by seed, is at most `limit` on average.

    Held if the 95% intervals are, failed if one is above the limit.
    """
    ratios = {
        place: mean_interval(study.final(place, one, horizon) / study.final(place, other, horizon))
        for place in places
    }
    seen = ", ".join(f"{ratio.rounded(2)} on {place}" for place, ratio in ratios.items())
    text = f"T = {horizon:,}: {one} has at most {limit:.2f} of the regret of {other}; it has {seen}."
    held = all_of([decided(ratio, limit) for ratio in ratios.values()])
    return Claim(text if held is not None else f"{text} {UNDECIDED}.", held)


def at_most(text: str, found: Interval, limit: float) -> Claim:
    """A sentence that holds if the interval is not above the limit, and fails if it lies above it."""
    held = decided(found, limit)
    return Claim(f"{text}." if held is not None else f"{text}. {UNDECIDED}.", held)


def decided(found: Interval, limit: float) -> bool | None:
    """Whether a value is at most the limit; None if its interval contains the limit."""
    if found.high <= limit:
        return True
    return False if found.low > limit else None


def compared(study: Study, one: Line, other: Line, horizon: int, places: Sequence[str]) -> Claim:
    """One's regret minus the other's; nothing is claimed."""
    words = []
    for place in places:
        mean, error = study.difference(place, one, other, horizon)
        share = mean / study.final(place, other, horizon).mean()
        tie = abs(mean) <= 2.0 * error
        verdict = "ties" if tie else "wins" if mean < 0 else "loses"
        words.append(f"{place}: {verdict} ({_gap(mean, error)}, {share:+.0%})")
    return Claim(f"T = {horizon:,}: {one} against {other}. {'; '.join(words)}.", None)


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def verdict(difference: Interval, below: str, above: str) -> str:
    """The word for a difference whose interval excludes 0."""
    if difference.below:
        return below
    return above if difference.above else "cannot be distinguished"


def with_failures(text: str, failures: Sequence[str]) -> Claim:
    """A sentence that holds unless something failed, which it then states."""
    return Claim(text + (f" Not so: {'; '.join(failures)}." if failures else ""), not failures)


def judged(text: str, failures: Sequence[str], open_ones: Sequence[str]) -> Claim:
    """A sentence that fails if something did, and otherwise is not decided if something was left open."""
    claim = with_failures(text, failures)
    if failures or not open_ones:
        return claim
    return Claim(f"{text} {UNDECIDED}: {'; '.join(open_ones)}.", None)


def all_of(verdicts: Collection[bool | None]) -> bool | None:
    """Of several sentences together: one that fails decides, else one that is open leaves all open."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


def summed_up(text: str, verdicts: Mapping[str, bool | None], places: str) -> str:
    """In how many places a sentence holds, where it does not, and where the seeds do not decide."""

    def where(held: bool | None) -> list[str]:
        return [place for place, found in verdicts.items() if found is held]

    claim = judged(f"{text}, in {len(where(True))} of {len(verdicts)} {places}.", where(False), [])
    return judged(claim.text, [], where(None)).text


def _on(text: str, places: Sequence[str]) -> str:
    return f"{text}; on {', '.join(places)}."


def _gap(mean: float, error: float) -> str:
    return f"{mean:+,.0f} ± {error:,.0f}"
