"""Policies that learn from a log while they are evaluated on it."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from postserve.data.rounds import LoggedRounds
from postserve.errors import InvalidInput
from postserve.evaluation.asking import asked
from postserve.evaluation.delays import Feedback, delays_of
from postserve.evaluation.settings import Settings
from postserve.types import FloatArray


class Learners:
    """Policies that go through a log, and learn from each row when its z and its reward have come."""

    def __init__(self, policies: Mapping[str, Any], settings: Settings) -> None:
        self._delays: dict[str, Any] = {"z_delay": settings.z_delay, "reward_delay": settings.reward_delay}
        self._rng = np.random.default_rng([settings.seed, 1])  # folds have the other stream
        self._feedback = {
            name: Feedback(policy, np.zeros(0), np.zeros(0)) for name, policy in policies.items()
        }
        self._start = self._stop = 0

    def meet(self, log: LoggedRounds) -> None:
        """The next part of the log, with the same delays for all policies."""
        self._start, self._stop = self._stop, self._stop + len(log)
        delays = [
            delays_of(name, self._column(delay), len(log), self._rng) for name, delay in self._delays.items()
        ]
        for feedback in self._feedback.values():
            feedback.go_on(*delays)

    def chances(self, name: str, policy: Any, log: LoggedRounds) -> FloatArray:
        """The policy's probability of each arm at each x, (n, n_arms), before it learns from that row."""
        feedback, chances = self._feedback[name], np.empty((len(log), log.n_arms))
        for row in range(len(log)):
            feedback.come(self._start + row)
            chances[row] = asked(name, policy, log, row)
            x, z, arm, reward = (
                log.x[row].copy(),
                log.z[row].copy(),
                int(log.arms[row]),
                float(log.rewards[row]),
            )
            feedback.serve(self._start + row, x, arm, z, reward, row=row)
        return chances

    def refuse_more(self) -> None:
        """Raise if a column of delays has more entries than the log had rounds."""
        for name, delay in self._delays.items():
            if _is_column(delay) and len(delay) > self._stop:
                raise InvalidInput(f"{name} has shape ({len(delay)},), wanted ({self._stop},), one per round")

    def _column(self, delay: Any) -> Any:
        """Of a column for the whole log, the entries of this part."""
        return delay[self._start : self._stop] if _is_column(delay) else delay


def _is_column(delay: Any) -> bool:
    return isinstance(delay, list | tuple | np.ndarray) and np.ndim(delay) == 1
