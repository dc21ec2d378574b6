"""Every series of the scheduler under KAI's names: type, labels, buckets and what it counts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from kube.resources import NODES, PODGROUPS, PODS, PRIORITY_CLASSES, QUEUES, SHARDS
from scheduler.core.decisions import ActionName
from scheduler.load.usage import PrometheusUsage
from scheduler.metrics import QueueRow, SchedulerMetrics
from scheduler.settings.usage import read_usage_config
from tests.builders import cluster
from tests.scheduler.load.objects import group, meta, node, pod, queue
from tests.scheduler.loop.harness import FREE, Harness
from tests.scheduler.loop.harness import harness as open_harness

ONE_GPU = {"nvidia.com/gpu": "1"}
QUEUE_LABELS = {"queue_name", "queue_metadata_name", "queue_display_name"}
EVICTED = {"podgroup", "namespace", "uid", "nodepool", "action"}
SEARCHED = {"action", "generator", "result"}
CONTRACT: dict[str, tuple[str, set[str]]] = {
    "e2e_scheduling_latency_milliseconds": ("gauge", set()),
    "open_session_latency_milliseconds": ("gauge", set()),
    "close_session_latency_milliseconds": ("gauge", set()),
    "plugin_scheduling_latency_milliseconds": ("gauge", {"plugin", "OnSession"}),
    "action_scheduling_latency_milliseconds": ("gauge", {"action"}),
    "task_scheduling_latency_milliseconds": ("histogram", set()),
    "task_bind_latency_milliseconds": ("histogram", set()),
    "podgroups_scheduled_by_action": ("counter", {"action"}),
    "podgroups_acted_on_by_action": ("counter", {"action"}),
    "scenarios_simulation_by_action": ("counter", {"action"}),
    "scenarios_filtered_by_action": ("counter", {"action"}),
    "total_preemption_attempts": ("counter", set()),
    "kept_state_repairs": ("counter", {"part"}),
    "queue_fair_share_cpu_cores": ("gauge", QUEUE_LABELS),
    "queue_fair_share_memory_gb": ("gauge", QUEUE_LABELS),
    "queue_fair_share_gpu": ("gauge", QUEUE_LABELS),
    "queue_cpu_usage": ("gauge", QUEUE_LABELS),
    "queue_memory_usage": ("gauge", QUEUE_LABELS),
    "queue_gpu_usage": ("gauge", QUEUE_LABELS),
    "usage_query_latency_milliseconds": ("histogram", set()),
    "pod_group_evicted_pods_total": ("counter", EVICTED),
    "scenario_search_jobs_total": ("counter", {"action", "result", "reduced_budget"}),
    "scenario_search_action_budget_configured_seconds": ("gauge", {"action"}),
    "scenario_search_job_budget_configured_seconds": ("gauge", set()),
    "scenario_search_generator_budget_configured_seconds": ("gauge", {"generator"}),
    "scenario_search_action_budget_exhausted_total": ("counter", {"action"}),
    "scenario_search_duration_seconds": ("histogram", SEARCHED),
    "scenario_search_scenarios_total": ("counter", {"action", "generator", "state"}),
}


@pytest.fixture
def metrics(monkeypatch: pytest.MonkeyPatch) -> SchedulerMetrics:
    """Return fresh series in the place of the process's own."""
    fresh = SchedulerMetrics()
    for module in ("apply.commit", "apply.evictions", "loop.cycle", "loop.measure", "load.usage"):
        monkeypatch.setattr(f"scheduler.{module}.METRICS", fresh)
    return fresh


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as opened:
        yield opened


def value(metrics: SchedulerMetrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(f"kai_{name}", labels)


def of_queue(metrics: SchedulerMetrics, name: str, queue_name: str, display: str = "") -> object:
    labels = {"queue_metadata_name": queue_name, "queue_display_name": display}
    return value(metrics, name, queue_name=display or queue_name, **labels)


def crowded(harness: Harness) -> Harness:
    """Let `high` need what `low` holds, in one queue of two."""
    cells = {"cpu": FREE, "memory": FREE, "gpu": {"quota": 1, "limit": -1, "overQuotaWeight": 1}}
    harness.seed(QUEUES, queue("top", resources=dict.fromkeys(("cpu", "memory", "gpu"), FREE)))
    harness.seed(QUEUES, queue("q", parentQueue="top", displayName="The queue", resources=cells))
    harness.seed(NODES, node("n0", gpus=2))
    harness.seed(PRIORITY_CLASSES, {"metadata": meta("high"), "value": 90})
    harness.seed(PODGROUPS, group("low"), group("high", priorityClassName="high"), group("fits"))
    harness.seed(PODS, pod("low-0", group="low", node="n0", phase="Running", requests={**ONE_GPU, "cpu": "1500m"}))  # fmt: skip
    harness.seed(
        PODS, pod("high-0", group="high", requests={"nvidia.com/gpu": "2", "memory": "3G"})
    )
    return harness.seed(PODS, pod("fits-0", group="fits", requests={"cpu": "1"}))


def test_names_types_and_labels(harness: Harness, metrics: SchedulerMetrics) -> None:
    crowded(harness).cycle()
    metrics.search_exhausted.labels("preempt").inc(0)
    text = metrics.exposition().decode()
    types = dict(re.findall(r"^# TYPE kai_(\S+) (\S+)$", text, re.MULTILINE))
    assert types == {name: kind for name, (kind, _) in CONTRACT.items()}
    for name, (_, labels) in CONTRACT.items():
        samples = re.findall(
            rf"^kai_{name}(?:_bucket|_sum|_count)?(\{{.*\}})? ", text, re.MULTILINE
        )
        assert samples, name
        label_names = {key for sample in samples for key in re.findall(r'(\w+)="', sample)} - {"le"}
        assert label_names == labels, name


def test_another_prefix() -> None:
    text = SchedulerMetrics("mine").exposition().decode()
    assert (
        "# TYPE mine_total_preemption_attempts counter\nmine_total_preemption_attempts 0.0\n"
        in text
    )
    assert "kai_" not in text


def test_what_a_cycle_counts(harness: Harness, metrics: SchedulerMetrics) -> None:
    crowded(harness).cycle()
    assert value(metrics, "podgroups_scheduled_by_action", action="allocate") == 1
    assert value(metrics, "podgroups_acted_on_by_action", action="allocate") is None
    assert value(metrics, "podgroups_scheduled_by_action", action="preempt") == 1
    assert value(metrics, "podgroups_acted_on_by_action", action="preempt") == 1
    assert value(metrics, "total_preemption_attempts") == 1
    assert value(metrics, "podgroups_acted_on_by_action", action="stalegangeviction") is None
    assert value(metrics, "podgroups_scheduled_by_action", action="stalegangeviction") is None
    evicted = {"podgroup": "low", "namespace": "ns", "uid": "uid-low", "nodepool": "default"}
    assert value(metrics, "pod_group_evicted_pods_total", **evicted, action="preempt") == 1
    assert value(metrics, "task_bind_latency_milliseconds_count") == 1
    assert value(metrics, "task_scheduling_latency_milliseconds_count") == 1
    solved = {"action": "preempt", "result": "solved", "reduced_budget": "false"}
    assert value(metrics, "scenario_search_jobs_total", **solved) == 1
    for name in ("e2e", "open_session", "close_session"):
        suffix = "scheduling_latency" if name == "e2e" else "latency"
        assert (value(metrics, f"{name}_{suffix}_milliseconds") or 0) > 0
    for action in ("allocate", "consolidation", "reclaim", "preempt", "stalegangeviction"):
        assert value(metrics, "action_scheduling_latency_milliseconds", action=action) is not None
    name = "plugin_scheduling_latency_milliseconds"
    assert (value(metrics, name, plugin="proportion", OnSession="OnSessionOpen") or 0) > 0
    assert value(metrics, name, plugin="proportion", OnSession="OnSessionClose") == 0


def test_stale_gangs_are_neither_scheduled_nor_acted_on(metrics: SchedulerMetrics) -> None:
    result = cluster().node("n0").running("gang", ["n0"], minimum=1).cycle(
        ActionName.STALE_GANG_EVICTION
    )  # fmt: skip
    result.reports[0].attempted = result.reports[0].succeeded = 3
    metrics.observe_actions(result.reports)
    for name in ("podgroups_scheduled_by_action", "podgroups_acted_on_by_action"):
        assert value(metrics, name, action="stalegangeviction") is None


def test_shares_of_every_queue_under_its_shown_name(
    harness: Harness, metrics: SchedulerMetrics
) -> None:
    crowded(harness).cycle()
    assert of_queue(metrics, "queue_fair_share_gpu", "q", "The queue") == 2
    assert of_queue(metrics, "queue_fair_share_cpu_cores", "q", "The queue") == 2.5
    assert of_queue(metrics, "queue_fair_share_memory_gb", "q", "The queue") == 3
    assert of_queue(metrics, "queue_fair_share_gpu", "top") == 2
    harness.gateway.delete(QUEUES, "q")
    harness.cycle(seconds=1)
    assert of_queue(metrics, "queue_fair_share_gpu", "q", "The queue") is None
    assert of_queue(metrics, "queue_gpu_usage", "q", "The queue") is None


def test_past_use_is_a_fraction_of_the_cluster(metrics: SchedulerMetrics) -> None:
    share = (0.0, 0.0, 0.0)
    metrics.set_queues(
        [
            QueueRow(name="a", display_name="", share=share, past_usage=(0.25, 0.5, 0.75)),
            QueueRow(name="b", display_name="Shown", share=share, past_usage=(0.0, 0.0, 1.0)),
        ]
    )
    assert of_queue(metrics, "queue_cpu_usage", "a") == 0.25
    assert of_queue(metrics, "queue_memory_usage", "a") == 0.5
    assert of_queue(metrics, "queue_gpu_usage", "a") == 0.75
    assert of_queue(metrics, "queue_gpu_usage", "b", "Shown") == 1.0
    metrics.set_queues([])
    assert of_queue(metrics, "queue_gpu_usage", "a") is None


def test_past_use_of_a_cycle(harness: Harness, metrics: SchedulerMetrics) -> None:
    source = {"clientType": "history", "connectionString": "here"}
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": {"usageDBConfig": source}})
    harness.cluster(gpus=2).seed(PODGROUPS, group("pg"))
    harness.seed(PODS, pod("p", group="pg", node="n0", phase="Running", requests=ONE_GPU)).cycle()
    assert of_queue(metrics, "queue_gpu_usage", "q", "The queue") == 0
    harness.cycle(seconds=120)
    harness.cycle(seconds=120)
    # Half of the two GPUs was held all the time.
    assert of_queue(metrics, "queue_gpu_usage", "q", "The queue") == 0.5


def test_each_query_for_past_use_is_timed(metrics: SchedulerMetrics) -> None:
    config = read_usage_config(
        {"clientType": "prometheus", "connectionString": "http://prometheus:9090"}, {}
    )
    series = {"metric": {"queue_name": "q"}, "value": [0, "1"]}
    answer = {"status": "success", "data": {"resultType": "vector", "result": [series]}}
    source = PrometheusUsage(
        config.connection, config.params, get=lambda *_: json.dumps(answer).encode()
    )
    source.fetch(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
    assert value(metrics, "usage_query_latency_milliseconds_count") == 6


def test_buckets(harness: Harness, metrics: SchedulerMetrics) -> None:
    crowded(harness).cycle()
    text = metrics.exposition().decode()

    def bounds(name: str) -> list[float]:
        bounds = re.findall(rf'^kai_{name}_bucket\{{.*le="([^"]+)"', text, re.MULTILINE)
        return sorted({float(bound) for bound in bounds} - {float("inf")})

    milliseconds = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560]
    for name in ("task_scheduling", "task_bind", "usage_query"):
        assert bounds(f"{name}_latency_milliseconds") == milliseconds
    assert bounds("scenario_search_duration_seconds") == [0.001 * 2**power for power in range(16)]
