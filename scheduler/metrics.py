"""KAI's scheduler metrics under their own names, in one registry of this process."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from prometheus_client import (
    CollectorRegistry,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kube.objects.podgroup import PodGroup
from scheduler.core.arrays import Amounts
from scheduler.core.decisions import ActionName, ActionReport, SearchReport
from scheduler.core.options import SearchBudgets
from scheduler.core.solver.budget import SearchResult
from scheduler.core.solver.generators import MULTI_NODE_GANG, NODE_LOCAL_GREEDY

_MILLISECONDS = tuple(5.0 * 2**power for power in range(10))
_SEARCH_SECONDS = tuple(0.001 * 2**power for power in range(16))
_EVICTING = (ActionName.CONSOLIDATION, ActionName.RECLAIM, ActionName.PREEMPT)
_GENERATORS = (NODE_LOCAL_GREEDY, MULTI_NODE_GANG, "default")
_OUT_OF_TIME = tuple(result.value for result in SearchResult if result.ends_action)
_UNTYPED = re.compile(rb"^(# TYPE \S+) untyped$", re.MULTILINE)
_QUEUE_LABELS = ("queue_name", "queue_metadata_name", "queue_display_name")


class PlainCounter(Gauge):
    """A counter without the suffix `_total` and the `_created` series of the client library's counters.

    It is a gauge of unknown type for the library; `SchedulerMetrics.exposition` writes "counter" instead.
    """

    _type = "unknown"


@dataclass(frozen=True, slots=True)
class QueueRow:
    """The figures of one queue.

    Attributes
    ----------
    share : (cpu in millicores, memory in bytes, GPUs), infinite if nothing bounds it
    past_usage : the same resources, each as a fraction of the cluster
    """

    name: str
    display_name: str
    share: Amounts
    past_usage: Amounts


class QueueGauges(Collector):
    """Fair share and past usage by queue, made into series only when somebody reads them.

    A cycle with thousands of queues would otherwise spend more time on setting gauges than on deciding.
    """

    #: Resource -> (name of the share's gauge, base units in one unit of the gauge).
    _SHARES: ClassVar = {
        "cpu": ("cpu_cores", 1000.0),
        "memory": ("memory_gb", 1e9),
        "gpu": ("gpu", 1.0),
    }

    def __init__(self, namespace: str) -> None:
        self._namespace = namespace
        self.rows: tuple[QueueRow, ...] = ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the six gauges, all of one cycle."""
        return self._gauges(self.rows)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Yield the six gauges without queues, for the reference of all metrics."""
        return self._gauges(())

    def _gauges(self, rows: Sequence[QueueRow]) -> Iterator[GaugeMetricFamily]:
        for index, (suffix, unit) in enumerate(self._SHARES.values()):
            shares = [row.share[index] for row in rows]
            values = [-1.0 if share == float("inf") else share / unit for share in shares]
            yield self._gauge(f"fair_share_{suffix}", "Fair share", rows, values)
        for index, resource in enumerate(self._SHARES):
            text = "Past usage as a fraction of the cluster"
            values = [row.past_usage[index] for row in rows]
            yield self._gauge(f"{resource}_usage", text, rows, values)

    def _gauge(
        self, name: str, text: str, rows: Sequence[QueueRow], values: Sequence[float]
    ) -> GaugeMetricFamily:
        gauge = GaugeMetricFamily(f"{self._namespace}_queue_{name}", text, labels=_QUEUE_LABELS)
        for row, value in zip(rows, values, strict=True):
            gauge.add_metric((row.display_name or row.name, row.name, row.display_name), value)
        return gauge


class SchedulerMetrics:
    """All series of a scheduling process.

    Parameters
    ----------
    namespace : prefix of every name, `kai` in KAI
    """

    def __init__(self, namespace: str = "kai") -> None:
        self.registry = CollectorRegistry()
        self._namespace = namespace
        self.e2e = self._gauge("e2e_scheduling_latency_milliseconds", "Duration of the last cycle")
        self.open_session = self._gauge(
            "open_session_latency_milliseconds", "Time to open the last session"
        )
        self.close_session = self._gauge(
            "close_session_latency_milliseconds", "Time to close the last session"
        )
        self.plugin = self._gauge(
            "plugin_scheduling_latency_milliseconds",
            "Time that a plugin took to open or close the last session",
            ("plugin", "OnSession"),
        )
        self.action = self._gauge(
            "action_scheduling_latency_milliseconds",
            "Time that an action took in the last cycle",
            ("action",),
        )
        self.task = self._histogram(
            "task_scheduling_latency_milliseconds",
            "Time from the creation of a pod to its bind request",
            _MILLISECONDS,
        )
        self.bind = self._histogram(
            "task_bind_latency_milliseconds", "Time to create a bind request", _MILLISECONDS
        )
        self.scheduled = self._counter(
            "podgroups_scheduled_by_action", "Pod groups that an action placed", ("action",)
        )
        self.acted_on = self._counter(
            "podgroups_acted_on_by_action",
            "Pod groups that an evicting action tried to place",
            ("action",),
        )
        self.simulations = self._counter(
            "scenarios_simulation_by_action", "Scenarios simulated", ("action",)
        )
        self.filtered = self._counter(
            "scenarios_filtered_by_action", "Scenarios rejected before a simulation", ("action",)
        )
        self.repairs = self._counter(
            "kept_state_repairs",
            "Times that what a worker keeps between cycles was found to be wrong, and replaced",
            ("part",),
        )
        for part in ("snapshot", "state"):
            self.repairs.labels(part).inc(0)
        self.preemptions = self._counter("total_preemption_attempts", "Successful preemptions", ())
        self._queues = QueueGauges(namespace)
        self.registry.register(self._queues)
        self.usage_query = self._histogram(
            "usage_query_latency_milliseconds",
            "Duration of the query for past usage",
            _MILLISECONDS,
        )
        self.evicted = self._counter(
            "pod_group_evicted_pods_total",
            "Evicted pods",
            ("podgroup", "namespace", "uid", "nodepool", "action"),
        )
        self.search_duration = Histogram(
            "scenario_search_duration_seconds",
            "Duration of one scenario's simulation",
            ("action", "generator", "result"),
            namespace=namespace,
            registry=self.registry,
            buckets=_SEARCH_SECONDS,
        )

        self._declare_search()

    def _declare_search(self) -> None:
        self.search_jobs = self._counter(
            "scenario_search_jobs_total",
            "Searches for victims",
            ("action", "result", "reduced_budget"),
        )
        self.search_scenarios = self._counter(
            "scenario_search_scenarios_total",
            "Scenarios by their state in the search",
            ("action", "generator", "state"),
        )
        self.search_exhausted = self._counter(
            "scenario_search_action_budget_exhausted_total",
            "Searches that ended an action for lack of time",
            ("action",),
        )
        self.search_action_budget = self._gauge(
            "scenario_search_action_budget_configured_seconds",
            "Time limit of the searches of an action; 0 is none",
            ("action",),
        )
        self.search_job_budget = self._gauge(
            "scenario_search_job_budget_configured_seconds",
            "Time limit of the search for one pod group; 0 is none",
        )
        self.search_generator_budget = self._gauge(
            "scenario_search_generator_budget_configured_seconds",
            "Time limit of a generator in one search; 0 is none",
            ("generator",),
        )

    def exposition(self) -> bytes:
        """Return all series in Prometheus' text format, with the type of each `PlainCounter` put right."""
        return _UNTYPED.sub(rb"\1 counter", generate_latest(self.registry))

    def observe_bind(self, seconds: float, pod_created: float) -> None:
        """Count one bind request that took `seconds` to create; `pod_created` is a Unix time."""
        self.bind.observe(seconds * 1000)
        self.task.observe(max(0.0, time.time() - pod_created) * 1000)

    def count_eviction(self, group: PodGroup, pool: str, action: str) -> None:
        meta = group.metadata
        self.evicted.labels(meta.name, meta.namespace, meta.uid, pool, action).inc()

    def observe_actions(self, reports: Iterable[ActionReport]) -> None:
        """Count what the actions of one cycle report."""
        for report in reports:
            name = report.action.value
            self.action.labels(name).set(report.seconds * 1000)
            if report.action is not ActionName.STALE_GANG_EVICTION:
                self.scheduled.labels(name).inc(report.succeeded)
            if report.action in _EVICTING:
                self.acted_on.labels(name).inc(report.attempted)
            if name == "preempt":
                self.preemptions.inc(report.succeeded)
            self._observe_search(name, report.search)

    def _observe_search(self, action: str, search: SearchReport) -> None:
        self.simulations.labels(action).inc(search.simulated)
        self.filtered.labels(action).inc(search.filtered)
        for (result, is_reduced), number in search.results.items():
            self.search_jobs.labels(action, result, str(is_reduced).lower()).inc(number)
            if result in _OUT_OF_TIME:
                self.search_exhausted.labels(action).inc()
        for generator, number in search.emitted.items():
            self.search_scenarios.labels(action, generator, "emitted").inc(number)
        for generator, result, seconds in search.trials:
            self.search_duration.labels(action, generator, result).observe(seconds)
            is_duplicate = result == "duplicate"
            state = "duplicate" if is_duplicate else "simulated"
            self.search_scenarios.labels(action, generator, state).inc()
            if result == "validator_rejected":
                self.search_scenarios.labels(action, generator, result).inc()

    def set_budgets(self, budgets: SearchBudgets) -> None:
        """Set the gauges of the time limits of the search; 0 is no limit."""
        for action in _EVICTING:
            limit = budgets.of_action(action)
            self.search_action_budget.labels(action.value).set(_finite(limit))
        self.search_job_budget.set(_finite(budgets.max_pod_group_s))
        for generator in _GENERATORS:
            self.search_generator_budget.labels(generator).set(
                _finite(budgets.of_generator(generator))
            )

    def set_queues(self, rows: Iterable[QueueRow]) -> None:
        """Set fair share and past usage of every queue; the queues of the last cycle are forgotten."""
        self._queues.rows = tuple(rows)

    def set_plugins(self, seconds: Mapping[str, float]) -> None:
        """Set the seconds that each plugin took to open the session; plugins do nothing when it closes, so that is 0."""
        for name, value in seconds.items():
            self.plugin.labels(name, "OnSessionOpen").set(value * 1000)
            self.plugin.labels(name, "OnSessionClose").set(0)

    def _gauge(self, name: str, text: str, labels: tuple[str, ...] = ()) -> Gauge:
        return Gauge(name, text, labels, namespace=self._namespace, registry=self.registry)

    def _counter(self, name: str, text: str, labels: tuple[str, ...]) -> PlainCounter:
        return PlainCounter(name, text, labels, namespace=self._namespace, registry=self.registry)

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(
            name, text, namespace=self._namespace, registry=self.registry, buckets=buckets
        )


def _finite(seconds: float) -> float:
    return 0.0 if seconds == float("inf") else seconds


# The library would add a `_created` series to each histogram; KAI's metrics have none.
disable_created_metrics()  # type: ignore[no-untyped-call]  # this function has no annotations

METRICS = SchedulerMetrics(os.environ.get("KAIWEB_METRICS_NAMESPACE", "kai"))
