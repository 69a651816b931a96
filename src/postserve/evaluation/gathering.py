"""What is kept of a log that is read part by part: a few numbers per round, and no more."""

import math
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import assert_never

import numpy as np

from postserve.errors import InvalidInput
from postserve.evaluation import estimators
from postserve.evaluation.columns import Columns
from postserve.evaluation.intervals import NEED_RANGE, Range
from postserve.evaluation.settings import Settings
from postserve.types import FloatArray

AS_SERVED = "as served"
"""What the log itself earned, in a comparison."""


class Column:
    """Numbers, one per round, that come part by part; a number that never varies is kept once.

    >>> column = Column()
    >>> column.extend(np.ones(2))
    >>> column.extend(np.array([1.0, 5.0]))
    >>> column.values()
    array([1., 1., 1., 5.])
    """

    def __init__(self) -> None:
        self._rows, self._same = 0, math.nan
        self._varied = array("d")  # it grows in place: a list of parts would be copied to be joined

    def extend(self, values: FloatArray) -> None:
        """The numbers of the next part."""
        values = np.asarray(values, dtype=np.float64)  # whose bytes are kept
        if not self._rows and len(values):
            self._same = float(values[0])
        varies = bool(self._varied) or bool((values != self._same).any())
        if varies and not self._varied:
            self._varied.frombytes(np.full(self._rows, self._same).tobytes())
        if varies:
            self._varied.frombytes(values.tobytes())
        self._rows += len(values)

    def values(self) -> FloatArray:
        """All of them, read-only."""
        if self._varied:
            found = np.frombuffer(self._varied, dtype=np.float64)
            found.flags.writeable = False
            return found
        return np.broadcast_to(self._same, self._rows)


class Gathered:
    """Columns of the whole log that its policies' values are made of.

    Terms are made in each part, unless they need all of the log (`snips`, `rejection`, a threshold that is
    chosen): then what these take is kept.
    """

    def __init__(self, names: Sequence[str], settings: Settings) -> None:
        self._names, self._settings = names, settings
        self._columns: defaultdict[tuple[str, str], Column] = defaultdict(Column)
        self.rounds = self.missing = 0
        self.least_propensity = math.inf
        self.chances = Range(math.inf, 0.0)
        """Between which probabilities arms could be served."""

    def of(self, field: str, name: str = "") -> FloatArray:
        """A column of all policies, or of one."""
        return self._columns[field, name].values()

    def add(self, part: Columns) -> None:
        """The next part of the log."""
        self._refuse_outside(part)
        of_all = {"weights": part.weights, "left weights": part.left_weights}
        self._extend("", {**of_all, **_of_all(part, self._settings)})
        for name in self._names:
            served = name == AS_SERVED  # by a policy of which every ratio is 1
            ratios = np.ones(len(part.rewards)) if served else part.ratios[name]
            left_out = np.ones(len(part.left_weights)) if served else part.left_out[name]
            direct = part.predicted if served else part.direct.get(name, part.predicted)
            settings = self._settings._replace(threshold=math.inf) if served else self._settings
            of_one = {"ratios": ratios, "left out": left_out}
            self._extend(name, {**of_one, **_of_one(part, ratios, direct, settings)})
        low, high = part.chances
        self.chances = Range(min(self.chances.low, low), max(self.chances.high, high))
        self.least_propensity = min(self.least_propensity, float(part.propensities.min(initial=math.inf)))
        self.missing += part.missing
        self.rounds += len(part.rewards)

    def _extend(self, name: str, columns: Mapping[str, FloatArray]) -> None:
        for field, values in columns.items():
            self._columns[field, name].extend(values)

    def _refuse_outside(self, part: Columns) -> None:
        settings = self._settings
        if settings.interval not in NEED_RANGE or settings.reward_range is None:
            return
        low, high = settings.reward_range
        outside = np.flatnonzero((part.rewards < low) | (part.rewards > high))
        if len(outside):
            reward, row = part.rewards[outside[0]], self.rounds + outside[0]
            got = f"the reward {reward:g} of counted round {row} is outside reward_range"
            raise InvalidInput(f"{got}, wanted {low:g} to {high:g}")


def _of_all(part: Columns, settings: Settings) -> dict[str, FloatArray]:
    """What the estimator needs of every policy alike."""
    match settings.estimator:
        case "snips" | "replay":
            return {"rewards": part.rewards}
        case "switch_dr":
            return {"residuals": part.rewards - part.predicted} if settings.threshold is None else {}
        case "dr_followups":  # how often a reward counts, beside the ratio
            return {"arrived": np.where(np.isnan(part.rewards), 0.0, 1.0 / part.arrival)}
        case _:
            return {}


def _of_one(
    part: Columns, ratios: FloatArray, direct: FloatArray, settings: Settings
) -> dict[str, FloatArray]:
    """The terms of one policy, or what they are made of."""
    rewards, predicted, threshold = part.rewards, part.predicted, settings.threshold
    match settings.estimator:
        case "ips":
            return {"terms": estimators.ips(rewards, ratios)}
        case "dm":
            return {"terms": estimators.dm(direct)}
        case "dr":
            return {"terms": estimators.dr(rewards, ratios, direct, predicted)}
        case "dr_followups":
            models = (direct, predicted, part.completed, part.arrival)
            return {"terms": estimators.dr_followups(rewards, ratios, *models)}
        case "switch_dr":
            if threshold is None:
                return {"direct": direct}
            return {"terms": estimators.switch_dr(rewards, ratios, direct, predicted, threshold)}
        case "snips" | "replay":
            return {}
        case _:
            assert_never(settings.estimator)
