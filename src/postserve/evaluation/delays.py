"""Feedback on its way: when z and the reward of each round come, and a queue that hands them out."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from postserve.errors import InvalidInput
from postserve.types import FloatArray
from postserve.validation import errors_as_invalid_input, refuse_masked


class Distribution(Protocol):
    """A frozen distribution, such as `scipy.stats.expon(scale=20)`."""

    def rvs(self, *, size: Any, random_state: Any) -> Any:
        """Draws of that shape from that generator."""


Delay: TypeAlias = float | npt.ArrayLike | Callable[[np.random.Generator, int], npt.ArrayLike] | Distribution
"""Rounds, the same for all; one entry per round; a function of a generator and how many; a distribution."""


def delays_of(name: str, delay: Delay, n: int, rng: np.random.Generator) -> FloatArray:
    """The delay of each of n rounds, in whole rounds: parts of a round are rounded up, inf is never.

    >>> delays_of("z_delay", lambda rng, n: [0.5] * n, 3, np.random.default_rng(0))
    array([1., 1., 1.])
    """
    wanted = "a number, one per round, a function of a generator and a number of rounds, or a distribution"
    drawn: Any = delay
    with errors_as_invalid_input(f"{name} fails on {n} rounds", wanted):
        if hasattr(delay, "rvs"):
            drawn = delay.rvs(size=n, random_state=rng)
        elif callable(delay):
            drawn = delay(rng, n)
    refuse_masked(name, drawn)
    with errors_as_invalid_input(f"{name} is {drawn!r:.60}", wanted):
        found = np.asarray(drawn)
    if found.dtype.kind not in "fiu":  # dates would become numbers
        raise InvalidInput(f"{name} is {drawn!r:.60}, of dtype {found.dtype}, wanted {wanted}")
    rounds = found.astype(np.float64)
    if rounds.shape != (n,) and (rounds.shape or drawn is not delay):
        raise InvalidInput(f"{name} has shape {rounds.shape}, wanted ({n},), one per round, or a number")
    if not (rounds >= 0.0).all():
        least = "NaN" if np.isnan(rounds).any() else f"{rounds.min():g}"
        raise InvalidInput(f"{name} has {least}, wanted rounds from 0 on, or inf where nothing ever comes")
    return np.ceil(np.broadcast_to(rounds, n))


class Feedback:
    """Teaches a policy what came, when it comes.

    Delays are in rounds, one per round. z comes by `observe`, and the reward later, by `credit` with what
    `observe` returned. A reward that is due before its z waits for it: both then come by `update`, as they do
    where they are due together. Feedback of a round with delay 0 comes before the next round, at once.
    """

    def __init__(self, policy: Any, z_delays: FloatArray, reward_delays: FloatArray) -> None:
        self._policy = policy
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self.go_on(z_delays, reward_delays)

    def go_on(self, z_delays: FloatArray, reward_delays: FloatArray) -> None:
        """Rows have these delays from now on: the next part of a log. What is on its way still comes."""
        if (z_delays < reward_delays).any():
            require(self._policy, "observe", "credit")
        self._z_delays, self._reward_delays = z_delays, reward_delays

    def come(self, now: int) -> None:
        """Hand out what is due by this round: by due round, then by the round that was served."""
        while self._queue and self._queue[0][0] <= now:
            heappop(self._queue)[2]()

    def serve(
        self, now: int, x: FloatArray, arm: int, z: FloatArray, reward: float, *, row: int | None = None
    ) -> None:
        """An arm was served in this round; `row` has its delays, if rounds are not counted by rows.

        A reward that is NaN never comes, nor does such a z: then `missing_z` of the policy decides.
        """
        policy, row = self._policy, now if row is None else row
        z_due = now + self._z_delays[row]
        reward_due = np.inf if np.isnan(reward) else now + self._reward_delays[row]

        without_z = len(z) > 0 and bool(np.isnan(z[0]))
        if without_z:
            z_due = reward_due

        def learn() -> None:
            if without_z:
                policy.update(x, arm, None, reward)
                return
            if reward_due <= z_due:
                policy.update(x, arm, z, reward)
                return
            z_hat = policy.observe(x, arm, z)
            self._at(reward_due, now, lambda: policy.credit(x, arm, z, reward, z_hat=z_hat))

        if z_due <= now:  # all that was due has come before
            learn()
        else:
            self._at(z_due, now, learn)

    def _at(self, due: float, served: int, learn: Callable[[], None]) -> None:
        if due < np.inf:
            heappush(self._queue, (due, served, learn))  # a round has one entry at a time: no ties


def require(policy: Any, *verbs: str) -> None:
    """Raise if the policy lacks a verb."""
    for verb in verbs:
        if not callable(getattr(policy, verb, None)):
            raise InvalidInput(f"the policy, a {type(policy).__name__}, has no {verb}, wanted one that does")
