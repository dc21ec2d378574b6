"""Write the status of queues: the sums over their own pod groups and everything below, and two conditions.

The amounts of each pod group are stored and replaced when it changes, so that an update costs the same for any
number of groups. A pass takes the changed queues and their ancestors and sums from the leaves up, so that a change
reaches the root in one pass. `Orphan` means that the scheduler ignores the queue because its parents do not reach a
root, `OverQuota` that it holds more than its quota; KAI declares both conditions and sets neither.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kube.conditions import ConditionState, merged_conditions
from kube.errors import KubeError, NotFoundError
from kube.gateway import EventType, Gateway
from kube.objects.meta import KubeObject, convert
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue, QueueResource
from kube.process.progress import WAIT_S, track
from kube.resources import PODGROUPS, QUEUES, Resource
from kube.store import Store
from queues.controllers.podgroup_status import Holdings, list_patch
from queues.controllers.sums import GroupSums, add_holdings, empty_holdings
from queues.tree.amounts import TOLERANCE
from queues.tree.hierarchy import below, problem_of
from queues.tree.shape import QueueShape
from queues.workloads import accounting
from queues.workloads.accounting import ResourceAmounts

log = logging.getLogger(__name__)

BY_QUEUE = "queue"
LEASE = "ov3xj497.kai.scheduler"
#: Where a queue is in hand while its status is computed.
PLACE = "queue-status"
ORPHAN = "Orphan"
OVER_QUOTA = "OverQuota"
MEGABYTE = 10**6
UNITS = {"gpu": "GPUs", "cpu": "millicores", "memory": "MB"}


def children_by_parent(queues: Iterable[Queue]) -> dict[str, list[str]]:
    children: dict[str, list[str]] = {}
    for queue in queues:
        if queue.spec.parent_queue:
            children.setdefault(queue.spec.parent_queue, []).append(queue.metadata.name)
    return {parent: sorted(names) for parent, names in children.items()}


def leaves_first(names: Iterable[str], queues: Mapping[str, Queue]) -> list[str]:
    """Return the queues and all their ancestors, deepest first; a circle of parents is cut."""
    depth: dict[str, int] = {}
    for name in names:
        path: list[str] = []
        current = name
        while current in queues and current not in path:
            path.append(current)
            current = queues[current].spec.parent_queue
        for height, ancestor in enumerate(reversed(path)):
            depth[ancestor] = max(depth.get(ancestor, 0), height)
    return sorted(depth, key=lambda ancestor: (-depth[ancestor], ancestor))


def conditions_of(
    queue: Queue, tree: Mapping[str, QueueShape], allocated: ResourceAmounts
) -> dict[str, ConditionState]:
    """Return the states of the two conditions of a queue."""
    problem = problem_of(tree, queue.metadata.name)
    over_quota_text = _over_quota(queue, allocated)
    return {
        ORPHAN: ConditionState("True", "NotConnectedToRoot", problem)
        if problem
        else ConditionState("False", "ConnectedToRoot", ""),
        OVER_QUOTA: ConditionState("True", "AllocatedAboveQuota", over_quota_text)
        if over_quota_text
        else ConditionState("False", "AllocatedWithinQuota", ""),
    }


def status_patch(
    queue: Queue,
    holdings: Holdings,
    children: list[str],
    conditions: Mapping[str, ConditionState],
    now: datetime,
) -> dict[str, Any] | None:
    """Return the merge patch of the status, or None if it is up to date."""
    status = queue.status
    patch: dict[str, Any] = {}
    lists = {
        "allocated": (status.allocated, holdings.allocated),
        "allocatedNonPreemptible": (status.allocated_non_preemptible, holdings.non_preemptible),
        "requested": (status.requested, holdings.requested),
    }
    for name, (old, new) in lists.items():
        changed = list_patch(old, new)
        if changed:
            patch[name] = changed
    if list(status.child_queues) != children:
        patch["childQueues"] = children or None
    merged = merged_conditions(status.conditions, conditions, now)
    if merged is not None:
        patch["conditions"] = merged
    return patch or None


@dataclass(slots=True)
class QueueController:
    """Keeps the status of every queue up to date; one thread, one pass at a time."""

    gateway: Gateway
    store: Store
    pause_s: float = 0.2
    _dirty: set[str] = field(default_factory=set)
    #: Queue -> what is held in it and below it.
    _totals: dict[str, Holdings] = field(default_factory=dict)
    _sums: GroupSums = field(default_factory=GroupSums)
    #: Queues that were created, deleted or moved: they may connect or disconnect everything below them.
    _moved: set[str] = field(default_factory=set)
    #: Queue -> its parent, as last seen.
    _parents: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _wake: threading.Event = field(default_factory=threading.Event)

    def follow(self) -> None:
        self.store.subscribe(self._on_event)
        for group in self.store.view().of(PODGROUPS, PodGroup).values():
            self._sums.put(group)
        self.recheck()

    def recheck(self) -> None:
        """Include every queue in the next pass."""
        self._mark(self.store.view().of(QUEUES, Queue))

    def run(self, stop: threading.Event) -> None:
        """Run a pass shortly after each change until `stop` is set."""
        while not stop.is_set():
            if self._wake.wait(timeout=1.0):
                self._wake.clear()
                self.pass_once(datetime.now(UTC))
            stop.wait(self.pause_s)

    def pass_once(self, now: datetime) -> int:
        """Update the changed queues and their ancestors; return how many were written."""
        with self._lock:
            dirty, self._dirty = self._dirty, set()
            moved, self._moved = self._moved, set()
        queues = self.store.view().of(QUEUES, Queue)
        children = children_by_parent(queues.values())
        tree = {
            name: QueueShape(name=name, parent=queue.spec.parent_queue)
            for name, queue in queues.items()
        }
        written = 0
        for name in leaves_first(dirty | below(moved, children), queues):
            if not track().take(QUEUES.kind, queues[name], PLACE, WAIT_S):
                continue
            try:
                written += self._update(queues[name], children.get(name, []), tree, now)
            except NotFoundError:
                self._totals.pop(name, None)
            except KubeError as error:
                log.warning("status of queue %s: %s", name, error)
                self._mark([name])
        for name in [queue_name for queue_name in self._totals if queue_name not in queues]:
            del self._totals[name]
        track().rest()
        return written

    def holdings(self, name: str, children: Iterable[str]) -> Holdings:
        """Return the queue's own pod groups plus the totals of its children."""
        total = self._sums.of(name)
        for child in children:
            if child != name:
                add_holdings(total, self._totals_of(child))
        return total

    def _update(
        self, queue: Queue, children: list[str], tree: Mapping[str, QueueShape], now: datetime
    ) -> int:
        name = queue.metadata.name
        total = self._totals[name] = self.holdings(name, children)
        conditions = conditions_of(queue, tree, total.allocated)
        patch = status_patch(queue, total, children, conditions, now)
        if patch is None:
            return 0
        answer = self.gateway.patch(QUEUES, name, {"status": patch}, sub="status")
        self.store.assume(QUEUES, convert(answer, Queue))
        return 1

    def _totals_of(self, name: str) -> Holdings:
        total = self._totals.get(name)
        if total is not None:
            return total
        queue: Queue | None = self.store.get(QUEUES, name)
        if queue is None:
            return empty_holdings()
        status = queue.status
        return Holdings(
            requested=accounting.parse_list(status.requested),
            allocated=accounting.parse_list(status.allocated),
            non_preemptible=accounting.parse_list(status.allocated_non_preemptible),
        )

    def _on_event(self, resource: Resource, event: EventType, value: KubeObject) -> None:
        if resource == PODGROUPS and isinstance(value, PodGroup):
            is_gone = event is EventType.DELETED
            self._mark(self._sums.drop(value.key) if is_gone else self._sums.put(value))
        elif resource == QUEUES and isinstance(value, Queue):
            name, parent = value.metadata.name, value.spec.parent_queue
            with self._lock:
                before = self._parents.get(name)
                if event is EventType.DELETED:
                    self._parents.pop(name, None)
                else:
                    self._parents[name] = parent
                if event is not EventType.MODIFIED or before != parent:
                    self._moved.add(name)
            self._mark([name, parent, before or ""])

    def _mark(self, names: Iterable[str]) -> None:
        queues = [name for name in names if name]
        if not queues:
            return
        with self._lock:
            self._dirty.update(queues)
        self._wake.set()


def index_groups_by_queue(store: Store) -> None:
    store.add_index(PODGROUPS, BY_QUEUE, lambda group: [group.spec.queue])


def _over_quota(queue: Queue, allocated: ResourceAmounts) -> str:
    """Return the resources held above quota, "" if there are none; a quota of -1 cannot be exceeded."""
    resources = queue.spec.resources
    if resources is None:
        return ""
    allocated_by_resource = {
        "gpu": sum(amount for name, amount in allocated.items() if name.endswith("/gpu")),
        "cpu": allocated.get("cpu", 0) * 1000,
        "memory": allocated.get("memory", 0) / MEGABYTE,
    }
    quota_by_resource: dict[str, QueueResource] = {
        "gpu": resources.gpu,
        "cpu": resources.cpu,
        "memory": resources.memory,
    }
    return "; ".join(
        f"{name}: {float(allocated_by_resource[name]):g} {UNITS[name]} allocated, quota is {resource.quota:g}"
        for name, resource in quota_by_resource.items()
        if resource.quota >= 0 and allocated_by_resource[name] > resource.quota + TOLERANCE
    )
