"""Make a document small while it still shows a finding: greedy removal, largest parts first."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator

from scheduler.tools.smallest import smallest
from tests.scheduler.fuzz.generate import Document

StillFails = Callable[[Document], bool]


def shrink(document: Document, still_fails: StillFails) -> Document:
    """Remove parts one after the other as long as the finding stays."""
    return smallest(document, still_fails, _smaller)


def _smaller(document: Document) -> Iterator[Document]:
    for step in (_without_jobs, _without_nodes, _without_queues, _without_tasks, _without_extras):
        yield from step(document)


def _without_jobs(document: Document) -> Iterator[Document]:
    for position in range(len(document["jobs"])):
        smaller = copy.deepcopy(document)
        del smaller["jobs"][position]
        yield smaller
    for position in range(len(document["cluster"].get("other_pods", ()))):
        smaller = copy.deepcopy(document)
        del smaller["cluster"]["other_pods"][position]
        yield smaller


def _without_nodes(document: Document) -> Iterator[Document]:
    """Remove nodes on which nothing is."""
    used = {task.get("node") for job in document["jobs"] for task in job["tasks"]}
    used |= {pod["node"] for pod in document["cluster"].get("other_pods", ())}
    for position, node in enumerate(document["cluster"]["nodes"]):
        if node["name"] not in used:
            smaller = copy.deepcopy(document)
            del smaller["cluster"]["nodes"][position]
            yield smaller


def _without_queues(document: Document) -> Iterator[Document]:
    """Remove queues that hold nothing."""
    queues = document["cluster"]["queues"]
    used = {job["queue"] for job in document["jobs"]} | {queue["parent"] for queue in queues}
    for position, queue in enumerate(queues):
        if queue["name"] not in used:
            smaller = copy.deepcopy(document)
            del smaller["cluster"]["queues"][position]
            yield smaller


def _without_tasks(document: Document) -> Iterator[Document]:
    """Remove single tasks; minimums go down with them."""
    for position, job in enumerate(document["jobs"]):
        for number in range(len(job["tasks"]) if len(job["tasks"]) > 1 else 0):
            smaller = copy.deepcopy(document)
            changed = smaller["jobs"][position]
            removed = changed["tasks"].pop(number)
            _lower_minimum(changed, removed.get("subgroup", "default"))
            yield smaller


def _lower_minimum(job: Document, subgroup: str) -> None:
    members = sum(task.get("subgroup", "default") == subgroup for task in job["tasks"])
    if "min_available" in job:
        job["min_available"] = min(job["min_available"], members)
    for pod_set in (job.get("pod_group") or {}).get("pod_sets", ()):
        if pod_set["name"] == subgroup:
            pod_set["min_available"] = min(pod_set["min_available"], members)


def _without_extras(document: Document) -> Iterator[Document]:
    """Set single values back to the plain ones."""
    for position, queue in enumerate(document["cluster"]["queues"]):
        for key in ("cpu_millis", "preempt_min_runtime_seconds", "reclaim_min_runtime_seconds"):
            if key in queue:
                smaller = copy.deepcopy(document)
                del smaller["cluster"]["queues"][position][key]
                yield smaller
        for key, plain in (("limit", -1), ("over_quota_weight", 1)):
            if queue["gpu"][key] != plain:
                smaller = copy.deepcopy(document)
                smaller["cluster"]["queues"][position]["gpu"][key] = plain
                yield smaller
        if queue.get("priority", 100) != 100:
            smaller = copy.deepcopy(document)
            smaller["cluster"]["queues"][position]["priority"] = 100
            yield smaller
    for position, job in enumerate(document["jobs"]):
        if (job.get("pod_group") or {}).get("topology"):
            smaller = copy.deepcopy(document)
            del smaller["jobs"][position]["pod_group"]["topology"]
            yield smaller
        if any(
            key in task for task in job["tasks"] for key in ("pod_affinity", "pod_anti_affinity")
        ):
            smaller = copy.deepcopy(document)
            for task in smaller["jobs"][position]["tasks"]:
                task.pop("pod_affinity", None)
                task.pop("pod_anti_affinity", None)
            yield smaller
