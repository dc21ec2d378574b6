"""Measure how many pods a second one binder binds on a real API server, and where the time goes.

Pods and their bind requests are created first; then a binder of this process starts and carries out all of them.
Every request to the API server is timed by its kind. Pods ask for one whole GPU each: shared devices, claims and
volumes cost what their drivers take.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from binder.params import BinderParams
from binder.worker import BinderWorker
from kube.errors import KubeError, NotFoundError
from kube.gateway import Gateway
from kube.keys import NVIDIA_GPU
from kube.resources import BINDREQUESTS, NAMESPACES, NODES, PODS

CREATORS = 16
POLL_S = 0.02
DEADLINE_S = 300.0
TIMED = ("get", "list", "create", "replace", "patch", "delete", "bind")
#: What ends each stage of a bind, and how many such requests there are for each pod.
BOUND, REPORTED, ANNOUNCED = "bind pods", "patch pods/status", "create events"
EVENTS_PER_POD = 2


@dataclass(slots=True)
class TimedGateway:
    """Passes requests on and adds up how many ended of each kind and how long they took."""

    gateway: Gateway
    counts: Counter[str] = field(default_factory=Counter)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.gateway, name)
        return self._timed(name, method) if name in TIMED else method

    def _timed(self, verb: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            request_kind = _kind_of(verb, args, options)
            started = time.perf_counter()
            try:
                return method(*args, **options)
            finally:
                elapsed = time.perf_counter() - started
                with self._lock:
                    self.counts[request_kind] += 1
                    self.seconds[request_kind] += elapsed

        return call


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMeasurement:
    """The result.

    Attributes
    ----------
    bound_s : until the last pod had its node
    reported_s : until the last status and condition were written
    announced_s : until the last event was written as well, so that nothing is left to do
    cpu_s : what each process computed meanwhile; "binder" is this one
    counts, seconds : kind of request -> how many there were, and how long they took over all threads
    """

    pods: int
    concurrency: int
    bound_s: float
    reported_s: float
    announced_s: float
    cpu_s: Mapping[str, float]
    counts: Mapping[str, int]
    seconds: Mapping[str, float]

    def text(self) -> str:
        """Return the lines to print."""
        return "\n".join([self._rates(), self._computing(), *self._requests()])

    def _rates(self) -> str:
        pods = self.pods
        return (
            f"binds: {pods} pods by one binder with {self.concurrency} threads: "
            f"{pods / self.announced_s:.0f} binds/s with all statuses and events written "
            f"({self.announced_s:.2f} s); bound after {self.bound_s:.2f} s "
            f"({pods / self.bound_s:.0f}/s), statuses after {self.reported_s:.2f} s"
        )

    def _computing(self) -> str:
        total_s = sum(self.cpu_s.values())
        parts = ", ".join(
            f"{name} {1000 * seconds / self.pods:.1f} ms" for name, seconds in self.cpu_s.items()
        )
        return (
            f"  processor time of one bind: {parts}; {self.pods / self.cpu_s['binder']:.0f} binds per "
            f"second of the binder's, {self.pods / total_s:.0f} of all"
        )

    def _requests(self) -> Iterator[str]:
        total_s = sum(self.seconds.values())
        for request_kind, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            count = self.counts[request_kind]
            yield (
                f"  {request_kind:<28} {count:>6} requests {1000 * seconds / count:>8.1f} ms each "
                f"{100 * seconds / total_s:>5.0f} % of the waiting for answers"
            )


def measure_binds(
    gateway: Gateway,
    *,
    pods: int,
    concurrency: int,
    server_cpu_s: Callable[[], Mapping[str, float]] = dict,
) -> BindMeasurement:
    """Create pods and bind requests in a namespace of their own, bind them, and clean up.

    Parameters
    ----------
    server_cpu_s : returns the processor time of other processes up to now, by their names

    Raises
    ------
    kube.errors.KubeError : the API server refused something, or not all pods were bound in time
    """
    with _prepared(gateway, pods):
        timed = TimedGateway(gateway)
        errors: list[KubeError] = []
        worker = BinderWorker(timed, BinderParams(concurrency=concurrency), errors.append)
        before = {"binder": time.process_time(), **server_cpu_s()}
        started = time.perf_counter()
        worker.start()
        try:
            bound_s = _wait(started, timed, BOUND, pods, errors)
            reported_s = _wait(started, timed, REPORTED, pods, errors)
            announced_s = _wait(started, timed, ANNOUNCED, EVENTS_PER_POD * pods, errors)
            after = {"binder": time.process_time(), **server_cpu_s()}
        finally:
            worker.stop()
        return BindMeasurement(
            pods=pods,
            concurrency=concurrency,
            bound_s=bound_s,
            reported_s=reported_s,
            announced_s=announced_s,
            cpu_s={name: seconds - before.get(name, 0.0) for name, seconds in after.items()},
            counts=dict(timed.counts),
            seconds=dict(timed.seconds),
        )


@contextmanager
def _prepared(gateway: Gateway, pods: int) -> Iterator[None]:
    name = f"bench-binds-{uuid.uuid4().hex[:6]}"
    gateway.create(NAMESPACES, {"metadata": {"name": name}})
    gateway.create(NODES, {"metadata": {"name": name}})

    def create(number: int) -> None:
        answer = gateway.create(PODS, _pod(f"p{number:05}"), namespace=name)
        body = _request(f"p{number:05}", answer["metadata"]["uid"], name)
        gateway.create(BINDREQUESTS, body, namespace=name)

    def remove(number: int) -> None:
        for resource in (BINDREQUESTS, PODS):
            try:
                gateway.delete(resource, f"p{number:05}", namespace=name, grace_period_s=0)
            except NotFoundError:
                continue

    try:
        _at_once(create, pods)
        yield
    finally:
        _at_once(remove, pods)
        gateway.delete(NODES, name)
        gateway.delete(NAMESPACES, name)


def _at_once(work: Callable[[int], None], count: int) -> None:
    with ThreadPoolExecutor(CREATORS) as pool:
        for future in [pool.submit(work, number) for number in range(count)]:
            future.result()


def _pod(name: str) -> dict[str, Any]:
    resources = {"limits": {NVIDIA_GPU: "1"}}
    container = {"name": "main", "image": "example.test/x:1", "resources": resources}
    return {
        "metadata": {"name": name},
        "spec": {"schedulerName": "bench-binds", "containers": [container]},
    }


def _request(name: str, uid: str, node: str) -> dict[str, Any]:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
    return {
        "apiVersion": BINDREQUESTS.api_version,
        "kind": BINDREQUESTS.kind,
        "metadata": {
            "name": name,
            "labels": {"selected-node": node},
            "ownerReferences": [owner],
        },
        "spec": {
            "podName": name,
            "selectedNode": node,
            "receivedResourceType": "Regular",
            "receivedGPU": {"count": 1, "portion": "1.00"},
            "backoffLimit": 1,
        },
    }


def _wait(
    started: float, timed: TimedGateway, request_kind: str, count: int, errors: list[KubeError]
) -> float:
    """Wait until so many requests of a kind have ended; return the seconds since `started`."""
    while timed.counts[request_kind] < count:
        if errors:
            raise errors[0]
        if time.perf_counter() - started > DEADLINE_S:
            raise KubeError(
                f"{request_kind}: expected {count} requests in {DEADLINE_S:.0f} s, got {timed.counts[request_kind]}"
            )
        time.sleep(POLL_S)
    return time.perf_counter() - started


def _kind_of(verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> str:
    if verb == "bind":
        return BOUND
    sub = f"/{options['sub']}" if options.get("sub") else ""
    return f"{verb} {args[0].plural}{sub}"
