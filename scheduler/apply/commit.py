"""Write decisions to the cluster as they are made, several at a time.

A bind is one BindRequest, an eviction one Eviction; each runs in a small pool of threads while the core
goes on deciding. Nothing is retried here, because the next cycle sees the cluster as it is. What succeeded is
put into the worker's own store at once, so that the next cycle, which may start before the watch has brought
it back, does not decide it again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kube.errors import (
    AlreadyExistsError,
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
    UnauthorizedError,
)
from kube.events import NORMAL, WARNING, Recorder, event_about
from kube.gateway import Gateway
from kube.keys import BIND_FAILURES
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.process.progress import track
from kube.resources import BINDREQUESTS, PODGROUPS, PODS
from kube.store import Store
from kube.values.times import format_time
from queues.workloads.bind_failures import BindFailures, after_failure, written_failures
from scheduler.apply.bind_requests import bind_request_body
from scheduler.apply.evictions import EvictionWriter, EvictorGroup, by_evictor
from scheduler.apply.pod_conditions import patch_pod_condition
from scheduler.apply.refused_evictions import RefusedEvictions
from scheduler.apply.run_times import LimitedRun
from scheduler.core.decisions import (
    Bind,
    Decision,
    Evict,
    Nominate,
    TaskRef,
    promised_nodes_of,
)
from scheduler.load.build import Snapshot
from scheduler.metrics import METRICS
from scheduler.settings.params import ShardParams

log = logging.getLogger(__name__)


@dataclass(slots=True)
class CommitReport:
    """The outcome of a cycle's decisions; `failures` are (object, error).

    `run_ended`: uids of the pods that were evicted because of a maximum run time.
    """

    bound: list[TaskRef] = field(default_factory=list)
    evicted: list[TaskRef] = field(default_factory=list)
    nominated: list[TaskRef] = field(default_factory=list)
    run_ended: set[str] = field(default_factory=set)
    failures: list[tuple[str, KubeError]] = field(default_factory=list)

    def raise_if_unauthorized(self) -> None:
        """Raise the error of a refused credential, if there is one: the process must end."""
        for _, error in self.failures:
            if isinstance(error, UnauthorizedError):
                raise error


@dataclass(slots=True)
class Committer:
    """Applies the decisions of one cycle.

    Parameters
    ----------
    pool : threads for the writes; shared between cycles
    refused : evictions that were refused in earlier cycles; added to
    fence : number of the lease this worker holds; written on bind requests, 0 for none
    is_allowed : asked before each write; False once the shard belongs to another worker
    """

    gateway: Gateway
    store: Store
    recorder: Recorder
    params: ShardParams
    snapshot: Snapshot
    pool: ThreadPoolExecutor
    refused: RefusedEvictions = field(default_factory=RefusedEvictions)
    fence: int = 0
    is_allowed: Callable[[], bool] = lambda: True
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    report: CommitReport = field(default_factory=CommitReport)
    evictions: EvictionWriter = field(init=False)
    _running: list[Future[None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the writer of evictions."""
        self.evictions = EvictionWriter(
            self.gateway,
            self.store,
            self.recorder,
            self.params,
            self.snapshot,
            self.refused,
            self.wall,
        )

    def apply(self, decision: Decision) -> None:
        """Start writing one decision; returns at once."""
        if isinstance(decision, Bind):
            self._submit(self._bind, decision)
        elif isinstance(decision, Evict):
            self._submit(self._evict, decision)
        else:
            self._nominate(decision)

    def apply_all(self, decisions: Iterable[Decision]) -> None:
        evictions: list[Evict] = []
        for decision in decisions:
            if isinstance(decision, Evict):
                evictions.append(decision)
            else:
                self.apply(decision)
        for group in by_evictor(evictions, self.snapshot.budget_of):
            if group.guarded:
                self._submit(self._evict_group, group)
            else:
                for decision in group.others:
                    self._submit(self._evict, decision)

    def clean_up(self) -> None:
        """Delete bind requests that are spent, before anything new is decided about their pods."""
        for request in self.snapshot.spent_requests:
            self._submit(self._delete_spent, request)
        self.wait()

    def wait(self) -> CommitReport:
        """Wait for the writes started so far."""
        sign = track()
        while self._running:  # a write may start further ones
            running, self._running = self._running, []
            for future in running:
                future.result()
                sign.touch()
        return self.report

    def _submit(self, work: Callable[[Any], object], item: Any) -> None:
        self._running.append(self.pool.submit(self._if_allowed, work, item))

    def _if_allowed(self, work: Callable[[Any], object], item: Any) -> None:
        if self.is_allowed():
            work(item)
        else:
            self._failed("write", KubeError("the shard belongs to another worker now"))

    # ------------------------------------------------------------------------------------- binds

    def _bind(self, decision: Bind) -> None:
        ref = decision.task
        pod = self.snapshot.pods.get(f"{ref.namespace}/{ref.name}")
        if pod is None:
            return
        started = time.perf_counter()
        try:
            body = bind_request_body(decision, pod, self.params, self.fence)
            answer = self.gateway.create(BINDREQUESTS, body, namespace=ref.namespace)
            self.store.assume(BINDREQUESTS, convert(answer, BindRequest))
            self._mark_pool(pod)
        except KubeError as error:
            self._bind_failed(decision, pod, error)
            return
        METRICS.observe_bind(time.perf_counter() - started, pod.metadata.created)
        self.report.bound.append(ref)  # the binder announces it once the pod has its node

    def _mark_pool(self, pod: Pod) -> None:
        labels = self.params.pool_labels()
        if labels and not labels.items() <= pod.metadata.labels.items():
            meta = pod.metadata
            body = {"metadata": {"labels": labels}}
            self.gateway.patch(PODS, meta.name, body, namespace=meta.namespace)

    def _bind_failed(self, decision: Bind, pod: Pod, error: KubeError) -> None:
        ref = decision.task
        self._failed(f"bind of pod {ref.namespace}/{ref.name}", error)
        text = f"Failed to bind pod {ref.namespace}/{ref.name} to node {decision.node}. {error}"
        self.recorder.record(event_about(PODS, pod, WARNING, "FailedBinding", text))
        if isinstance(error, (AlreadyExistsError, NotFoundError, UnauthorizedError)):
            return  # our own earlier request exists, the pod is gone, or this process must end
        failures = after_failure(
            self.snapshot.binds.known.get(pod.key),
            node=decision.node,
            request="",
            reason=str(error),
            now=self.wall().timestamp(),
        )
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "BindingError",
            "message": text,
            "lastTransitionTime": format_time(self.wall()),
        }
        try:
            self._remember(pod, failures)
            patch_pod_condition(self.gateway, pod, condition)
        except KubeError as report_error:
            log.info("failed bind of pod %s: %s", pod.metadata.key, report_error)

    def _remember(self, pod: Pod, failures: BindFailures) -> None:
        """Write the failed bind on the pod, where it survives every restart."""
        meta = pod.metadata
        body = {
            "metadata": {
                "uid": meta.uid,
                "annotations": {BIND_FAILURES: written_failures(failures)},
            }
        }
        answer = self.gateway.patch(PODS, meta.name, body, namespace=meta.namespace)
        self.store.assume(PODS, convert(answer, Pod))

    def _delete_spent(self, request: BindRequest) -> None:
        """Delete a request, after its failure is written on the pod: a lost request would be a lost failure."""
        meta = request.metadata
        key = f"{meta.namespace}/{request.spec.pod_name}"
        failures = self.snapshot.binds.unwritten.get(key)
        try:
            if failures is not None and failures.request == meta.uid:
                with suppress(
                    NotFoundError, ConflictError, InvalidError
                ):  # another pod of that name
                    self._remember(self.snapshot.pods[key], failures)
            self.gateway.delete(BINDREQUESTS, meta.name, namespace=meta.namespace, uid=meta.uid)
        except NotFoundError:
            pass
        except KubeError as error:
            log.warning("failed to delete stale bind request %s: %s", meta.key, error)
            self._failed(f"stale bind request {meta.key}", error)
            return
        self.store.discard(BINDREQUESTS, request)

    # --------------------------------------------------------------------------------- evictions

    def _evict(self, decision: Evict) -> KubeError | None:
        """Evict a pod; return why that was refused, None if it was not."""
        ref = decision.task
        try:
            if self.evictions.evict(decision):
                self.report.evicted.append(ref)
        except KubeError as error:
            self._failed(f"eviction of pod {ref.namespace}/{ref.name}", error)
            return error
        return None

    def _evict_group(self, group: EvictorGroup) -> None:
        """Evict guarded pods one after the other, then the others; after a refusal all that are left stay.

        The pod group that wants the room does not fit without the refused one, so they would go for nothing.
        """
        for position, decision in enumerate(group.guarded, start=1):
            if not self.is_allowed():
                self._failed("write", KubeError("the shard belongs to another worker now"))
                return
            if self._evict(decision) is not None:
                spared = [*group.guarded[position:], *group.others]
                if spared:
                    log.info("%d further evictions for the same workload are given up", len(spared))
                return
        for decision in group.others:
            self._submit(self._evict, decision)

    def requeue(self, items: Iterable[tuple[Pod, str]]) -> None:
        """Start evicting pods of groups (by key) that people requested to wait again."""
        evicted = {ref.uid for ref in self.report.evicted}
        for pod, group_key in items:
            if pod.metadata.uid not in evicted:
                self._submit(self._requeue, (pod, group_key))

    def _requeue(self, item: tuple[Pod, str]) -> None:
        pod, group_key = item
        meta = pod.metadata
        try:
            if self.evictions.requeue(pod, group_key):
                self.report.evicted.append(TaskRef(meta.namespace, meta.name, meta.uid))
        except KubeError as error:
            self._failed(f"requested eviction of pod {meta.key}", error)

    def follow_runs(self, runs: Iterable[LimitedRun]) -> None:
        """Start writing the deadlines of runs, and evicting the pods of those that took their maximum run time."""
        for run in runs:
            self._submit(self._follow_run, run)

    def _follow_run(self, run: LimitedRun) -> None:
        meta = run.group.metadata
        body = {"metadata": {"annotations": run.annotations(self.wall())}}
        try:
            # Before the evictions: whatever happens then, what their owner creates anew waits.
            answer = self.gateway.patch(PODGROUPS, meta.name, body, namespace=meta.namespace)
            self.store.assume(PODGROUPS, convert(answer, PodGroup))
        except KubeError as error:
            self._failed(f"deadline of pod group {meta.key}", error)
            return
        evicted = {ref.uid for ref in self.report.evicted}
        for pod in run.pods:
            if pod.metadata.uid not in evicted:
                self._submit(self._end_run, (pod, run))

    def _end_run(self, item: tuple[Pod, LimitedRun]) -> None:
        pod, run = item
        meta = pod.metadata
        try:
            if self.evictions.end_run(pod, run.group.key, run.text):
                self.report.run_ended.add(meta.uid)
                self.report.evicted.append(TaskRef(meta.namespace, meta.name, meta.uid))
        except KubeError as error:
            self._failed(f"eviction of pod {meta.key} after its maximum run time", error)

    # ------------------------------------------------------------------------------------ others

    def _nominate(self, decision: Nominate) -> None:
        ref = decision.task
        self.report.nominated.append(ref)
        pod = self.snapshot.pods.get(f"{ref.namespace}/{ref.name}")
        if pod is not None:
            text = f"Pod {ref.namespace}/{ref.name} was pipelined to node {decision.node}"
            self.recorder.record(event_about(PODS, pod, NORMAL, "Pipelined", text))

    def remember_promises(self, decisions: Sequence[Decision]) -> None:
        """Start writing which node each pod is promised (`status.nominatedNodeName`), where that changed."""
        before = {
            pod.metadata.uid: pod
            for pod in self.snapshot.pods.values()
            if pod.status.nominated_node_name and not pod.spec.node_name
        }
        nodes = promised_nodes_of(decisions, before)
        pods = dict(before)
        for decision in decisions:
            ref = decision.task
            if isinstance(decision, Bind):
                pods.pop(ref.uid, None)  # binding it ends the promise
            elif ref.uid in nodes:
                pod = self.snapshot.pods.get(f"{ref.namespace}/{ref.name}")
                if pod is not None:
                    pods[ref.uid] = pod
        for uid, pod in pods.items():
            node = nodes.get(uid, "")
            if node != pod.status.nominated_node_name:
                self._submit(self._write_promise, (pod, node))

    def _write_promise(self, promise: tuple[Pod, str]) -> None:
        pod, node = promise
        meta = pod.metadata
        body = {"metadata": {"uid": meta.uid}, "status": {"nominatedNodeName": node or None}}
        try:
            answer = self.gateway.patch(
                PODS, meta.name, body, namespace=meta.namespace, sub="status"
            )
            self.store.assume(PODS, convert(answer, Pod))
        except KubeError as error:
            # Without it the room is not kept, which only costs time.
            log.info("nomination of pod %s: %s", meta.key, error)

    def _failed(self, what: str, error: KubeError) -> None:
        log.warning("%s failed: %s", what, error)
        self.report.failures.append((what, error))
