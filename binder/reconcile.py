"""What to do next about a bind request: a pure function of the request and its pod.

The fence: each scheduling worker writes its number on what it creates. A request that carries an older
number than one created before it comes from a worker that lost its shard without noticing; it is failed,
because the new owner of the shard decided without knowing it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kube.backoff import doubled_s
from kube.keys import FENCE, NODE_POOL
from kube.numbers import int_or_none
from kube.objects.bindrequest import BindRequest
from kube.objects.pod import Pod
from kube.store import version_number

LONGEST_DELAY_S = 2.0**16


class Step(StrEnum):
    """What a bind request needs."""

    NOTHING = "nothing"
    BIND = "bind"
    MARK_BOUND = "mark-bound"
    REFUSE = "refuse"


def next_step(request: BindRequest, pod: Pod | None, *, is_fenced_off: bool = False) -> Step:
    """Return what a request needs now.

    Parameters
    ----------
    pod : the request's pod as far as it is known; None if it is not (the API server will know)
    is_fenced_off : a newer worker of the shard was at work before this request was made
    """
    if request.metadata.deletion_timestamp is not None or request.status.phase == "Succeeded":
        return Step.NOTHING
    if request.is_failed:
        return Step.NOTHING
    if pod is not None and pod.metadata.uid not in ("", pod_uid(request, pod)):
        return Step.NOTHING  # made for an earlier pod of that name; it goes with its owner
    if pod is not None and pod.spec.node_name:
        return Step.MARK_BOUND
    return Step.REFUSE if is_fenced_off else Step.BIND


def pod_uid(request: BindRequest, pod: Pod | None = None) -> str:
    """Return the uid of the pod a request was made for: its owner, or the pod of that name."""
    owners = [owner.uid for owner in request.metadata.owner_references if owner.kind == "Pod"]
    if owners:
        return owners[0]
    return pod.metadata.uid if pod is not None else ""


def retry_delay_s(failed_attempts: int) -> float:
    """Return how long to wait after so many failures: 1, 2, 4, 8 ... seconds."""
    return doubled_s(failed_attempts, first_s=1.0, most_s=LONGEST_DELAY_S)


@dataclass(slots=True)
class Fences:
    """The newest fence of each node pool, and the version of the first request that carried it."""

    _newest: dict[str, tuple[int, int]] = field(default_factory=dict)

    def is_outdated(self, request: BindRequest) -> bool:
        """Learn from a fresh request; tell whether it comes from a worker that lost its shard."""
        fence = int_or_none(request.metadata.annotations.get(FENCE), smallest=0)
        if fence is None:
            return False
        version = version_number(request.metadata.resource_version)
        pool = request.metadata.labels.get(NODE_POOL, "")
        newest, since = self._newest.get(pool, (0, 0))
        if fence > newest or (fence == newest and version < since):
            self._newest[pool] = (fence, version)
            return False
        return fence < newest and version > since
