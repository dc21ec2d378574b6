"""Find the one code for why a pod group waits, from the evidence of the cycle and never from its texts.

"No node has room" has two causes: the cluster had no room when the cycle began, or pod groups that were served
earlier in this cycle took it. Only in the second case is the group behind in the order (see `OpeningRoom`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

import numpy as np
from numpy.typing import NDArray

from kube.keys import MAX_RUN_TIME
from kube.values.texts import first_few
from kube.values.times import format_time
from queues.workloads import reasons
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.cluster.status import NOMINATED, PENDING, RELEASING
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.placement.place import Placer
from scheduler.core.placement.reservations import Reservations
from scheduler.core.session.fit import (
    DisruptionRefusal,
    GroupReason,
    NodeReason,
    NodeReasonKind,
    TaskFit,
    TopologyRefusal,
)
from scheduler.core.session.session import Session
from scheduler.core.session.user_shares import NO_USER, UserShares
from scheduler.explain.opening import OpeningRoom
from scheduler.explain.texts import amounts, disruption_message

MAX_NAMES = 3
#: Class, evidence of nodes, reasons of the group, whether it had a turn, its queue, its user where users count.
Likeness = tuple[int, tuple[int, ...], tuple[GroupReason, ...], bool, int, int]
#: Checks that need no node -> what their failure means; others mean that no node fits.
CODE_OF_CHECK = {
    "MaxNodePoolResources": reasons.NEVER_FITS,
    "ConfigMap": reasons.VOLUME,
    "VolumeBinding": reasons.VOLUME,
    "DynamicResources": reasons.VOLUME,
}
#: The reasons of a pod group that decide by themselves, the first one counts.
CODE_OF_REFUSAL = {
    GroupReason.QUEUE_DOES_NOT_EXIST: reasons.QUEUE_MISSING,
    GroupReason.NON_PREEMPTIBLE_OVER_QUOTA: reasons.NON_PREEMPTIBLE_OVER_QUOTA,
    GroupReason.OVER_LIMIT: reasons.OVER_LIMIT,
    GroupReason.PREEMPTION_DELAY: reasons.PREEMPTION_DELAY,
}
_DEVICE_KINDS = frozenset(
    {NodeReasonKind.INSUFFICIENT_GPU_MEMORY, NodeReasonKind.GPU_MEMORY_UNKNOWN}
)
_CLAIM_KINDS = frozenset(
    {NodeReasonKind.VOLUME, NodeReasonKind.DEVICES, NodeReasonKind.CLAIM_ELSEWHERE}
)


@dataclass(frozen=True, slots=True)
class Cause:
    """A code, and a text where the cluster's own objects have none for it."""

    code: str
    text: str = ""


class CauseFinder:
    """Finds the causes of one finished session."""

    def __init__(self, session: Session, now: float = 0.0) -> None:
        self._session = session
        #: Unix time of the cycle, for the times in texts.
        self._now = now
        self._reservations = session.attached(Reservations)
        self._placer = Placer(session)
        self._opening: OpeningRoom | None = None
        #: Cause found for an earlier pod group, by what two alike pod groups share.
        self._known: dict[Likeness, Cause] = {}
        self._unplaced_groups = frozenset(session.unplaced_groups)
        self._users = session.attached(UserShares)

    def cause(self, group: int) -> Cause:
        """Return why a pod group that is ready still waits; pod groups of one task that failed alike share one result."""
        likeness = self._likeness(group)
        if likeness is None:
            return self._cause(group)
        cause = self._known.get(likeness)
        if cause is None:
            cause = self._known[likeness] = self._cause(group)
        return cause

    def _likeness(self, group: int) -> Likeness | None:
        """Return what pod groups of one task with the same cause have in common; None for larger groups."""
        state, fit = self._session.state, self._session.fit
        groups = state.pod_groups
        if groups.task_count[group] != 1 or groups.only_pod_set[group] == NOWHERE:
            return None
        task = groups.first_task[group]
        task_fit = fit.tasks.get(task)
        if task_fit is None or task_fit.checks or state.tasks.status[task] != PENDING:
            return None
        if _disruption_refusal(self._session, group) is not None:
            return None
        if self._of_reservations(group) is not None:
            return None
        return (
            state.tasks.task_class[task].index,
            tuple(map(id, task_fit.counts)),
            tuple(refusal.reason for refusal in fit.pod_groups.get(group, ())),
            group in self._unplaced_groups,
            groups.queue[group],
            NO_USER if self._users is None else self._users.user_of[group],
        )

    def _cause(self, group: int) -> Cause:
        session = self._session
        refusals = {fit.reason for fit in session.fit.pod_groups.get(group, ())}
        fits = self._fits(group)
        checks = [check.check for fit in fits.values() for check in fit.checks]
        if any(CODE_OF_CHECK.get(check) == reasons.NEVER_FITS for check in checks):
            return Cause(reasons.NEVER_FITS)
        for reason, code in CODE_OF_REFUSAL.items():
            if reason in refusals:
                return Cause(code)
        waiting = waits_for_room(session, group)
        if waiting is not None:
            return waiting
        reserved = self._of_reservations(group)
        if reserved is not None:
            return reserved
        refusal = _disruption_refusal(session, group)
        if refusal is not None:
            return Cause(reasons.DISRUPTION_BUDGET, disruption_message(refusal.limits))
        if group not in self._unplaced_groups:
            return self._without_turn(group)
        if any(
            isinstance(f.evidence, TopologyRefusal) for f in session.fit.pod_groups.get(group, ())
        ):
            return Cause(reasons.TOPOLOGY)
        return self._behind(group) or Cause(self._of_nodes(fits))

    def _of_reservations(self, group: int) -> Cause | None:
        """Return the cause of a pod group that room is kept for, or from; None for others."""
        reservations = self._reservations
        if reservations is None:
            return None
        name = self._session.state.pod_groups.name
        reservation = reservations.reservation_of(group)
        if reservation is not None:
            awaited = first_few(
                [name(pod_group) for pod_group in reversed(reservation.awaited_pod_groups)],
                MAX_NAMES,
            )
            text = f"It will start by {self._time(reservation.starts_by)} at the latest, when workloads end that declared their run time"
            return Cause(reasons.START_EXPECTED, f"{text}: {awaited}" if awaited else text)
        if group not in reservations.blocked_pod_groups:
            return None
        ahead = first_few([name(entry.pod_group) for entry in reservations.entries], MAX_NAMES)
        return Cause(
            reasons.ROOM_KEPT,
            f"Free room is kept for workloads ahead of it: {ahead}. A workload may use it that has to end "
            f"before {self._time(reservations.entries[0].starts_by)} by its {MAX_RUN_TIME}",
        )

    def _time(self, moment: float) -> str:
        """Return a moment to the minute, rounded up, so that it reads the same in the next cycle."""
        minutes = ceil((self._now + moment - self._session.state.now) / 60 - 0.05)
        return format_time(datetime.fromtimestamp(60 * minutes, UTC))

    def _fits(self, group: int) -> dict[int, TaskFit]:
        """Return the refusals of its tasks by task; of tasks that failed alike only those of the first."""
        session = self._session
        fits: dict[tuple[int, ...], tuple[int, TaskFit]] = {}
        for task in session.state.pod_groups.tasks_of(group):
            fit = session.fit.tasks.get(task)
            if fit is not None:
                key = (*map(id, fit.checks), *map(id, fit.counts))
                fits.setdefault(key, (task, fit))
        return dict(fits.values())

    def _of_nodes(self, fits: Mapping[int, TaskFit]) -> str:
        """Return what was lacking on the usable nodes of the first task that failed."""
        checks = [CODE_OF_CHECK.get(c.check) for fit in fits.values() for c in fit.checks]
        named = next((code for code in checks if code is not None), None)
        if named is not None or not fits:
            return named or reasons.NO_NODE
        task, fit = next(iter(fits.items()))
        task_class = self._session.state.tasks.task_class[task]
        usable = self._placer.rules(task_class, task).static_mask
        if not usable.any():
            return reasons.NO_NODE
        codes = {_code_of(reason) for reason in fit.reasons()}
        if reasons.GPU_MODEL in codes:
            return reasons.GPU_MODEL
        if reasons.DEVICES in codes and not self._lacks_more_of_others(task_class, usable):
            return reasons.DEVICES
        return reasons.VOLUME if reasons.VOLUME in codes else reasons.NO_NODE

    def _lacks_more_of_others(self, task_class: TaskClass, usable: NDArray[np.bool_]) -> bool:
        """Return whether more of its usable nodes lack CPU, memory or pod slots than lack devices."""
        room = self._session.state.nodes.idle_and_releasing[:, usable]
        lacking = {row: int((room[row] < amount).sum()) for row, amount in task_class.must_be_free}
        devices = {row: count for row, count in lacking.items() if self._is_device(row)}
        others = lacking.keys() - devices.keys()
        # Shared devices have no row in the request; then the refusals of the nodes decide.
        most = max(devices.values(), default=0)
        return bool(most) and max((lacking[row] for row in others), default=0) > most

    def _is_device(self, row: int) -> bool:
        return _is_device(self._session.state.axis.names[row])

    def _without_turn(self, group: int) -> Cause:
        state = self._session.state
        queue = state.pod_groups.queue[group]
        if not state.queues.is_leaf(queue):
            name = state.queues.names[queue]
            return Cause(
                reasons.QUEUE_ORPHAN, f"Queue '{name}' has child queues; only leaf queues run work"
            )
        ahead = sum(state.pod_groups.queue[other] == queue for other in self._unplaced_groups)
        return Cause(
            reasons.ORDER_BEHIND,
            f"Its turn did not come in this cycle; {ahead} workloads of its queue are ahead"
            + _about_user(self._session, group),
        )

    def _behind(self, group: int) -> Cause | None:
        """Return the cause of a group that would have fitted when the cycle began."""
        session = self._session
        groups = session.state.pod_groups
        if groups.only_pod_set[group] == NOWHERE and _has_topology(groups.tree(group)):
            return None
        if self._opening is None:
            self._opening = OpeningRoom(session, self._placer)
        chunk = [
            task
            for task in session.view(group).next_chunk(include_evicted=False)
            if session.state.tasks.status[task] == PENDING
        ]
        takers = [other for other in self._opening.takers(chunk) if other != group]
        if not takers:
            return None
        names = [groups.name(other) for other in takers]
        text = f"There was room when the cycle began; workloads ahead of it took it: {first_few(names, MAX_NAMES)}"
        return Cause(reasons.ORDER_BEHIND, text + _about_user(session, group))


def _about_user(session: Session, group: int) -> str:
    """Return what the user of a pod group holds, where that decides its place in the queue; else nothing."""
    users = session.attached(UserShares)
    if users is None or users.user_of[group] == NO_USER:
        return ""
    user = users.user_of[group]
    queue = session.state.queues.inputs[session.state.pod_groups.queue[group]]
    name = f"User '{users.names[user]}'" if users.names[user] else "Work without a user"
    return (
        f". In queue '{queue.display_name or queue.name}' users who hold less go first. "
        f"{name} holds {amounts(tuple(users.held[user]))}"
    )


def _disruption_refusal(session: Session, group: int) -> DisruptionRefusal | None:
    """Return the limits on evictions that stood in the way of a pod group, if any did."""
    refusals = session.fit.pod_groups.get(group, ())
    return next(
        (fit.evidence for fit in refusals if isinstance(fit.evidence, DisruptionRefusal)), None
    )


def waits_for_room(session: Session, group: int) -> Cause | None:
    """Return the cause of a group whose place is still being freed; None if it has no such place."""
    state = session.state
    nodes = list(
        dict.fromkeys(
            state.tasks.node[task]
            for task in state.pod_groups.tasks_of(group)
            if state.tasks.status[task] == NOMINATED
        )
    )
    if not nodes:
        return None
    leaving = [
        _pod(session, task)
        for node in nodes
        for task in state.nodes.tasks[node]
        if state.tasks.status[task] == RELEASING
    ]
    node_names = first_few([state.nodes.names[node] for node in nodes], MAX_NAMES)
    text = f"Its place on {node_names} is being freed"
    return Cause(
        reasons.WAITING_FOR_VICTIMS,
        f"{text}; waiting for the end of {first_few(leaving, MAX_NAMES)}" if leaving else text,
    )


def _code_of(reason: NodeReason) -> str:
    if reason.kind is NodeReasonKind.GPU_MODEL:
        return reasons.GPU_MODEL
    lacks_device = reason.kind is NodeReasonKind.INSUFFICIENT and _is_device(reason.subject)
    if lacks_device or reason.kind in _DEVICE_KINDS:
        return reasons.DEVICES
    return reasons.VOLUME if reason.kind in _CLAIM_KINDS else reasons.NO_NODE


def _is_device(resource: str) -> bool:
    return resource.endswith("gpu") or "/mig-" in resource


def _has_topology(root: SubgroupNode) -> bool:
    if root.topology is not None:
        return True
    return any(
        _has_topology(member) if isinstance(member, SubgroupNode) else member.topology is not None
        for member in root.members
    )


def _pod(session: Session, task: int) -> str:
    pod = session.state.tasks.inputs[task]
    return f"{pod.namespace}/{pod.name}"
