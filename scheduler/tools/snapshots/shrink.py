"""Reduce a saved cycle to the objects without which a workload would fare otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kube.errors import BadValueError
from kube.keys import POD_GROUP, QUEUE
from scheduler.core.errors import CoreError
from scheduler.tools.smallest import MAX_TRIALS, smallest
from scheduler.tools.snapshots.names import UnknownWorkloadError
from scheduler.tools.snapshots.outcome import Outcome, outcome_in

Json = dict[str, Any]
Body = Mapping[str, Any]
Objects = Mapping[str, Sequence[Json]]
#: Kinds that are removed all at once or kept.
WHOLE_KINDS = (
    "configMaps", "persistentVolumeClaims", "persistentVolumes", "storageClasses", "csiDrivers",
    "csiStorageCapacities", "resourceClaims", "resourceSlices", "deviceClasses", "bindRequests",
    "nodeResourceTopologies", "topologies", "podDisruptionBudgets", "namespaces", "priorityClasses",
)  # fmt: skip


def shrink(body: Body, workload: str, max_trials: int = MAX_TRIALS) -> tuple[Body, Outcome]:
    """Return the smallest snapshot found in which the workload fares alike, and how it fares.

    Raises
    ------
    UnknownWorkloadError : the pod group is not in the snapshot
    """
    original_outcome = outcome_in(body, workload)
    if original_outcome is None:
        raise UnknownWorkloadError(f"pod group '{workload}' is not among those of the cycle")

    def still_shows(smaller: Body) -> bool:
        try:
            return outcome_in(smaller, workload) == original_outcome
        except (CoreError, BadValueError):
            return False  # something that is left refers to what was removed

    return smallest(
        body, still_shows, lambda reduced: _smaller(reduced, workload), max_trials
    ), original_outcome


def counts(body: Body) -> str:
    """Return how many objects of each kind there are."""
    objects = body["rawObjects"]
    return ", ".join(f"{len(items)} {kind}" for kind, items in objects.items() if items)


def _smaller(body: Body, workload: str) -> Iterator[Body]:
    """Yield snapshots without a part, half of a kind first, then a quarter, down to single objects."""
    objects: Objects = body["rawObjects"]
    for kind in WHOLE_KINDS:
        if objects.get(kind):
            yield _with(body, {**objects, kind: []})
    groups = [_key(group) for group in objects.get("podGroups") or () if _key(group) != workload]
    for chunk in _chunks(groups):
        yield _with(body, _without_groups(objects, set(chunk)))
    loose = [_key(pod) for pod in objects.get("pods") or () if not _group_of(pod)]
    for chunk in _chunks(loose):
        yield _with(body, _without(objects, "pods", _key, set(chunk)))
    used_nodes = {pod.get("spec", {}).get("nodeName") for pod in objects.get("pods") or ()}
    nodes = [_key(node) for node in objects.get("nodes") or () if _name(node) not in used_nodes]
    for chunk in _chunks(nodes):
        yield _with(body, _without(objects, "nodes", _key, set(chunk)))
    for name in _unused_queues(objects):
        yield _with(body, _without(objects, "queues", _name, {name}))


def _chunks(names: Sequence[str]) -> Iterator[Sequence[str]]:
    size = len(names)
    while size:
        for start in range(0, len(names), size):
            yield names[start : start + size]
        size //= 2


def _with(body: Body, objects: Objects) -> Body:
    return {**body, "rawObjects": objects}


def _without(objects: Objects, kind: str, key: Callable[[Json], str], names: set[str]) -> Objects:
    return {**objects, kind: [item for item in objects[kind] if key(item) not in names]}


def _without_groups(objects: Objects, groups: set[str]) -> Objects:
    """Remove pod groups with their pods and bind requests."""
    pods = [pod for pod in objects.get("pods") or () if _group_of(pod) not in groups]
    pod_keys = {_key(pod) for pod in pods}
    requests = [
        request for request in objects.get("bindRequests") or () if _pod_of(request) in pod_keys
    ]
    smaller = _without(objects, "podGroups", _key, groups)
    return {**smaller, "pods": pods, "bindRequests": requests}


def _unused_queues(objects: Objects) -> Iterator[str]:
    queues = objects.get("queues") or ()
    used_queues = {group.get("spec", {}).get("queue") for group in objects.get("podGroups") or ()}
    used_queues |= {queue.get("spec", {}).get("parentQueue") for queue in queues}
    used_queues |= {_labels(group).get(QUEUE) for group in objects.get("podGroups") or ()}
    yield from (_name(queue) for queue in queues if _name(queue) not in used_queues)


def _name(item: Json) -> str:
    return str(item["metadata"]["name"])


def _key(item: Json) -> str:
    namespace = item["metadata"].get("namespace") or ""
    return f"{namespace}/{_name(item)}" if namespace else _name(item)


def _labels(item: Json) -> Mapping[str, str]:
    return item["metadata"].get("labels") or {}


def _group_of(pod: Json) -> str:
    """Return `namespace/name` of a pod's pod group; empty if it has none."""
    name = (pod["metadata"].get("annotations") or {}).get(POD_GROUP) or _labels(pod).get(POD_GROUP)
    return f"{pod['metadata'].get('namespace')}/{name}" if name else ""


def _pod_of(request: Json) -> str:
    return f"{request['metadata'].get('namespace')}/{request['spec'].get('podName')}"
