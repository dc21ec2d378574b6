"""Bodies for binder tests, and a worker on a fake cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from binder.params import BinderParams, ReservationParams
from binder.steps.volumes import Volumes
from binder.worker import WATCHED, BinderWorker
from kube.errors import KubeError
from kube.resources import BINDREQUESTS, EVENTS, NODES, PODS
from kube.watch import Reflector
from tests.fakes.gateway import FakeGateway


def pod(name: str = "p", *, node: str = "", **extra: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", **extra.pop("metadata", {})}
    spec = {"containers": [{"name": "main"}], **extra.pop("spec", {})}
    if node:
        spec["nodeName"] = node
    return {"metadata": metadata, "spec": spec, "status": {"phase": "Pending", **extra}}


def fraction_pod(name: str, *, devices: int = 1) -> dict[str, Any]:
    annotations = {
        "gpu-fraction": "0.5",
        "gpu-fraction-num-devices": str(devices),
        "runai/shared-gpu-configmap": f"{name}-abcdefg-shared-gpu",
    }
    reference = {"configMapKeyRef": {"name": f"{name}-abcdefg-shared-gpu-0", "key": "x"}}
    env = [{"name": "NVIDIA_VISIBLE_DEVICES", "valueFrom": reference}]
    return pod(
        name,
        metadata={"annotations": annotations},
        spec={"containers": [{"name": "main", "env": env}]},
    )


def request(name: str = "p", node: str = "n1", **extra: Any) -> dict[str, Any]:
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": name,
        "uid": extra.pop("owner", f"uid-{name}"),
    }
    metadata = {
        "name": name,
        "namespace": "ns",
        "ownerReferences": [owner],
        "annotations": extra.pop("annotations", {}),
        "labels": {"selected-node": node, **extra.pop("labels", {})},
    }
    status = extra.pop("status", {})
    spec = {
        "podName": name,
        "selectedNode": node,
        "receivedResourceType": "Regular",
        "receivedGPU": {"count": 1, "portion": "1.00"},
        **extra,
    }
    return {"metadata": metadata, "spec": spec, "status": status}


def fraction_request(name: str, *groups: str, node: str = "n1") -> dict[str, Any]:
    return request(
        name,
        node,
        receivedResourceType="Fraction",
        receivedGPU={"count": len(groups), "portion": "0.50"},
        selectedGPUGroups=list(groups),
    )


class Harness:
    """A binder without threads: `run` plays the watches, then the queue, until all is quiet."""

    def __init__(self, gateway: FakeGateway | None = None, *, now: float = 0.0) -> None:
        self.gateway = gateway or FakeGateway()
        self.now = now
        self.fatal: list[KubeError] = []
        params = BinderParams(reservation=ReservationParams(timeout_s=1.0))
        self.worker = BinderWorker(self.gateway, params, self.fatal.append, clock=lambda: self.now)
        self.worker.reports.wall = lambda: datetime(2026, 1, 1, tzinfo=UTC)
        self.worker.reservations.clock = lambda: self.now
        self.worker.reservations.sleep = self._sleep
        self.while_waiting: list[Callable[[], None]] = []
        self._measure_waits_of_volumes()
        self._reflectors = [
            Reflector(self.gateway, resource, as_type, self.worker.store)
            for resource, as_type in WATCHED
        ]
        if gateway is None:
            self.gateway.seed(NODES, {"metadata": {"name": "n1"}})

    def seed(self, *, pods: list[Any] = [], requests: list[Any] = []) -> Harness:  # noqa: B006
        self.gateway.seed(PODS, *pods)
        self.gateway.seed(BINDREQUESTS, *requests)
        return self

    def watch(self) -> None:
        from threading import Event

        for reflector in self._reflectors:
            reflector.pass_once(Event())

    def run(self) -> Harness:
        for _ in range(5):
            self.watch()
            self.work()
        self.worker.recorder.flush()
        return self

    def work(self) -> None:
        """Do the queued work in this thread, in the order of the queue."""
        while not self.worker.queue.empty():
            work = self.worker.queue.get_nowait()[2]
            if work is not None:
                work()

    def status(self, name: str = "p") -> dict[str, Any]:
        status: dict[str, Any] = self.gateway.raw(BINDREQUESTS, name, "ns").get("status") or {}
        return status

    def pod(self, name: str = "p", namespace: str = "ns") -> dict[str, Any]:
        return self.gateway.raw(PODS, name, namespace)

    def condition(self, kind: str, name: str = "p") -> dict[str, Any]:
        conditions = self.pod(name)["status"].get("conditions", [])
        return next((item for item in conditions if item["type"] == kind), {})

    def events(self) -> list[tuple[str, str, str]]:
        bodies = [self.gateway.raw(EVENTS, name, "ns") for name in self.gateway.names(EVENTS, "ns")]
        return [(item["type"], item["reason"], item["message"]) for item in bodies]

    def _measure_waits_of_volumes(self) -> None:
        for _, step in self.worker.service.steps:
            if isinstance(step, Volumes):
                step._clock, step._sleep = (lambda: self.now), self._sleep

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        for action in self.while_waiting:
            action()
