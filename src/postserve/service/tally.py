"""What the service counts."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from postserve.service.log.events import Decided, Event, Rewarded

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
NO_VERB = "none"
"""Stands for a verb where a request has a path or a method that nobody has."""


class Spread:
    """How many values there were up to each bound, and their sum."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds, self._counts, self._sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """One more."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def buckets(self) -> tuple[list[tuple[str, float]], float]:
        """As Prometheus wants it: counts up to each bound, and the sum."""
        total, found = 0, []
        for bound, count in zip([*map(str, map(float, self._bounds)), "+Inf"], self._counts, strict=True):
            total += count
            found.append((bound, float(total)))
        return found, self._sum


class Tally:
    """Plain counts since the process began; each is changed by one thread only, and needs no lock."""

    def __init__(self) -> None:
        # by the thread that answers
        self.statuses: defaultdict[str, Counter[int]] = defaultdict(Counter)
        self.seconds: defaultdict[str, Spread] = defaultdict(lambda: Spread(SECONDS))
        # by the thread that commits
        self.commits = Spread(SIZES)
        self.decisions: Counter[str] = Counter()
        self.rewards, self.reward_sum = 0, 0.0

    def commit(self, events: Iterable[Event]) -> None:
        """Events were committed together."""
        size = 0
        for event in events:
            size += 1
            if type(event) is Decided:
                self.decisions[event.arm] += 1
            elif type(event) is Rewarded:
                self.rewards += 1
                self.reward_sum += event.reward
        self.commits.add(size)
