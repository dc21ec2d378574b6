"""A large database, written as rows: 2,000 queues, 50,000 workloads, 1,000 nodes with 8,000 GPUs, and their history."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from binder.models import BindRequest
from kaiweb.models import ChangeSet, Simulation, SimulationState
from kaiweb.usage import tiers
from kaiweb.usage.models import Clock, ModelUse, OwnerUse, QueueBounds, QueueDay, QueueUse, Span
from kube import resources
from queues.mirror.feed import write_heartbeat
from queues.models import LiveChange, Node, Pod, PodGroup, Queue, QuotaChange, WorkloadState
from scheduler.models import EvictionRecord, QueueShare, SessionRecord
from tests.bench.large_tree import QUEUES, queue_parents
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import queue_body

WORKLOADS, NODES, GPUS = 50_000, 1_000, 8
RUNNING, PENDING = 7_500, 12_500
BATCH = 2_000
MODEL = "NVIDIA-H100-80GB-HBM3"


def fill() -> None:
    """Fill an empty database."""
    now = timezone.now().astimezone(UTC).replace(microsecond=0)
    row: dict[str, Any] = {"version": 1, "created_at": now - timedelta(days=1)}
    author = User.objects.create_superuser("bench")
    parents = queue_parents()
    _write(Queue, (_queue(name, parent, row) for name, parent in parents.items()))
    _write(
        QueueShare, (QueueShare(shard="default", queue=name, cycle=1, gpu=4) for name in parents)
    )
    _write(Node, (_node(number, row) for number in range(NODES)))
    _write(PodGroup, (_workload(number, row) for number in range(WORKLOADS)))
    _write(Pod, (_pod(number, row) for number in range(WORKLOADS)))
    _write(BindRequest, (_bind_request(number, row) for number in range(200)))
    _write(SessionRecord, (_session(number, now) for number in range(5_000)))
    _write(EvictionRecord, (_eviction(number, now) for number in range(20_000)))
    _write(QuotaChange, (_audit(number, now) for number in range(20_000)))
    _write(LiveChange, (LiveChange(kind="queue", key="team-1", at=now) for _ in range(20_000)))
    _write_history(now, list(parents))
    simulation = Simulation.objects.create(
        author=author, created_at=now, state=SimulationState.DONE
    )
    _write(
        ChangeSet,
        (
            ChangeSet(
                author=author, title="t", preview=simulation, created_at=now, changed_at=now,
                edits=[{"name": f"team-{number}", "action": "update", "edit": {"priority": 2}}],
            )
            for number in range(500)
        ),
    )  # fmt: skip
    write_heartbeat(now)


def cluster() -> FakeGateway:
    """Return a cluster with the same queues, for views that read them there."""
    gateway = FakeGateway(now=timezone.now())
    bodies = [queue_body(name, parent) for name, parent in queue_parents().items()]
    gateway.seed(resources.QUEUES, *bodies)
    return gateway


def _write(model: Any, rows: Iterator[Any]) -> None:
    batch: list[Any] = []
    for row in rows:
        batch.append(row)
        if len(batch) == BATCH:
            model.objects.bulk_create(batch)
            batch = []
    model.objects.bulk_create(batch)


def _queue(name: str, parent: str, row: dict[str, Any]) -> Queue:
    bounds = {"quota_gpu": 4, "limit_gpu": -1, "weight_gpu": 1, "quota_cpu": 0, "quota_memory": 0}
    return Queue(name=name, parent=parent, uid=f"q-{name}", allocated_gpu=4, requested_gpu=8, **bounds, **row)  # fmt: skip


def _node(number: int, row: dict[str, Any]) -> Node:
    return Node(
        name=f"node-{number:04}", uid=f"n-{number}", model=MODEL, gpus=GPUS, gpus_healthy=GPUS,
        gpu_memory_mib=81_920, cpu=64_000, memory=512e9, is_ready=True, used_gpu=GPUS,
        zone=f"zone-{number % 4}", rack=f"rack-{number % 50}", pods=GPUS,
        labels={f"label-{index}": "value" for index in range(20)}, **row,
    )  # fmt: skip


def _workload(number: int, row: dict[str, Any]) -> PodGroup:
    is_waiting = RUNNING <= number < RUNNING + PENDING
    state = WorkloadState.RUNNING if number < RUNNING else WorkloadState.FINISHED
    text = (
        "No node has 1 free GPU: 1,000 nodes are ready, and 7,500 of their 8,000 GPUs are in use."
    )
    return PodGroup(
        key=f"ns-{number % 100}/job-{number:05}", namespace=f"ns-{number % 100}",
        name=f"job-{number:05}", uid=f"g-{number}", queue=f"team-{number % 1_800}",
        owner_kind="Job", owner_name=f"job-{number:05}", user=f"user-{number % 300}",
        state=WorkloadState.PENDING if is_waiting else state,
        pods=1, pods_pending=int(is_waiting), pods_bound=int(number < RUNNING), gpu=1,
        gpu_kind="whole", position=number - RUNNING + 1 if is_waiting else None,
        reason_code="NoNodeFits" if is_waiting else "", reason_text=text if is_waiting else "",
        conditions=[{"type": "UnschedulableOnNodePool", "reasons": [{"reason": "NoNodeFits", "message": text}]}] if is_waiting else [],
        nodes=[f"node-{number % NODES:04}"] if number < RUNNING else [], **row,
    )  # fmt: skip


def _pod(number: int, row: dict[str, Any]) -> Pod:
    is_running = number < RUNNING
    namespace, name = f"ns-{number % 100}", f"job-{number:05}-0"
    is_waiting = RUNNING <= number < RUNNING + PENDING
    return Pod(
        key=f"{namespace}/{name}", namespace=namespace, name=name, uid=f"p-{number}",
        group=f"{namespace}/job-{number:05}", scheduler="kai-scheduler",
        node="" if is_waiting else f"node-{number % NODES:04}",
        phase="Running" if is_running else "Pending" if is_waiting else "Succeeded",
        gpu=1, gpu_kind="whole", cpu=4_000, memory=32e9,
        devices=[number // NODES] if is_running else [], **row,
    )  # fmt: skip


def _bind_request(number: int, row: dict[str, Any]) -> BindRequest:
    key = f"ns-{number % 100}/job-{number + RUNNING:05}-0"
    return BindRequest(key=key, namespace=f"ns-{number % 100}", name=key.partition("/")[2], uid=f"b-{number}", pod=key, node="node-0001", phase="Failed", **row)  # fmt: skip


def _session(number: int, now: datetime) -> SessionRecord:
    decision = {
        "action": "allocate", "kind": "bind", "workload": "ns-1/job-00001", "queue": "team-1",
        "evictor": "", "evictorQueue": "", "pods": 1, "refused": 0, "gpu": 1.0,
        "nodes": ["node-0001"], "text": "",
    }  # fmt: skip
    return SessionRecord(
        shard="default", number=number, started_at=now - timedelta(seconds=5_000 - number),
        duration_ms=20, nodes=NODES, queues=QUEUES, decisions=[decision] * 20, decided=20,
        actions=[{"name": name, "ms": 1.2} for name in ("allocate", "consolidation", "reclaim")],
    )  # fmt: skip


def _eviction(number: int, now: datetime) -> EvictionRecord:
    return EvictionRecord(
        session=number // 4 + 1, at=now - timedelta(seconds=number * 10), shard="default",
        rule="reclaim", workload=f"ns-{number % 100}/job-{number % WORKLOADS:05}",
        queue=f"team-{number % 1_800}", evictor="ns-1/job-00001",
        evictor_queue=f"team-{number % 90}", pods=1, gpu=1,
    )  # fmt: skip


def _audit(number: int, now: datetime) -> QuotaChange:
    return QuotaChange(
        queue=f"team-{number % 1_800}", action="update", actor=f"user-{number % 300}",
        at=now - timedelta(minutes=number),
        diff=[{"pointer": "/quota/gpu", "before": 4, "after": 5}], reason="a reason",
    )  # fmt: skip


def _write_history(now: datetime, queues: list[str]) -> None:
    """Write a week by hours and three months by days; a tenth of the queues was used in each hour."""
    spans = [(tiers.HOUR, index) for index in range(7 * 24)] + [(tiers.DAY, i) for i in range(90)]
    starts = [
        (tier, tiers.floor(now, tier) - timedelta(seconds=tier) * (index + 1))
        for tier, index in spans
    ]
    _write(Span, (Span(tier=tier, start=start, covered_s=tier) for tier, start in starts))
    _write(ModelUse, (ModelUse(tier=tier, start=start, model=MODEL, capacity=8_000 * tier, allocated=7_500 * tier) for tier, start in starts))  # fmt: skip
    used = [
        (tier, start, name)
        for number, (tier, start) in enumerate(starts)
        for name in queues[number % 10 :: 10]
    ]
    _write(QueueUse, (QueueUse(tier=tier, start=start, queue=name, allocated=4.0 * tier, in_quota=2.0 * tier, waiting=tier, share=4.0 * tier) for tier, start, name in used))  # fmt: skip
    _write(OwnerUse, (OwnerUse(tier=tier, start=start, queue=name, owner=f"user-{len(name) % 300}", model=MODEL, allocated=4.0 * tier, in_quota=2.0 * tier, waiting=tier) for tier, start, name in used))  # fmt: skip
    _write(QueueBounds, (QueueBounds(queue=name, at=now - timedelta(days=80), quota=4, limit=-1) for name in queues))  # fmt: skip
    _write(QueueDay, (QueueDay(day=(now - timedelta(days=day)).date(), queue=name, starts=4, evictions=1) for day in range(4, 34) for name in queues[::10]))  # fmt: skip
    Clock.objects.create(sampled_at=now)
