"""Count, over the nodes of a set, why none of them took a task.

A full cluster rejects the same class of tasks again and again, so the count is cached until a node
changes. A node is rejected if a task does not fit even with what is being freed, but the resources named
are those of which too little is free now, because that is what people see.
"""

from __future__ import annotations

from collections import Counter
from itertools import takewhile

import numpy as np

from scheduler.core.arrays import Ints
from scheduler.core.cluster.axis import GPU_ROW
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.classes import RowAmounts, TaskClass
from scheduler.core.cluster.gpus import fitting_shared_gpus
from scheduler.core.cluster.inputs import GPU
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.placement.room import NONE, room_on
from scheduler.core.placement.rules import ClassRules, StaticKey
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.gang import GangView
from scheduler.core.session.hooks import Scope
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session

#: (index of the task class, key of the node set, number of node changes so far, queue or -1)
Key = tuple[int, object, int, int]

# Entries of earlier states of the nodes are never found again, because the number of changes only grows.
_CACHE_SIZE = 64


class _RejectionCache(dict[Key, Counter[NodeReason]]):
    """Rejections already counted in a session, by what they depend on."""


def count_rejections(
    session: Session,
    task_class: TaskClass,
    rules: ClassRules,
    nodes: NodeSet,
    task: int,
    view: GangView,
) -> Counter[NodeReason]:
    """Return how many nodes of a set give each reason for not taking a task."""
    cache = session.attached(_RejectionCache)
    if cache is None:
        cache = session.attach(_RejectionCache())
    queue = view.queue if task_class.is_shared else -1
    key: Key = (task_class.index, nodes.key, len(session.state.nodes.touched), queue)
    counts = cache.get(key)
    if counts is None or rules.is_volatile:
        if len(cache) > _CACHE_SIZE:
            cache.clear()
        counts = cache[key] = _count(session, task_class, rules, nodes, task, view)
    return counts


def _count(
    session: Session,
    task_class: TaskClass,
    rules: ClassRules,
    nodes: NodeSet,
    task: int,
    view: GangView,
) -> Counter[NodeReason]:
    counts: Counter[NodeReason] = Counter()
    # Fit rules and shared devices can only be checked node by node.
    if task_class.is_shared and not rules.fit_rules:
        with_room = _lacking_of(session, task_class).count(nodes, counts)
    elif rules.fit_rules:
        with_room = [
            node
            for node in nodes.indices.tolist()
            if not _count_if_lacking(session, task_class, rules, task, node, counts)
        ]
    else:
        with_room = _count_lacking_everywhere(session, task_class, nodes, counts)
    lasting = _lasting_reasons_of(session, task_class, rules, task)
    for node in with_room:
        for reason in _other_reasons(session, task_class, rules, task, node, view, lasting):
            counts[reason] += 1
    return counts


class _LastingReasons:
    """Why nodes are refused by the first filters of a class, whose answers last for the whole session.

    `count` is the number of these filters, all of scope CLASS. Each node is looked at once, for all classes that
    differ in amounts only.
    """

    __slots__ = ("_filters", "_reasons", "_task", "_task_class", "count")

    def __init__(self, task_class: TaskClass, rules: ClassRules, task: int) -> None:
        self._task_class, self._task = task_class, task
        self._filters = tuple(takewhile(lambda each: each.scope is Scope.CLASS, rules.filters))
        self._reasons: dict[int, tuple[NodeReason, ...] | None] = {}
        self.count = len(self._filters)

    def of(self, node: int) -> tuple[NodeReason, ...] | None:
        """Return the reasons of the first filter that refuses a node, None if all of them pass it."""
        if node not in self._reasons:
            self._reasons[node] = next(
                (
                    each.reasons(self._task, self._task_class, node)
                    for each in self._filters
                    if not each.passes(self._task, self._task_class, node)
                ),
                None,
            )
        return self._reasons[node]


class _LastingByClass(dict[StaticKey, _LastingReasons]):
    """The lasting reasons by what answers of scope CLASS depend on."""


def _lasting_reasons_of(
    session: Session, task_class: TaskClass, rules: ClassRules, task: int
) -> _LastingReasons:
    lasting_by_class = session.attached(_LastingByClass)
    if lasting_by_class is None:
        lasting_by_class = session.attach(_LastingByClass())
    key = (task_class.kind, task_class.namespace, task_class.nominated_node)
    lasting = lasting_by_class.get(key)
    if lasting is None:
        lasting = lasting_by_class[key] = _LastingReasons(task_class, rules, task)
    return lasting


class _Lacking:
    """What every node lacks for a class that shares devices; touched nodes only are looked at again.

    Nodes that lack the same have one number in common, 0 if they have room.
    """

    __slots__ = (
        "_cursor",
        "_nodes",
        "_number_of",
        "_numbers",
        "_reasons",
        "_session",
        "_task_class",
    )

    def __init__(self, session: Session, task_class: TaskClass) -> None:
        self._session, self._task_class = session, task_class
        self._nodes = session.state.nodes
        self._cursor = Cursor(self._nodes.touched)
        #: Each distinct combination of what is lacking, by number.
        self._reasons: list[tuple[NodeReason, ...]] = [()]
        #: The same combinations in short -> their numbers.
        self._number_of: dict[tuple[object, ...], int] = {}
        self._numbers: Ints = np.array(
            [self._number(node) for node in range(len(self._nodes))], np.int64
        )

    def _number(self, node: int) -> int:
        """Return the number of what a node lacks; the reasons are only made for what no node lacked before."""
        task_class = self._task_class
        needs = task_class.must_be_free
        if room_on(self._nodes, task_class, needs, node) != NONE:
            return 0
        idle = self._nodes.idle_rows
        device_kind = _lacking_devices(self._nodes, task_class, node)
        lacking = (device_kind, *[row for row, amount in needs if idle[row][node] < amount])
        if task_class.request.overhead_text:
            lacking = (*lacking, _is_overhead_to_blame(self._session, task_class, needs, node))
        number = self._number_of.get(lacking)
        if number is None:
            reasons: Counter[NodeReason] = Counter()
            _count_lacking(self._session, task_class, needs, node, reasons)
            number = self._number_of[lacking] = len(self._reasons)
            self._reasons.append(tuple(reasons))
        return number

    def count(self, nodes: NodeSet, counts: Counter[NodeReason]) -> list[int]:
        """Count what the nodes of a set lack now; return those that have room."""
        for node in dict.fromkeys(self._cursor.read()):
            self._numbers[node] = self._number(node)
        numbers = self._numbers[nodes.indices]
        for number, count in enumerate(np.bincount(numbers).tolist()):
            if count:
                for reason in self._reasons[number]:
                    counts[reason] += count
        return [int(node) for node in nodes.indices[numbers == 0]]


class _LackingByClass(dict[int, _Lacking]):
    """What nodes lack, by task class, for the rest of the session."""


def _lacking_of(session: Session, task_class: TaskClass) -> _Lacking:
    lacking_by_class = session.attached(_LackingByClass)
    if lacking_by_class is None:
        lacking_by_class = session.attach(_LackingByClass())
    lacking = lacking_by_class.get(task_class.index)
    if lacking is None:
        lacking = lacking_by_class[task_class.index] = _Lacking(session, task_class)
    return lacking


def _count_lacking_everywhere(
    session: Session, task_class: TaskClass, nodes: NodeSet, counts: Counter[NodeReason]
) -> list[int]:
    """Count the lacking resources of all nodes at once; return the nodes that have room."""
    state = session.state
    idle = state.nodes.idle[:, nodes.indices]
    idle_and_releasing = idle + state.nodes.releasing[:, nodes.indices]
    rows = [row for row, _ in task_class.must_be_free]
    # Shape (rows, 1), to compare with (rows, nodes).
    needed = np.array([amount for _, amount in task_class.must_be_free])[:, None]
    lacks_room = (idle_and_releasing[rows] < needed).any(axis=0)
    lacks_row = idle[rows] < needed
    overhead = task_class.request.overhead_text
    # Nodes to count, with the overhead to blame for them: it is blamed where only it does not fit.
    nodes_and_overhead = [(lacks_room, "")]
    if overhead:
        without_overhead = np.array(
            [
                amount
                for _, amount in _without_overhead(session, task_class.must_be_free, task_class)
            ]
        )
        fits_without = (idle[rows] >= without_overhead[:, None]).all(axis=0)
        nodes_and_overhead = [
            (lacks_room & ~fits_without, ""),
            (lacks_room & fits_without, overhead),
        ]
    for position, row in enumerate(rows):
        for rejected, blamed_overhead in nodes_and_overhead:
            count = int(np.count_nonzero(lacks_row[position] & rejected))
            if count:
                counts[_insufficient(state.axis.names[row], blamed_overhead)] += count
    return [int(node) for node in nodes.indices[~lacks_room]]


def _count_if_lacking(
    session: Session,
    task_class: TaskClass,
    rules: ClassRules,
    task: int,
    node: int,
    counts: Counter[NodeReason],
) -> bool:
    """Return whether one node lacks room for a task; if so, count the resources that it lacks."""
    nodes = session.state.nodes
    needs = task_class.must_be_free
    for rule in rules.fit_rules:
        needs = rule.adjust(task, node, needs)
    if room_on(nodes, task_class, needs, node) != NONE:
        return False
    _count_lacking(session, task_class, needs, node, counts)
    return True


def _count_lacking(
    session: Session,
    task_class: TaskClass,
    needs: RowAmounts,
    node: int,
    counts: Counter[NodeReason],
) -> None:
    """Count the resources that a node without room lacks for a task."""
    nodes = session.state.nodes
    is_overhead_to_blame = _is_overhead_to_blame(session, task_class, needs, node)
    overhead = task_class.request.overhead_text if is_overhead_to_blame else ""
    for row, amount in needs:
        if nodes.idle_rows[row][node] < amount:
            counts[_insufficient(session.state.axis.names[row], overhead)] += 1
    device_kind = _lacking_devices(nodes, task_class, node)
    if device_kind is NodeReasonKind.INSUFFICIENT:
        counts[_insufficient(GPU)] += 1
    elif device_kind is not None:
        counts[NodeReason(device_kind)] += 1


def _is_overhead_to_blame(
    session: Session, task_class: TaskClass, needs: RowAmounts, node: int
) -> bool:
    """Return whether a task would find everything on a node if its pod had no overhead."""
    nodes = session.state.nodes
    return (
        bool(task_class.request.overhead_text)
        and _lacking_devices(nodes, task_class, node) is None
        and all(
            nodes.idle_rows[row][node] >= amount
            for row, amount in _without_overhead(session, needs, task_class)
        )
    )


def _lacking_devices(nodes: Nodes, task_class: TaskClass, node: int) -> NodeReasonKind | None:
    """Return why a node has too few devices for a task that shares GPUs; None if it has enough."""
    if not task_class.is_shared:
        return None
    memory = task_class.memory_on(nodes.gpu_memory[node])
    if memory > nodes.gpu_memory[node]:
        return NodeReasonKind.INSUFFICIENT_GPU_MEMORY
    whole_free = nodes.idle_rows[GPU_ROW][node] // 1
    if whole_free + len(fitting_shared_gpus(nodes, node, memory)) < task_class.devices:
        return NodeReasonKind.INSUFFICIENT
    return None


def _without_overhead(session: Session, needs: RowAmounts, task_class: TaskClass) -> RowAmounts:
    """Return what the containers of a pod need free, without the overhead of the pod's runtime class."""
    row_of = session.state.axis.row_of
    overhead = {
        row_of[name]: amount for name, amount in task_class.request.overhead if name in row_of
    }
    return tuple((row, amount - overhead.get(row, 0.0)) for row, amount in needs)


def _insufficient(resource: str, overhead: str = "") -> NodeReason:
    return NodeReason(NodeReasonKind.INSUFFICIENT, resource, overhead=overhead)


def _other_reasons(
    session: Session,
    task_class: TaskClass,
    rules: ClassRules,
    task: int,
    node: int,
    view: GangView,
    lasting: _LastingReasons,
) -> tuple[NodeReason, ...]:
    """Return the reasons of the first rule that rejects a node which has room."""
    if task_class.is_shared:
        refusal = session.policy.refuse(
            view.queue,
            task_class.gate_amounts_on(session.state.nodes.gpu_memory[node]),
            preemptible=session.is_next_preemptible(view.pod_group),
        )
        if refusal is not None:
            kind = NodeReasonKind.OVER_CAPACITY
            return (NodeReason(kind, refusal.reason.value, "", refusal),)
    reasons = lasting.of(node)
    if reasons is not None:
        return reasons
    for node_filter in rules.filters[lasting.count :]:
        if not node_filter.passes(task, task_class, node):
            return node_filter.reasons(task, task_class, node)
    # All else fits, so the node has no pod slot for the reservation pod of the shared device.
    if task_class.is_shared:
        return (NodeReason(NodeReasonKind.POD_SLOTS),)
    return ()
