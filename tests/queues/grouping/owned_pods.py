"""An owner, its pod and the grouping decision, for grouping tests."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import Any

from queues.grouping.base import Settings
from queues.grouping.engine.reconcile import GroupingDecision, decide
from queues.grouping.errors import GroupingError
from queues.grouping.offline.file_cluster import FileCluster


def owner(
    api_version: str, kind: str, spec: dict[str, Any] | None = None, **metadata: Any
) -> dict[str, Any]:
    """Return an owner named `own` with uid `u-own` by default."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "own", "namespace": "lab", "uid": "u-own", **metadata},
        "spec": spec or {},
    }


def pod(*owners: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    """Return pod `lab/p`, uid `u-p`, owned by the given objects."""
    references = [
        {
            "apiVersion": item["apiVersion"],
            "kind": item["kind"],
            "name": item["metadata"]["name"],
            "uid": item["metadata"]["uid"],
        }
        for item in owners
    ]
    body: dict[str, Any] = {"name": "p", "namespace": "lab", "uid": "u-p", **metadata}
    if references:
        body["ownerReferences"] = references
    return {"metadata": body, "spec": {"schedulerName": "kai-scheduler"}}


def chain(*objects: dict[str, Any]) -> dict[str, Any]:
    """Let each object own the one before it; return a pod of the first."""
    for lower, upper in pairwise(objects):
        lower["metadata"]["ownerReferences"] = pod(upper)["metadata"]["ownerReferences"]
    return pod(objects[0])


def file_cluster(*objects: dict[str, Any]) -> FileCluster:
    cluster = FileCluster()
    for item in objects:
        cluster.add(copy.deepcopy(item))
    return cluster


def decision_of(
    the_pod: dict[str, Any], *objects: dict[str, Any], settings: Settings | None = None
) -> GroupingDecision:
    return decide(the_pod, file_cluster(*objects), settings or Settings())


def spec_of(the_pod: dict[str, Any], *objects: dict[str, Any]) -> dict[str, Any]:
    body = decision_of(the_pod, *objects).body
    assert body is not None
    spec: dict[str, Any] = body["spec"]
    return spec


def error_of(
    the_pod: dict[str, Any], *objects: dict[str, Any], settings: Settings | None = None
) -> str:
    try:
        decision_of(the_pod, *objects, settings=settings)
    except GroupingError as error:
        return str(error)
    raise AssertionError("the pod was grouped")


def minimums(spec: dict[str, Any]) -> dict[str, int]:
    """Return subgroup -> its min member, or minus its min subgroup if it has children."""
    return {
        s["name"]: -s["minSubGroup"] if "minSubGroup" in s else s["minMember"]
        for s in spec.get("subGroups", [])
    }


def stored_group(name: str, **spec: Any) -> dict[str, Any]:
    """Return pod group `lab/<name>` as the cluster holds it."""
    return {
        "apiVersion": "scheduling.run.ai/v2alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "lab"},
        "spec": spec,
    }
