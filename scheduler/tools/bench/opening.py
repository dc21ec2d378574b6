"""What it costs to open a session on a large cluster of which little has changed since the last cycle.

The cluster is a store of typed objects, as a worker's watches fill it: every node full of running one-GPU pods,
each a pod group of its own. Between two openings some pods change: a third of them start to run, a third finish
and are deleted with their pod groups, a third are new. Measured apart: `load` (store view to snapshot) and `core`
(snapshot to open session, plugins included).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from math import inf
from resource import RUSAGE_SELF, getrusage
from typing import Any

from kube.gateway import EventType, Listing, WatchEvent
from kube.keys import POD_GROUP
from kube.objects.meta import convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.resources import NODES, PODGROUPS, PODS, QUEUES, Resource
from kube.store import Store
from scheduler.core.cluster.inputs import (
    ClusterInput,
    NodeInput,
    PodGroupInput,
    QueueAmounts,
    QueueInput,
    TaskInput,
    TaskRequest,
)
from scheduler.core.cluster.kept import KeptState
from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import open_session, run_cycle
from scheduler.load.build import SnapshotBuilder
from scheduler.settings.params import ShardParams
from scheduler.settings.watched import WATCHED
from scheduler.tools.bench.cluster import GPUS_PER_NODE

NAME = "opening"
NOW = 1_800_000_000.0
NAMESPACE = "bench"
QUEUE_COUNT = 20
KINDS: dict[Resource, Any] = {NODES: Node, PODS: Pod, PODGROUPS: PodGroup, QUEUES: Queue}


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The best times of one kind of opening, in milliseconds."""

    what: str
    load_ms: float
    core_ms: float

    @property
    def total_ms(self) -> float:
        """Return the time from the store to the open session."""
        return self.load_ms + self.core_ms


@dataclass(slots=True)
class LivingStore:
    """A store full of running pods, which can change.

    Attributes
    ----------
    running, starting : numbers of the pods in these states, oldest first
    """

    store: Store = field(default_factory=lambda: Store([kind.resource for kind in WATCHED]))
    running: list[int] = field(default_factory=list)
    starting: list[int] = field(default_factory=list)
    _version: int = 0
    _pods: int = 0

    def fill(self, nodes: int, others: int = 0) -> None:
        """Add nodes that are full of running pods, and the queues.

        others : how many pods of other schedulers run on each node, as those of daemon sets do
        """
        for department in range(2):
            self._put(QUEUES, _queue(f"dept-{department}", "", nodes * GPUS_PER_NODE / 2))
        for number in range(QUEUE_COUNT):
            share = nodes * GPUS_PER_NODE / QUEUE_COUNT
            self._put(QUEUES, _queue(f"queue-{number}", f"dept-{number % 2}", share))
        for number in range(nodes):
            self._put(NODES, _node(number))
        for number in range(nodes * GPUS_PER_NODE):
            self._put_pod(number, f"node-{number % nodes}", "Running")
            self.running.append(number)
        self._pods = nodes * GPUS_PER_NODE
        for number in range(nodes * others):
            self._put(PODS, _other_pod(number, f"node-{number % nodes}"))
        for kind in WATCHED:
            if kind.resource not in KINDS:
                self.store.replace(kind.resource, Listing(items=(), resource_version=""))

    def change(self, count: int) -> None:
        """Let `count` pods change: one third starts to run, one third finishes, one third is new."""
        finishing, self.running = self.running[: count // 3], self.running[count // 3 :]
        free = [self._node_of(number) for number in finishing]
        for number in finishing:
            self._remove(number)
        for number in (*self.starting, *self.running[: count - 2 * len(free) - len(self.starting)]):
            self._put_pod(number, self._node_of(number), "Running")
        self.running += self.starting
        self.starting = list(range(self._pods, self._pods + len(free)))
        for number, node in zip(self.starting, free, strict=True):
            self._put_pod(number, node, "Pending")
        self._pods += len(free)

    def submit(self, count: int) -> None:
        """Let `count` running pods finish and as many new ones wait."""
        for number in self.running[:count]:
            self._remove(number)
        del self.running[:count]
        for _ in range(count):
            self._put_pod(self._pods, "", "Pending")
            self._pods += 1

    def _node_of(self, number: int) -> str:
        pod = self.store.get(PODS, f"{NAMESPACE}/pod-{number}")
        return str(pod.spec.node_name) if pod is not None else ""

    def _put_pod(self, number: int, node: str, phase: str) -> None:
        if self.store.get(PODGROUPS, f"{NAMESPACE}/group-{number}") is None:
            self._put(PODGROUPS, _group(number))
        self._put(PODS, _pod(number, node, phase))

    def _put(self, resource: Resource, body: dict[str, Any]) -> None:
        self._version += 1
        body["metadata"]["resourceVersion"] = str(self._version)
        kube_object = convert(body, KINDS[resource])
        self.store.apply(resource, _event(EventType.MODIFIED, kube_object, self._version))

    def _remove(self, number: int) -> None:
        for resource, name in ((PODS, f"pod-{number}"), (PODGROUPS, f"group-{number}")):
            self._version += 1
            kube_object = self.store.get(resource, f"{NAMESPACE}/{name}")
            self.store.apply(resource, _event(EventType.DELETED, kube_object, self._version))


def measure(nodes: int, runs: int, others: int = 0) -> list[Opening]:
    """Open sessions on `nodes` full nodes; return the best times of `runs` openings of each kind."""
    living = LivingStore()
    living.fill(nodes, others)
    bench = _Bench(living)
    rows = [bench.opening("anew", bench.forget, runs)]
    for count in (0, 100, 1000):
        label = f"{count} pods changed" if count else "nothing changed"
        rows.append(bench.opening(label, partial(living.change, count), runs))
    submit = partial(living.submit, 1000)
    rows.append(bench.opening("cycle with 1000 new pods", submit, runs, whole=True))
    rows.append(fair_share(10 if nodes >= 1000 else 2, runs))
    return rows


def fair_share(width: int, runs: int) -> Opening:
    """Divide a full cluster among queues in four levels, each queue with `width` below it; as plugin `proportion` does."""
    cluster = _many_queues(width)
    kept_state, config, times = KeptState(), SchedulerConfig(), []
    for _ in range(runs + 1):
        session = open_session(cluster, config, kept_state=kept_state, clock=time.process_time)
        times.append((0.0, session.plugin_seconds["proportion"]))
    return _best(f"fair share of {len(cluster.queues)} queues", times[1:])


def _many_queues(width: int) -> ClusterInput:
    levels: list[list[str]] = [[""]]
    queues: list[QueueInput] = []
    for depth in range(4):
        levels.append([f"{parent}{n}" for parent in levels[-1] for n in range(width)])
        gpus = QueueAmounts(quota=float(width ** (3 - depth)), limit=inf, over_quota_weight=1.0)
        queues += [QueueInput(name=name, parent=name[:-1], gpu=gpus) for name in levels[-1]]
    leaves = levels[-1]
    request = TaskRequest(gpus=1.0)
    groups = [
        PodGroupInput(
            name=f"g{n}",
            queue=leaves[n % len(leaves)],
            tasks=(TaskInput(name=f"t{n}", uid=f"t{n}", request=request),),
        )
        for n in range(2 * len(leaves))
    ]
    node = NodeInput(name="node", allocatable={"gpu": float(len(leaves)), "pods": 110.0})
    return ClusterInput(nodes=(node,), queues=tuple(queues), pod_groups=tuple(groups))


@dataclass(slots=True)
class _Bench:
    living: LivingStore
    config: SchedulerConfig = field(default_factory=SchedulerConfig)
    builder: SnapshotBuilder = field(init=False)
    kept_state: KeptState = field(init=False)
    now: float = NOW

    def __post_init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin with empty caches."""
        self.builder = SnapshotBuilder(ShardParams(), origin=NOW)
        self.kept_state = KeptState()

    def opening(
        self, label: str, change: Callable[[], None], runs: int, *, whole: bool = False
    ) -> Opening:
        """Open `runs` sessions, or run as many whole cycles, each after a change."""
        self._open()
        times = []
        for _ in range(runs):
            change()
            times.append(self._open(whole=whole))
        return _best(label, times)

    def _open(self, *, whole: bool = False) -> tuple[float, float]:
        self.now += 1.0
        gc.collect()
        gc.disable()
        try:
            started = time.process_time()
            snapshot = self.builder.build(self.living.store.view(), self.now)
            loaded = time.process_time()
            if whole:
                run_cycle(snapshot.cluster, self.config, kept_state=self.kept_state)
            else:
                open_session(snapshot.cluster, self.config, kept_state=self.kept_state)
            return loaded - started, time.process_time() - loaded
        finally:
            gc.enable()


def _event(kind: EventType, kube_object: Any, version: int) -> WatchEvent[Any]:
    return WatchEvent(type=kind, object=kube_object, resource_version=str(version))


def _best(label: str, times: list[tuple[float, float]]) -> Opening:
    load, core = min(times, key=sum)
    return Opening(what=label, load_ms=load * 1000, core_ms=core * 1000)


def text(nodes: int, rows: list[Opening], others: int = 0) -> str:
    """Return the table of a measurement, with the most memory that this process had."""
    pods = f"{nodes * GPUS_PER_NODE} running pods"
    if others:
        pods += f" and {nodes * others} of other schedulers"
    title = f"{NAME}: {nodes} nodes, {pods}; ms of processor time from store to open session"
    lines = [title, f"  {'':<28} {'load':>8} {'core':>8} {'both':>8}"]
    lines += [
        f"  {row.what:<28} {row.load_ms:8.1f} {row.core_ms:8.1f} {row.total_ms:8.1f}"
        for row in rows
    ]
    peak_mib = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    return "\n".join(
        [*lines, f"  memory at most {peak_mib:.0f} MiB, objects of the cluster included"]
    )


def _queue(name: str, parent: str, gpus: float) -> dict[str, Any]:
    free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
    resources = {"cpu": free, "memory": free, "gpu": free | {"quota": gpus}}
    return {
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"parentQueue": parent, "resources": resources},
    }


def _node(number: int) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"node-{number}",
            "labels": {"nvidia.com/gpu.memory": "81920", "zone": f"z{number % 4}"},
        },
        "status": {
            "allocatable": {
                "cpu": "96",
                "memory": "1Ti",
                "pods": "110",
                "nvidia.com/gpu": GPUS_PER_NODE,
            },
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _group(number: int) -> dict[str, Any]:
    return {
        "metadata": {
            "name": f"group-{number}",
            "namespace": NAMESPACE,
            "uid": f"group-{number}",
            "creationTimestamp": "2026-11-01T00:00:00Z",
            "annotations": {"kai.scheduler/last-start-timestamp": "2026-11-01T00:00:01Z"},
        },
        "spec": {"minMember": 1, "queue": f"queue-{number % QUEUE_COUNT}"},
    }


def _other_pod(number: int, node: str) -> dict[str, Any]:
    requests = {"cpu": "100m", "memory": "128Mi"}
    return {
        "metadata": {
            "name": f"daemon-{number}",
            "namespace": "kube-system",
            "uid": f"daemon-{number}",
            "creationTimestamp": "2026-11-01T00:00:00Z",
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "nodeName": node,
            "containers": [{"name": "main", "resources": {"requests": requests}}],
        },
        "status": {"phase": "Running"},
    }


def _pod(number: int, node: str, phase: str) -> dict[str, Any]:
    requests = {"cpu": "4", "memory": "32Gi", "nvidia.com/gpu": "1"}
    spec = {
        "schedulerName": "kai-scheduler",
        "containers": [{"name": "main", "resources": {"requests": requests, "limits": requests}}],
    }
    return {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": NAMESPACE,
            "uid": f"pod-{number}",
            "creationTimestamp": "2026-11-01T00:00:00Z",
            "annotations": {POD_GROUP: f"group-{number}"},
        },
        "spec": spec | ({"nodeName": node} if node else {}),
        "status": {"phase": phase},
    }
