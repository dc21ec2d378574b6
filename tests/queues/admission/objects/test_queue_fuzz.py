"""Random edits of random queue trees: what the webhook lets through, the scheduler can load and divide."""

from __future__ import annotations

import json
from math import inf, isnan
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kube.objects.meta import convert
from kube.objects.queue import Queue
from queues.admission.routes import VALIDATE_QUEUE, Routes
from queues.tree.hierarchy import problem_of
from queues.tree.shape import shapes_of
from scheduler.core.cluster.inputs import ClusterInput, NodeInput, PodGroupInput, TaskInput
from scheduler.core.config import PluginConfig, SchedulerConfig
from scheduler.core.cycle import open_session
from scheduler.load.queues import QueueBuilder

NAMES = [f"q{number}" for number in range(7)]
AMOUNTS: list[Any] = [-1, 0, 0.5, 3, 1000, 1e15]
NONSENSE: list[Any] = [-7, -1.5, "4", "many", None, True, [], {}, 1e300, 2**70]
ROOM = {"cpu": 64_000.0, "memory": 512e9, "gpu": 8.0, "pods": 110.0}
CONFIG = SchedulerConfig(plugins=(PluginConfig("proportion"),))


class Edits:
    """Random bodies, mostly sound, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def body(self, name: str) -> dict[str, Any]:
        spec: dict[str, Any] = {
            "resources": {resource: self.cell() for resource in ("gpu", "cpu", "memory")}
        }
        if self.random.random() < 0.8:
            spec["parentQueue"] = self.odd([*NAMES, "", "ghost"])
        if self.random.random() < 0.3:
            spec["priority"] = self.odd([0, 100, -5, 2**31 - 1])
        if self.random.random() < 0.2:
            spec["reclaimMinRuntime"] = self.odd(["5m", "1h30m", "0s"])
        if self.random.random() < 0.2:
            spec["displayName"] = self.odd(["Shown", ""])
        if self.random.random() < 0.03:
            spec["resources"] = self.random.choice(NONSENSE)
        return {"metadata": {"name": name, "uid": f"u-{name}"}, "spec": spec}

    def cell(self) -> Any:
        fields = self.random.sample(
            ["quota", "limit", "overQuotaWeight"], self.random.randint(0, 3)
        )
        return {field: self.odd(AMOUNTS) for field in fields}

    def odd(self, sound: list[Any]) -> Any:
        """Return one of the sound values, or now and then nonsense."""
        return self.random.choice(NONSENSE if self.random.random() < 0.02 else sound)


def review(old: dict[str, Any] | None, new: dict[str, Any] | None) -> bytes:
    operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
    request = {"uid": "u", "operation": operation, "object": new, "oldObject": old}
    return json.dumps({"request": request}).encode()


def shares_of(bodies: dict[str, dict[str, Any]]) -> dict[str, tuple[float, ...]]:
    """Load the queues and divide a cluster among them, as a cycle does; a pod waits in each."""
    queues = {name: convert(body, Queue) for name, body in bodies.items()}
    waiting = tuple(
        PodGroupInput(
            name=f"g-{name}", uid=name, queue=name, tasks=(TaskInput(name="p", uid=name),)
        )
        for name in bodies
    )
    cluster = ClusterInput(
        nodes=(NodeInput(name="n", allocatable=ROOM),),
        queues=QueueBuilder(origin=0.0).queues(queues, {}),
        pod_groups=waiting,
    )
    session = open_session(cluster, CONFIG)
    ledger = session.policy.ledger
    return dict(zip(ledger.names, map(tuple, ledger.fair_shares), strict=True))


@settings(max_examples=2000, deadline=None)
@given(st.integers(0, 2**63), st.booleans())
def test_what_the_webhook_lets_through_the_scheduler_takes(seed: int, compares: bool) -> None:
    edits = Edits(seed)
    bodies: dict[str, dict[str, Any]] = {}
    routes = Routes(tree=lambda: shapes_of(list(bodies.values())), compares_quotas=compares)
    for _ in range(10):
        name = edits.random.choice(NAMES)
        old = bodies.get(name)
        new = None if edits.random.random() < 0.2 else edits.body(name)
        if old is None and new is None:
            continue
        answer = routes.answer(VALIDATE_QUEUE, review(old, new))
        assert answer is not None
        if not json.loads(answer)["response"]["allowed"]:
            continue
        if new is None:
            del bodies[name]
        else:
            bodies[name] = new
    shares = shares_of(bodies)
    tree = shapes_of(list(bodies.values()))
    for name in bodies:
        problem = problem_of(tree, name)
        # Parents may come later, so a missing one is let through; a circle never is.
        assert (name in shares) == (problem == "")
        assert problem == "" or problem.endswith("does not exist")
    for name, share in shares.items():
        limits = [_limit(bodies[name], resource) for resource in ("cpu", "memory", "gpu")]
        for amount, limit in zip(share, limits, strict=True):
            assert not isnan(amount)
            assert 0 <= amount <= limit


def _limit(body: dict[str, Any], resource: str) -> float:
    unit = 1e6 if resource == "memory" else 1.0
    limit = (body["spec"]["resources"].get(resource) or {}).get("limit") or 0.0
    return inf if limit == -1 else limit * unit
