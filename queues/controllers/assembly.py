"""Run all controllers in one process on one shared store.

Watches start first and fill the store. A controller starts when the store is complete and, with leader election,
when its lease is held. There is one lease per controller, with KAI's name, so that a deployment of KAI and this one
never act at the same time. A lost lease or refused credentials end the process, and its supervisor restarts it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from kube.errors import KubeError
from kube.events import WARNING, event_about
from kube.events import Recorder as EventRecorder
from kube.gateway import Gateway, Listing
from kube.keys import SYSTEM_NAMESPACE
from kube.lease import Elector, candidate_identity
from kube.objects.cluster import PriorityClass
from kube.objects.devices import ResourceClaim
from kube.objects.meta import KubeObject
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.process import progress
from kube.process.workqueue import WorkQueue, start_workers
from kube.resources import (
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    PRIORITY_CLASSES,
    QUEUES,
    RESOURCE_CLAIMS,
    Resource,
)
from kube.store import Store
from kube.watch import Reflector
from queues.controllers import drift, podgroup_status, queue_status, scale_adjuster
from queues.controllers.gang_watch import GangWatch
from queues.controllers.metrics import QueueMetrics
from queues.controllers.podgroup_status import PodGroupController
from queues.controllers.queue_status import QueueController
from queues.controllers.scale_adjuster import AdjusterSettings, ScaleAdjuster
from queues.grouping.base import Settings
from queues.grouping.engine import controller as pod_grouper
from queues.grouping.engine.controller import PodGrouper
from queues.grouping.engine.kinds import KindDirectory
from queues.grouping.engine.lookups import (
    KARTAS,
    ClusterLookups,
    Karta,
    OwnerCache,
    index_for_grouping,
)

log = logging.getLogger(__name__)

DRIFT_INTERVAL_S = 60.0
SIGN_OF_LIFE_S = 1.0
STATUS_WORKERS = 4
SYNC_WARNING_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command line."""

    settings: Settings = field(default_factory=Settings)
    namespace: str = SYSTEM_NAMESPACE
    pod_selector: str = ""
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    defaults_config_map: tuple[str, str] = ("", "")
    concurrency: int = pod_grouper.CONCURRENCY
    has_leader_election: bool = False
    groups_pods: bool = True
    keeps_status: bool = True
    keeps_group_status: bool = True
    keeps_queue_status: bool = True
    adjuster: AdjusterSettings | None = None
    metrics_address: tuple[str, int] | None = None
    metrics_namespace: str = "kai"
    metric_labels: Mapping[str, str] = field(default_factory=dict)
    metric_defaults: Mapping[str, str] = field(default_factory=dict)


class PodWarnings:
    """Writes warnings of the pod grouper as events of pods."""

    def __init__(self, recorder: EventRecorder) -> None:
        self._recorder = recorder

    def warn(self, about: KubeObject, reason: str, message: str) -> None:
        self._recorder.record(event_about(PODS, about, WARNING, reason, message))


class Controllers:
    """All controllers of one process.

    Parameters
    ----------
    gateway : shared by watches and writers
    """

    def __init__(self, gateway: Gateway, options: Options) -> None:
        self.gateway = gateway
        self.options = options
        self.store = Store()
        self.stop = threading.Event()
        self.failure: str = ""
        self.registry = CollectorRegistry()
        self._identity = candidate_identity()
        self._recorder = EventRecorder(gateway, pod_grouper.SOURCE)
        self._queues: list[WorkQueue] = []
        self._workers: list[threading.Thread] = []
        if options.groups_pods:
            index_for_grouping(self.store)
        podgroup_status.index_pods_by_group(self.store)
        queue_status.index_groups_by_queue(self.store)

    def run(self) -> int:
        """Run until `stop` is set; return the exit code."""
        self.start()
        while not self.stop.wait(SIGN_OF_LIFE_S):
            progress.track().beat("controllers run")
        self.close()
        if self.failure:
            log.error("controllers stopped: %s", self.failure)
        return 1 if self.failure else 0

    def close(self) -> None:
        """End the threads of `start`: work in progress is finished, waiting keys are dropped."""
        self.stop.set()
        for queue in self._queues:
            queue.close()
        for worker in self._workers:
            worker.join(timeout=5)
        self._recorder.stop()

    def start(self) -> None:
        """Start watches, metrics and controllers in threads."""
        self._watch_all()
        self._recorder.start()
        self._serve_metrics()
        if self.options.groups_pods:
            self._lead(pod_grouper.LEASE, self._start_grouper)
        if self.options.keeps_status:
            groups = PodGroupController(self.gateway, self.store)
            queues = QueueController(self.gateway, self.store)
            if self.options.keeps_group_status:
                self._lead(podgroup_status.LEASE, lambda: self._start_groups(groups, queues))
            if self.options.keeps_queue_status:
                self._lead(queue_status.LEASE, lambda: self._start_queues(queues))
        if self.options.adjuster is not None:
            adjuster = self._adjuster(self.options.adjuster)
            self._lead(scale_adjuster.LEASE, lambda: self._thread("scale", adjuster.run, self.stop))

    def _watch_all(self) -> None:
        selector = f"spec.schedulerName={self.options.settings.scheduler_name}"
        self._watch(PODS, Pod, field_selector=selector, label_selector=self.options.pod_selector)
        self._watch(PODGROUPS, PodGroup)
        self._watch(PRIORITY_CLASSES, PriorityClass)
        if self.options.groups_pods:
            if self.options.namespace_labels:
                self._watch(NAMESPACES, KubeObject)
            if self.options.settings.karta_fallback:
                self._watch(KARTAS, Karta, is_optional=True)
            else:
                # Rules still read the store, so it gets an empty list and counts as synchronised.
                self.store.replace(KARTAS, Listing(items=(), resource_version=""))
            gangs = GangWatch(self.gateway, self.store, self.stop, on_fatal=self._fail)
            gangs.declare()
            self._thread("gang-kinds", gangs.run)
        if self.options.keeps_status:
            self._watch(QUEUES, Queue)
            self._watch(NODES, Node)
            self._watch(RESOURCE_CLAIMS, ResourceClaim, is_optional=True)

    def _watch(
        self,
        resource: Resource,
        as_type: type[KubeObject],
        *,
        field_selector: str = "",
        label_selector: str = "",
        is_optional: bool = False,
    ) -> None:
        self.store.kind(resource)
        reflector = Reflector(
            self.gateway,
            resource,
            as_type,
            self.store,
            field_selector=field_selector,
            label_selector=label_selector,
            is_optional=is_optional,
        )
        reflector.start(self.stop, on_fatal=self._fail)

    def _start_grouper(self) -> None:
        owners = OwnerCache(self.gateway, KindDirectory(self.gateway))
        grouper = PodGrouper(
            self.gateway,
            self.store,
            ClusterLookups(self.store, owners, self.options.defaults_config_map),
            PodWarnings(self._recorder),
            settings=self.options.settings,
            namespace_labels=self.options.namespace_labels,
        )
        grouper.follow()
        self._work("pod-grouper", grouper.queue, grouper.work, self.options.concurrency)

    def _start_groups(self, groups: PodGroupController, queues: QueueController) -> None:
        groups.follow()
        self._work("podgroup-status", groups.queue, groups.work, STATUS_WORKERS)
        counter = Counter(
            "status_drift", "Statuses that differed from a fresh count", ["kind"],
            namespace=self.options.metrics_namespace, registry=self.registry,
        )  # fmt: skip

        def check() -> None:
            while not self.stop.wait(DRIFT_INTERVAL_S):
                drifts = _lasting_drift(self.store, groups, self.stop)
                for entry in drifts:
                    log.warning("drift of %s %s: %s", entry.kind, entry.key, entry.message)
                    counter.labels(entry.kind).inc()
                drift.correct(drifts, groups, queues)
                progress.track().rest()

        self._thread("drift", check)

    def _start_queues(self, queues: QueueController) -> None:
        queues.follow()
        self._thread("queue-status", queues.run, self.stop)

    def _adjuster(self, settings: AdjusterSettings) -> ScaleAdjuster:
        stand_ins = Store([PODS])
        reflector = Reflector(self.gateway, PODS, Pod, stand_ins, namespace=settings.namespace)
        reflector.start(self.stop, on_fatal=self._fail)
        return ScaleAdjuster(self.gateway, self.store, stand_ins, settings)

    def _work(self, name: str, queue: WorkQueue, work: Callable[[str], None], count: int) -> None:
        self._queues.append(queue)
        depth = Gauge(
            f"{name.replace('-', '_')}_queue_depth", "Keys waiting or worked on",
            namespace=self.options.metrics_namespace, registry=self.registry,
        )  # fmt: skip
        depth.set_function(lambda: len(queue))
        self._workers += start_workers(queue, work, count, name)

    def _lead(self, lease: str, begin: Callable[[], None]) -> None:
        """Call `begin` once the store is complete and, with leader election, the lease is held."""

        def wait_and_begin() -> None:
            if not self._is_synced():
                return
            if self.options.has_leader_election and not self._elected(lease):
                return
            log.info("starting the controller of lease %s", lease)
            begin()

        self._thread(f"lead-{lease}", wait_and_begin)

    def _is_synced(self) -> bool:
        while not self.store.wait_until_synced(SYNC_WARNING_S):
            if self.stop.is_set():
                return False
            log.warning("still waiting for the first lists of the cluster")
        return not self.stop.is_set()

    def _elected(self, lease: str) -> bool:
        elector = Elector(self.gateway, self.options.namespace, lease, self._identity)

        def keep() -> None:
            elector.run(self.stop, on_lost=lambda: self._end(f"lease {lease} was lost"))

        self._thread(f"lease-{lease}", keep)
        while not elector.is_leader:
            if self.stop.wait(0.2):
                return False
        return True

    def _serve_metrics(self) -> None:
        for collector in (ProcessCollector, PlatformCollector):
            collector(registry=self.registry)
        if self.options.keeps_status and self.options.keeps_queue_status:
            self.registry.register(
                QueueMetrics(
                    self.store,
                    self.options.metrics_namespace,
                    self.options.metric_labels,
                    self.options.metric_defaults,
                )
            )
        if self.options.metrics_address:
            host, port = self.options.metrics_address
            start_http_server(port, host, registry=self.registry)

    def _fail(self, error: KubeError) -> None:
        self._end(str(error))

    def _end(self, reason: str) -> None:
        self.failure = self.failure or reason
        self.stop.set()

    def _thread(self, name: str, run: Callable[..., object], *args: object) -> None:
        threading.Thread(target=run, args=args, name=name, daemon=True).start()


def _lasting_drift(
    store: Store, groups: PodGroupController, stop: threading.Event
) -> list[drift.Drift]:
    """Return the drift seen in two checks in a row, because a status may just be being written."""
    first = {(entry.kind, entry.key) for entry in drift.find_drift(store, groups)}
    if not first or stop.wait(5.0):
        return []
    second = drift.find_drift(store, groups)
    return [entry for entry in second if (entry.kind, entry.key) in first]
