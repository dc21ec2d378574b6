"""What must come of a workload of a real operator, on any cluster: from the manifest to done, and to its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tests.real_cluster.cluster import Cluster
from tests.real_cluster.installation import run_kubectl
from tests.real_cluster.operators.workloads import Workload

WITHIN_S = 180.0


class AwaitThat(Protocol):
    """Poll until something holds, or fail with the name of what did not come."""

    def __call__(self, holds: Callable[[], Any], what: str, timeout_s: float) -> Any: ...


def expect_done(
    cluster: Cluster, workload: Workload, namespace: str, await_that: AwaitThat
) -> None:
    """Submit a workload, wait until its operator says that it is done, and check that it ran in gangs."""
    submit(cluster, workload, namespace, await_that)
    await_that(
        lambda: set(workload.conditions) <= conditions(cluster, workload, namespace),
        f"{' and '.join(workload.conditions)} of {workload.name}",
        WITHIN_S,
    )
    expect_gangs(cluster, workload, namespace)


def expect_end(cluster: Cluster, workload: Workload, namespace: str, await_that: AwaitThat) -> None:
    """Delete a workload and wait until nothing of it is left."""
    run_kubectl(cluster, "delete", workload.resource, workload.name, "-n", namespace)
    kinds = "pods,podgroups,jobs,statefulsets"
    await_that(
        lambda: not objects(cluster, kinds, "-n", namespace),
        f"the end of what belongs to {workload.name}",
        WITHIN_S,
    )


def submit(cluster: Cluster, workload: Workload, namespace: str, await_that: AwaitThat) -> None:
    """Create the workload with kubectl, as soon as the API server and the operator's webhooks take it."""
    file = cluster.folder / f"{workload.name}.json"
    file.write_text(json.dumps(workload.manifest))
    refusals = []

    def is_taken() -> bool:
        try:
            run_kubectl(cluster, "apply", "-n", namespace, "-f", str(file))
        except AssertionError as error:
            refusals.append(str(error))
            return False
        return True

    try:
        await_that(is_taken, f"{workload.name} to be taken", 60.0)
    except AssertionError as error:
        raise AssertionError(refusals[-1]) from error


def objects(cluster: Cluster, *arguments: str) -> list[dict[str, Any]]:
    """Return the items of `kubectl get ... -o json`."""
    body: dict[str, Any] = json.loads(run_kubectl(cluster, "get", *arguments, "-o", "json"))
    items: list[dict[str, Any]] = body.get("items", [body])
    return items


def conditions(cluster: Cluster, workload: Workload, namespace: str) -> set[str]:
    """Return the types of conditions that the operator has written; the last is True, an older one may be False."""
    (body,) = objects(cluster, workload.resource, workload.name, "-n", namespace)
    entries: Sequence[dict[str, Any]] = body.get("status", {}).get("conditions", ())
    is_done = any(
        entry["type"] == workload.conditions[-1] and entry["status"] == "True" for entry in entries
    )
    return {entry["type"] for entry in entries} if is_done else set()


def expect_gangs(cluster: Cluster, workload: Workload, namespace: str) -> None:
    """Check that the pods ran on nodes, in the gangs that the workload asks for."""
    groups = objects(cluster, "podgroups", "-n", namespace)
    assert sorted(minimum(group["spec"]) for group in groups) == list(workload.gangs)
    pods = objects(cluster, "pods", "-n", namespace)
    assert len(pods) == workload.pods
    of_groups = {pod["metadata"]["annotations"]["pod-group-name"] for pod in pods}
    assert of_groups == {group["metadata"]["name"] for group in groups}
    for pod in pods:
        assert pod["spec"]["nodeName"], pod["metadata"]["name"]
        states = [
            state
            for status in pod["status"]["containerStatuses"]
            for state in status["state"].values()
        ]
        assert all("startedAt" in state for state in states), states


def minimum(spec: dict[str, Any]) -> int:
    """Return how many pods of a group must run together: its own number, or that of its subgroups with pods."""
    parts = (part.get("minMember", 0) for part in spec.get("subGroups", ()))
    return int(spec.get("minMember") or sum(parts))
