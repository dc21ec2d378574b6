"""A trial of changes that is kept as a whole or leaves no trace.

Each operation changes the state through the journal. `checkpoint` is a position, `rollback` puts the
overwritten cells back bit for bit, `keep` turns what is left into decisions. Only one statement is open
at a time: nothing else may change the state meanwhile.
"""

from __future__ import annotations

from enum import Enum

from scheduler.core.cluster.gpus import NOMINATED_HOLD, NORMAL_HOLD, Hold
from scheduler.core.cluster.inputs import NumaShare
from scheduler.core.cluster.status import (
    ALLOCATED,
    BINDING,
    NOMINATED,
    PENDING,
    RELEASING,
    TaskStatus,
)
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionName, Decision, EvictReason
from scheduler.core.errors import InvariantError
from scheduler.core.session.gang import GangView
from scheduler.core.session.outcome import bind_decision, evict_decision, nominate_decision
from scheduler.core.session.session import Session
from scheduler.core.times import NOW


class OperationKind(Enum):
    """What an operation does to its task."""

    EVICT = "evict"
    ALLOCATE = "allocate"
    NOMINATE = "nominate"
    UNEVICT = "un-evict"
    CONVERT = "convert"


_EVICT = OperationKind.EVICT
_ALLOCATE = OperationKind.ALLOCATE
_NOMINATE = OperationKind.NOMINATE
_UNEVICT = OperationKind.UNEVICT
_CONVERT = OperationKind.CONVERT


class Operation:
    """One step of a statement.

    `undoes` is the earlier step it takes back, if any; `was` the status before an eviction.
    """

    __slots__ = ("is_undone", "kind", "node", "reason", "task", "undoes", "was")

    def __init__(
        self,
        kind: OperationKind,
        task: int,
        node: int,
        reason: EvictReason | None = None,
        undoes: Operation | None = None,
        was: int = PENDING,
    ) -> None:
        self.was = was
        self.kind = kind
        self.task = task
        self.node = node
        self.reason = reason
        self.undoes = undoes
        self.is_undone = False


#: A position to return to: (operations, journal cells).
Checkpoint = tuple[int, int]


class Statement:
    """Operations tried together; the one before must have been kept or discarded."""

    __slots__ = ("_journal", "_operations", "_session", "_state", "action", "is_open")

    def __init__(self, session: Session, action: ActionName) -> None:
        self._session = session
        self._state = session.state
        self._journal = session.state.journal
        self._operations: list[Operation] = []
        self.action = action
        self.is_open = True
        if self._journal.entries:
            raise InvariantError(
                f"a statement of {action} begins while {len(self._journal.entries)} cells of another "
                f"one are not settled"
            )

    # ----------------------------------------------------------------------------- operations

    def evict(self, task: int, reason: EvictReason) -> None:
        """Let a task that holds a node begin to leave it; its queue stops holding it now.

        A task that is only nominated was never there: what was promised to it becomes free.
        """
        tasks = self._state.tasks
        node, was = tasks.node[task], tasks.status[task]
        self._state.set_status(task, RELEASING)
        self._put_virtual(task, 1)
        if node != NOWHERE:
            if was == NOMINATED:
                self._state.withdraw(task, node)
            else:
                self._state.turn_to_releasing(task, node)
            self._charge_queue(task, -1.0)
            for listener in self._session.listeners_of(task):
                listener.left(task, node)
        self._operations.append(Operation(_EVICT, task, node, reason, None, was))

    def allocate(self, task: int, node: int, gpu_groups: tuple[str, ...] = ()) -> None:
        """Give a pending task room that is free now."""
        self._place(task, node, gpu_groups, ALLOCATED, NORMAL_HOLD)
        self._operations.append(Operation(_ALLOCATE, task, node))

    def nominate(
        self,
        task: int,
        node: int,
        gpu_groups: tuple[str, ...] = (),
        *,
        numa: tuple[NumaShare, ...] | None = None,
        may_unevict: bool = True,
    ) -> None:
        """Give a task room that is being freed, or just not bound in this cycle.

        A task that this statement evicted from the same node, and that would get the same devices
        and zones, simply keeps running: its eviction is taken back.
        """
        tasks = self._state.tasks
        if (
            may_unevict
            and tasks.status[task] == RELEASING
            and tasks.is_virtual[task]
            and tasks.node[task] == node
            and (not gpu_groups or gpu_groups == tasks.gpu_groups[task])
            and (numa is None or numa == tasks.numa.get(task, ()))
        ):
            self.unevict(task)
            return
        if numa is not None:
            self._journal.insert(tasks.numa, task, numa)
        self._place(task, node, gpu_groups, NOMINATED, NOMINATED_HOLD)
        self._operations.append(Operation(_NOMINATE, task, node))

    def unevict(self, task: int) -> None:
        """Take the eviction of a task back: it keeps running where it is."""
        state = self._state
        evicted = self._eviction_of(task)
        node = state.tasks.node[task]
        state.set_status(task, TaskStatus(evicted.was))
        self._put_virtual(task, 0)
        if evicted.was == NOMINATED:
            state.promise_again(task, node)
        else:
            state.turn_to_normal(task, node)
        self._charge_queue(task, 1.0)
        for listener in self._session.listeners_of(task):
            listener.placed(task, node)
        evicted.is_undone = True
        self._operations.append(Operation(_UNEVICT, task, node, None, evicted))

    def convert_to_nominated(self, view: GangView) -> None:
        """Turn everything this statement allocated for a pod group into nominations."""
        tasks, state = self._state.tasks, self._state
        for operation in list(self._operations):
            if operation.kind is not _ALLOCATE or operation.is_undone:
                continue
            task = operation.task
            if tasks.pod_group[task] != view.pod_group:
                continue
            state.set_status(task, NOMINATED)
            state.release(task, operation.node, NORMAL_HOLD)
            state.charge(task, operation.node, NOMINATED_HOLD)
            operation.is_undone = True
            undo = Operation(_CONVERT, task, operation.node, None, operation)
            self._operations.append(undo)

    def set_numa(self, task: int, numa: tuple[NumaShare, ...]) -> None:
        """Remember the zones chosen for a task, undoably."""
        if numa or task in self._state.tasks.numa:
            self._journal.insert(self._state.tasks.numa, task, numa)

    # ------------------------------------------------------------------------------ settlement

    def checkpoint(self) -> Checkpoint:
        """Return the current position."""
        return (len(self._operations), len(self._journal.entries))

    def rollback(self, checkpoint: Checkpoint) -> None:
        """Undo everything after a checkpoint."""
        operations, cells = checkpoint
        tasks, groups = self._state.tasks, self._state.pod_groups
        touched_nodes = self._state.nodes.touched
        touched_queues = self._session.policy.touched
        while len(self._operations) > operations:
            operation = self._operations.pop()
            if operation.undoes is not None:
                operation.undoes.is_undone = False
            if operation.node != NOWHERE:
                touched_nodes.append(operation.node)
            group = tasks.pod_group[operation.task]
            groups.version[group] += 1
            queue = groups.queue[group]
            if queue != NOWHERE:
                touched_queues.append(queue)
        self._journal.rewind(cells)

    def discard(self) -> None:
        """Undo everything and end."""
        self.rollback((0, 0))
        self.is_open = False

    def keep(self) -> list[Decision]:
        """Let everything stand and end.

        Returns
        -------
        the decisions, in the order of the operations
        """
        state, tasks = self._state, self._state.tasks
        decisions: list[Decision] = []
        evicted: set[int] = set()
        for operation in self._operations:
            task = operation.task
            if operation.is_undone or operation.kind is _UNEVICT:
                continue
            tasks.is_virtual[task] = 0
            if operation.kind is _EVICT:
                evicted.add(task)
                if self._is_there(operation):
                    state.pod_groups.last_eviction[tasks.pod_group[task]] = NOW
                    decisions.append(
                        evict_decision(
                            self._state, task, operation.node, self._reason_of(operation)
                        )
                    )
            elif operation.kind is _ALLOCATE:
                tasks.status[task] = BINDING
                decisions.append(bind_decision(self._state, task, operation.node, self.action))
            else:
                decisions.append(
                    nominate_decision(
                        self._state,
                        task,
                        operation.node,
                        self.action,
                        is_moved_victim=task in evicted,
                    )
                )
        self._journal.forget()
        self._operations.clear()
        self.is_open = False
        self._session.decisions.extend(decisions)
        return decisions

    def victims(self) -> list[int]:
        """Return the tasks evicted and not un-evicted, in order."""
        return [
            operation.task
            for operation in self._operations
            if operation.kind is _EVICT and not operation.is_undone
        ]

    # ---------------------------------------------------------------------------------- parts

    def _place(
        self,
        task: int,
        node: int,
        gpu_groups: tuple[str, ...],
        status: TaskStatus,
        hold: Hold,
    ) -> None:
        state = self._state
        tasks, cells = state.tasks, state.journal.entries
        left = tasks.node[task]
        if left != NOWHERE and task in state.nodes.tasks[left]:
            cells.append((tasks.left_node, task, tasks.left_node[task]))
            tasks.left_node[task] = left
        state.set_status(task, status)
        cells.append((tasks.is_virtual, task, tasks.is_virtual[task]))
        tasks.is_virtual[task] = 1
        cells.append((tasks.node, task, left))
        tasks.node[task] = node
        task_class = tasks.task_class[task]
        if task_class.is_shared:
            cells.append((tasks.gpu_groups, task, tasks.gpu_groups[task]))
            tasks.gpu_groups[task] = gpu_groups
        cells.append((tasks.accepted, task, tasks.accepted[task]))
        tasks.accepted[task] = task_class.accepted_on(state.nodes.gpu_memory[node])
        state.charge(task, node, hold)
        self._charge_queue(task, 1.0)
        for listener in self._session.listeners_of(task):
            listener.placed(task, node)

    def _charge_queue(self, task: int, sign: float) -> None:
        group = self._state.tasks.pod_group[task]
        queue = self._state.pod_groups.queue[group]
        if queue == NOWHERE:
            return
        accepted = self._state.tasks.accepted[task]
        if sign < 0:
            accepted = (-accepted[0], -accepted[1], -accepted[2])
        self._session.policy.charge(
            self._journal, queue, accepted, preemptible=self._state.pod_groups.preemptible[group]
        )

    def _is_there(self, operation: Operation) -> bool:
        """Tell whether an evicted task is really on a node, or was only going to be.

        A task nominated in this very cycle has nothing to be deleted; one that moved earlier in the
        cycle has been told to go already.
        """
        if operation.was != NOMINATED:
            return True
        return self._state.tasks.inputs[operation.task].status == NOMINATED

    def _reason_of(self, operation: Operation) -> EvictReason:
        if operation.reason is None:
            name = self._state.tasks.inputs[operation.task].name
            raise InvariantError(f"the eviction of {name} has no reason")
        return operation.reason

    def _put_virtual(self, task: int, value: int) -> None:
        self._journal.put(self._state.tasks.is_virtual, task, value)

    def _eviction_of(self, task: int) -> Operation:
        for operation in self._operations:
            if operation.task == task and operation.kind is _EVICT and not operation.is_undone:
                return operation
        name = self._state.tasks.inputs[task].name
        raise InvariantError(f"task {name} was not evicted by this statement of {self.action}")
