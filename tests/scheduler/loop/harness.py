"""A scheduling worker on a fake cluster, without threads that watch: `cycle` plays the watches first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from threading import Event
from typing import Any

from kube.errors import KubeError
from kube.resources import EVENTS, NODES, PODGROUPS, PODS, QUEUES, Resource
from kube.watch import Reflector
from scheduler.loop.cycle import CycleSummary
from scheduler.loop.pacing import Pacer
from scheduler.loop.worker import ShardWorker
from scheduler.settings.watched import WATCHED
from tests.fakes.gateway import FakeGateway
from tests.scheduler.load.objects import group, node, pod, queue

START = datetime(2026, 1, 1, tzinfo=UTC)
FREE = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
NOTHING = {"quota": 0, "limit": -1, "overQuotaWeight": 1}


class Harness:
    """One shard."""

    def __init__(self, shard: str = "default", gateway: FakeGateway | None = None) -> None:
        self.gateway = gateway or FakeGateway()
        self.now = START
        self.fatal: list[KubeError] = []
        self.is_allowed = True
        self.worker = ShardWorker(
            shard,
            self.gateway,
            self.fatal.append,
            is_allowed=lambda: self.is_allowed,
            wall=lambda: self.now,
        )
        self._wire_clocks()
        self._reflectors = [
            Reflector(
                self.gateway,
                item.resource,
                item.as_type,
                self.worker.store,
                is_optional=item.is_optional,
            )
            for item in WATCHED
        ]

    def _wire_clocks(self) -> None:
        self.worker.recorder.wall = lambda: self.now
        self.worker.recorder.clock = lambda: self.now.timestamp()
        # By the real clock a search on a busy machine would last long enough to need a rest. By this one it takes
        # a microsecond for each look at the clock.
        ticks = count()
        self.worker.runner.pacer = Pacer(clock=lambda: self.now.timestamp() + next(ticks) * 1e-6)

    def seed(self, resource: Resource, *bodies: dict[str, Any]) -> Harness:
        self.gateway.seed(resource, *bodies)
        return self

    def cluster(
        self, *, nodes: int = 1, gpus: int = 8, queue_gpu: dict[str, Any] = FREE
    ) -> Harness:
        """Add nodes n0.. and the queue `q` under `top`."""
        self.seed(NODES, *(node(f"n{index}", gpus=gpus) for index in range(nodes)))
        resources = {"cpu": FREE, "memory": FREE}
        self.seed(QUEUES, queue("top", resources={**resources, "gpu": FREE}))
        spec = {"parentQueue": "top", "displayName": "The queue"}
        return self.seed(QUEUES, queue("q", resources={**resources, "gpu": queue_gpu}, **spec))

    def pending(self, name: str, *, gpus: int = 1, pods: int = 1, **spec: Any) -> Harness:
        """Add a pod group and its pending pods name-0.."""
        pod_extra = spec.pop("pod", {})
        self.seed(PODGROUPS, group(name, **{"minMember": pods, **spec}))
        requests = {"nvidia.com/gpu": str(gpus)} if gpus else {"cpu": "100m"}
        return self.seed(
            PODS,
            *(
                pod(f"{name}-{index}", group=name, requests=requests, **pod_extra)
                for index in range(pods)
            ),
        )

    def watch(self) -> Harness:
        for reflector in self._reflectors:
            reflector.pass_once(Event())
        return self

    def cycle(self, *, seconds: float = 0.0, fence: int = 0) -> CycleSummary:
        """Let time pass, show the worker what happened, run one cycle."""
        self.now += timedelta(seconds=seconds)
        self.watch()
        return self.cycle_unseen(fence=fence)

    def cycle_unseen(self, *, fence: int = 0) -> CycleSummary:
        """Run a cycle before the watches bring anything."""
        summary = self.worker.cycle(fence=fence)
        self.worker.runner.statuses.wait()
        self.worker.recorder.flush()
        return summary

    def writes(self) -> list[tuple[str, str, str]]:
        """Return the writes so far, without events."""
        return [call for call in self.gateway.calls if call[1] != "events"]

    def events(self, name: str) -> list[tuple[str, str, str]]:
        bodies = [
            self.gateway.raw(EVENTS, key[2], key[1])
            for key in list(self.gateway.objects)
            if key[0] == EVENTS
        ]
        return [
            (item["type"], item["reason"], item["message"])
            for item in bodies
            if item["involvedObject"]["name"] == name
        ]

    def condition(self, name: str) -> dict[str, Any]:
        conditions = self.gateway.raw(PODS, name, "ns")["status"].get("conditions", [])
        return next((item for item in conditions if item["type"] == "PodScheduled"), {})

    def group_conditions(self, name: str) -> list[dict[str, Any]]:
        status = self.gateway.raw(PODGROUPS, name, "ns").get("status") or {}
        conditions: list[dict[str, Any]] = status.get("schedulingConditions") or []
        return conditions


@contextmanager
def harness(shard: str = "default", gateway: FakeGateway | None = None) -> Iterator[Harness]:
    opened = Harness(shard, gateway)
    try:
        yield opened
    finally:
        opened.worker.stop()
