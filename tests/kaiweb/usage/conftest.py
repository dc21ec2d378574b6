"""A small mirror, written as rows: department dept > team and lab, one node with 16 GPUs of one model."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kaiweb.usage import rollup, sampler
from queues.mirror.feed import write_heartbeat
from queues.models import Node, Pod, PodGroup, Queue, WorkloadState

MIDNIGHT = datetime(2026, 11, 30, tzinfo=UTC)
MODEL = "NVIDIA-H100"


def queue_row(name: str, parent: str = "", **columns: Any) -> Queue:
    return Queue(
        name=name, parent=parent, uid=f"uid-{name}", version=1, created_at=MIDNIGHT, **columns
    )


def hold(queue: str, user: str, gpus: float, *, node: str = "n1") -> PodGroup:
    """A workload that runs, with one pod."""
    name = f"{queue}-{user}"
    group = _group(name, queue, user, gpu=gpus, allocated_gpu=gpus, state=WorkloadState.RUNNING)
    Pod.objects.create(
        key=f"ns/{name}", namespace="ns", name=name, group=group.key, node=node, phase="Running",
        gpu=gpus, gpu_kind="whole", uid=f"pod-{name}", version=1, created_at=MIDNIGHT,
    )  # fmt: skip
    return group


def wait_for(queue: str, user: str, gpus: float) -> PodGroup:
    """A workload that waits."""
    return _group(f"{queue}-{user}-waits", queue, user, gpu=gpus, pods_pending=1)


def _group(name: str, queue: str, user: str, **columns: Any) -> PodGroup:
    return PodGroup.objects.create(
        key=f"ns/{name}", namespace="ns", name=name, queue=queue, user=user,
        uid=f"uid-{name}", version=1, created_at=MIDNIGHT, **columns,
    )  # fmt: skip


def end_all() -> None:
    PodGroup.objects.all().delete()
    Pod.objects.all().delete()


@pytest.fixture
def mirror(db: None) -> None:
    Queue.objects.bulk_create(
        [
            queue_row("dept", quota_gpu=12, limit_gpu=-1),
            queue_row("team", "dept", quota_gpu=8, limit_gpu=16),
            queue_row("lab", "dept", quota_gpu=4),
            queue_row("other", quota_gpu=-1),
        ]
    )
    Node.objects.create(
        name="n1", model=MODEL, gpus=16, used_gpu=12, uid="n", version=1, created_at=MIDNIGHT
    )


@pytest.fixture
def sample_at(mirror: None) -> Callable[[float], bool]:
    """Take a sample so many seconds after midnight, with a mirror that has just heard from the cluster."""

    def take(seconds: float) -> bool:
        now = MIDNIGHT + timedelta(seconds=seconds)
        write_heartbeat(now)
        is_taken = sampler.sample(now)
        rollup.roll_up(now)
        return is_taken

    return take
