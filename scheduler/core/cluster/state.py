"""The mutable picture of the cluster during one cycle, and the only writers of it.

Everything a statement does to tasks, pod sets, nodes and devices goes through the few methods here, and
each of them writes through the journal. `validate` states the invariants that must hold between them.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.core.cluster.axis import GPU_ROW, ResourceAxis
from scheduler.core.cluster.classes import ClassTable, RowAmounts, TaskClass
from scheduler.core.cluster.gpus import (
    LEAVING_HOLD,
    NOMINATED_HOLD,
    NORMAL_HOLD,
    Hold,
    join_shared_gpu,
    leave_shared_gpu,
)
from scheduler.core.cluster.inputs import ClusterInput
from scheduler.core.cluster.journal import MISSING, Journal
from scheduler.core.cluster.nodes import ALLOCATED_COLUMN, RELEASING_COLUMN, USED_COLUMN, Nodes
from scheduler.core.cluster.podgroups import PodGroups, PodSets
from scheduler.core.cluster.queues import Queues
from scheduler.core.cluster.status import (
    ACTIVE_ALLOCATED,
    ACTIVE_USED,
    GATED,
    NOMINATED,
    PENDING,
    RELEASING,
    TaskStatus,
)
from scheduler.core.cluster.tasks import Tasks
from scheduler.core.errors import InvariantError

_HOLD_OF = {
    TaskStatus.NOMINATED: Hold.NOMINATED,
    TaskStatus.RELEASING: Hold.RELEASING,
}

#: A rule that changes what a task is charged on a node: (task, node, cells) -> cells.
ChargeRule = Callable[[int, int, RowAmounts], RowAmounts]


GroupMove = Callable[[Nodes, Journal, int, str, int, Hold], None]


def hold_of(status: int) -> Hold:
    """Return how a task of this status holds its node."""
    return _HOLD_OF.get(TaskStatus(status), Hold.NORMAL)


class ClusterState:
    """Nodes, queues, pod groups and tasks of one cycle, and the journal of what was overwritten."""

    __slots__ = (
        "_deltas",
        "axis",
        "charge_rules",
        "classes",
        "cluster_input",
        "journal",
        "nodes",
        "pod_groups",
        "queues",
        "tasks",
    )

    def __init__(
        self,
        cluster_input: ClusterInput,
        axis: ResourceAxis,
        nodes: Nodes,
        queues: Queues,
        classes: ClassTable,
    ) -> None:
        self.cluster_input = cluster_input
        self.axis = axis
        self.nodes = nodes
        self.queues = queues
        self.classes = classes
        self.pod_groups = PodGroups()
        self.tasks = Tasks()
        self.journal = Journal()
        #: Plugins with resources that tasks share (devices of one claim) adjust charges here.
        self.charge_rules: list[ChargeRule] = []
        self._deltas: dict[tuple[int, int], tuple[_Deltas, _Deltas]] = {}

    # ------------------------------------------------------------------------------ statuses

    def set_status(self, task: int, status: TaskStatus) -> None:
        """Move a task to a status and keep the counters of its pod set and pod group."""
        tasks = self.tasks
        cells = self.journal.entries
        old = tasks.status[task]
        cells.append((tasks.status, task, old))
        tasks.status[task] = status
        pod_set = tasks.pod_set[task]
        if pod_set < 0:
            return
        group = tasks.pod_group[task]
        self.pod_groups.version[group] += 1
        in_pod_set, in_group = self._deltas_between(old, status)
        for counter, delta in in_pod_set:
            value = counter[pod_set]
            cells.append((counter, pod_set, value))
            counter[pod_set] = value + delta
        for counter, delta in in_group:
            value = counter[group]
            cells.append((counter, group, value))
            counter[group] = value + delta

    def _deltas_between(self, old: int, new: int) -> tuple[_Deltas, _Deltas]:
        """Return which counters of pod sets and of pod groups a change of status moves, and how."""
        found = self._deltas.get((old, new))
        if found is None:
            found = self._deltas[old, new] = (
                _changes(self.pod_groups.pod_sets, _COUNTED_BY_SET, old, new),
                _changes(self.pod_groups, _COUNTED_BY_GROUP, old, new),
            )
        return found

    # -------------------------------------------------------------------------------- charges

    def charge_cells(self, task: int, node: int) -> RowAmounts:
        """Return what a task takes of each resource of a node."""
        cells = self.tasks.task_class[task].charge
        zero = self.nodes.zero_rows[node]
        if zero:
            for row, _ in cells:
                if row in zero:
                    cells = tuple(cell for cell in cells if cell[0] not in zero)
                    break
        if self.tasks.reservations and task in self.tasks.reservations:
            cells = tuple(cell for cell in cells if cell[0] != GPU_ROW)
        for rule in self.charge_rules:
            cells = rule(task, node, cells)
        return cells

    def charge(self, task: int, node: int, hold: Hold) -> None:
        """Take from a node what a task needs, in the way it holds it."""
        nodes = self.nodes
        log = self.journal.entries
        taken = nodes.releasing_rows if hold is NOMINATED_HOLD else nodes.idle_rows
        for row, amount in self.charge_cells(task, node):
            cells = taken[row]
            old = cells[node]
            log.append((cells, node, old))
            cells[node] = old - amount
            if hold is LEAVING_HOLD:
                self._add(nodes.releasing_rows[row], node, amount)
            if row == GPU_ROW:
                used = nodes.whole_gpus_used
                log.append((used, node, used[node]))
                used[node] += amount
        task_class = self.tasks.task_class[task]
        if task_class.is_shared:
            memory = task_class.memory_on(nodes.gpu_memory[node])
            for group_id in self.tasks.gpu_groups[task]:
                join_shared_gpu(nodes, self.journal, node, group_id, memory, hold)
        on_node = nodes.tasks[node]
        if task not in on_node:
            log.append((on_node, task, MISSING))
            on_node[task] = None
        nodes.touched.append(node)

    def release(self, task: int, node: int, hold: Hold) -> None:
        """Give back what a task holds on a node; the reverse of `charge`."""
        nodes = self.nodes
        for row, amount in self.charge_cells(task, node):
            if hold is NOMINATED_HOLD:
                self._add(nodes.releasing_rows[row], node, amount)
            else:
                self._add(nodes.idle_rows[row], node, amount)
                if hold is LEAVING_HOLD:
                    self._add(nodes.releasing_rows[row], node, -amount)
            if row == GPU_ROW:
                self._add(nodes.whole_gpus_used, node, -amount)
        task_class = self.tasks.task_class[task]
        if task_class.is_shared:
            memory = task_class.memory_on(nodes.gpu_memory[node])
            for group_id in self.tasks.gpu_groups[task]:
                leave_shared_gpu(nodes, self.journal, node, group_id, memory, hold)
        self.journal.remove(nodes.tasks[node], task)
        nodes.touched.append(node)

    def turn_to_releasing(self, task: int, node: int) -> None:
        """Let a task that holds room normally hold it as leaving; its devices follow."""
        self._turn(task, node, 1.0)
        self._rejoin(task, node, NORMAL_HOLD, LEAVING_HOLD)

    def turn_to_normal(self, task: int, node: int) -> None:
        """Let a leaving task hold its room normally again."""
        self._turn(task, node, -1.0)
        self._rejoin(task, node, LEAVING_HOLD, NORMAL_HOLD)

    def withdraw(self, task: int, node: int) -> None:
        """Give back what was promised to a nominated task; it was never there."""
        self._turn(task, node, 1.0)
        self._move_promise(task, node, leave_shared_gpu)
        self.journal.remove(self.nodes.tasks[node], task)

    def promise_again(self, task: int, node: int) -> None:
        """Promise room to a task again after `withdraw`."""
        self._turn(task, node, -1.0)
        self._move_promise(task, node, join_shared_gpu)
        self.journal.insert(self.nodes.tasks[node], task, None)

    def _move_promise(self, task: int, node: int, move: GroupMove) -> None:
        task_class = self.tasks.task_class[task]
        if task_class.is_shared:
            memory = task_class.memory_on(self.nodes.gpu_memory[node])
            for group_id in self.tasks.gpu_groups[task]:
                move(self.nodes, self.journal, node, group_id, memory, NOMINATED_HOLD)

    def _turn(self, task: int, node: int, sign: float) -> None:
        releasing, log = self.nodes.releasing_rows, self.journal.entries
        for row, amount in self.charge_cells(task, node):
            cells = releasing[row]
            old = cells[node]
            log.append((cells, node, old))
            cells[node] = old + sign * amount
        self.nodes.touched.append(node)

    def _rejoin(self, task: int, node: int, old: Hold, new: Hold) -> None:
        task_class: TaskClass = self.tasks.task_class[task]
        if not task_class.is_shared:
            return
        memory = task_class.memory_on(self.nodes.gpu_memory[node])
        for group_id in self.tasks.gpu_groups[task]:
            leave_shared_gpu(self.nodes, self.journal, node, group_id, memory, old)
            join_shared_gpu(self.nodes, self.journal, node, group_id, memory, new)

    def _add(self, cells: list[float], key: int, amount: float) -> None:
        old = cells[key]
        self.journal.entries.append((cells, key, old))
        cells[key] = old + amount

    # ----------------------------------------------------------------------------- invariants

    def validate(self) -> None:
        """Check what must hold between the parts of the state.

        Raises
        ------
        InvariantError : counters that differ from the statuses, a device above its memory, a task
            that holds a node without being on it
        """
        self._validate_counters()
        self._validate_devices()
        self._validate_whereabouts()

    def _validate_counters(self) -> None:
        sets = self.pod_groups.pod_sets
        for index, members in enumerate(sets.tasks):
            statuses = [self.tasks.status[task] for task in members]
            for counter, expected in (
                (sets.pending, sum(s == PENDING for s in statuses)),
                (sets.gated, sum(s == GATED for s in statuses)),
                (sets.nominated, sum(s == NOMINATED for s in statuses)),
                (sets.active_allocated, sum(ACTIVE_ALLOCATED[s] for s in statuses)),
                (sets.active_used, sum(ACTIVE_USED[s] for s in statuses)),
            ):
                if counter[index] != expected:
                    group = self.pod_groups.name(sets.pod_group[index])
                    raise InvariantError(
                        f"pod set {sets.name[index]!r} of {group}: a counter says "
                        f"{counter[index]}, its tasks say {expected} ({statuses})"
                    )

    def _validate_devices(self) -> None:
        nodes = self.nodes
        for node, shared_gpus in enumerate(nodes.shared_gpus):
            for gpu_group, gpu in shared_gpus.items():
                held = gpu[ALLOCATED_COLUMN] - max(gpu[RELEASING_COLUMN], 0.0)
                is_negative = min(gpu[USED_COLUMN], gpu[ALLOCATED_COLUMN]) < 0
                if held > nodes.gpu_memory[node] or is_negative:
                    raise InvariantError(
                        f"GPU group {gpu_group} on node {nodes.names[node]}: ledger {list(gpu)} "
                        f"does not fit a device of {nodes.gpu_memory[node]} MiB"
                    )

    def _validate_whereabouts(self) -> None:
        tasks, nodes = self.tasks, self.nodes
        for task, node in enumerate(tasks.node):
            status = tasks.status[task]
            if status == RELEASING or not ACTIVE_USED[status]:
                continue  # a nomination that was withdrawn looks like a task that leaves
            if node >= 0 and task not in nodes.tasks[node]:
                raise InvariantError(
                    f"task {tasks.inputs[task].name} holds node {nodes.names[node]} "
                    f"but is not on it"
                )
        over = np.flatnonzero(nodes.idle[GPU_ROW] > nodes.allocatable[GPU_ROW] + 1e-6)
        if over.size:
            raise InvariantError(f"node {nodes.names[over[0]]} has more idle GPUs than it has GPUs")


_Deltas = tuple[tuple[list[int], int], ...]

#: Counter -> for which statuses a task counts in it.
_COUNTED_BY_SET = {
    "pending": tuple(status == PENDING for status in TaskStatus),
    "gated": tuple(status == GATED for status in TaskStatus),
    "nominated": tuple(status == NOMINATED for status in TaskStatus),
    "active_allocated": ACTIVE_ALLOCATED,
    "active_used": ACTIVE_USED,
}
_COUNTED_BY_GROUP = {
    "pending": _COUNTED_BY_SET["pending"],
    "active_allocated": ACTIVE_ALLOCATED,
}


def _changes(
    owner: PodSets | PodGroups, counted: dict[str, tuple[bool, ...]], old: int, new: int
) -> _Deltas:
    return tuple(
        (getattr(owner, name), int(counts[new]) - int(counts[old]))
        for name, counts in counted.items()
        if counts[new] != counts[old]
    )
