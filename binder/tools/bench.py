"""Measure how many pods a second one binder binds on a real API server, and where the time goes.

Pods and their bind requests are created first; then a binder of this process starts and carries out all of them.
Every request to the API server is timed by its kind. Pods are plain ones: devices and volumes cost what their
drivers take.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from binder.params import BinderParams
from binder.worker import BinderWorker
from kube.errors import KubeError, NotFoundError
from kube.gateway import Gateway
from kube.objects.bindrequest import BindRequest
from kube.resources import BINDREQUESTS, NAMESPACES, NODES, PODS
from kube.store import StoreView

CREATORS = 16
POLL_S = 0.02
DEADLINE_S = 300.0
TIMED = ("get", "list", "create", "replace", "patch", "delete", "bind")


@dataclass(slots=True)
class TimedGateway:
    """Passes requests on and adds up how many there were of each kind and how long they took."""

    gateway: Gateway
    counts: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.gateway, name)
        return self._timed(name, method) if name in TIMED else method

    def _timed(self, verb: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            what = _kind_of(verb, args, options)
            started = time.perf_counter()
            try:
                return method(*args, **options)
            finally:
                elapsed = time.perf_counter() - started
                with self._lock:
                    self.counts[what] += 1
                    self.seconds[what] += elapsed  # type: ignore[assignment]

        return call


@dataclass(frozen=True, slots=True, kw_only=True)
class BindMeasurement:
    """The result: `bound_s` until the last pod had its node, `reported_s` until the last status was written."""

    pods: int
    concurrency: int
    bound_s: float
    reported_s: float
    cpu_s: float
    #: Kind of request -> how many were sent.
    counts: dict[str, int]
    #: Kind of request -> seconds spent on them, over all threads.
    seconds: dict[str, float]

    def text(self) -> str:
        """Return the lines to print."""
        lines = [
            f"binds: {self.pods} pods by one binder with {self.concurrency} threads: bound after "
            f"{self.bound_s:.2f} s ({self.pods / self.bound_s:.0f} binds/s), reported after "
            f"{self.reported_s:.2f} s ({self.pods / self.reported_s:.0f}/s); "
            f"this process computed {self.cpu_s:.2f} s"
        ]
        for what, seconds in sorted(self.seconds.items(), key=lambda item: -item[1]):
            count = self.counts[what]
            lines.append(
                f"  {what:<28} {count:>6} requests {1000 * seconds / count:>8.1f} ms each "
                f"{100 * seconds / (self.concurrency * self.reported_s):>5.0f} % of the threads' time"
            )
        return "\n".join(lines)


def measure_binds(gateway: Gateway, *, pods: int, concurrency: int) -> BindMeasurement:
    """Create pods and bind requests in a namespace of their own, bind them, and clean up.

    Raises
    ------
    kube.errors.KubeError : the API server refused something, or not all pods were bound in time
    """
    with _prepared(gateway, pods) as namespace:
        timed = TimedGateway(gateway)
        errors: list[KubeError] = []
        worker = BinderWorker(timed, BinderParams(concurrency=concurrency), errors.append)
        cpu, started = time.process_time(), time.perf_counter()
        worker.start()
        try:
            bound_s = _wait(started, lambda: timed.counts["bind pods"] >= pods, errors)
            reported_s = _wait(
                started, lambda: _reported(worker.store.view(), namespace) >= pods, errors
            )
        finally:
            worker.stop()
        return BindMeasurement(
            pods=pods,
            concurrency=concurrency,
            bound_s=bound_s,
            reported_s=reported_s,
            cpu_s=time.process_time() - cpu,
            counts=dict(timed.counts),
            seconds=dict(timed.seconds),
        )


@contextmanager
def _prepared(gateway: Gateway, pods: int) -> Iterator[str]:
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
        yield name
    finally:
        _at_once(remove, pods)
        gateway.delete(NODES, name)
        gateway.delete(NAMESPACES, name)


def _at_once(work: Callable[[int], None], count: int) -> None:
    with ThreadPoolExecutor(CREATORS) as pool:
        for future in [pool.submit(work, number) for number in range(count)]:
            future.result()


def _pod(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "example.test/x:1"}
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


def _wait(started: float, is_done: Callable[[], bool], errors: list[KubeError]) -> float:
    while not is_done():
        if errors:
            raise errors[0]
        if time.perf_counter() - started > DEADLINE_S:
            raise KubeError(f"not all pods were bound after {DEADLINE_S:.0f} s")
        time.sleep(POLL_S)
    return time.perf_counter() - started


def _reported(view: StoreView, namespace: str) -> int:
    requests = view.of(BINDREQUESTS, BindRequest).values()
    return sum(
        item.metadata.namespace == namespace and item.status.phase == "Succeeded"
        for item in requests
    )


def _kind_of(verb: str, args: tuple[Any, ...], options: dict[str, Any]) -> str:
    if verb == "bind":
        return "bind pods"
    sub = f"/{options['sub']}" if options.get("sub") else ""
    return f"{verb} {args[0].plural}{sub}"
