"""The one code for why a pod group waits, taken from the evidence of the cycle and never from its texts.

"No node has room" has two stories. Either the cluster had none to begin with, or those whose turn came
first took it in this very cycle; only then is the group behind in the order. Which of the two holds is
seen by giving back, on paper, what this cycle has placed: `OpeningRoom`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from queues import reasons
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.podgroups import TreeGroup
from scheduler.core.cluster.status import ALLOCATED, BINDING, NOMINATED, PENDING, RELEASING
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.placement.place import Placer
from scheduler.core.session.fit import (
    GroupReason,
    NodeReason,
    NodeReasonKind,
    TaskFit,
    TopologyRefusal,
)
from scheduler.core.session.session import Session

NAMED = 3
#: Checks that need no node -> what their failure means; others mean that no node fits.
CODE_OF_CHECK = {
    "MaxNodePoolResources": reasons.NEVER_FITS,
    "ConfigMap": reasons.VOLUME,
    "VolumeBinding": reasons.VOLUME,
    "DynamicResources": reasons.VOLUME,
}
#: The reasons of a pod group that decide by themselves, the first one found counts.
CODE_OF_REFUSAL = {
    GroupReason.QUEUE_DOES_NOT_EXIST: reasons.QUEUE_MISSING,
    GroupReason.NON_PREEMPTIBLE_OVER_QUOTA: reasons.NON_PREEMPTIBLE_OVER_QUOTA,
    GroupReason.OVER_LIMIT: reasons.OVER_LIMIT,
    GroupReason.PREEMPTION_DELAY: reasons.PREEMPTION_DELAY,
}
#: States a pending task can have come to within a cycle.
_PLACED = (ALLOCATED, NOMINATED, BINDING)
_DEVICE_KINDS = frozenset(
    {NodeReasonKind.INSUFFICIENT_GPU_MEMORY, NodeReasonKind.GPU_MEMORY_UNKNOWN}
)
_CLAIM_KINDS = frozenset({NodeReasonKind.VOLUME, NodeReasonKind.DEVICES})


@dataclass(frozen=True, slots=True)
class Cause:
    """A code, and a text where the cluster's own objects have none for it."""

    code: str
    text: str = ""


class Coder:
    """Finds the causes of one finished session."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._opening: OpeningRoom | None = None
        self._turned_away = frozenset(session.turned_away)

    def cause(self, group: int) -> Cause:
        """Return why a pod group that is ready still waits."""
        session = self._session
        refusals = {fit.reason for fit in session.fit.groups.get(group, ())}
        fits = self._fits(group)
        if any(CODE_OF_CHECK.get(c.check) == reasons.NEVER_FITS for f in fits for c in f.checks):
            return Cause(reasons.NEVER_FITS)
        for reason, code in CODE_OF_REFUSAL.items():
            if reason in refusals:
                return Cause(code)
        waiting = self.waits_for_room(group)
        if waiting is not None:
            return waiting
        if group not in self._turned_away:
            return self._without_turn(group)
        if any(isinstance(f.evidence, TopologyRefusal) for f in session.fit.groups.get(group, ())):
            return Cause(reasons.TOPOLOGY)
        return self._behind(group) or Cause(_of_nodes(fits))

    def waits_for_room(self, group: int) -> Cause | None:
        """Return the cause of a group whose place is still being freed; None if it has no such place."""
        state = self._session.state
        nodes = list(
            dict.fromkeys(
                state.tasks.node[task]
                for task in state.groups.tasks_of(group)
                if state.tasks.status[task] == NOMINATED
            )
        )
        if not nodes:
            return None
        leaving = [
            _pod(self._session, task)
            for node in nodes
            for task in state.nodes.tasks[node]
            if state.tasks.status[task] == RELEASING
        ]
        where = _listed([state.nodes.names[node] for node in nodes])
        text = f"Its place on {where} is being freed"
        return Cause(
            reasons.WAITING_FOR_VICTIMS,
            f"{text}; waiting for the end of {_listed(leaving)}" if leaving else text,
        )

    def _fits(self, group: int) -> list[TaskFit]:
        """Return the refusals of its tasks; tasks that failed alike share their evidence."""
        session = self._session
        found: dict[tuple[int, ...], TaskFit] = {}
        for task in session.state.groups.tasks_of(group):
            fit = session.fit.tasks.get(task)
            if fit is not None:
                key = (*map(id, fit.checks), *map(id, fit.counts))
                found.setdefault(key, fit)
        return list(found.values())

    def _without_turn(self, group: int) -> Cause:
        state = self._session.state
        queue = state.groups.queue[group]
        if not state.queues.is_leaf(queue):
            name = state.queues.names[queue]
            return Cause(
                reasons.QUEUE_ORPHAN, f"Queue '{name}' has child queues; only leaf queues run work"
            )
        ahead = sum(state.groups.queue[other] == queue for other in self._turned_away)
        return Cause(
            reasons.ORDER_BEHIND,
            f"Its turn did not come in this cycle; {ahead} workloads of its queue are ahead",
        )

    def _behind(self, group: int) -> Cause | None:
        """Return the cause of a group that would have fitted when the cycle began."""
        session = self._session
        groups = session.state.groups
        if groups.plain_set[group] == NOWHERE and _has_topology(groups.tree(group)):
            return None
        if self._opening is None:
            self._opening = OpeningRoom(session)
        chunk = [
            task
            for task in session.view(group).next_chunk(real=True)
            if session.state.tasks.status[task] == PENDING
        ]
        takers = [other for other in self._opening.takers(chunk) if other != group]
        if not takers:
            return None
        names = [groups.name(other) for other in takers]
        return Cause(
            reasons.ORDER_BEHIND,
            f"There was room when the cycle began; workloads ahead of it took it: {_listed(names)}",
        )


class OpeningRoom:
    """What was free when the cycle began: what is free now, and what the cycle placed given back.

    Devices that are shared are left out, so a claim that somebody was overtaken is never a guess.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._placer = Placer(session)
        state = session.state
        self._placed: dict[int, list[int]] = {}
        room = state.nodes.idle_and_releasing.copy()
        for task, status in enumerate(state.tasks.status):
            if status in _PLACED and state.tasks.inputs[task].status == PENDING:
                node = state.tasks.node[task]
                self._placed.setdefault(node, []).append(task)
                self._give(room, task, node, 1.0)
        if self._placed:
            for node in self._placed:
                for task in state.nodes.tasks[node]:
                    was = state.tasks.inputs[task].status
                    if state.tasks.status[task] == RELEASING and was != RELEASING:
                        self._give(room, task, node, -1.0)
        self._room = room
        self._known: dict[tuple[int, int], list[int]] = {}

    def takers(self, chunk: Sequence[int]) -> list[int]:
        """Return the pod groups that took the room of these tasks, or nothing if there was none."""
        if not self._placed or not chunk:
            return []
        tasks = self._session.state.tasks
        counts = Counter(tasks.klass[task].index for task in chunk)
        found: dict[int, None] = {}
        for task in {tasks.klass[one].index: one for one in chunk}.values():
            klass = tasks.klass[task]
            takers = self._takers(klass, task, counts[klass.index])
            if not takers:
                return []
            found.update(dict.fromkeys(takers))
        return list(found)

    def _takers(self, klass: TaskClass, task: int, needed: int) -> list[int]:
        key = (klass.index, needed)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._look(klass, task, needed)
        return found

    def _look(self, klass: TaskClass, task: int, needed: int) -> list[int]:
        if klass.is_shared or klass.is_dra:
            return []
        rules = self._placer.rules(klass, task)
        before = _places(self._room, klass) * rules.static_mask
        if before.sum() < needed or not any(before[node] for node in self._placed):
            return []
        takers: dict[int, None] = {}
        places = 0
        for node in np.flatnonzero(before).tolist():
            if not all(one.passes(task, klass, node) for one in rules.filters):
                continue
            places += int(before[node])
            for other in self._placed.get(node, ()):
                takers[self._session.state.tasks.group[other]] = None
            if places >= needed and takers:
                return list(takers)
        return []

    def _give(self, room: NDArray[np.float64], task: int, node: int, sign: float) -> None:
        for row, amount in self._session.state.charge_cells(task, node):
            room[row, node] += sign * amount


def _places(room: NDArray[np.float64], klass: TaskClass) -> NDArray[np.float64]:
    """Return how many tasks of a class each node has room for, shape (nodes,)."""
    rows = [row for row, amount in klass.fits if amount > 0]
    need = np.array([amount for _, amount in klass.fits if amount > 0])[:, None]
    places: NDArray[np.float64] = np.floor(room[rows] / need).min(axis=0)
    return np.maximum(places, 0)


def _of_nodes(fits: Sequence[TaskFit]) -> str:
    """Return what most nodes lacked; of equals the more telling."""
    checks = [CODE_OF_CHECK.get(check.check) for fit in fits for check in fit.checks]
    named = next((code for code in checks if code is not None), None)
    if named is not None:
        return named
    votes: Counter[str] = Counter()
    for fit in fits:
        for reason, count in fit.reasons().items():
            votes[_code_of(reason)] += count
    if not votes:
        return reasons.NO_NODE
    order = (reasons.DEVICES, reasons.VOLUME, reasons.NO_NODE)
    return min(votes, key=lambda code: (-votes[code], order.index(code)))


def _code_of(reason: NodeReason) -> str:
    lacks_device = reason.kind is NodeReasonKind.INSUFFICIENT and "gpu" in reason.subject
    is_slice = reason.kind is NodeReasonKind.INSUFFICIENT and "/mig-" in reason.subject
    if lacks_device or is_slice or reason.kind in _DEVICE_KINDS:
        return reasons.DEVICES
    return reasons.VOLUME if reason.kind in _CLAIM_KINDS else reasons.NO_NODE


def _has_topology(root: TreeGroup) -> bool:
    if root.topology is not None:
        return True
    return any(
        _has_topology(member) if isinstance(member, TreeGroup) else member.topology is not None
        for member in root.members
    )


def _pod(session: Session, task: int) -> str:
    given = session.state.tasks.inputs[task]
    return f"{given.namespace}/{given.name}"


def _listed(names: Sequence[str]) -> str:
    """Return the first few names and how many more there are."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
