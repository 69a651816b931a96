"""Sentences that compare policies, with their errors, in every environment of a study."""

from collections.abc import Sequence
from itertools import pairwise

from postserve.experiments.figure import Claim
from postserve.experiments.statistics import Interval, mean_and_error
from postserve.experiments.study import Line, Study


def unbeaten(study: Study, best: Line, others: Sequence[Line], horizon: int, places: Sequence[str]) -> Claim:
    """That none of the others has less regret, by more than two standard errors."""
    failures = []
    for place in places:
        for other in others:
            mean, error = study.difference(place, other, best, horizon)
            if mean < -2.0 * error:
                failures.append(f"{place}: {other} has less ({_gap(mean, error)})")
    return _judged(
        f"T = {horizon:,}: none has less regret than {best} by two standard errors", places, failures
    )


def ordered(study: Study, policies: Sequence[Line], horizon: int, places: Sequence[str]) -> Claim:
    """That each has less regret than the next, the paired difference being beyond two standard errors."""
    failures = []
    for place in places:
        for one, other in pairwise(policies):
            mean, error = study.difference(place, other, one, horizon)
            if not mean > 2.0 * error:
                failures.append(f"{place}: {one} minus {other} is {_gap(-mean, error)}")
    order = " < ".join(map(str, policies))
    return _judged(
        f"T = {horizon:,}: {order}, each paired difference beyond two standard errors", places, failures
    )


def within(study: Study, one: Line, other: Line, limit: float, horizon: int, places: Sequence[str]) -> Claim:
    """That one's regret, as a ratio to the other's, seed by seed, is at most `limit` on average."""
    ratios = {
        place: mean_and_error(study.final(place, one, horizon) / study.final(place, other, horizon))
        for place in places
    }
    seen = ", ".join(f"{ratio:.2f} ± {error:.2f} on {place}" for place, (ratio, error) in ratios.items())
    text = f"T = {horizon:,}: {one} has at most {limit:.2f} of the regret of {other}; it has {seen}."
    return Claim(text, all(ratio <= limit for ratio, _ in ratios.values()))


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


def _judged(text: str, places: Sequence[str], failures: Sequence[str]) -> Claim:
    return with_failures(f"{text}; on {', '.join(places)}.", failures)


def _gap(mean: float, error: float) -> str:
    return f"{mean:+,.0f} ± {error:,.0f}"
