"""Operations on the state that are kept together or undone without a trace.

Each operation changes the state through the journal. `checkpoint` returns a position, `rollback` restores
everything overwritten since, bit for bit, and `keep` turns the remaining operations into decisions. Only
one statement is open at a time, and nothing else may change the state meanwhile.
"""

from __future__ import annotations

from scheduler.core.cluster.gpus import NOMINATED_HOLD, NORMAL_HOLD, Hold
from scheduler.core.cluster.inputs import NumaShare
from scheduler.core.cluster.status import (
    ALLOCATED,
    BINDING,
    NOMINATED,
    RELEASING,
    TaskStatus,
)
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionName, Decision, EvictReason
from scheduler.core.errors import InvariantError
from scheduler.core.session.decision_builders import (
    bind_decision,
    evict_decision,
    nominate_decision,
)
from scheduler.core.session.gang import GangView
from scheduler.core.session.minimums import charge_minimum
from scheduler.core.session.operations import Operation, OperationKind
from scheduler.core.session.session import Session

_EVICT = OperationKind.EVICT
_ALLOCATE = OperationKind.ALLOCATE
_NOMINATE = OperationKind.NOMINATE
_UNEVICT = OperationKind.UNEVICT
_UNMOVE = OperationKind.UNMOVE
_CONVERT = OperationKind.CONVERT

#: A position to return to: (number of operations, number of journal entries).
Checkpoint = tuple[int, int]


class Statement:
    """Operations that are kept or discarded together.

    Raises
    ------
    InvariantError : the statement before this one was neither kept nor discarded
    """

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
                f"a statement of {action} begins while {len(self._journal.entries)} journal entries of "
                f"another one are neither kept nor undone"
            )

    # ----------------------------------------------------------------------------- operations

    def evict(self, task: int, reason: EvictReason) -> None:
        """Evict a task: what it holds on its node becomes releasing, and its queue is charged no more.

        A task that is only nominated holds nothing yet; what was promised to it becomes free again.
        """
        tasks = self._state.tasks
        node, was = tasks.node[task], tasks.status[task]
        held = (
            tasks.gpu_groups[task],
            tasks.accepted[task],
            tasks.numa.get(task),
            tasks.left_node[task],
        )
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
        self._operations.append(Operation(_EVICT, task, node, reason, None, was, held))

    def allocate(self, task: int, node: int, gpu_groups: tuple[str, ...] = ()) -> None:
        """Place a pending task on room that is free now."""
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
        """Place a task on room that is being freed, or that is free but must not be bound in this cycle.

        If this statement evicted the task from the same node, and it would get the same devices and
        zones, then its eviction is taken back instead.

        Parameters
        ----------
        gpu_groups : GPU group ids of the devices it shares
        numa : what it takes of NUMA zones; None if no plugin plans them
        may_unevict : False to nominate even then
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
        """Take back the eviction of a task, so that it stays where it is.

        Raises
        ------
        InvariantError : this statement did not evict the task
        """
        state = self._state
        eviction = self._eviction_of(task)
        node = state.tasks.node[task]
        state.set_status(task, TaskStatus(eviction.was))
        self._put_virtual(task, 0)
        if eviction.was == NOMINATED:
            state.promise_again(task, node)
        else:
            state.turn_to_normal(task, node)
        self._charge_queue(task, 1.0)
        for listener in self._session.listeners_of(task):
            listener.placed(task, node)
        eviction.is_undone = True
        self._operations.append(Operation(_UNEVICT, task, node, None, eviction))

    def unmove(self, task: int) -> None:
        """Take back the nomination of a task that this statement evicted: it is leaving its old place again.

        Raises
        ------
        InvariantError : this statement did not evict the task, or did not nominate it
        """
        state, journal = self._state, self._journal
        tasks = state.tasks
        eviction, nomination = self._eviction_of(task), self._nomination_of(task)
        node = tasks.node[task]
        assert eviction.held is not None
        gpu_groups, accepted, numa, left_node = eviction.held
        state.withdraw(task, node)
        if node == eviction.node:
            journal.insert(state.nodes.tasks[node], task, None)
        self._charge_queue(task, -1.0)
        for listener in self._session.listeners_of(task):
            listener.left(task, node)
        state.set_status(task, RELEASING)
        self._charge_minimum(tasks.pod_group[task])
        journal.put(tasks.node, task, eviction.node)
        journal.put(tasks.left_node, task, left_node)
        journal.put(tasks.gpu_groups, task, gpu_groups)
        journal.put(tasks.accepted, task, accepted)
        if numa is not None:
            journal.insert(tasks.numa, task, numa)
        elif task in tasks.numa:
            journal.remove(tasks.numa, task)
        nomination.is_undone = True
        self._operations.append(Operation(_UNMOVE, task, node, None, nomination))

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
            self._operations.append(Operation(_CONVERT, task, operation.node, None, operation))

    def set_numa(self, task: int, numa: tuple[NumaShare, ...]) -> None:
        """Set what a task takes of NUMA zones."""
        if numa or task in self._state.tasks.numa:
            self._journal.insert(self._state.tasks.numa, task, numa)

    # ------------------------------------------------------------------------------ settlement

    def checkpoint(self) -> Checkpoint:
        """Return the current position."""
        return (len(self._operations), len(self._journal.entries))

    def rollback(self, checkpoint: Checkpoint) -> None:
        """Undo everything since a checkpoint."""
        operation_count, entry_count = checkpoint
        tasks, pod_groups = self._state.tasks, self._state.pod_groups
        touched_nodes = self._state.nodes.touched
        touched_queues = self._session.policy.touched
        while len(self._operations) > operation_count:
            operation = self._operations.pop()
            if operation.undoes is not None:
                operation.undoes.is_undone = False
            if operation.node != NOWHERE:
                touched_nodes.append(operation.node)
            pod_group = tasks.pod_group[operation.task]
            pod_groups.version[pod_group] += 1
            queue = pod_groups.queue[pod_group]
            if queue != NOWHERE:
                touched_queues.append(queue)
        self._journal.rewind(entry_count)

    def discard(self) -> None:
        """Undo everything and close the statement."""
        self.rollback((0, 0))
        self.is_open = False

    def keep(self) -> list[Decision]:
        """Keep what was done and close the statement.

        Returns
        -------
        the decisions, in the order of the operations
        """
        state, tasks = self._state, self._state.tasks
        decisions: list[Decision] = []
        evicted: set[int] = set()
        for operation in self._operations:
            task = operation.task
            if operation.is_undone or operation.kind in (_UNEVICT, _UNMOVE):
                continue
            tasks.is_virtual[task] = 0
            if operation.kind is _EVICT:
                evicted.add(task)
                if self._has_pod_to_evict(operation):
                    state.pod_groups.last_eviction[tasks.pod_group[task]] = state.now
                    self._session.disruptions.charge(task)
                    decisions.append(
                        evict_decision(
                            self._state, task, operation.node, self._reason_of(operation)
                        )
                    )
            elif operation.kind is _ALLOCATE:
                tasks.status[task] = BINDING
                tasks.bound_now.add(task)
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

    def moved(self) -> list[int]:
        """Return the tasks that were evicted from where they ran and nominated since, in order."""
        status = self._state.tasks.status
        return [
            operation.task
            for operation in self._operations
            if operation.kind is _EVICT
            and not operation.is_undone
            and operation.was != NOMINATED
            and status[operation.task] == NOMINATED
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
        tasks, entries = state.tasks, state.journal.entries
        old_node = tasks.node[task]
        if old_node != NOWHERE and task in state.nodes.tasks[old_node]:
            entries.append((tasks.left_node, task, tasks.left_node[task]))
            tasks.left_node[task] = old_node
        state.set_status(task, status)
        entries.append((tasks.is_virtual, task, tasks.is_virtual[task]))
        tasks.is_virtual[task] = 1
        entries.append((tasks.node, task, old_node))
        tasks.node[task] = node
        task_class = tasks.task_class[task]
        if task_class.is_shared:
            entries.append((tasks.gpu_groups, task, tasks.gpu_groups[task]))
            tasks.gpu_groups[task] = gpu_groups
        entries.append((tasks.accepted, task, tasks.accepted[task]))
        tasks.accepted[task] = state.accepted_on(task, node)
        state.charge(task, node, hold)
        self._charge_queue(task, 1.0)
        for listener in self._session.listeners_of(task):
            listener.placed(task, node)

    def _charge_queue(self, task: int, sign: float) -> None:
        pod_group = self._state.tasks.pod_group[task]
        queue = self._state.pod_groups.queue[pod_group]
        if queue == NOWHERE:
            return
        accepted = self._state.tasks.accepted[task]
        if sign < 0:
            accepted = (-accepted[0], -accepted[1], -accepted[2])
        self._session.policy.charge(
            self._journal,
            queue,
            accepted,
            preemptible=self._state.pod_groups.preemptible[pod_group],
        )
        self._charge_minimum(pod_group)

    def _charge_minimum(self, pod_group: int) -> None:
        if pod_group in self._state.pod_groups.semi_preemptible:
            charge_minimum(self._session, pod_group)

    def _has_pod_to_evict(self, operation: Operation) -> bool:
        """Return whether an eviction needs a decision.

        A task that was nominated earlier in this cycle needs none: a pending one has no pod on a node,
        and one that moved has a decision to evict it already.
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

    def _nomination_of(self, task: int) -> Operation:
        for operation in reversed(self._operations):
            if operation.task == task and operation.kind is _NOMINATE and not operation.is_undone:
                return operation
        name = self._state.tasks.inputs[task].name
        raise InvariantError(f"task {name} was not nominated by this statement of {self.action}")
