"""How long the preview of an edit takes: one cycle at 1,000 nodes, 8,000 GPUs and 2,000 workloads, read and simulated.

python -m tests.bench.preview
"""

from __future__ import annotations

import time
from typing import Any

from kube.resources import NODES, PODGROUPS, PODS, QUEUES
from scheduler.tools.simulate.what_if.answer import answer_of
from scheduler.tools.simulate.what_if.picture import take_picture
from scheduler.tools.simulate.what_if.question import Question, QueueEdit
from scheduler.tools.simulate.what_if.run import simulate
from tests.bench.large_tree import plain_queue
from tests.fakes.gateway import FakeGateway

NODE_COUNT, GPUS, WORKLOADS, RUNNING, QUEUE_COUNT = 1_000, 8, 2_000, 1_500, 20
LIMIT_S = 2.0
RUNS = 3


def full_cluster() -> FakeGateway:
    """Return a cluster whose GPUs are allocated but for a quarter, and 500 workloads that wait."""
    fake = FakeGateway()
    fake.seed(QUEUES, plain_queue("root", quota=8_000))
    fake.seed(
        QUEUES, *(plain_queue(_queue(number), "root", quota=400) for number in range(QUEUE_COUNT))
    )
    fake.seed(NODES, *(_node(number) for number in range(NODE_COUNT)))
    fake.seed(PODGROUPS, *(_pod_group(number) for number in range(WORKLOADS)))
    fake.seed(PODS, *(_pod(number) for number in range(WORKLOADS)))
    return fake


def _queue(number: int) -> str:
    return f"team-{number % QUEUE_COUNT}"


def _node(number: int) -> dict[str, Any]:
    allocatable = {"cpu": "96", "memory": "1Ti", "nvidia.com/gpu": str(GPUS), "pods": "110"}
    return {
        "metadata": {"name": f"node-{number}", "labels": {"nvidia.com/gpu.count": str(GPUS)}},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def _pod_group(number: int) -> dict[str, Any]:
    return {
        "metadata": {"name": f"job-{number}", "namespace": "ns"},
        "spec": {"queue": _queue(number), "minMember": 1},
    }


def _pod(number: int) -> dict[str, Any]:
    is_running = number < RUNNING
    gpus = {"nvidia.com/gpu": "4"}
    spec: dict[str, Any] = {
        "schedulerName": "kai-scheduler",
        "containers": [{"name": "main", "resources": {"requests": gpus, "limits": gpus}}],
    }
    if is_running:
        spec["nodeName"] = f"node-{number // 2}"
    return {
        "metadata": {
            "name": f"job-{number}-0",
            "namespace": "ns",
            "annotations": {"pod-group-name": f"job-{number}"},
        },
        "spec": spec,
        "status": {"phase": "Running" if is_running else "Pending"},
    }


def measure() -> tuple[float, float, dict[str, Any]]:
    """Return the seconds of the fastest run, its processor time, and the answer."""
    cluster = full_cluster()
    edit = QueueEdit(name="team-1", edit={"quota": {"gpu": 800}, "limit": {"gpu": 900}})
    question = Question(queues=[edit], cycles=1)
    best, processor, answer = float("inf"), 0.0, {}
    for _run in range(RUNS):
        begun, begun_processor = time.perf_counter(), time.process_time()
        picture = take_picture(cluster, "default", cluster.now.timestamp())
        answer = answer_of(simulate(picture, question, usage={}))
        if time.perf_counter() - begun < best:
            best, processor = time.perf_counter() - begun, time.process_time() - begun_processor
    return best, processor, answer


if __name__ == "__main__":
    seconds, processor_s, result = measure()
    print(
        f"preview of one cycle: {seconds:.2f} s (limit {LIMIT_S:g} s; processor {processor_s:.2f} s), verdict {result['verdict']}, "
        f"{len(result['starts'])} starts, {len(result['evictions'])} evictions"
    )
    raise SystemExit(seconds > LIMIT_S)
