"""Explain after a cycle why each pod group waits, and report stale ones.

Reads the session after its last action. Pods of one class that failed alike share one text, so a
cluster full of equal pending pods costs one message, not thousands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from kube.values.durations import SECOND, format_duration
from kube.values.times import format_time
from queues.workloads.bind_failures import BindFailures
from queues.workloads.reasons import BIND_FAILING, QUEUE_ORPHAN
from scheduler.core.cluster.inputs import DEFAULT_SUBGROUP, PodGroupInput
from scheduler.core.cluster.podgroups import PodGroups
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import TaskRef
from scheduler.core.fairshare.capacity import CapacityRefusal
from scheduler.core.session.fit import (
    DelayRefusal,
    DisruptionRefusal,
    GangShortfall,
    GroupFit,
    NodeReasonKind,
    TaskFit,
    TopologyRefusal,
)
from scheduler.core.session.session import Session
from scheduler.explain import texts
from scheduler.explain.capacity import capacity_message
from scheduler.explain.codes import Cause, CauseFinder
from scheduler.explain.details import queue_details
from scheduler.explain.nodes import NodeDetails


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason of a pod group, as its condition shows it."""

    reason: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    detail: str = ""


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """Why one pod is not scheduled."""

    task: TaskRef
    message: str
    #: The code of the reason where it is not that of the pod group.
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """The explanation of one pod group after a cycle.

    Attributes
    ----------
    is_waiting : some of its pods are pending or gated
    not_ready : why it was not tried, empty if it was
    message, reasons, pods : why it waits; empty unless it was tried
    has_active : some of its pods hold a place; then the group itself gets no condition
    is_settling : some pod is on its way to a node; then old conditions are left in place
    cause : the one code for why it waits; None unless it was tried
    stale : the text of a stale gang, empty if it is none
    orphan_pods : pods that name a subgroup the group does not have
    """

    namespace: str
    name: str
    is_waiting: bool
    not_ready: str = ""
    message: str = ""
    reasons: tuple[Reason, ...] = ()
    pods: tuple[PodVerdict, ...] = ()
    has_active: bool = False
    is_settling: bool = False
    cause: Cause | None = None
    stale: str = ""
    orphan_pods: tuple[PodVerdict, ...] = ()

    @property
    def is_unschedulable(self) -> bool:
        return self.is_waiting and not self.not_ready


_SETTLING = (TaskStatus.ALLOCATED, TaskStatus.NOMINATED, TaskStatus.BINDING)


def verdicts(
    session: Session,
    now: float,
    marked: Collection[str] | None = None,
    *,
    held: Mapping[str, BindFailures] | None = None,
    is_detailed: bool = False,
) -> list[GroupVerdict]:
    """Return the verdicts of a finished session, oldest pod group first.

    Parameters
    ----------
    now : Unix time of the cycle, for the times in messages
    marked : pod groups (`namespace/name`) that carry an old verdict; of groups that neither wait nor are
        stale only these get one, so that it can be taken back. None: all groups
    held : the pods (`namespace/name`) that wait for their next attempt after a failed bind
    is_detailed : name every node in the messages of pods, with amounts
    """
    writer = _Writer(session, now, NodeDetails(session) if is_detailed else None, held or {})
    groups = session.state.pod_groups
    explained = range(len(groups)) if marked is None else _with_explanation(groups, marked)
    return [writer.verdict(group) for group in explained]


def _with_explanation(groups: PodGroups, marked: Collection[str]) -> list[int]:
    """Return the pod groups about which there is anything to explain; of most there is nothing, in every cycle."""
    sets = groups.pod_sets
    explained = {group for group, count in enumerate(groups.pending) if count}
    explained.update(sets.pod_group[index] for index, count in enumerate(sets.gated) if count)
    if groups.stale_since.count(None) < len(groups):
        explained.update(g for g, since in enumerate(groups.stale_since) if since is not None)
    explained.update(
        g
        for g, pod_group_input in enumerate(groups.inputs)
        if pod_group_input.invalid_subgroup_tasks
    )
    if marked:
        explained.update(group for group in range(len(groups)) if groups.name(group) in marked)
    return sorted(explained)


class _Writer:
    def __init__(
        self,
        session: Session,
        now: float,
        node_details: NodeDetails | None,
        held: Mapping[str, BindFailures],
    ) -> None:
        self.session = session
        self.held = held
        self.node_details = node_details
        self.now = now
        self._texts: dict[tuple[object, ...], str] = {}
        self._cause_finder = CauseFinder(session, now)

    def verdict(self, group: int) -> GroupVerdict:
        """Return the explanation of a pod group."""
        groups, sets = self.session.state.pod_groups, self.session.state.pod_groups.pod_sets
        pod_group = groups.inputs[group]
        gated = sum(sets.gated[index] for index in groups.pod_sets_of(group))
        is_waiting = bool(groups.pending[group] or gated)
        has_active = groups.active_allocated[group] > 0
        stale = self._stale(group)
        orphan_pods = _orphan_pods(pod_group)
        if not is_waiting:
            return GroupVerdict(
                namespace=pod_group.namespace,
                name=pod_group.name,
                is_waiting=False,
                has_active=has_active,
                is_settling=has_active and self._is_settling(group),
                stale=stale,
                orphan_pods=orphan_pods,
            )
        view = self.session.view(group)
        held_pods = self._held_pods(group) if self.held and gated else ()
        if held_pods and not (groups.pending[group] and view.is_ready(view.root)):
            text = held_pods[0].message
            return GroupVerdict(
                namespace=pod_group.namespace,
                name=pod_group.name,
                is_waiting=True,
                message=text,
                reasons=(Reason(BIND_FAILING, text),),
                pods=held_pods,
                has_active=has_active,
                cause=Cause(BIND_FAILING, text),
                stale=stale,
                orphan_pods=orphan_pods,
            )
        if not view.is_ready(view.root):
            return GroupVerdict(
                namespace=pod_group.namespace,
                name=pod_group.name,
                is_waiting=True,
                not_ready=texts.not_ready_message(self._unready(group)),
                has_active=has_active,
                stale=stale,
                orphan_pods=orphan_pods,
            )
        cause = self._cause_finder.cause(group)
        reasons = self._reasons(group, cause)
        message = self._group_text(reasons)
        return GroupVerdict(
            namespace=pod_group.namespace,
            name=pod_group.name,
            is_waiting=True,
            message=message,
            reasons=reasons,
            pods=(
                *self._pods(group, message if reasons else texts.UNABLE_TO_SCHEDULE_POD),
                *held_pods,
            ),
            has_active=has_active,
            cause=cause,
            stale=stale,
            orphan_pods=orphan_pods,
        )

    def _is_settling(self, group: int) -> bool:
        """Return whether some pod of a group is on its way to a node."""
        status = self.session.state.tasks.status
        return any(
            status[task] in _SETTLING for task in self.session.state.pod_groups.tasks_of(group)
        )

    def _reasons(self, group: int, cause: Cause) -> tuple[Reason, ...]:
        reasons = tuple(
            self._reason(fit, group) for fit in self.session.fit.pod_groups.get(group, ())
        )
        if not reasons and cause.code == QUEUE_ORPHAN:
            # No action tries pod groups of a queue that cannot run them, so no reason was recorded.
            return (Reason(cause.code, cause.text),)
        return reasons

    def _pods(self, group: int, fallback: str) -> tuple[PodVerdict, ...]:
        tasks = self.session.state.tasks
        return tuple(
            PodVerdict(self._ref(task), self._task_text(task) or fallback)
            for task in self.session.state.pod_groups.tasks_of(group)
            if tasks.status[task] == TaskStatus.PENDING
        )

    def _held_pods(self, group: int) -> tuple[PodVerdict, ...]:
        """Return the pods of a group that wait after a failed bind, the next to be tried first."""
        tasks = self.session.state.tasks
        waiting_pods = []
        for task in self.session.state.pod_groups.tasks_of(group):
            pod = tasks.inputs[task]
            failures = self.held.get(f"{pod.namespace}/{pod.name}")
            if failures is not None and tasks.status[task] == TaskStatus.GATED:
                waiting_pods.append((failures.next, self._ref(task), failures.text()))
        return tuple(
            PodVerdict(ref, text, BIND_FAILING)
            for _, ref, text in sorted(waiting_pods, key=itemgetter(0))
        )

    def _task_text(self, task: int) -> str:
        """Return a task's own message, or nothing; tasks with equal evidence share one text unless it names the task."""
        fit = self.session.fit.tasks.get(task)
        if fit is None:
            return ""
        ref = self._ref(task)
        if self.node_details is not None:
            base = texts.checks_message(ref, fit.checks) if fit.checks else texts.NO_NODES
            detailed = self.node_details.message(task, ref, base, self._refusal_text(fit))
            if detailed:
                return detailed
        if fit.checks or _names_a_task(fit):
            return self._worded(fit, ref)
        key = tuple(id(counts) for counts in fit.counts)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = self._worded(fit, ref)
        return text

    def _worded(self, fit: TaskFit, ref: TaskRef) -> str:
        counts = texts.counted_reasons(fit, ref, self._refusal_text(fit))
        return texts.task_message(ref, fit.checks, counts)

    def _refusal_text(self, fit: TaskFit) -> str:
        refusals = (reason.refusal for counts in fit.counts for reason in counts if reason.refusal)
        first = next(refusals, None)
        return "" if first is None else self._capacity_text(first)

    def _reason(self, fit: GroupFit, group: int) -> Reason:
        evidence = fit.evidence
        if isinstance(evidence, CapacityRefusal):
            details = queue_details(
                self.session, evidence, is_preemptible=self.session.is_next_preemptible(group)
            )
            return Reason(fit.reason.value, self._capacity_text(evidence), details)
        if isinstance(evidence, GangShortfall):
            because = self._task_text(evidence.task) or texts.UNABLE_TO_SCHEDULE_POD
            ref = self._ref(evidence.task)
            message = texts.shortfall_message(evidence, ref, because)
            detail = texts.group_detail((message,), subgroup=evidence.subgroup)
            return Reason(fit.reason.value, message, detail=detail)
        if isinstance(evidence, DelayRefusal):
            return Reason(fit.reason.value, self._delay_text(evidence))
        if isinstance(evidence, DisruptionRefusal):
            return Reason(fit.reason.value, texts.disruption_message(evidence.limits))
        if isinstance(evidence, TopologyRefusal):
            whole = evidence.details or evidence.texts
            place = {"subgroup": evidence.subgroup, "domain": evidence.domain}
            return Reason(
                fit.reason.value,
                ", ".join(evidence.texts),
                messages=evidence.texts,
                detail=texts.group_detail(whole, **place),
            )
        return Reason(fit.reason.value, f"Queue '{evidence}' does not exist")

    def _group_text(self, reasons: tuple[Reason, ...]) -> str:
        if self.node_details is not None:
            return texts.detailed_group_message(
                [(r.reason, r.detail or r.message) for r in reasons]
            )
        return texts.group_message([(r.reason, r.messages or (r.message,)) for r in reasons])

    def _capacity_text(self, refusal: CapacityRefusal) -> str:
        queue = self.session.state.queues.inputs[refusal.queue]
        return capacity_message(refusal, queue.display_name or queue.name)

    def _delay_text(self, refusal: DelayRefusal) -> str:
        until = datetime.fromtimestamp(round(self.now + refusal.left_s), UTC)
        delay = format_duration(round(refusal.delay_s * SECOND))
        return (
            f"Workload is within its preemption delay window ({delay}) and may not trigger "
            f"evictions before {format_time(until)}"
        )

    def _unready(self, group: int) -> list[tuple[str, int, int, int]]:
        sets = self.session.state.pod_groups.pod_sets
        lacking = []
        for index in self.session.state.pod_groups.pod_sets_of(group):
            gated = sets.gated[index]
            alive = sets.pending[index] + gated + sets.active_allocated[index]
            if alive - gated < sets.minimum[index]:
                name = sets.name[index]
                shown = "" if name == DEFAULT_SUBGROUP else name
                lacking.append((shown, sets.minimum[index], alive, gated))
        return lacking

    def _stale(self, group: int) -> str:
        groups, sets = self.session.state.pod_groups, self.session.state.pod_groups.pod_sets
        if groups.stale_since[group] is None:
            return ""
        indices = groups.pod_sets_of(group)
        lacking = [
            (sets.name[index], sets.minimum[index], sets.active_used[index])
            for index in indices
            if sets.active_used[index] < sets.minimum[index]
            and sets.name[index] != DEFAULT_SUBGROUP
        ]
        active = sum(sets.active_used[index] for index in indices)
        minimum = sum(sets.minimum[index] for index in indices)
        return texts.stale_message(active, minimum, lacking)

    def _ref(self, task: int) -> TaskRef:
        pod = self.session.state.tasks.inputs[task]
        return TaskRef(pod.namespace, pod.name, pod.uid)


def _orphan_pods(pod_group: PodGroupInput) -> tuple[PodVerdict, ...]:
    """Return the waiting pods that name a subgroup their pod group does not have."""
    return tuple(
        PodVerdict(
            TaskRef(task.namespace, task.name, task.uid),
            f'Pod references subgroup "{task.subgroup}", which does not exist in '
            f"PodGroup {pod_group.namespace}/{pod_group.name}",
        )
        for task in pod_group.invalid_subgroup_tasks
        if task.status in (TaskStatus.PENDING, TaskStatus.GATED)
    )


_NAMING = (
    NodeReasonKind.GPU_MEMORY_UNKNOWN,
    NodeReasonKind.NOT_GPU_WORKER,
    NodeReasonKind.NOT_CPU_WORKER,
)


def _names_a_task(fit: TaskFit) -> bool:
    """Return whether the text names the pod, so that other pods cannot share it."""
    return any(reason.kind in _NAMING for counts in fit.counts for reason in counts)
