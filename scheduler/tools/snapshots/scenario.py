"""Write a reduced cycle as a scenario of the conformance runner, and check that the scenario shows the same.

A scenario states nodes, queues, topologies and jobs. What it cannot state (taints, affinities of pods, volumes, claims ...) is left out; if that changes what happens, there is no scenario, and the reduced snapshot is the test.
"""

from __future__ import annotations

from collections import defaultdict
from math import isfinite
from typing import Any

from scheduler.core.cluster.inputs import (
    NodeInput,
    PodGroupInput,
    QueueAmounts,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TopologyConstraint,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import Evict
from scheduler.tools.conformance.play import play
from scheduler.tools.conformance.runner import judge_scenario
from scheduler.tools.conformance.world import STATE_OF_STATUS
from scheduler.tools.replay import Replay

Json = dict[str, Any]
UNLIMITED = -1


class NotAScenarioError(ValueError):
    """The cycle cannot be stated as a scenario."""


def scenario_of(replayed: Replay, name: str, title: str) -> Json:
    """Return the scenario; it expects what the cycle did with every job.

    Raises
    ------
    NotAScenarioError : the scenario does not show what the cycle did
    """
    session = replayed.session
    cluster = replayed.snapshot.cluster
    evictions = sum(isinstance(decision, Evict) for decision in session.decisions)
    document = {
        "schema": "kai-conformance/1",
        "id": f"own/{name}",
        "title": title,
        "mode": "single_pass",
        "config": {
            "actions": [report.action.value for report in session.reports],
            "plugins": "default",
        },
        "cluster": {
            "nodes": [_node(node) for node in cluster.nodes],
            "queues": [_queue(queue) for queue in cluster.queues],
            "topologies": [
                {"name": topology.name, "levels": list(topology.levels)}
                for topology in cluster.topologies
            ],
        },
        "jobs": [_job(group) for group in cluster.pod_groups],
        "expected": {"jobs": _expected(replayed), "limits": {"max_evictions": evictions}},
    }
    verdict = judge_scenario(document, play(document))
    if verdict.mismatches:
        first = verdict.mismatches[0].as_text()
        raise NotAScenarioError(
            f"as a scenario it goes otherwise ({first}); the reduced snapshot is the test then"
        )
    return document


def _node(node: NodeInput) -> Json:
    amounts = node.allocatable
    return {
        "name": node.name,
        "gpu": amounts.get("gpu", 0),
        "cpu_millis": amounts.get("cpu", 0),
        "memory_bytes": amounts.get("memory", 0),
        "max_pods": amounts.get("pods", 0),
        "gpu_memory_mib": node.gpu_memory_mib,
        "labels": dict(node.labels),
    }


def _queue(queue: QueueInput) -> Json:
    blocks = {"cpu_millis": queue.cpu, "memory_bytes": queue.memory, "gpu": queue.gpu}
    optional = {
        "preempt_min_runtime_seconds": queue.preempt_min_runtime_s,
        "reclaim_min_runtime_seconds": queue.reclaim_min_runtime_s,
    }
    return {
        "name": queue.name,
        "parent": queue.parent or None,
        "priority": queue.priority,
        "created_offset_seconds": queue.created,
        **{name: _bounds(amounts) for name, amounts in blocks.items()},
        **{name: value for name, value in optional.items() if value is not None},
    }


def _bounds(amounts: QueueAmounts) -> Json:
    return {
        "quota": amounts.quota if isfinite(amounts.quota) else UNLIMITED,
        "limit": amounts.limit if isfinite(amounts.limit) else UNLIMITED,
        "over_quota_weight": amounts.over_quota_weight,
        "usage": amounts.usage,
    }


def _job(group: PodGroupInput) -> Json:
    optional = {
        "last_start_offset_seconds": group.last_start,
        "stale_since_offset_seconds": group.stale_since,
        "staleness_grace_seconds": group.staleness_grace_s,
    }
    return {
        "name": _name(group),
        "queue": group.queue,
        "priority": group.priority,
        "preemptible": group.preemptible,
        **({"protects_minimum": True} if group.protects_minimum else {}),
        "created_offset_seconds": group.created,
        "pod_group": _tree(group.root),
        "tasks": [_task(task) for task in group.tasks],
        **{name: value for name, value in optional.items() if value is not None},
    }


def _tree(group: SubGroupInput) -> Json:
    return {
        "name": group.name,
        "min_subgroups": group.min_subgroups,
        "topology": _topology(group.topology),
        "groups": [_tree(inner) for inner in group.subgroups],
        "pod_sets": [
            {
                "name": pod_set.name,
                "min_available": pod_set.min_available,
                "topology": _topology(pod_set.topology),
            }
            for pod_set in group.pod_sets
        ],
    }


def _topology(constraint: TopologyConstraint | None) -> Json | None:
    if constraint is None:
        return None
    return {
        "topology": constraint.topology,
        "required_level": constraint.required_level,
        "preferred_level": constraint.preferred_level,
    }


def _task(task: TaskInput) -> Json:
    request = task.request
    amounts = {
        "cpu_millis": request.cpu_milli,
        "memory_bytes": request.memory_bytes,
        "gpu": request.gpus,
        "gpu_fraction": request.gpu_fraction,
        "gpu_memory_mib": request.gpu_memory_mib,
    }
    place: Json = {"node": task.node} if task.node else {}
    expressions = _node_affinity(task)
    if expressions:
        place["node_affinity"] = expressions
    if task.gpu_groups:
        place["gpu_groups"] = list(task.gpu_groups)
    return {
        "id": task.uid,
        "subgroup": task.subgroup,
        "state": STATE_OF_STATUS[TaskStatus(task.status)],
        "request": {name: amount for name, amount in amounts.items() if amount},
        **place,
    }


def _node_affinity(task: TaskInput) -> list[Json]:
    """Return what the labels of its nodes must be, if that is one list of expressions."""
    terms = task.constraints.node_affinity or ()
    expressions = [
        {"key": item.key, "operator": item.operator.value, "values": list(item.values)}
        for term in terms[:1]
        for item in term.labels
    ]
    selector = [
        {"key": key, "operator": "In", "values": [value]}
        for key, value in task.constraints.node_selector
    ]
    return [*selector, *expressions] if len(terms) <= 1 else []


def _expected(replayed: Replay) -> Json:
    """Return the status of every job whose tasks all end alike."""
    tasks, groups = replayed.session.state.tasks, replayed.session.state.pod_groups
    states: dict[str, set[str]] = defaultdict(set)
    for index in range(len(tasks.inputs)):
        name = _name(groups.inputs[tasks.pod_group[index]])
        states[name].add(STATE_OF_STATUS[TaskStatus(tasks.status[index])])
    return {name: {"status": ends.pop()} for name, ends in states.items() if len(ends) == 1}


def _name(group: PodGroupInput) -> str:
    return f"{group.namespace}.{group.name}" if group.namespace else group.name
