"""How Prometheus reads what the service counts."""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Metric, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from postserve.policies import open_rounds
from postserve.service.engine import Engine


class Metrics(Collector):
    """All metrics of a service, read when somebody asks."""

    def __init__(self, engine: Engine) -> None:
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
