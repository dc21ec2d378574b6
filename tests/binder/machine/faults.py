"""The API server as one process sees it: requests may fail, and the process may be stopped at any of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from kube.errors import ConflictError, KubeError, ServerError, TooManyRequestsError
from tests.binder.interrupted import WRITES, Killed
from tests.fakes.gateway import FakeGateway


class Fault(StrEnum):
    """What happens at one request."""

    CONFLICT = "409"
    THROTTLED = "429"
    SERVER = "500"
    TIMEOUT = "timeout"
    ANSWER_LOST = "answer lost"
    KILL = "kill before"
    KILL_AFTER = "kill after"
    PAUSE = "pause before"
    PAUSE_AFTER = "pause after"


AFTER = (Fault.ANSWER_LOST, Fault.KILL_AFTER, Fault.PAUSE_AFTER)
COUNTED = (*WRITES, "evict", "get", "list")


@dataclass
class FaultyGateway:
    """Passes requests on to the cluster; `plan` names the faults by how many requests come before each.

    Attributes
    ----------
    meanwhile : what others do while this process stands still
    """

    cluster: FakeGateway
    plan: dict[int, Fault] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None
    count: int = 0

    def disturb(self, plan: tuple[Fault, int] | None, meanwhile: Callable[[], None]) -> None:
        """Let a fault happen after so many requests from now."""
        self.meanwhile = meanwhile
        if plan is not None:
            fault, after = plan
            self.plan[self.count + after] = fault

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.cluster, name)
        if name not in COUNTED:
            return method

        def call(*args: Any, **options: Any) -> Any:
            fault = self.plan.pop(self.count, None)
            self.count += 1
            is_write = name not in ("get", "list")
            if fault is not None and not (is_write and fault in AFTER):
                self._happen(fault, is_write)
            answer = method(*args, **options)
            if fault is not None and is_write and fault in AFTER:
                self._happen(fault, is_write)
            return answer

        return call

    def _happen(self, fault: Fault, is_write: bool) -> None:
        if fault in (Fault.KILL, Fault.KILL_AFTER):
            raise Killed
        if fault in (Fault.PAUSE, Fault.PAUSE_AFTER):
            self.meanwhile()
            return
        raise _error(fault if is_write or fault is not Fault.CONFLICT else Fault.SERVER)


def _error(fault: Fault) -> KubeError:
    if fault is Fault.CONFLICT:
        return ConflictError("injected: the object has been modified", status=409)
    if fault is Fault.THROTTLED:
        return TooManyRequestsError("injected: too many requests")
    if fault is Fault.SERVER:
        return ServerError("injected: internal error", status=500)
    return ServerError("injected: no answer")
