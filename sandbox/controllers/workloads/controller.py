"""Runs the workload controllers: watches fill a store, changes fill a queue, and plans are written.

Created objects are put into the store at once, so that the next pass does not create the same pods again
before the watch delivers them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from kube.errors import AlreadyExistsError, KubeError, NotFoundError
from kube.gateway import EventType, PatchOptions
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
from sandbox.controllers.loop import Controller
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

WRITER_THREADS = 8
MAX_WRITES_PER_TURN = 500
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
class WorkloadControllers(Controller):
    """Runs all workload controllers of one cluster until `stop` is set."""

    NAME = "workloads"
    TYPES = _TYPES
    WORKERS = 4
    MAX_PAUSE_S = 30.0
    clock: Callable[[], float] = time.time
    _tallies: dict[str, job.Tally] = field(default_factory=dict)
    _pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(WRITER_THREADS, thread_name_prefix="workloads")
    )

    def follow(self) -> None:
        """Subscribe to changes; add the lookups that they need."""
        for resource in (PODS, JOBS, REPLICASETS):
            self.store.add_index(resource, "controller", _controller_uids)
        self.store.subscribe(self._changed)

    def run(self) -> None:
        """Run until stopped."""
        Controller.run(self)
        self._pool.shutdown(wait=True)

    def reconcile(self, key: str) -> None:
        """Reconcile one workload; a failed write leads to a retry."""
        kind, _, name = key.partition(" ")
        resource = _BY_KIND[kind]
        workload = self.store.get(resource, name)
        if workload is None:
            return
        plan = self._plan(resource, workload)
        if not self._write_all(plan.writes):
            self.queue.retry(key)
            return
        self.queue.forget(key)
        if len(plan.writes) > MAX_WRITES_PER_TURN:
            self.queue.add(key)
        if plan.again_after_s is not None:
            self.queue.add_after(key, plan.again_after_s)

    def _plan(self, resource: Resource, workload: Any) -> Plan:
        uid = workload.metadata.uid
        now = self.clock()
        if resource is JOBS:
            pods = self._owned(PODS, uid)
            if uid not in self._tallies:
                self._tallies[uid] = job.open_tally(workload, pods)
            return job.plan(workload, pods, self._tallies[uid], now)
        if resource is CRONJOBS:
            return cronjob.plan(workload, self._owned(JOBS, uid), now)
        if resource is REPLICASETS:
            return replicaset.plan(workload, self._owned(PODS, uid))
        if resource is DEPLOYMENTS:
            return deployment.plan(workload, self._owned(REPLICASETS, uid), now)
        return statefulset.plan(workload, self._owned(PODS, uid))

    def _owned(self, resource: Resource, uid: str) -> list[Any]:
        return self.store.by_index(resource, "controller", uid)

    def _write_all(self, writes: Sequence[Write]) -> bool:
        """Perform at most MAX_WRITES_PER_TURN writes, several at a time; return whether all succeeded."""
        return all(list(self._pool.map(self._write, writes[:MAX_WRITES_PER_TURN])))

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
                        options=PatchOptions(field_manager="sandbox-workloads"),
                    )
                    self._assume(write.resource, body)
        except (AlreadyExistsError, NotFoundError):
            # Another client was faster; the watch delivers the current state.
            return True
        except KubeError as error:
            log.warning("%s", error)
            return False
        return True

    def _assume(self, resource: Resource, body: Any) -> None:
        """Put our own write into the store, and queue what it concerns.

        The store does not notify its listeners of assumed objects, but a new ReplicaSet or an ended Job needs a pass.
        """
        as_type = _TYPES.get(resource)
        if as_type is not None:
            value = convert(body, as_type)
            self.store.assume(resource, value)
            if resource is not PODS:
                self._changed(resource, EventType.MODIFIED, value)

    def _changed(self, resource: Resource, event: EventType, value: Any) -> None:
        """Queue the workloads that a change concerns: the object itself and its controller."""
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
