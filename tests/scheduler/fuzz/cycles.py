"""Play one cycle of a document, and return the document as it is before the next cycle."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import uuid5

from scheduler.core.cluster.inputs import ClusterInput, TaskRequest
from scheduler.core.cluster.status import ACTIVE_ALLOCATED, ACTIVE_USED, TaskStatus
from scheduler.core.config import SchedulerConfig
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import Evict, promised_nodes_of
from scheduler.core.session.session import NO_SEED, Session
from scheduler.tools.conformance.settings import read_config
from scheduler.tools.conformance.world import STATE_OF_STATUS, World
from tests.scheduler.fuzz.generate import Document

CYCLE_S = 15.0


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that did not hold, and where."""

    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Pod:
    """A task before and after a cycle; nodes are names, empty for none.

    Attributes
    ----------
    home : its node before the cycle
    node : its node at the end; the old one if it was evicted and has no new place
    """

    name: str
    group: str
    queue: str
    subgroup: str
    request: TaskRequest
    preemptible: bool
    before: TaskStatus
    after: TaskStatus
    home: str
    node: str
    gpu_groups_before: tuple[str, ...]
    gpu_groups: tuple[str, ...]

    @property
    def held_before(self) -> bool:
        """Return whether it counted in its gang and queue before the cycle."""
        return ACTIVE_ALLOCATED[self.before]

    @property
    def holds_after(self) -> bool:
        """Return whether it counts in its gang and queue after the cycle."""
        return ACTIVE_ALLOCATED[self.after]

    @property
    def was_on_node(self) -> bool:
        """Return whether it occupied a node before the cycle."""
        return ACTIVE_USED[self.before] and bool(self.home)


@dataclass(frozen=True)  # without slots, for the cached properties
class CycleRun:
    """One cycle that was run: the document before it, and its finished session."""

    document: Document
    cluster: ClusterInput
    config: SchedulerConfig
    session: Session

    @cached_property
    def pods(self) -> dict[str, Pod]:
        """Return the tasks of all pod groups by name."""
        state = self.session.state
        tasks, groups, names = state.tasks, state.pod_groups, state.nodes.names
        pods = {}
        for index, task in enumerate(tasks.inputs):
            group = tasks.pod_group[index]
            if group < 0:
                continue
            node = tasks.node[index]
            pods[task.name] = Pod(
                name=task.name,
                group=groups.inputs[group].name,
                queue=groups.inputs[group].queue,
                subgroup=task.subgroup,
                request=task.request,
                preemptible=groups.inputs[group].preemptible,
                before=task.status,
                after=TaskStatus(tasks.status[index]),
                home=task.node,
                node=names[node] if node >= 0 else "",
                gpu_groups_before=task.gpu_groups,
                gpu_groups=tuple(tasks.gpu_groups[index]),
            )
        return pods

    @cached_property
    def evictions(self) -> list[Evict]:
        """Return the decisions to evict."""
        return [decision for decision in self.session.decisions if isinstance(decision, Evict)]

    def pods_of(self, group: str) -> list[Pod]:
        """Return the tasks of a pod group."""
        return [pod for pod in self.pods.values() if pod.group == group]


def snapshot_of(document: Document) -> ClusterInput:
    """Return what the scheduler sees of a document, with the nodes promised to pods."""
    cluster = World(document).snapshot()
    promised = {
        task["id"]: task["nominated_node"]
        for job in document["jobs"]
        for task in job["tasks"]
        if "nominated_node" in task
    }
    if not promised:
        return cluster
    return replace(
        cluster,
        pod_groups=tuple(
            replace(
                group,
                tasks=tuple(
                    replace(task, nominated_node=promised.get(task.name, ""))
                    for task in group.tasks
                ),
            )
            for group in cluster.pod_groups
        ),
    )


def play(document: Document, cluster: ClusterInput | None = None) -> CycleRun:
    """Run one cycle on a document, or on a changed snapshot of it."""
    cluster = snapshot_of(document) if cluster is None else cluster
    config = read_config(document)
    # As the worker does it, so that no cycle names a newly shared device as an earlier one did.
    seed = uuid5(NO_SEED, str(document.get("cycle", 0)))
    return CycleRun(document, cluster, config, run_cycle(cluster, config, gpu_group_seed=seed))


def next_document(cycle_run: CycleRun) -> Document:
    """Return the cluster before the next cycle: bound pods run, evicted ones are gone and pending again.

    Pods that evictions made room for keep their promised node, as the committer of the scheduler writes it.
    """
    document = copy.deepcopy(cycle_run.document)
    document["cycle"] = document.get("cycle", 0) + 1
    groups = cycle_run.session.state.pod_groups
    started = {group.name: groups.last_start[index] for index, group in enumerate(groups.inputs)}
    for job in document["jobs"]:
        job["created_offset_seconds"] -= CYCLE_S
        last_start = started[job["name"]]
        if last_start is not None:
            job["last_start_offset_seconds"] = last_start - CYCLE_S
        for task in job["tasks"]:
            _follow(task, cycle_run.pods[task["id"]])
    _promise(document, cycle_run)
    return document


def _promise(document: Document, cycle_run: CycleRun) -> None:
    tasks = [task for group in cycle_run.cluster.pod_groups for task in group.tasks]
    before = {task.uid for task in tasks if task.nominated_node}
    promised = promised_nodes_of(cycle_run.session.decisions, before)
    nodes = {task.name: promised[task.uid] for task in tasks if task.uid in promised}
    for job in document["jobs"]:
        for task in job["tasks"]:
            task.pop("nominated_node", None)
            if task["state"] == "pending" and task["id"] in nodes:
                task["nominated_node"] = nodes[task["id"]]


def _follow(task: Document, pod: Pod) -> None:
    state = STATE_OF_STATUS[pod.after]
    if state == "binding":
        task |= {"state": "running", "node": pod.node, "gpu_groups": list(pod.gpu_groups)}
    elif state in ("pipelined", "releasing"):
        _leave(task, "pending")


def _leave(task: Document, state: str) -> None:
    task["state"] = state
    task.pop("node", None)
    task.pop("gpu_groups", None)


def disturb(document: Document, rng: random.Random) -> bool:
    """Let some pods finish, some fail and start again, some pod groups end; return whether any did."""
    is_disturbed = False
    for job in list(document["jobs"]):
        running = [task for task in job["tasks"] if task["state"] == "running"]
        if running and rng.random() < 0.06:
            document["jobs"].remove(job)
            is_disturbed = True
        elif running and rng.random() < 0.06:
            _leave(rng.choice(running), rng.choice(["succeeded", "pending"]))
            is_disturbed = True
    return is_disturbed
