"""Decide what to do next about a bind request: a pure function of the request and its pod.

The fence: each scheduler writes its number on the requests it creates. A request with a lower number than one
created before it comes from a scheduler that lost its shard without noticing. It is refused, because the
new scheduler of the shard decided without knowing about it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from binder.params import BinderParams
from kube.keys import BIND_UNDO, FENCE, NODE_POOL
from kube.objects.bindrequest import BindRequest
from kube.objects.pod import Pod
from kube.process.backoff import doubled_s
from kube.store import version_number
from kube.values.numbers import int_or_none


class NextStep(StrEnum):
    """What the binder does about a bind request."""

    NOTHING = "nothing"
    BIND = "bind"
    MARK_BOUND = "mark-bound"
    REFUSE = "refuse"
    UNDO = "undo"


def next_step(request: BindRequest, pod: Pod | None, *, is_fenced_off: bool = False) -> NextStep:
    """Return what to do about a request now.

    Parameters
    ----------
    pod : the request's pod; None if the watch has not shown it yet
    is_fenced_off : a newer scheduler of the shard (one with a higher fence) created a request before this one
    """
    if request.metadata.deletion_timestamp is not None or request.status.phase == "Succeeded":
        return NextStep.NOTHING
    if request.is_failed:
        return NextStep.NOTHING
    if pod is not None and pod.metadata.uid not in ("", pod_uid(request, pod)):
        # The request was made for an earlier pod of that name; garbage collection deletes it.
        return NextStep.NOTHING
    if pod is not None and pod.spec.node_name:
        return NextStep.MARK_BOUND
    if BIND_UNDO in request.metadata.annotations:
        return NextStep.UNDO
    return NextStep.REFUSE if is_fenced_off else NextStep.BIND


def pod_uid(request: BindRequest, pod: Pod | None = None) -> str:
    """Return the uid of the pod that a request was made for: of its owner, else of `pod`; "" if neither is known."""
    owners = [owner.uid for owner in request.metadata.owner_references if owner.kind == "Pod"]
    if owners:
        return owners[0]
    return pod.metadata.uid if pod is not None else ""


def retry_delay_s(failed_attempts: int, params: BinderParams) -> float:
    """Return the pause after so many failed attempts: 2, 4, 8 ... seconds, at most `max_delay_s`."""
    return doubled_s(failed_attempts, first_s=params.base_delay_s, max_s=params.max_delay_s)


@dataclass(slots=True)
class Fences:
    """Remembers the highest fence of each node pool, and so recognizes requests of replaced schedulers."""

    #: Node pool -> (highest fence, version of the first request with it).
    _highest: dict[str, tuple[int, int]] = field(default_factory=dict)

    def record(self, request: BindRequest) -> bool:
        """Record the fence of a request; return whether it comes from a scheduler that had lost its shard.

        Requests may be shown out of order, so a lower fence counts only on a later version.
        """
        fence = int_or_none(request.metadata.annotations.get(FENCE), smallest=0)
        if fence is None:
            return False
        version = version_number(request.metadata.resource_version)
        pool = request.metadata.labels.get(NODE_POOL, "")
        highest, since = self._highest.get(pool, (0, 0))
        if fence > highest or (fence == highest and version < since):
            self._highest[pool] = (fence, version)
            return False
        return fence < highest and version > since
