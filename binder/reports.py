"""Report the result of an attempt: the request's status, the pod's condition, and events.

Reports never delay the next bind: they are written after all attempts that wait.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kube.errors import ConflictError, InvalidError, NotFoundError
from kube.events import NORMAL, WARNING, Recorder, event_about
from kube.gateway import Gateway, PatchType
from kube.keys import SELECTED_NODE_LABEL
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, PODS
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
    is_announced : the pod's condition is written already
    """

    request: BindRequest
    pod: Pod | None
    node: str
    error: str = ""
    must_delete: bool = False
    is_announced: bool = False


@dataclass(slots=True)
class Reports:
    """Writes the results of attempts."""

    gateway: Gateway
    store: Store
    recorder: Recorder
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)

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
            self.write_condition(request, is_bound=is_bound, text=text)
        if pod is not None:
            event_type, reason = (NORMAL, "Bound") if is_bound else (WARNING, "BindingError")
            self.recorder.record(event_about(PODS, pod, event_type, reason, text))
            if is_bound:
                text = (
                    f"Successfully assigned pod {name} to node {result.node} "
                    f"at node-pool {pool_of_request(request)}"
                )
                self.recorder.record(event_about(PODS, pod, NORMAL, "Scheduled", text))

    def _write_status(self, result: BindResult) -> bool:
        """Write phase, reason and the number of failed attempts; return False if the request is not open.

        They are written only on the version that was tried. So a failure never replaces the success of another
        binder, and of two binders only one announces the pod. Where only a claim changed, the next sweep reports.
        """
        request = result.request
        old = request.status
        if result.error:
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
        metadata = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": metadata, "status": status}
        try:
            answer = self.gateway.patch(
                BINDREQUESTS, meta.name, body, namespace=meta.namespace, sub="status"
            )
        except (NotFoundError, ConflictError, InvalidError) as error:
            log.info("status of bind request %s: %s", request.key, error)
            return False
        self.store.assume(BINDREQUESTS, convert(answer, BindRequest))
        return True

    def write_condition(self, request: BindRequest, *, is_bound: bool, text: str) -> Pod | None:
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


def pool_of_request(request: BindRequest) -> str:
    """Return the node pool that a request was made for; its only other label is the node."""
    labels = request.metadata.labels.items()
    return next((value for key, value in labels if key != SELECTED_NODE_LABEL), DEFAULT_POOL)


def failure_text(request: BindRequest, node: str, error: str) -> str:
    """Return the text of the condition and the event after a failed attempt."""
    name = f"{request.metadata.namespace}/{request.spec.pod_name}"
    return f"Failed to bind pod {name} to node {node}: {error}"
