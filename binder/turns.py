"""Which binder may work on a bind request, when several run at once or one was stopped in the middle.

Two rules keep that safe, even if a binder was stopped and goes on with an old view of the request:

- A binding names the version of the pod that it was decided on. Everything that ends a request without a bound pod
  changes the pod first (the condition `PodBound` here, the memory of failed binds in the scheduler). So a binding
  that comes late is refused, and the binder reads again whether its request is still open.
- What was prepared is undone by one binder: it first marks the request, which ends it for all others, then
  changes the pod, and only then undoes. If the pod turns out to be bound, nothing is undone.

The claim is not needed for safety, it only saves work: a request that needs preparation is left to the binder that claimed it first, until that
has not reported for a while.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from binder.errors import TakenError
from kube.errors import ConflictError, InvalidError, NotFoundError
from kube.gateway import Gateway
from kube.keys import BIND_FAILURES, BIND_UNDO, BINDER_CLAIM
from kube.objects.bindrequest import BindRequest
from kube.objects.meta import convert
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS

#: How long a claim keeps other binders away if the request does not change.
CLAIM_S = 10.0
MAX_REASON_CHARS = 1024


@dataclass(slots=True)
class Turns:
    """The turns of one binder process.

    Parameters
    ----------
    identity : names this process; a restarted process has another one
    """

    gateway: Gateway
    identity: str
    clock: Callable[[], float] = time.monotonic
    #: Key of a request -> (its version with the claim of another binder, when that was first seen).
    _seen: dict[str, tuple[str, float]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, request: BindRequest) -> BindRequest:
        """Return the request with this binder's claim on it.

        Raises
        ------
        TakenError : another binder has claimed it a short time ago, or changed it just now
        """
        holder = request.metadata.annotations.get(BINDER_CLAIM, "")
        if holder == self.identity:
            return request
        if holder and not self._is_abandoned(request):
            raise TakenError(f"claimed by {holder}")
        return self._annotate(request, BINDER_CLAIM, self.identity)

    def mark_undo(self, request: BindRequest, reason: str) -> BindRequest:
        """End a request for all binders, because what was prepared for it is being undone.

        Raises
        ------
        TakenError : another binder has ended it, or it is gone
        """
        current = self.read_open(request)
        return self._annotate(current, BIND_UNDO, reason[:MAX_REASON_CHARS] or "failed")

    def require_open(self, request: BindRequest, pod: Pod) -> None:
        """Check that a request was not ended before this version of its pod came to be.

        The server is not read for a pod that shows no sign of a failed bind.
        """
        condition = pod.condition("PodBound")
        has_failed = condition is not None and condition.status == "False"
        if has_failed or BIND_FAILURES in pod.metadata.annotations:
            self.read_open(request)

    def read_open(self, request: BindRequest) -> BindRequest:
        """Return the request as the server has it now.

        Raises
        ------
        TakenError : it has ended, is being undone, or was replaced by another request of the same name
        """
        meta = request.metadata
        try:
            current = self.gateway.get(
                BINDREQUESTS, meta.name, as_type=BindRequest, namespace=meta.namespace
            )
        except NotFoundError as error:
            raise TakenError("the request is gone") from error
        is_same = not meta.uid or current.metadata.uid == meta.uid
        is_over = current.is_failed or current.status.phase == "Succeeded"
        is_ending = BIND_UNDO in current.metadata.annotations
        if not is_same or is_over or is_ending or current.metadata.deletion_timestamp is not None:
            raise TakenError("the request is over")
        return current

    def forget(self, key: str) -> None:
        """Forget a request that is gone."""
        with self._lock:
            self._seen.pop(key, None)

    def _is_abandoned(self, request: BindRequest) -> bool:
        """Return whether another binder's claim has been seen unchanged for long; clocks are not compared."""
        version = request.metadata.resource_version
        with self._lock:
            seen_version, since = self._seen.get(request.key, ("", 0.0))
            if seen_version != version:
                self._seen[request.key] = (version, self.clock())
                return False
        return self.clock() - since >= CLAIM_S

    def _annotate(self, request: BindRequest, key: str, value: str) -> BindRequest:
        meta = request.metadata
        body: dict[str, Any] = {
            "metadata": {"resourceVersion": meta.resource_version, "annotations": {key: value}}
        }
        try:
            answer = self.gateway.patch(BINDREQUESTS, meta.name, body, namespace=meta.namespace)
        except (ConflictError, InvalidError, NotFoundError) as error:
            raise TakenError("the request was changed by another binder") from error
        return convert(answer, BindRequest)
