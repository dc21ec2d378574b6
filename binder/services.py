"""Carry out one bind request: prepare, bind, or roll back.

Binding a plain pod is one request to the API server: the binding carries the pod's annotations, and the server
refuses it if the pod is bound already or was changed since it was seen.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from binder.errors import (
    BindError,
    InvalidRequestError,
    TakenError,
    UnfinishedUndoError,
    UnknownOutcomeError,
)
from binder.params import BinderParams
from binder.reconcile import NextStep, next_step, pod_uid
from binder.reports import BindResult, Reports, failure_text
from binder.reservations.reserve import Reservations
from binder.reservations.room import whole_gpus
from binder.steps.base import BindJob, PrepareStep
from binder.steps.table import make_steps
from binder.turns import Turns
from kube.errors import (
    ConflictError,
    KubeError,
    NotFoundError,
    ServerError,
    UnauthorizedError,
)
from kube.gateway import Gateway
from kube.keys import BIND_UNDO, BINDER_CLAIM, NUMA_PREDICTED, RECEIVED_TYPE
from kube.objects.bindrequest import OUTDATED, BindRequest
from kube.objects.meta import as_body
from kube.objects.node import Node
from kube.objects.pod import Pod
from kube.resources import NODES, PODS
from kube.store import Store

log = logging.getLogger(__name__)
T = TypeVar("T")
#: How often a binding is tried on a pod that others keep changing.
BINDING_ATTEMPTS = 5


@dataclass(slots=True)
class BindService:
    """Attempts bind requests; all state is in the cluster (see `turns`)."""

    gateway: Gateway
    store: Store
    reports: Reports
    params: BinderParams
    reservations: Reservations
    turns: Turns
    #: (name, step), in the order in which they prepare.
    steps: tuple[tuple[str, PrepareStep], ...] = field(init=False)

    def __post_init__(self) -> None:
        """Create the preparation steps; raises `ConfigError` for an invalid configuration."""
        self.steps = make_steps(self.gateway, self.params.steps)

    def attempt(self, request: BindRequest, *, is_outdated: bool = False) -> BindResult | None:
        """Carry out a request; None if there is nothing to do, or another binder does it.

        Parameters
        ----------
        is_outdated : the request comes from a scheduler that had lost its shard

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
        try:
            if next_action is NextStep.REFUSE:
                return self._refuse(request, pod)
            if next_action is NextStep.UNDO:
                return self._undo(request, pod, request.metadata.annotations[BIND_UNDO])
            return self._bind(request, pod)
        except UnauthorizedError:
            raise
        except (TakenError, UnknownOutcomeError, UnfinishedUndoError) as error:
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

    # --------------------------------------------------------------------------------- attempting

    def _bind(self, request: BindRequest, cached_pod: Pod | None) -> BindResult:
        pod = cached_pod if cached_pod is not None else self._read_pod(request)
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

    def _refuse(self, request: BindRequest, pod: Pod | None) -> BindResult:
        """Fail a request of a scheduler that lost its shard; what a binder prepared for it is taken back."""
        if BINDER_CLAIM in request.metadata.annotations:
            return self._undo(self.turns.mark_undo(request, OUTDATED), pod, OUTDATED)
        node = request.spec.selected_node
        return BindResult(request=request, pod=pod, node=node, error=OUTDATED)

    def _needs_preparation(self, job: BindJob) -> bool:
        return job.is_fraction or any(step.concerns(job) for _, step in self.steps)

    def _undo(self, request: BindRequest, cached_pod: Pod | None, reason: str) -> BindResult:
        """Take back what was prepared for a request that is marked for it; repeating it changes nothing.

        The condition goes first, because it makes a binding under way fail (see `turns`).
        """
        pod = cached_pod if cached_pod is not None else self._read_pod(request)
        node = request.spec.selected_node
        current = self.reports.write_condition(
            request, is_bound=False, text=failure_text(request, node, reason)
        )
        if current is not None and current.spec.node_name:
            return BindResult(request=request, pod=current, node=current.spec.node_name)
        self._roll_back(BindJob(request=request, pod=current or pod, node=node))
        return BindResult(request=request, pod=pod, node=node, error=reason, is_announced=True)

    def _prepare(self, job: BindJob) -> None:
        try:
            self.reservations.sync_node(job.node)
            self.reservations.make_room(job.node, whole_gpus(job.pod))
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
        """Undo all steps in their order.

        Steps that this attempt did not reach are undone too, because an earlier attempt that was interrupted
        may have reached them.

        Raises
        ------
        UnfinishedUndoError : the server failed for a moment; the next sweep repeats the undoing
        """
        undos = [partial(step.roll_back, job) for _, step in self.steps if step.concerns(job)]
        if job.is_fraction:
            undos.append(partial(self.reservations.release, job.pod))
            undos.append(partial(self.reservations.sync_node, job.node))
        unfinished = ""
        for undo in undos:
            try:
                undo()
            except (BindError, KubeError) as error:
                log.warning("rollback for pod %s: %s", job.pod_key, error)
                if isinstance(error, KubeError) and not error.permanent:
                    unfinished = str(error)
        if unfinished:
            raise UnfinishedUndoError(unfinished)

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
