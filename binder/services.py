"""Carry out one bind request: prepare, bind, or roll back; then report the result.

Binding a plain pod is one request to the API server: the binding carries the pod's annotations, and the server
refuses it if the pod is bound already or was changed since it was seen. The reports afterwards (status, condition,
event) never delay the next bind.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any, TypeVar

from binder.errors import BindError, InvalidRequestError, TakenError, UnknownOutcomeError
from binder.params import BinderParams
from binder.reconcile import NextStep, next_step, pod_uid
from binder.reservations.reserve import Reservations
from binder.steps.base import BindJob, PrepareStep
from binder.steps.table import make_steps
from binder.texts import failure_text, pool_of_request
from binder.turns import Turns
from kube.errors import (
    ConflictError,
    InvalidError,
    KubeError,
    NotFoundError,
    ServerError,
    UnauthorizedError,
)
from kube.events import NORMAL, WARNING, Recorder, event_about
from kube.gateway import Gateway, PatchType
from kube.keys import BIND_UNDO, NUMA_PREDICTED, RECEIVED_TYPE
from kube.objects.bindrequest import OUTDATED, BindRequest
from kube.objects.meta import as_body, convert
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, NODES, PODS
from kube.store import Store
from kube.values.times import format_time

log = logging.getLogger(__name__)
T = TypeVar("T")
#: How often a binding is tried on a pod that others keep changing.
BINDING_ATTEMPTS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BindResult:
    """The result of one attempt.

    Attributes
    ----------
    pod : None if it was not needed or does not exist
    error : why the attempt failed; empty after success
    must_delete : the request is invalid, so it is deleted instead of marked as failed
    is_announced : the pod's condition is written already
    """

    request: BindRequest
    pod: Pod | None
    node: str
    error: str = ""
    must_delete: bool = False
    is_announced: bool = False


@dataclass(slots=True)
class BindService:
    """Attempts bind requests and reports the results; all state is in the cluster (see `turns`)."""

    gateway: Gateway
    store: Store
    recorder: Recorder
    params: BinderParams
    reservations: Reservations
    turns: Turns
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    #: (name, step), in the order in which they prepare.
    steps: tuple[tuple[str, PrepareStep], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Create the preparation steps; raises `ConfigError` for an invalid configuration."""
        self.steps = make_steps(self.gateway, self.params.steps)

    def attempt(self, request: BindRequest, *, is_outdated: bool = False) -> BindResult | None:
        """Carry out a request; None if there is nothing to do, or another binder does it.

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
            if next_action is NextStep.UNDO:
                return self._undo(request, pod, request.metadata.annotations[BIND_UNDO])
            return self._bind(request, pod)
        except UnauthorizedError:
            raise
        except (TakenError, UnknownOutcomeError) as error:
            log.info("bind of pod %s/%s: %s", meta.namespace, spec.pod_name, error)
            return None
        except (BindError, KubeError) as error:
            return BindResult(
                request=request,
                pod=pod,
                node=spec.selected_node,
                error=str(error),
                must_delete=isinstance(error, InvalidRequestError),
            )

    def report(self, result: BindResult) -> None:
        """Write the request's status, the pod's condition and the event."""
        request, pod = result.request, result.pod
        if result.must_delete:
            self._delete(request)
        elif not self._write_status(result):
            return  # another binder has reported, or the request is gone
        is_bound = not result.error
        name = f"{request.metadata.namespace}/{request.spec.pod_name}"
        text = (
            f"Pod bound successfully to node {result.node}"
            if is_bound
            else failure_text(request, result.node, result.error)
        )
        if not result.is_announced:
            self._write_condition(request, is_bound=is_bound, text=text)
        if pod is not None:
            event_type, reason = (NORMAL, "Bound") if is_bound else (WARNING, "BindingError")
            self.recorder.record(event_about(PODS, pod, event_type, reason, text))
            if is_bound:
                text = (
                    f"Successfully assigned pod {name} to node {result.node} "
                    f"at node-pool {pool_of_request(request)}"
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
        is_prepared = self._needs_preparation(job)
        if is_prepared:
            job.request = self.turns.claim(request)
        try:
            self.turns.require_open(job.request, job.pod)
            self._prepare(job)
            self._post_binding(job)
        except (BindError, KubeError) as error:
            bound_to = self._node_bound_to(job, error)
            if bound_to:
                return BindResult(request=job.request, pod=pod, node=bound_to)
            if not is_prepared or isinstance(error, (InvalidRequestError, UnauthorizedError)):
                raise
            marked = self.turns.mark_undo(job.request, str(error))
            return self._undo(marked, pod, str(error))
        return BindResult(request=job.request, pod=pod, node=node)

    def _needs_preparation(self, job: BindJob) -> bool:
        return job.is_fraction or any(step.concerns(job) for _, step in self.steps)

    def _undo(self, request: BindRequest, known: Pod | None, reason: str) -> BindResult:
        """Take back what was prepared for a request that is marked for it; repeating it changes nothing.

        The condition goes first, because it makes a binding under way fail (see `turns`).
        """
        pod = known if known is not None else self._read_pod(request)
        node = request.spec.selected_node
        current = self._write_condition(
            request, is_bound=False, text=failure_text(request, node, reason)
        )
        if current is not None and current.spec.node_name:
            return BindResult(request=request, pod=current, node=current.spec.node_name)
        self._roll_back(BindJob(request=request, pod=current or pod, node=node))
        return BindResult(request=request, pod=pod, node=node, error=reason, is_announced=True)

    def _prepare(self, job: BindJob) -> None:
        try:
            self.reservations.sync_node(job.node)
        except KubeError as error:
            raise BindError(
                f"failed to sync reservation for pod <{job.pod_key}> on node <{job.node}>: {error}"
            ) from error
        if job.is_fraction:
            groups = self._required_groups(job)
            self._retried(job, lambda: self._drop_other_labels(job))
            job.devices = tuple(self._reserve(job, group) for group in groups)
        for name, step in self.steps:
            if step.concerns(job):
                try:
                    self._retried(job, partial(step.prepare, job))
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
            return self._retried(job, lambda: self._reserve_once(job, group))
        except (BindError, KubeError) as error:
            raise BindError(
                f"failed to reserve GPUs for pod <{job.pod_key}> in gpu group <{group}>: {error}"
            ) from error

    def _reserve_once(self, job: BindJob, group: str) -> str:
        device, job.pod = self.reservations.reserve(job.pod, job.node, group)
        return device

    def _drop_other_labels(self, job: BindJob) -> None:
        groups = job.request.spec.selected_gpu_groups
        job.pod = self.reservations.drop_other_labels(job.pod, groups)

    def _retried(self, job: BindJob, write: Callable[[], T]) -> T:
        """Do a write that names the version of the pod; read the pod again if others changed it.

        Raises
        ------
        TakenError : somebody ended the request meanwhile
        ConflictError : the pod is bound, or others keep changing it
        """
        for _ in range(BINDING_ATTEMPTS - 1):
            try:
                return write()
            except ConflictError as error:
                meta = job.pod.metadata
                pod = self.gateway.get(PODS, meta.name, as_type=Pod, namespace=meta.namespace)
                is_other = pod.metadata.uid != meta.uid
                if is_other or pod.spec.node_name or pod.metadata.deletion_timestamp is not None:
                    raise
                self.turns.read_open(job.request)
                job.pod = pod
                log.debug("pod %s was changed: %s", job.pod_key, error)
        return write()

    def _post_binding(self, job: BindJob) -> None:
        try:
            self._retried(job, lambda: self._bind_version(job))
        except UnauthorizedError:
            raise
        except KubeError as error:
            raise BindError(
                f"failed to bind pod <{job.pod_key}> to node <{job.node}>: {error}"
            ) from error

    def _bind_version(self, job: BindJob) -> None:
        spec, meta = job.request.spec, job.pod.metadata
        annotations = {**job.annotations, RECEIVED_TYPE: spec.received_resource_type}
        if spec.predicted_numa_zones:
            zones = [as_body(zone) for zone in spec.predicted_numa_zones]
            annotations[NUMA_PREDICTED] = json.dumps(zones, separators=(",", ":"))
        self.gateway.bind(
            meta.namespace,
            meta.name,
            pod_uid=pod_uid(job.request, job.pod),
            node=job.node,
            annotations=annotations,
            resource_version=meta.resource_version,
        )

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

    def _write_status(self, result: BindResult) -> bool:
        """Write phase, reason and the number of failed attempts; return False if the request is not open.

        A failure is written only on the version that was tried, so that it never replaces the success of
        another binder.
        """
        request = result.request
        old = request.status
        metadata: dict[str, Any] = {}
        if result.error:
            metadata = {"resourceVersion": request.metadata.resource_version}
            status: dict[str, Any] = {
                "phase": "Failed",
                "reason": result.error,
                "failedAttempts": old.failed_attempts + 1,
            }
        else:
            status = {"phase": "Succeeded"}
            if old.reason:
                status["reason"] = None
        meta = request.metadata
        body = {"metadata": {"uid": meta.uid, **metadata}, "status": status}
        try:
            answer = self.gateway.patch(
                BINDREQUESTS, meta.name, body, namespace=meta.namespace, sub="status"
            )
        except (NotFoundError, ConflictError, InvalidError) as error:
            log.info("status of bind request %s: %s", request.key, error)
            return False
        self.store.assume(BINDREQUESTS, convert(answer, BindRequest))
        return True

    def _write_condition(self, request: BindRequest, *, is_bound: bool, text: str) -> Pod | None:
        """Write the pod's condition; return the pod as it is then, None if it is gone."""
        condition = {
            "type": "PodBound",
            "status": "True" if is_bound else "False",
            "reason": "Bound" if is_bound else "BindingError",
            "message": text,
            "lastTransitionTime": format_time(self.wall()),
        }
        try:
            answer = self.gateway.patch(
                PODS,
                request.spec.pod_name,
                {"status": {"conditions": [condition]}},
                namespace=request.metadata.namespace,
                sub="status",
                patch_type=PatchType.STRATEGIC,
            )
        except (NotFoundError, ConflictError):
            return None
        return convert(answer, Pod)

    def _delete(self, request: BindRequest) -> None:
        meta = request.metadata
        try:
            self.gateway.delete(BINDREQUESTS, meta.name, namespace=meta.namespace, uid=meta.uid)
        except NotFoundError:
            return
