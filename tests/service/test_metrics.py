"""What Prometheus reads."""

from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from tests.service.playing import X, Z, experiment
from tests.service.wires import Wire, serving

from postserve.service.log.stores.memory import MemoryStore


def read(wire: Wire) -> dict[tuple[str, ...], float]:
    """Each sample, by its name and the values of its labels."""
    got = wire.ask("GET", "/metrics")
    assert got.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = text_string_to_metric_families(got.body.decode())
    return {
        (sample.name, *(sample.labels[key] for key in sorted(sample.labels))): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_count_what_happened() -> None:
    with serving(experiment(), MemoryStore()) as (port, engine):
        wire, arms = Wire(port), []
        for i in range(6):
            body: Any = {"id": f"d{i}", "context": X}
            arms += [wire.ask("POST", "/v1/decide", body).json["arm"] for _ in range(2)][:1]
            if i % 2:
                wire.ask("POST", f"/v1/decisions/d{i}/context", {"z": Z})
                wire.ask("POST", f"/v1/decisions/d{i}/reward", {"reward": i})
        wire.ask("POST", "/v1/decide", {"id": "d0", "context": {**X, "age": 2}})
        wire.ask("GET", "/v1/nothing")
        wire.ask("POST", "/v1/models")
        assert engine.learner.wait_for(engine.store.last(), 300)
        found = read(wire)
        wire.close()
    assert found["postserve_requests_total", "200", "POST /v1/decide"] == 12
    assert found["postserve_requests_total", "409", "POST /v1/decide"] == 1
    assert found["postserve_requests_total", "404", "none"] == 1
    assert found["postserve_request_seconds_count", "POST /v1/decide"] == 13
    assert found["postserve_request_seconds_sum", "POST /v1/decide"] > 0
    for arm in set(arms):
        assert found["postserve_decisions_total", arm] == arms.count(arm)
    assert (found["postserve_reward_count",], found["postserve_reward_sum",]) == (3, 9)
    assert found["postserve_commit_events_count",] == found["postserve_commit_events_sum",] == 13
    assert found["postserve_commit_events_bucket", "1.0"] == 13
    assert found["postserve_log_events",] == found["postserve_model_version",] == 13
    assert found["postserve_learner_lag_events",] == found["postserve_skipped_events",] == 0
    assert found["postserve_queue_length",] == 0
    assert found["postserve_open_rounds",] == 3
    assert (found["postserve_snapshots",], found["postserve_arms",]) == (1, 2)
    assert found["process_resident_memory_bytes",] > 1e7
