"""Runs the workload controllers: watches feed a store, changes feed a queue, plans are carried out.

What a controller just created is put into the store at once (read your own writes), so that the next
pass does not make the same pods again before the watch brings them back.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from kube.errors import AlreadyExistsError, KubeError, NotFoundError
from kube.gateway import EventType, Gateway
from kube.objects.meta import KubeObject, convert
from kube.resources import (
    CRONJOBS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    REPLICASETS,
    STATEFULSETS,
    Resource,
)
from kube.store import Store
from kube.watch import Reflector
from kube.workqueue import WorkQueue, start_workers
from sandbox.controllers.workloads import cronjob, deployment, job, replicaset, statefulset
from sandbox.controllers.workloads.objects import (
    CronJob,
    Deployment,
    Job,
    ReplicaSet,
    StatefulSet,
    WorkPod,
    controller_of,
)
from sandbox.controllers.workloads.plan import Create, Delete, Patch, Plan, Write

log = logging.getLogger(__name__)

WORKERS = 4
WRITERS = 8
BURST = 500
_TYPES: dict[Resource, type[KubeObject]] = {
    PODS: WorkPod,
    JOBS: Job,
    CRONJOBS: CronJob,
    REPLICASETS: ReplicaSet,
    DEPLOYMENTS: Deployment,
    STATEFULSETS: StatefulSet,
}
_BY_KIND = {resource.kind: resource for resource in _TYPES}


@dataclass(slots=True)
class WorkloadControllers:
    """All workload controllers of one cluster, until `stop` is set."""

    gateway: Gateway
    stop: threading.Event
    on_fatal: Callable[[KubeError], None]
    clock: Callable[[], float] = time.time
    store: Store = field(default_factory=lambda: Store(list(_TYPES)))
    queue: WorkQueue = field(default_factory=lambda: WorkQueue(first_s=0.2, most_s=30.0))
    _tallies: dict[str, job.Tally] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(WRITERS, thread_name_prefix="workloads")
    )

    def __post_init__(self) -> None:
        for resource in (PODS, JOBS, REPLICASETS):
            self.store.add_index(resource, "controller", _controller_uids)
        self.store.subscribe(self._changed)

    def run(self) -> None:
        """Run until stopped."""
        for resource, as_type in _TYPES.items():
            watch = Reflector(self.gateway, resource, as_type, self.store)
            watch.start(self.stop, on_fatal=self.on_fatal)
        while not self.store.wait_until_synced(0.5):
            if self.stop.is_set():
                return
        start_workers(self.queue, self.reconcile, WORKERS, "workloads")
        self.stop.wait()
        self.queue.close()
        self._pool.shutdown(wait=True)

    def reconcile(self, key: str) -> None:
        """Make one pass over one workload; a failed write asks for another pass later."""
        kind, _, name = key.partition(" ")
        resource = _BY_KIND[kind]
        found = self.store.get(resource, name)
        if found is None:
            return
        plan = self._plan(resource, found)
        failed = self._carry_out(plan.writes)
        if failed:
            self.queue.retry(key)
            return
        self.queue.forget(key)
        if len(plan.writes) > BURST:
            self.queue.add(key)
        if plan.again_after_s is not None:
            self.queue.add_after(key, plan.again_after_s)

    def _plan(self, resource: Resource, found: Any) -> Plan:
        uid = found.metadata.uid
        now = self.clock()
        if resource is JOBS:
            pods = self._owned(PODS, uid)
            if uid not in self._tallies:
                self._tallies[uid] = job.open_tally(found, pods)
            return job.plan(found, pods, self._tallies[uid], now)
        if resource is CRONJOBS:
            return cronjob.plan(found, self._owned(JOBS, uid), now)
        if resource is REPLICASETS:
            return replicaset.plan(found, self._owned(PODS, uid))
        if resource is DEPLOYMENTS:
            return deployment.plan(found, self._owned(REPLICASETS, uid), now)
        return statefulset.plan(found, self._owned(PODS, uid))

    def _owned(self, resource: Resource, uid: str) -> list[Any]:
        return self.store.by_index(resource, "controller", uid)

    def _carry_out(self, writes: Sequence[Write]) -> bool:
        """Write at most BURST of them, several at a time; tell whether any failed."""
        return not all(list(self._pool.map(self._write, writes[:BURST])))

    def _write(self, write: Write) -> bool:
        try:
            match write:
                case Create():
                    body = self.gateway.create(
                        write.resource, write.body, namespace=write.namespace
                    )
                    self._assume(write.resource, body)
                case Delete():
                    self.gateway.delete(
                        write.resource, write.name, namespace=write.namespace, uid=write.uid
                    )
                case Patch():
                    body = self.gateway.patch(
                        write.resource,
                        write.name,
                        write.body,
                        namespace=write.namespace,
                        sub=write.sub,
                        field_manager="sandbox-workloads",
                    )
                    self._assume(write.resource, body)
        except (AlreadyExistsError, NotFoundError):
            # Somebody was faster; the watch tells what is there now.
            return True
        except KubeError as error:
            log.warning("%s", error)
            return False
        return True

    def _assume(self, resource: Resource, body: Any) -> None:
        """Show our own write at once; the store tells nobody of it, so we do (what we made or changed
        may need a pass of its own or its owner's: a new ReplicaSet, a Job that just ended)."""
        as_type = _TYPES.get(resource)
        if as_type is not None:
            value = convert(body, as_type)
            self.store.assume(resource, value)
            if resource is not PODS:
                self._changed(resource, EventType.MODIFIED, value)

    def _changed(self, resource: Resource, event: EventType, value: Any) -> None:
        """Queue the workload that a change concerns: the object itself and its controller."""
        kind, name, uid = controller_of(value.metadata)
        if resource is not PODS:
            if event is EventType.DELETED:
                self._tallies.pop(value.metadata.uid, None)
            else:
                self.queue.add(f"{resource.kind} {value.key}")
        elif kind == "Job" and event is EventType.DELETED and uid in self._tallies:
            self._tallies[uid].record([value], self.clock())
        if kind in _BY_KIND:
            self.queue.add(f"{kind} {value.metadata.namespace}/{name}")


def _controller_uids(value: KubeObject) -> Sequence[str]:
    _, _, uid = controller_of(value.metadata)
    return [uid] if uid else []
