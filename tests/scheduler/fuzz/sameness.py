"""Rules about equal outcomes: the order of the input and the names of nodes do not matter."""

from __future__ import annotations

import copy
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from scheduler.core.cluster.status import TaskStatus
from tests.scheduler.fuzz.cycles import CycleRun, Finding, play, snapshot_of
from tests.scheduler.fuzz.generate import Document


def order_of_input_does_not_matter(cycle_run: CycleRun) -> Iterator[Finding]:
    """Shuffled nodes, queues and pod groups lead to the same decisions in the same order."""
    rng = random.Random(7)
    cluster = cycle_run.cluster
    shuffled = replace(
        cluster,
        nodes=_shuffled(rng, cluster.nodes),
        queues=_shuffled(rng, cluster.queues),
        pod_groups=tuple(
            replace(group, tasks=_shuffled(rng, group.tasks))
            for group in _shuffled(rng, cluster.pod_groups)
        ),
    )
    again = play(cycle_run.document, shuffled)
    if again.session.decisions != cycle_run.session.decisions:
        pairs = zip(cycle_run.session.decisions, again.session.decisions, strict=False)
        first = next((pair for pair in pairs if pair[0] != pair[1]), "their number")
        yield Finding("order of the input matters", f"first difference: {first}")


def names_of_nodes_do_not_matter(cycle_run: CycleRun) -> Iterator[Finding]:
    """With one pending pod group of equal pods it is served, or not, whatever the nodes are called.

    With several, a tie between nodes may decide who finds room later, so nothing is compared. Nor where pods
    are moved: these too go one by one to the node that scores best, so a tie may decide whether all find room.
    """
    pending = {pod.group for pod in cycle_run.pods.values() if pod.before == TaskStatus.PENDING}
    if len(pending) != 1:
        return
    again = play(renamed(cycle_run.document))
    if _moves(cycle_run) or _moves(again):
        return
    counts, others = _served(cycle_run), _served(again)
    if counts != others:
        yield Finding("names of nodes matter", f"served {dict(counts)}, renamed {dict(others)}")


def input_is_left_alone(cycle_run: CycleRun) -> Iterator[Finding]:
    """The snapshot is as it was before the cycle."""
    if repr(snapshot_of(cycle_run.document)) != repr(cycle_run.cluster):
        yield Finding("input changed", "the snapshot differs from a new one of the same document")


def renamed(document: Document) -> Document:
    """Return the document with the order of the names of its nodes reversed."""
    changed = copy.deepcopy(document)
    nodes = changed["cluster"]["nodes"]
    name_of = {node["name"]: f"m{len(nodes) - n:02}" for n, node in enumerate(nodes)}
    for node in nodes:
        node["name"] = name_of[node["name"]]
    for pod in changed["cluster"].get("other_pods", ()):
        pod["node"] = name_of[pod["node"]]
    for job in changed["jobs"]:
        for task in job["tasks"]:
            for key in ("node", "nominated_node"):
                if task.get(key):
                    task[key] = name_of.get(task[key], task[key])
    return changed


def _moves(cycle_run: CycleRun) -> bool:
    return any(eviction.moved_to for eviction in cycle_run.evictions)


def _served(cycle_run: CycleRun) -> Counter[str]:
    return Counter(p.group for p in cycle_run.pods.values() if p.holds_after and not p.held_before)


def _shuffled(rng: random.Random, values: Any) -> tuple[Any, ...]:
    return tuple(rng.sample(values, len(values)))
