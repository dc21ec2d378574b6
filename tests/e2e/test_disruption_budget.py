"""A budget of one on a real kube-apiserver: one pod is evicted for more important work, the second is not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.e2e.bound_pods import pods_of
from tests.integration.stack import Stack, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.integration, pytest.mark.timeout(480)]

NAMESPACE = "budgeted"
QUEUE = """
apiVersion: scheduling.run.ai/v2
kind: Queue
metadata: {name: budgeted}
spec:
  resources:
    gpu: {quota: 2, limit: 2, overQuotaWeight: 1}
    cpu: {quota: -1, limit: -1, overQuotaWeight: 1}
    memory: {quota: -1, limit: -1, overQuotaWeight: 1}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: keep-one, namespace: budgeted}
spec:
  minAvailable: 1
  selector: {matchLabels: {app: humble}}
"""


def pod(name: str, rank: str, app: str) -> str:
    return (
        f"apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\n  namespace: {NAMESPACE}\n"
        f"  labels: {{kai.scheduler/queue: budgeted, priorityClassName: {rank}, app: {app}}}\n"
        "spec:\n  schedulerName: kai-scheduler\n  containers:\n"
        "  - name: main\n    image: example.test/x:1\n"
        '    resources: {limits: {nvidia.com/gpu: "1"}}\n'
    )


def running(stack: Stack) -> set[str]:
    return {
        name
        for name, item in pods_of(stack, NAMESPACE).items()
        if item["status"].get("phase") == "Running"
    }


@pytest.fixture(scope="module")
def budgeted(stack: Stack) -> Iterator[Stack]:
    """A queue that is full of two pods under a budget that lets one of them go."""
    stack.kubectl("create", "namespace", NAMESPACE)
    stack.kubectl("apply", "-f", "-", stdin=QUEUE)
    for name in ("humble-a", "humble-b"):
        stack.kubectl("apply", "-f", "-", stdin=pod(name, "train", "humble"))
    try:
        wait_until(
            lambda: running(stack) == {"humble-a", "humble-b"},
            what="two running pods",
            timeout_s=90,
            stack=stack,
        )
        wait_until(
            lambda: allowed(stack) == 1, what="a budget that allows one", timeout_s=90, stack=stack
        )
        yield stack
    finally:
        stack.kubectl("delete", "pods", "--all", "-n", NAMESPACE, "--wait=false")


def the_humble(stack: Stack) -> list[str]:
    """Return the name of the one pod that the budget keeps; nothing while there are two."""
    names = [name for name in pods_of(stack, NAMESPACE) if name.startswith("humble")]
    return names if len(names) == 1 else []


def blocked(stack: Stack, prefix: str) -> list[dict[str, Any]]:
    """Return the conditions of a pod group that a disruption budget keeps waiting."""
    for group in stack.objects("podgroups", "-n", NAMESPACE):
        conditions = (group.get("status") or {}).get("schedulingConditions") or []
        if group["metadata"]["name"].startswith(prefix) and "DisruptionBudget" in str(conditions):
            return list(conditions)
    return []


def allowed(stack: Stack) -> int:
    (budget,) = stack.objects("pdb", "keep-one", "-n", NAMESPACE)
    return int((budget.get("status") or {}).get("disruptionsAllowed", -1))


def test_a_budget_of_one_blocks_the_second_eviction(budgeted: Stack) -> None:
    stack = budgeted
    stack.kubectl("apply", "-f", "-", stdin=pod("proud-a", "build-preemptible", "proud"))
    wait_until(
        lambda: "proud-a" in running(stack), what="room for the first", timeout_s=90, stack=stack
    )
    (humble,) = wait_until(
        lambda: the_humble(stack), what="the end of the evicted pod", timeout_s=90, stack=stack
    )
    stack.kubectl("apply", "-f", "-", stdin=pod("proud-b", "build-preemptible", "proud"))
    conditions = wait_until(
        lambda: blocked(stack, "pg-proud-b-"),
        what="the budget as the reason",
        timeout_s=90,
        stack=stack,
    )
    assert "disruption budget budgeted/keep-one allows 0 pods" in str(conditions)
    survivor = pods_of(stack, NAMESPACE)[humble]
    assert "deletionTimestamp" not in survivor["metadata"]
    assert survivor["status"]["phase"] == "Running"
