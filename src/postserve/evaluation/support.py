"""Whether a log can answer: which rounds a policy's choices have in common with those that were served."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from postserve.data.rounds import LoggedRounds
from postserve.errors import NoSupport
from postserve.types import FloatArray, IntArray

TOLERANCE = 1e-9
"""Less probability than this is rounding."""
MANY_ERRORS = 5.0
"""So many standard errors from 1, a mean ratio is no accident."""


class Support(NamedTuple):
    """What an evaluation rests on.

    `rounds` were counted, which are worth `effective_rounds` of the policy's own: (sum of c)² / sum of c², a
    round's reward counting c times. That is the ratio w of the policy's probability to the log's; with
    "dr_followups" w R / e; in a replay 1 in rows that are kept, or less in parts of a log of which more are;
    times the log's weights, if it has any. `missing` rewards of the log were missing. The ratios of all
    rounds, with a reward or without, have mean 1 if the propensities are right and the log has support.
    """

    rounds: int
    missing: int
    effective_rounds: float
    largest_ratio: float
    mean_ratio: float
    mean_ratio_error: float

    @property
    def doubt(self) -> str:
        """What is wrong with the ratios, if something is; else empty."""
        if abs(self.mean_ratio - 1.0) <= MANY_ERRORS * self.mean_ratio_error + TOLERANCE:
            return ""
        got = f"the mean ratio is {self.mean_ratio:.3g} ± {self.mean_ratio_error:.2g}"
        return f"{got}, wanted 1: propensities are wrong, arms could not be served, or rounds were left out"


def support_of(ratios: FloatArray, counts: FloatArray, missing: int, mean: tuple[float, float]) -> Support:
    """The report on these ratios; `counts` says how often each reward counts, `mean` is `mean_ratio`'s.

    >>> ratios = np.array([2.0, 0.0, 2.0, 0.0])
    >>> support_of(ratios, ratios, missing=0, mean=mean_ratio(ratios)).effective_rounds
    2.0
    """
    squares = float(counts @ counts)
    effective = float(counts.sum()) ** 2 / squares if squares > 0.0 else 0.0
    return Support(len(ratios), missing, effective, float(ratios.max()), *mean)


def mean_ratio(ratios: FloatArray, weights: FloatArray | None = None) -> tuple[float, float]:
    """The mean of ratios, each as often as its weight says, with its standard error.

    >>> mean_ratio(np.array([0.0, 2.0]))
    (1.0, 1.0)
    >>> mean_ratio(np.array([0.0, 2.0, 5.0]), weights=np.array([1.0, 1.0, 0.0]))[0]
    1.0
    """
    n = len(ratios)
    mean = float(np.average(ratios, weights=weights))
    off = ratios - mean
    if weights is not None:
        off *= weights / weights.mean()
    return mean, math.sqrt(float(off @ off) / (n * (n - 1.0))) if n > 1 else math.inf


class Lacking:
    """Collects the rounds in which a policy plays what the log could not serve, part by part of the log.

    These are of three kinds: the policy plays an arm of which the log has no reward at all; it may play
    another one than the log served with certainty; or one to which the log gave propensity 0 in that round,
    where the propensities of all arms are known. Arms that were not eligible are not played. With
    `by_ratios`, no reward of an arm is needed where the log says that it could have been served.
    """

    def __init__(self, n_arms: int, *, by_ratios: bool) -> None:
        self._rounds, self._by_ratios = 0, by_ratios
        self._seen = np.zeros(n_arms, dtype=bool)
        self._of_arm: list[list[IntArray]] = [[] for _ in range(n_arms)]
        self._certain: list[IntArray] = []
        self._impossible: list[IntArray] = []

    def add(self, log: LoggedRounds, chances: FloatArray) -> None:
        """The next part of the log, with the policy's probabilities, (n, n_arms)."""
        here = np.zeros(log.n_arms, dtype=bool)
        here[log.arms[~np.isnan(log.rewards)]] = True
        self._seen |= here
        for arm in np.flatnonzero(here):
            self._of_arm[arm].clear()
        plays = chances > TOLERANCE
        if self._by_ratios and log.all_propensities is not None:
            plays &= ~(log.all_propensities > 0.0)  # 0, or not known
        for arm in np.flatnonzero(~self._seen):
            self._of_arm[arm].append(self._rounds + np.flatnonzero(plays[:, arm]))
        mine = chances[np.arange(len(log)), log.arms]
        forced = (log.propensities >= 1.0) & (mine < 1.0 - TOLERANCE)
        self._certain.append(self._rounds + np.flatnonzero(forced))
        if log.all_propensities is not None:
            never = ((log.all_propensities <= 0.0) & (chances > TOLERANCE)).any(axis=1)
            self._impossible.append(self._rounds + np.flatnonzero(never))
        self._rounds += len(log)

    def refuse(self, name: str, arm_names: Sequence[str], *, certain: bool) -> None:
        """Raise `NoSupport` if there are any; those of the last two kinds only if `certain`."""
        unseen = [arm for arm, rows in enumerate(self._of_arm) if not self._seen[arm] and any(map(len, rows))]
        parts = [rows for arm in unseen for rows in self._of_arm[arm]]
        parts += [*self._certain, *self._impossible] if certain else []
        rows = np.unique(np.concatenate(parts)) if parts else np.empty(0, dtype=np.int64)
        if not len(rows):
            return
        shown = ", ".join(map(str, rows[:5])) + (", …" if len(rows) > 5 else "")
        why = [f"no reward of arm {arm_names[arm]!r} is in the log" for arm in unseen[:3]]
        if certain and any(map(len, self._certain)):
            why.append("the log served its arm with propensity 1, and the policy may play another")
        if certain and any(map(len, self._impossible)):
            why.append("the log gave an arm that the policy plays propensity 0")
        got = f"{name} plays what the log could not serve in {len(rows):,} of {self._rounds:,} rounds"
        wanted = "wanted a log or a policy with support in every round"
        raise NoSupport(f"{got} (rows {shown}; {'; '.join(why)}), {wanted}", rows.tolist())
