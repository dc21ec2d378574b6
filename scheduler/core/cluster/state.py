"""The mutable state of the cluster during one cycle, and the only methods that change it.

Everything that a statement does to tasks, pod sets, nodes and devices goes through the few methods here,
and each of them writes through the journal. (`session/direct.py` makes the same changes without a journal
for tasks that are bound at once.) `validate` checks the invariants between the parts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.core.arrays import Amounts
from scheduler.core.cluster.axis import GPU_ROW, PODS_ROW, ResourceAxis
from scheduler.core.cluster.classes import ClassTable, RowAmounts
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
from scheduler.core.cluster.queue_counts import QueueCounts
from scheduler.core.cluster.queues import Queues
from scheduler.core.cluster.shared_claims import SharedClaims, less_gpus
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

#: A rule that changes what a task is charged on a node: (task, node, amounts) -> amounts.
ChargeRule = Callable[[int, int, RowAmounts], RowAmounts]

#: `join_shared_gpu` or `leave_shared_gpu`.
_SharedGpuMove = Callable[[Nodes, Journal, int, str, int, Hold], None]


def hold_of(status: int) -> Hold:
    """Return how a task of this status holds its node."""
    return _HOLD_OF.get(TaskStatus(status), Hold.NORMAL)


class ClusterState:
    """Nodes, queues, pod groups and tasks of one cycle, and the journal of what was overwritten.

    Attributes
    ----------
    cluster_input : the snapshot it was built from
    now : the start of the cycle (`core/times.py`)
    axis, classes : the resources of the arrays, the classes of equal tasks
    nodes, queues, pod_groups, tasks : the parts
    journal : for undoing
    shared_claims : claims of GPUs that several tasks use
    queue_counts : what the tasks of each queue hold and request
    unsorted : pod sets whose tasks are not in task order yet; a session sorts them
    charge_rules : change what tasks are charged where they share a resource (devices of one claim)
    """

    __slots__ = (
        "_deltas",
        "axis",
        "charge_rules",
        "classes",
        "cluster_input",
        "journal",
        "nodes",
        "now",
        "pod_groups",
        "queue_counts",
        "queues",
        "shared_claims",
        "tasks",
        "unsorted",
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
        self.now = cluster_input.now
        self.axis = axis
        self.nodes = nodes
        self.queues = queues
        self.classes = classes
        self.pod_groups = PodGroups()
        self.tasks = Tasks()
        self.shared_claims = SharedClaims((), ())
        self.queue_counts = QueueCounts()
        self.unsorted: set[int] = set()
        self.journal = Journal()
        self.charge_rules: list[ChargeRule] = []
        self._deltas: dict[tuple[int, int], tuple[_Deltas, _Deltas]] = {}

    def copy(self, cluster_input: ClusterInput) -> ClusterState:
        """Return the state for one session on an input that says the same; what sessions change is copied.

        Lists of tasks in pod sets are shared, so that the sorting of one session serves the next.
        """
        copied = ClusterState(
            cluster_input, self.axis, self.nodes.copy(), self.queues, self.classes
        )
        copied.pod_groups, copied.tasks = self.pod_groups.copy(), self.tasks.copy()
        copied.shared_claims, copied.queue_counts = self.shared_claims, self.queue_counts
        copied.unsorted = self.unsorted
        return copied

    # ------------------------------------------------------------------------------ statuses

    def set_status(self, task: int, status: TaskStatus) -> None:
        """Set the status of a task and update the counters of its pod set and pod group."""
        tasks = self.tasks
        entries = self.journal.entries
        old = tasks.status[task]
        entries.append((tasks.status, task, old))
        tasks.status[task] = status
        pod_set = tasks.pod_set[task]
        if pod_set < 0:
            return
        pod_group = tasks.pod_group[task]
        self.pod_groups.version[pod_group] += 1
        in_pod_set, in_pod_group = self._deltas_between(old, status)
        for counter, delta in in_pod_set:
            value = counter[pod_set]
            entries.append((counter, pod_set, value))
            counter[pod_set] = value + delta
        for counter, delta in in_pod_group:
            value = counter[pod_group]
            entries.append((counter, pod_group, value))
            counter[pod_group] = value + delta

    def _deltas_between(self, old: int, new: int) -> tuple[_Deltas, _Deltas]:
        """Return which counters of pod sets and of pod groups a change of status moves, and how."""
        deltas = self._deltas.get((old, new))
        if deltas is None:
            deltas = self._deltas[old, new] = (
                _changes(self.pod_groups.pod_sets, _COUNTED_BY_POD_SET, old, new),
                _changes(self.pod_groups, _COUNTED_BY_POD_GROUP, old, new),
            )
        return deltas

    # -------------------------------------------------------------------------------- charges

    def accepted_on(self, task: int, node: int) -> Amounts:
        """Return what a task's queue is charged for it on a node."""
        amounts = self.tasks.task_class[task].charged_on(self.nodes.gpu_memory[node])
        if task not in self.shared_claims:
            return amounts
        return less_gpus(amounts, self.shared_claims.repeated((task,), self.tasks.status))

    def charge_amounts(self, task: int, node: int) -> RowAmounts:
        """Return what a task takes of each resource of a node."""
        amounts = self.tasks.task_class[task].charge
        zero_rows = self.nodes.zero_rows[node]
        if zero_rows:
            for row, _ in amounts:
                if row in zero_rows:
                    amounts = tuple(pair for pair in amounts if pair[0] not in zero_rows)
                    break
        if self.tasks.reservations and task in self.tasks.reservations:
            amounts = self._charge_of_reservation(task, node, amounts)
        for rule in self.charge_rules:
            amounts = rule(task, node, amounts)
        return amounts

    def _charge_of_reservation(self, task: int, node: int, amounts: RowAmounts) -> RowAmounts:
        """Leave out the GPU of a reservation pod, and its pod slot if the device it holds is charged with it."""
        shared_gpus = self.nodes.shared_gpus[node]
        is_known = any(group in shared_gpus for group in self.tasks.inputs[task].gpu_groups)
        excluded = (GPU_ROW, PODS_ROW) if is_known else (GPU_ROW,)
        return tuple(pair for pair in amounts if pair[0] not in excluded)

    def charge(self, task: int, node: int, hold: Hold) -> None:
        """Put a task on a node: take what it needs, from idle or (nominated) from releasing."""
        nodes = self.nodes
        entries = self.journal.entries
        taken_from = nodes.releasing_rows if hold is NOMINATED_HOLD else nodes.idle_rows
        for row, amount in self.charge_amounts(task, node):
            per_node = taken_from[row]
            old = per_node[node]
            entries.append((per_node, node, old))
            per_node[node] = old - amount
            if hold is LEAVING_HOLD:
                self._add(nodes.releasing_rows[row], node, amount)
            if row == GPU_ROW:
                whole_gpus = nodes.whole_gpus_used
                entries.append((whole_gpus, node, whole_gpus[node]))
                whole_gpus[node] += amount
        task_class = self.tasks.task_class[task]
        if task_class.is_shared:
            memory = task_class.memory_on(nodes.gpu_memory[node])
            for gpu_group in self.tasks.gpu_groups[task]:
                join_shared_gpu(nodes, self.journal, node, gpu_group, memory, hold)
        on_node = nodes.tasks[node]
        if task not in on_node:
            entries.append((on_node, task, MISSING))
            on_node[task] = None
        nodes.touched.append(node)

    def release(self, task: int, node: int, hold: Hold) -> None:
        """Take a task off a node and give back what it holds; the reverse of `charge`."""
        nodes = self.nodes
        for row, amount in self.charge_amounts(task, node):
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
            for gpu_group in self.tasks.gpu_groups[task]:
                leave_shared_gpu(nodes, self.journal, node, gpu_group, memory, hold)
        self.journal.remove(nodes.tasks[node], task)
        nodes.touched.append(node)

    def turn_to_releasing(self, task: int, node: int) -> None:
        """Count what a task holds on its node as releasing, because the task will leave."""
        self._turn(task, node, 1.0)
        self._rejoin(task, node, NORMAL_HOLD, LEAVING_HOLD)

    def turn_to_normal(self, task: int, node: int) -> None:
        """Count what a leaving task holds as in use again, because the task will stay."""
        self._turn(task, node, -1.0)
        self._rejoin(task, node, LEAVING_HOLD, NORMAL_HOLD)

    def withdraw(self, task: int, node: int) -> None:
        """Cancel a nomination: the task never used what was promised to it."""
        self._turn(task, node, 1.0)
        self._count_whole_gpus(task, node, -1.0)
        self._move_promise(task, node, leave_shared_gpu)
        self.journal.remove(self.nodes.tasks[node], task)

    def promise_again(self, task: int, node: int) -> None:
        """Restore a nomination that `withdraw` cancelled."""
        self._turn(task, node, -1.0)
        self._count_whole_gpus(task, node, 1.0)
        self._move_promise(task, node, join_shared_gpu)
        self.journal.insert(self.nodes.tasks[node], task, None)

    def _count_whole_gpus(self, task: int, node: int, sign: float) -> None:
        for row, amount in self.charge_amounts(task, node):
            if row == GPU_ROW:
                self._add(self.nodes.whole_gpus_used, node, sign * amount)

    def _move_promise(self, task: int, node: int, move: _SharedGpuMove) -> None:
        task_class = self.tasks.task_class[task]
        if task_class.is_shared:
            memory = task_class.memory_on(self.nodes.gpu_memory[node])
            for gpu_group in self.tasks.gpu_groups[task]:
                move(self.nodes, self.journal, node, gpu_group, memory, NOMINATED_HOLD)

    def _turn(self, task: int, node: int, sign: float) -> None:
        releasing, entries = self.nodes.releasing_rows, self.journal.entries
        for row, amount in self.charge_amounts(task, node):
            per_node = releasing[row]
            old = per_node[node]
            entries.append((per_node, node, old))
            per_node[node] = old + sign * amount
        self.nodes.touched.append(node)

    def _rejoin(self, task: int, node: int, old: Hold, new: Hold) -> None:
        task_class = self.tasks.task_class[task]
        if not task_class.is_shared:
            return
        memory = task_class.memory_on(self.nodes.gpu_memory[node])
        for gpu_group in self.tasks.gpu_groups[task]:
            # In this order the device stays in use in between, so it is not counted as idle and taken anew, which
            # would depend on what else of the node is promised by then.
            join_shared_gpu(self.nodes, self.journal, node, gpu_group, memory, new)
            leave_shared_gpu(self.nodes, self.journal, node, gpu_group, memory, old)

    def _add(self, per_node: list[float], node: int, amount: float) -> None:
        old = per_node[node]
        self.journal.entries.append((per_node, node, old))
        per_node[node] = old + amount

    # ----------------------------------------------------------------------------- invariants

    def validate(self) -> None:
        """Check the invariants between the parts of the state.

        Raises
        ------
        InvariantError : a counter that differs from the statuses, a device above its memory, a task
            that holds a node without being on it, or more idle GPUs than a node has
        """
        self._validate_counters()
        self._validate_devices()
        self._validate_places()

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
                    pod_group = self.pod_groups.name(sets.pod_group[index])
                    raise InvariantError(
                        f"pod set {sets.name[index]!r} of {pod_group}: a counter says "
                        f"{counter[index]}, its tasks say {expected} ({statuses})"
                    )

    def _validate_devices(self) -> None:
        nodes = self.nodes
        for node, shared_gpus in enumerate(nodes.shared_gpus):
            for gpu_group, gpu in shared_gpus.items():
                held_memory = gpu[ALLOCATED_COLUMN] - max(gpu[RELEASING_COLUMN], 0.0)
                is_negative = min(gpu[USED_COLUMN], gpu[ALLOCATED_COLUMN]) < 0
                if held_memory > nodes.gpu_memory[node] or is_negative:
                    raise InvariantError(
                        f"GPU group {gpu_group} on node {nodes.names[node]}: ledger {list(gpu)} "
                        f"does not fit a device of {nodes.gpu_memory[node]} MiB"
                    )

    def _validate_places(self) -> None:
        tasks, nodes = self.tasks, self.nodes
        for task, node in enumerate(tasks.node):
            status = tasks.status[task]
            if status == RELEASING or not ACTIVE_USED[status]:
                continue  # a task whose nomination was withdrawn is RELEASING, but on no node
            if node >= 0 and task not in nodes.tasks[node]:
                raise InvariantError(
                    f"task {tasks.inputs[task].name} holds node {nodes.names[node]} "
                    f"but is not on it"
                )
        excess = np.flatnonzero(nodes.idle[GPU_ROW] > nodes.allocatable[GPU_ROW] + 1e-6)
        if excess.size:
            raise InvariantError(
                f"node {nodes.names[excess[0]]} has more idle GPUs than it has GPUs"
            )


#: (counter, difference) pairs.
_Deltas = tuple[tuple[list[int], int], ...]

#: Counter of pod sets -> for each status, whether a task counts in it.
_COUNTED_BY_POD_SET = {
    "pending": tuple(status == PENDING for status in TaskStatus),
    "gated": tuple(status == GATED for status in TaskStatus),
    "nominated": tuple(status == NOMINATED for status in TaskStatus),
    "active_allocated": ACTIVE_ALLOCATED,
    "active_used": ACTIVE_USED,
}
_COUNTED_BY_POD_GROUP = {
    "pending": _COUNTED_BY_POD_SET["pending"],
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
