"""What the service counts, and how Prometheus reads it."""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from postserve.policies import open_rounds
from postserve.service.events import Decided, Event, Rewarded

if TYPE_CHECKING:
    from postserve.service.engine import Engine

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


class Metrics(Collector):
    """All metrics of a service, read when somebody asks."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._registry.register(self)

    def text(self) -> bytes:
        """In Prometheus' text format."""
        return generate_latest(self._registry)

    def describe(self) -> list[Metric]:
        """Nothing, so that nothing is read before somebody asks."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Each metric with its values."""
        tally, engine = self._engine.tally, self._engine
        requests = CounterMetricFamily("postserve_requests", "Answers.", labels=["verb", "status"])
        for verb, statuses in list(tally.statuses.items()):
            for status, count in list(statuses.items()):
                requests.add_metric([verb, str(status)], count)
        yield requests
        seconds = HistogramMetricFamily("postserve_request_seconds", "Time to an answer.", labels=["verb"])
        for verb, spread in list(tally.seconds.items()):
            buckets, total = spread.buckets()
            seconds.add_metric([verb], buckets, total)
        yield seconds
        commits = HistogramMetricFamily("postserve_commit_events", "Events in a commit.")
        buckets, total = tally.commits.buckets()
        commits.add_metric([], buckets, total)
        yield commits
        decisions = CounterMetricFamily("postserve_decisions", "Decisions of this process.", labels=["arm"])
        for arm, count in list(tally.decisions.items()):
            decisions.add_metric([arm], count)
        yield decisions
        yield SummaryMetricFamily(
            "postserve_reward", "Rewards to this process.", tally.rewards, tally.reward_sum
        )
        model, last = engine.model, engine.store.last()
        gauges = {
            "postserve_queue_length": ("Requests that wait for their commit.", engine.writer.waiting),
            "postserve_log_events": ("Events in the log.", last),
            "postserve_model_version": ("The last event that the deciding model has learnt.", model.seq),
            "postserve_learner_lag_events": ("Events not learnt yet.", max(0, last - model.seq)),
            "postserve_skipped_events": ("Events that the policy refused to learn.", model.skipped),
            "postserve_open_rounds": ("Decisions that wait.", len(open_rounds.named(model.policy))),
            "postserve_snapshots": ("Saved models.", len(engine.store.snapshots())),
            "postserve_arms": ("Arms that can be served.", len(model.eligible)),
        }
        for name, (text, value) in gauges.items():
            yield GaugeMetricFamily(name, text, value)
