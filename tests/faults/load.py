"""Two thousand pods that arrive in jobs, and what an observer sees of them in the cluster."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kube.errors import AlreadyExistsError, KubeError
from kube.gateway import EventType, Gateway, Listing, WatchEvent
from kube.objects.pod import Pod
from kube.resources import JOBS, PODS, Resource
from kube.watch import Reflector
from tests.deploy.whole import TEAM, job

JOBS_OF_A_LOAD = 20
RETRY_S = 0.5


@dataclass(slots=True)
class Observer:
    """Follows the pods of the team past the proxy; `faults` are what must never happen."""

    gateway: Gateway
    stop: threading.Event = field(default_factory=threading.Event)
    faults: list[str] = field(default_factory=list)
    expects_deletions: bool = True
    #: When each pod was seen bound, by uid.
    bound_at: dict[str, float] = field(default_factory=dict)
    _nodes: dict[str, str] = field(default_factory=dict)
    _phases: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self) -> None:
        """Follow from another thread."""
        watch = Reflector(self.gateway, PODS, Pod, self, namespace=TEAM)
        watch.start(self.stop, on_fatal=lambda error: self.faults.append(str(error)))

    def begin(self) -> None:
        """Forget earlier loads; from now on no pod may be deleted."""
        with self._lock:
            self.bound_at.clear()
            self.faults.clear()
            self.expects_deletions = False

    @property
    def present(self) -> int:
        return len(self._phases)

    @property
    def bound(self) -> int:
        return len(self.bound_at)

    @property
    def running(self) -> int:
        with self._lock:
            return sum(phase == "Running" for phase in self._phases.values())

    def longest_pause(self, since: float, until: float) -> float:
        """Return the longest time without a new binding in a period."""
        with self._lock:
            times = sorted(at for at in self.bound_at.values() if since <= at <= until)
        points = [since, *times, until]
        return max(later - earlier for earlier, later in itertools.pairwise(points))

    def replace(self, resource: Resource, listing: Listing[Any]) -> None:
        """Take the full list of the pods."""
        with self._lock:
            uids = {pod.metadata.uid for pod in listing.items}
            for uid in self._phases.keys() - uids:
                self._gone(uid, uid)
            for pod in listing.items:
                self._seen(pod)

    def apply(self, resource: Resource, event: WatchEvent[Any]) -> None:
        """Take one change."""
        if event.type is EventType.BOOKMARK:
            return
        with self._lock:
            if event.type is EventType.DELETED:
                self._gone(event.object.metadata.uid, event.object.key)
            else:
                self._seen(event.object)

    def _seen(self, pod: Pod) -> None:
        uid, node = pod.metadata.uid, pod.spec.node_name
        self._phases[uid] = pod.status.phase
        if pod.metadata.deletion_timestamp is not None and not self.expects_deletions:
            self.faults.append(f"{pod.key} is being deleted")
        if not node:
            return
        before = self._nodes.setdefault(uid, node)
        if before != node:
            self.faults.append(f"{pod.key} was bound to {before} and to {node}")
        self.bound_at.setdefault(uid, time.monotonic())

    def _gone(self, uid: str, name: str) -> None:
        self._phases.pop(uid, None)
        self._nodes.pop(uid, None)
        if not self.expects_deletions:
            self.faults.append(f"{name} is gone")


def submit_jobs(gateway: Gateway, prefix: str, pods: int, period_s: float) -> threading.Thread:
    """Create jobs over a period from a thread; a server that is away is tried again."""

    def run() -> None:
        for number in range(JOBS_OF_A_LOAD):
            body = job(f"{prefix}-{number:02d}", pods=pods // JOBS_OF_A_LOAD)
            _retried(lambda body=body: gateway.create(JOBS, body, namespace=TEAM))
            time.sleep(period_s / JOBS_OF_A_LOAD)

    thread = threading.Thread(target=run, daemon=True, name=f"submit-{prefix}")
    thread.start()
    return thread


def delete_jobs(gateway: Gateway, prefix: str) -> None:
    """Delete the jobs of a load with their pods."""
    for item in gateway.list(JOBS, as_type=dict, namespace=TEAM).items:
        name = item["metadata"]["name"]
        if name.startswith(f"{prefix}-"):
            gateway.delete(JOBS, name, namespace=TEAM)


def _retried(write: Callable[[], Any]) -> None:
    while True:
        try:
            write()
        except AlreadyExistsError:
            return
        except KubeError:
            time.sleep(RETRY_S)
        else:
            return
