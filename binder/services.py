"""Carry out one bind request: prepare, bind, or roll back; then report the result.

Binding a plain pod is one request to the API server: the binding carries the pod's annotations, and
the pod itself need not be read, because the request names its uid and the server refuses a second
binding. The reports afterwards (status, condition, event) never delay the next bind.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from binder.errors import BindError, InvalidRequestError, UnknownOutcomeError
from binder.params import BinderParams
from binder.reconcile import NextStep, next_step, pod_uid
from binder.reservations import Reservations
from binder.steps.base import BindJob, PrepareStep
from binder.steps.table import make_steps
from kube.errors import (
    ConflictError,
    KubeError,
    NotFoundError,
    ServerError,
    UnauthorizedError,
)
from kube.events import NORMAL, WARNING, Recorder, event_about
from kube.gateway import Gateway, PatchType
from kube.keys import NUMA_PREDICTED, RECEIVED_TYPE, SELECTED_NODE_LABEL
from kube.objects.bindrequest import OUTDATED, BindRequest
from kube.objects.meta import as_body, convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, NODES, PODS
from kube.store import Store
from kube.values.times import format_time
from queues.workloads.conditions import DEFAULT_POOL

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BindResult:
    """The result of one attempt.

    Attributes
    ----------
    pod : None if it was not needed or does not exist
    error : why the attempt failed; empty after success
    must_delete : the request is invalid, so it is deleted instead of marked as failed
    """

    request: BindRequest
    pod: Pod | None
    node: str
    error: str = ""
    must_delete: bool = False


@dataclass(slots=True)
class BindService:
    """Attempts bind requests and reports the results; keeps no state between requests."""

    gateway: Gateway
    store: Store
    recorder: Recorder
    params: BinderParams
    reservations: Reservations
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    steps: tuple[tuple[str, PrepareStep], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Create the preparation steps; raises `ConfigError` for an invalid configuration."""
        self.steps = make_steps(self.gateway, self.params.steps)

    def attempt(self, request: BindRequest, *, is_outdated: bool = False) -> BindResult | None:
        """Carry out a request; None if there is nothing to do, or the result is not known yet.

        Parameters
        ----------
        is_outdated : the request comes from a scheduling worker that lost its shard

        Raises
        ------
        UnauthorizedError : the API server refuses our credentials
        """
        meta, spec = request.metadata, request.spec
        pod: Pod | None = self.store.get(PODS, f"{meta.namespace}/{spec.pod_name}")
        next_action = next_step(request, pod, is_fenced_off=is_outdated)
        if next_action is NextStep.NOTHING:
            return None
        if next_action is NextStep.MARK_BOUND and pod is not None:
            return BindResult(request=request, pod=pod, node=pod.spec.node_name)
        if next_action is NextStep.REFUSE:
            return BindResult(request=request, pod=pod, node=spec.selected_node, error=OUTDATED)
        try:
            return self._bind(request, pod)
        except InvalidRequestError as error:
            return BindResult(
                request=request,
                pod=pod,
                node=spec.selected_node,
                error=str(error),
                must_delete=True,
            )
        except UnauthorizedError:
            raise
        except UnknownOutcomeError as error:
            log.warning("bind of pod %s/%s: %s", meta.namespace, spec.pod_name, error)
            return None
        except (BindError, KubeError) as error:
            return BindResult(request=request, pod=pod, node=spec.selected_node, error=str(error))

    def report(self, result: BindResult) -> None:
        """Write the request's status, the pod's condition and the event."""
        request, pod = result.request, result.pod
        if result.must_delete:
            self._delete(request)
        else:
            self._write_status(result)
        is_bound = not result.error
        name = f"{request.metadata.namespace}/{request.spec.pod_name}"
        text = (
            f"Pod bound successfully to node {result.node}"
            if is_bound
            else f"Failed to bind pod {name} to node {result.node}: {result.error}"
        )
        self._write_condition(request, is_bound=is_bound, text=text)
        if pod is not None:
            event_type, reason = (NORMAL, "Bound") if is_bound else (WARNING, "BindingError")
            self.recorder.record(event_about(PODS, pod, event_type, reason, text))
            if is_bound:
                text = (
                    f"Successfully assigned pod {name} to node {result.node} "
                    f"at node-pool {_pool_of(request)}"
                )
                self.recorder.record(event_about(PODS, pod, NORMAL, "Scheduled", text))

    # --------------------------------------------------------------------------------- attempting

    def _bind(self, request: BindRequest, known: Pod | None) -> BindResult:
        pod = known if known is not None else self._read_pod(request)
        node = request.spec.selected_node
        if pod.spec.node_name:
            return BindResult(request=request, pod=pod, node=pod.spec.node_name)
        self._require_node(node)
        job = BindJob(request=request, pod=pod, node=node)
        try:
            self._prepare(job)
            self._post_binding(job)
        except (BindError, KubeError) as error:
            bound_to = self._node_bound_to(job, error)
            if bound_to:
                return BindResult(request=request, pod=pod, node=bound_to)
            self._roll_back(job)
            raise
        return BindResult(request=request, pod=pod, node=node)

    def _prepare(self, job: BindJob) -> None:
        try:
            self.reservations.sync_node(job.node)
        except KubeError as error:
            raise BindError(
                f"failed to sync reservation for pod <{job.pod_key}> on node <{job.node}>: {error}"
            ) from error
        if job.is_fraction:
            job.devices = tuple(self._reserve(job, group) for group in self._required_groups(job))
        for name, step in self.steps:
            if step.concerns(job):
                try:
                    step.prepare(job)
                except (BindError, KubeError) as error:
                    raise BindError(f"plugin {name} failed in PreBind: {error}") from error

    def _required_groups(self, job: BindJob) -> tuple[str, ...]:
        groups = job.request.spec.selected_gpu_groups
        if not groups:
            raise InvalidRequestError(
                "no SelectedGPUGroups for fractional pod: invalid binding request"
            )
        return groups

    def _reserve(self, job: BindJob, group: str) -> str:
        try:
            return self.reservations.reserve(job.pod, job.node, group)
        except (BindError, KubeError) as error:
            raise BindError(
                f"failed to reserve GPUs for pod <{job.pod_key}> in gpu group <{group}>: {error}"
            ) from error

    def _post_binding(self, job: BindJob) -> None:
        spec, meta = job.request.spec, job.pod.metadata
        annotations = {**job.annotations, RECEIVED_TYPE: spec.received_resource_type}
        if spec.predicted_numa_zones:
            zones = [as_body(zone) for zone in spec.predicted_numa_zones]
            annotations[NUMA_PREDICTED] = json.dumps(zones, separators=(",", ":"))
        uid = pod_uid(job.request, job.pod)
        try:
            self.gateway.bind(
                meta.namespace, meta.name, pod_uid=uid, node=job.node, annotations=annotations
            )
        except UnauthorizedError:
            raise
        except KubeError as error:
            raise BindError(
                f"failed to bind pod <{job.pod_key}> to node <{job.node}>: {error}"
            ) from error

    def _node_bound_to(self, job: BindJob, error: Exception) -> str:
        """Return the pod's node if it is bound although the binding was refused or not answered."""
        if not isinstance(error.__cause__, (ConflictError, ServerError)):
            return ""
        try:
            meta = job.pod.metadata
            pod = self.gateway.get(PODS, meta.name, as_type=Pod, namespace=meta.namespace)
        except ServerError as no_answer:
            # The pod may be bound. Rolling back what a running pod needs would be worse than waiting.
            raise UnknownOutcomeError(str(error)) from no_answer
        except KubeError:
            return ""
        return pod.spec.node_name if pod.metadata.uid == job.pod.metadata.uid else ""

    def _roll_back(self, job: BindJob) -> None:
        """Undo all steps in their order; a failure is only logged, because the next sync repeats the work.

        Steps that this attempt did not reach are undone too, because an earlier attempt that was interrupted
        may have reached them.
        """
        for _, step in self.steps:
            try:
                if step.concerns(job):
                    step.roll_back(job)
            except (BindError, KubeError) as error:
                log.warning("rollback for pod %s: %s", job.pod_key, error)
        if not job.is_fraction:
            return
        try:
            self.reservations.release(job.pod)
            self.reservations.sync_node(job.node)
        except KubeError as error:
            log.warning("reservations of node %s: %s", job.node, error)

    def _read_pod(self, request: BindRequest) -> Pod:
        namespace, name = request.metadata.namespace, request.spec.pod_name
        try:
            return self.gateway.get(PODS, name, as_type=Pod, namespace=namespace)
        except NotFoundError as error:
            raise BindError(f"pod <{namespace}/{name}> was not found: {error}") from error

    def _require_node(self, node: str) -> None:
        if self.store.get(NODES, node) is None:
            try:
                self.gateway.get(NODES, node, as_type=Node)
            except NotFoundError as error:
                raise BindError(f"node <{node}> was not found: {error}") from error

    # ----------------------------------------------------------------------------------- reporting

    def _write_status(self, result: BindResult) -> None:
        """Write phase, reason and the number of failed attempts."""
        request = result.request
        old = request.status
        if result.error:
            attempts = old.failed_attempts + 1
            status: dict[str, Any] = {
                "phase": "Failed",
                "reason": result.error,
                "failedAttempts": attempts,
            }
        else:
            status = {"phase": "Succeeded"}
            if old.reason:
                status["reason"] = None
        meta = request.metadata
        try:
            answer = self.gateway.patch(
                BINDREQUESTS,
                meta.name,
                {"status": status},
                namespace=meta.namespace,
                sub="status",
            )
        except NotFoundError:
            return
        self.store.assume(BINDREQUESTS, convert(answer, BindRequest))

    def _write_condition(self, request: BindRequest, *, is_bound: bool, text: str) -> None:
        condition = {
            "type": "PodBound",
            "status": "True" if is_bound else "False",
            "reason": "Bound" if is_bound else "BindingError",
            "message": text,
            "lastTransitionTime": format_time(self.wall()),
        }
        try:
            self.gateway.patch(
                PODS,
                request.spec.pod_name,
                {"status": {"conditions": [condition]}},
                namespace=request.metadata.namespace,
                sub="status",
                patch_type=PatchType.STRATEGIC,
            )
        except (NotFoundError, ConflictError):
            return

    def _delete(self, request: BindRequest) -> None:
        meta = request.metadata
        try:
            self.gateway.delete(BINDREQUESTS, meta.name, namespace=meta.namespace, uid=meta.uid)
        except NotFoundError:
            return


def _pool_of(request: BindRequest) -> str:
    """Return the node pool that a request was made for; its only other label is the node."""
    labels = request.metadata.labels.items()
    return next((value for key, value in labels if key != SELECTED_NODE_LABEL), DEFAULT_POOL)
