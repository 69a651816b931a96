"""What an evaluation found: values with intervals, and paired differences."""

from typing import Any, NamedTuple

import numpy as np

from postserve.errors import InvalidInput
from postserve.evaluation import showing
from postserve.evaluation.intervals import NEED_RANGE, Range, interval, standard_error
from postserve.evaluation.missing import LEAST
from postserve.evaluation.settings import Settings
from postserve.evaluation.support import Support
from postserve.types import FloatArray


class Estimate(NamedTuple):
    """A value with its standard error and both ends of its interval."""

    value: float
    error: float
    low: float
    high: float


class Evaluation(NamedTuple):
    """What a policy would have earned per round: `value`, its standard `error`, and the interval's ends.

    `terms` has one entry per counted round, and their mean is `value`. `support` says how many rounds that
    is, and what they are worth.
    """

    value: float
    error: float
    low: float
    high: float
    support: Support
    terms: FloatArray
    name: str
    settings: Settings

    def __repr__(self) -> str:
        return showing.text([self], {}, "")

    def _repr_html_(self) -> str:
        return showing.html([self], {}, "")


class Comparison(NamedTuple):
    """Evaluations of several policies on the same rounds, by name, and of the log itself, "as served".

    `differences` has the paired difference of each to the one named `to`.
    """

    evaluations: dict[str, Evaluation]
    differences: dict[str, Estimate]
    to: str

    def difference(self, name: str, to: str) -> Estimate:
        """How much more one earned than another, round by round."""
        for each in (name, to):
            if each not in self.evaluations:
                raise InvalidInput(
                    f"there is no policy {each!r}, wanted one of {', '.join(self.evaluations)}"
                )
        one, other = self.evaluations[name], self.evaluations[to]
        return estimate(one.terms - other.terms, one.settings, _difference_range(one.settings, one.support))

    def __repr__(self) -> str:
        return showing.text(list(self.evaluations.values()), self.differences, self.to)

    def _repr_html_(self) -> str:
        return showing.html(list(self.evaluations.values()), self.differences, self.to)

    def forest(self, path: Any = None) -> Any:
        """A forest plot: every value, and every difference, with its interval; written to `path` if given."""
        return showing.forest(list(self.evaluations.values()), self.differences, self.to, path)


def term_range(settings: Settings, missing: int) -> Range | None:
    """Between which numbers the terms lie, by the range of rewards and the largest ratio."""
    if settings.interval not in NEED_RANGE or settings.reward_range is None:
        return None
    (low, high), largest = settings.reward_range, settings.max_ratio or 1.0
    if settings.estimator == "ips":
        return Range(min(0.0, low * largest), max(0.0, high * largest))
    # q(x, pi) lies in the range of rewards, and a completed reward within width / e of q(x, a).
    half = largest * (high - low) / (LEAST if missing and settings.counts_missing else 1.0)
    return Range(low - half, high + half)


def _difference_range(settings: Settings, support: Support) -> Range | None:
    """The same for differences, in which ratios differ by no more than the largest one."""
    within = term_range(settings, support.missing)
    if within is None or settings.reward_range is None:
        return None
    low, _ = settings.reward_range
    most = max(-within.low, within.high) if settings.estimator == "ips" else within.high - low
    return Range(-most, most)


def estimate(terms: FloatArray, settings: Settings, within: Range | None) -> Estimate:
    """The mean of terms with its error and interval."""
    rng = np.random.default_rng(settings.seed)
    low, high = interval(settings.interval, terms, settings.level, rng, within)
    return Estimate(float(terms.mean()), standard_error(terms), low, high)
