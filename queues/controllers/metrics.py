"""Queue gauges with KAI's names and labels, read from the store at each scrape so that none is stale."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from kube.objects.queue import Queue, QueueResources
from kube.resources import QUEUES
from kube.store import Store
from queues.workloads.accounting import parse_list

MEGABYTE = 1_000_000
UNLIMITED = -1.0
FIXED_LABELS = ("queue_name", "queue_metadata_name", "queue_display_name")
HELP = {
    "queue_info": "Queues",
    "queue_deserved_gpus": "Queue deserved GPUs",
    "queue_quota_cpu_cores": "Queue quota CPU cores",
    "queue_quota_memory_bytes": "Queue quota memory bytes",
    "queue_allocated_gpus": "Queue allocated GPUs",
    "queue_allocated_cpu_cores": "Queue allocated CPU cores",
    "queue_allocated_memory_bytes": "Queue allocated memory bytes",
}


def parse_pairs(text: str, flag: str) -> dict[str, str]:
    """Return the pairs of `k=v,k2=v2`; a later duplicate wins.

    Raises
    ------
    ValueError : an entry without `=`; the message names the flag and the entry
    """
    pairs: dict[str, str] = {}
    for entry in (part for part in text.split(",") if part):
        key, sign, value = entry.partition("=")
        if not sign:
            raise ValueError(f"--{flag}: expected key=value, got {entry!r}")
        pairs[key.strip()] = value.strip()
    return pairs


@dataclass(slots=True, eq=False)
class QueueMetrics(Collector):
    """A Prometheus collector over the queues of a store.

    Attributes
    ----------
    label_names : queue label -> metric label
    label_defaults : queue label -> value for queues without it
    """

    store: Store
    namespace: str = "kai"
    label_names: Mapping[str, str] = field(default_factory=dict)
    label_defaults: Mapping[str, str] = field(default_factory=dict)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        names = [*FIXED_LABELS, *(self.label_names[key] for key in sorted(self.label_names))]
        families = {
            name: GaugeMetricFamily(f"{self.namespace}_{name}", text, labels=names)
            for name, text in HELP.items()
        }
        for queue in self.store.view().of(QUEUES, Queue).values():
            labels = self._labels(queue)
            for name, value in queue_values(queue).items():
                families[name].add_metric(labels, value)
        yield from families.values()

    def _labels(self, queue: Queue) -> list[str]:
        name = queue.metadata.name
        mapped = [
            queue.metadata.labels.get(key, self.label_defaults.get(key, ""))
            for key in sorted(self.label_names)
        ]
        return [name, name, queue.spec.display_name, *mapped]


def queue_values(queue: Queue) -> dict[str, float]:
    """Return metric name -> value of one queue."""
    resources = queue.spec.resources or QueueResources()
    allocated = parse_list(queue.status.allocated)
    gpu = next((value for name, value in sorted(allocated.items()) if name.endswith("/gpu")), 0)
    return {
        "queue_info": 1.0,
        "queue_deserved_gpus": resources.gpu.quota,
        "queue_quota_cpu_cores": _scaled(resources.cpu.quota, 1 / 1000),
        "queue_quota_memory_bytes": _scaled(resources.memory.quota, MEGABYTE),
        "queue_allocated_gpus": round(float(gpu), 4),
        "queue_allocated_cpu_cores": round(float(allocated.get("cpu", 0)), 4),
        "queue_allocated_memory_bytes": round(float(allocated.get("memory", 0)), 4),
    }


def _scaled(quota: float, factor: float) -> float:
    return quota if quota == UNLIMITED else quota * factor
