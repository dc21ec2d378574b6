"""Place the tasks of one pod group: all of the chunk, or none of it.

The chunk must pass the capacity gates of its queue, then the tree of subgroups is walked. Each member may
be confined to node sets (topology), which are tried in turn. Inside a set, tasks are placed one after the
other on the best node; a placed task is not moved again, so if the next one does not fit, the set fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.podgroups import PodSetLeaf, SubgroupNode, TreeMember
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.fairshare.capacity import CapacityRefusal
from scheduler.core.placement.candidates import Candidates
from scheduler.core.placement.chosen import PlacementLog
from scheduler.core.placement.devices import DeviceChoice, choose_devices, choose_free_devices
from scheduler.core.placement.explain import count_rejections
from scheduler.core.placement.home import own_devices_have_room
from scheduler.core.placement.rules import ClassRules, Static, StaticKey
from scheduler.core.placement.shortfall import fit_of_refusal, fit_of_shortfall
from scheduler.core.session.direct import can_bind_directly
from scheduler.core.session.gang import GangView
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Checkpoint, Statement

#: Nodes in all cached `Candidates` together. Many sizes of tasks or many node sets need many of them, most
#: of which are used once; a million nodes take some 60 MB.
MAX_CACHED_NODES = 1_000_000


@dataclass(slots=True)
class _Attempt:
    """What one call of `place` carries down the tree."""

    statement: Statement
    view: GangView
    #: Pod set -> its tasks to place.
    tasks_of: dict[int, list[int]]
    nominate_only: bool
    #: How many tasks were placed so far.
    placed: int = 0


class Placer:
    """Places chunks; caches the rules and candidates of task classes for the rest of the session."""

    __slots__ = (
        "_cached_nodes",
        "_candidates",
        "_everywhere",
        "_log",
        "_rules",
        "_session",
        "_static",
    )

    def __init__(self, session: Session) -> None:
        self._session = session
        #: Records why nodes are chosen, if somebody wants to know.
        self._log = session.attached(PlacementLog)
        self._rules: dict[int, ClassRules] = {}
        self._candidates: dict[tuple[int, object], Candidates] = {}
        self._static: dict[StaticKey, Static] = {}
        self._cached_nodes = 0
        #: Task class -> its candidates on all nodes, for `find_free`; None if its tasks are left to `place`.
        self._everywhere: dict[int, Candidates | None] = {}

    # --------------------------------------------------------------------------------- public

    def place(
        self,
        statement: Statement,
        view: GangView,
        tasks: Sequence[int],
        nodes: NodeSet,
        *,
        nominate_only: bool,
    ) -> bool:
        """Place all of some tasks of a pod group, or leave the statement as it was.

        Parameters
        ----------
        statement : open; receives the placements
        view : the pod group as the caller sees it
        tasks : its next chunk
        nodes : where to look
        nominate_only : True in simulations: nothing is bound, reasons of nodes are not recorded

        Returns
        -------
        whether every task found a node
        """
        if not tasks:
            return False
        refusal = self.refuse_chunk(view, tasks)
        if refusal is not None:
            if not nominate_only:
                self._session.fit.add_pod_group(view.pod_group, fit_of_refusal(refusal))
            return False
        if view.only_pod_set >= 0:
            return self._place_plain(statement, view, tasks, nodes, nominate_only)
        pod_set_of = self._session.state.tasks.pod_set
        tasks_of: dict[int, list[int]] = {}
        for task in tasks:
            tasks_of.setdefault(pod_set_of[task], []).append(task)
        attempt = _Attempt(statement, view, tasks_of, nominate_only)
        start = statement.checkpoint()
        if self._place_member(attempt, view.root, nodes):
            return True
        self._undo(statement, start, tasks)
        return False

    def put_back(self, statement: Statement, view: GangView, task: int) -> bool:
        """Let an evicted task stay on its own node, and on its own devices; return whether these have room."""
        session = self._session
        task_class = session.state.tasks.task_class[task]
        node = session.state.tasks.node[task]
        if node == NOWHERE:
            return False
        home = NodeSet.of([node])
        if not task_class.is_shared:
            return self.place(statement, view, [task], home, nominate_only=True)
        # `place` could choose other devices of the node for a task that shares some.
        if (
            self.refuse_chunk(view, [task]) is not None
            or self.failed_check(task, victim_invariant=False)
            or self._refuse_on(view, task_class, node)
            or not own_devices_have_room(session, task)
        ):
            return False
        candidates = self._candidates_of(task_class, self.rules(task_class, task), home, task)
        does_fit = next(iter(candidates.in_order()), None) is not None
        if not does_fit:
            return False
        planner = session.hooks.numa
        if planner is not None and planner.plan(task, node) != session.state.tasks.numa.get(task):
            return False
        statement.unevict(task)
        return True

    def find_free(self, view: GangView, task: int) -> tuple[int, tuple[str, ...]] | None:
        """Find the best node for the only task of a chunk of a plain pod group.

        Returns
        -------
        the node, and the GPU group ids of the devices that the task shares on it, if it has free room there
        and may be bound directly; None if `place` must decide (no node takes it, it would have to wait, a
        gate or check refuses)
        """
        task_class = self._session.state.tasks.task_class[task]
        if task_class.index not in self._everywhere:
            self._everywhere[task_class.index] = self._free_candidates(task)
        candidates = self._everywhere[task_class.index]
        if candidates is None or self.refuse_chunk(view, (task,)) is not None:
            return None
        node = candidates.best()
        if node < 0 or not candidates.is_free(node):
            return None
        gpu_groups: tuple[str, ...] | None = ()
        if task_class.is_shared:
            if self._refuse_on(view, task_class, node):
                return None
            gpu_groups = choose_free_devices(self._session, task_class, node)
        if gpu_groups is None:
            return None
        if self._log is not None and self._log.left > 0:
            self._log.note(self._session, candidates, task, node)
        return node, gpu_groups

    def _free_candidates(self, task: int) -> Candidates | None:
        """Return all nodes for tasks like this one; None if they need checks or may not be bound directly."""
        is_direct = can_bind_directly(self._session, task)
        return self.unchecked_candidates(task) if is_direct else None

    def unchecked_candidates(self, task: int) -> Candidates | None:
        """Return all nodes for tasks like this one, best first; None if only `place` can decide.

        It decides about tasks that need checks or take NUMA zones, and where no answer may be kept.
        """
        task_class = self._session.state.tasks.task_class[task]
        rules = self.rules(task_class, task)
        if rules.checks or rules.is_volatile or self._session.hooks.numa is not None:
            return None
        return self._candidates_of(task_class, rules, self._session.all_nodes, task)

    def failed_check(self, task: int, *, victim_invariant: bool) -> bool:
        """Run the checks that need no node; record and return whether any failed.

        victim_invariant : only those that no eviction can cure
        """
        task_class = self._session.state.tasks.task_class[task]
        failed = False
        for check in self.rules(task_class, task).checks:
            failure = check.check(task, task_class)
            if failure is None or (victim_invariant and not failure.is_victim_invariant):
                continue
            failed = True
            if victim_invariant:
                self._session.fit.add_hopeless(task, failure)
            else:
                self._session.fit.add_check(task, failure)
        return failed

    def rules(self, task_class: TaskClass, task: int) -> ClassRules:
        """Return the rules of a class; `task` is any of its tasks."""
        rules = self._rules.get(task_class.index)
        if rules is None:
            rules = self._rules[task_class.index] = ClassRules(
                self._session, task_class, task, self._static
            )
        return rules

    def _place_plain(
        self,
        statement: Statement,
        view: GangView,
        tasks: Sequence[int],
        nodes: NodeSet,
        nominate_only: bool,
    ) -> bool:
        """Place a pod group that has neither subgroups nor topology constraints; return whether all tasks fit."""
        attempt = _Attempt(statement, view, _NO_TASKS, nominate_only)
        start = statement.checkpoint()
        for placed_before, task in enumerate(tasks):
            if not self._place_task(attempt, task, nodes):
                self._note_shortfall(attempt, view.only_pod_set, task, placed_before)
                self._undo(statement, start, tasks)
                return False
        return True

    def _undo(self, statement: Statement, start: Checkpoint, tasks: Sequence[int]) -> None:
        statement.rollback(start)
        if self._log is not None:
            self._log.forget(tasks)

    # ------------------------------------------------------------------------------ recursion

    def refuse_chunk(self, view: GangView, tasks: Sequence[int]) -> CapacityRefusal | None:
        """Return why the capacity gates refuse the next chunk of a pod group; None if they do not."""
        session = self._session
        preemptible = session.is_next_preemptible(view.pod_group)
        if view.queue == NOWHERE or not session.policy.can_refuse(
            view.queue, preemptible=preemptible
        ):
            return None
        return session.policy.refuse(
            view.queue, session.gate_amount(tasks), preemptible=preemptible
        )

    def _place_member(self, attempt: _Attempt, member: TreeMember, nodes: NodeSet) -> bool:
        """Place a member in the first node set that takes all its tasks; return whether one does."""
        leaves = [member] if isinstance(member, PodSetLeaf) else member.pod_sets()
        tasks = list(chain.from_iterable(attempt.tasks_of.get(leaf.index, ()) for leaf in leaves))
        if not tasks:
            return True
        for node_set in self._split(attempt, member, tasks, nodes):
            checkpoint, placed = attempt.statement.checkpoint(), attempt.placed
            if self._place_inside(attempt, member, tasks, node_set):
                return True
            attempt.statement.rollback(checkpoint)
            attempt.placed = placed
        return False

    def _place_inside(
        self, attempt: _Attempt, member: TreeMember, tasks: Sequence[int], nodes: NodeSet
    ) -> bool:
        if isinstance(member, SubgroupNode):
            return all(
                self._place_member(attempt, inner, nodes)
                for inner in attempt.view.ordered_members(member)
            )
        for placed_before, task in enumerate(tasks):
            if not self._place_task(attempt, task, nodes):
                self._note_shortfall(attempt, member.index, task, placed_before)
                return False
            attempt.placed += 1
        return True

    def _split(
        self, attempt: _Attempt, member: TreeMember, tasks: Sequence[int], nodes: NodeSet
    ) -> list[NodeSet]:
        """Return the node sets that a member may be confined to, in the order in which they are tried."""
        sets = [nodes]
        record = not attempt.nominate_only
        for splitter in self._session.hooks.splitters:
            if splitter.concerns(member):
                sets = [
                    part
                    for node_set in sets
                    for part in splitter.split(attempt.view, member, tasks, node_set, record=record)
                ]
        return sets

    # -------------------------------------------------------------------------------- one task

    def _place_task(self, attempt: _Attempt, task: int, nodes: NodeSet) -> bool:
        session = self._session
        task_class = session.state.tasks.task_class[task]
        rules = self.rules(task_class, task)
        if rules.checks and self.failed_check(task, victim_invariant=False):
            return False
        candidates = self._candidates_of(task_class, rules, nodes, task)
        if not task_class.is_shared:
            node = candidates.best()
            if node >= 0:
                self._note(attempt, candidates, task, node)
                self._put_whole(attempt, task, node, candidates.is_free(node))
                return True
        elif self._place_shared(attempt, task, candidates):
            return True
        if not attempt.nominate_only:
            counts = count_rejections(session, task_class, rules, nodes, task, attempt.view)
            session.fit.add_counts(task, counts)
        return False

    def _place_shared(self, attempt: _Attempt, task: int, candidates: Candidates) -> bool:
        """Place a task that shares devices on the best node whose devices take it; return whether one does."""
        task_class = self._session.state.tasks.task_class[task]
        refused: list[int] = []
        for node in candidates.in_order():
            if not self._refuse_on(attempt.view, task_class, node):
                is_free, is_trial = candidates.is_free(node), attempt.nominate_only
                choice = choose_devices(
                    self._session, task_class, node, fits_free=is_free, nominate_only=is_trial
                )
                if choice is not None:
                    self._note(attempt, candidates, task, node, *refused)
                    self._put_shared(attempt, task, node, choice)
                    return True
            refused.append(node)
        return False

    def _candidates_of(
        self, task_class: TaskClass, rules: ClassRules, nodes: NodeSet, task: int
    ) -> Candidates:
        if rules.is_volatile:
            return Candidates(self._session, task_class, rules, nodes, task)
        key = (task_class.index, nodes.key)
        candidates = self._candidates.get(key)
        if candidates is None:
            self._cached_nodes += len(nodes)
            if self._cached_nodes > MAX_CACHED_NODES:
                self._candidates.clear()
                self._everywhere.clear()
                self._cached_nodes = len(nodes)
            candidates = self._candidates[key] = Candidates(
                self._session, task_class, rules, nodes, task
            )
        return candidates

    def _refuse_on(self, view: GangView, task_class: TaskClass, node: int) -> bool:
        """Return whether a capacity gate refuses the amounts that the task would take on this node.

        Only shares of devices differ from node to node; for everything else the gate before placement
        has given the same answer.
        """
        session = self._session
        preemptible = session.is_next_preemptible(view.pod_group)
        amount = task_class.gate_amounts_on(session.state.nodes.gpu_memory[node])
        return session.policy.refuse(view.queue, amount, preemptible=preemptible) is not None

    def _put_whole(self, attempt: _Attempt, task: int, node: int, is_free: bool) -> None:
        statement, planner = attempt.statement, self._session.hooks.numa
        numa = planner.plan(task, node) if planner is not None else None
        if attempt.nominate_only or not is_free:
            statement.nominate(task, node, numa=numa)
        else:
            if numa is not None:
                statement.set_numa(task, numa)
            statement.allocate(task, node)

    def _note(
        self, attempt: _Attempt, candidates: Candidates, task: int, node: int, *refused: int
    ) -> None:
        """Record why a node is chosen, if somebody wants to know; what a search tries is not recorded."""
        if self._log is not None and self._log.left > 0 and not attempt.nominate_only:
            self._log.note(self._session, candidates, task, node, refused)

    def _put_shared(self, attempt: _Attempt, task: int, node: int, choice: DeviceChoice) -> None:
        statement, planner = attempt.statement, self._session.hooks.numa
        numa = planner.plan(task, node) if planner is not None else None
        if choice.must_wait:
            statement.nominate(task, node, choice.groups, numa=numa)
        else:
            if numa is not None:
                statement.set_numa(task, numa)
            statement.allocate(task, node, choice.groups)

    def _note_shortfall(self, attempt: _Attempt, pod_set: int, task: int, placed_here: int) -> None:
        if not attempt.nominate_only:
            fit = fit_of_shortfall(attempt.view, task, pod_set, placed_here, attempt.placed)
            self._session.fit.add_pod_group(attempt.view.pod_group, fit)


_NO_TASKS: dict[int, list[int]] = {}  # `_place_plain` walks no tree, so it looks up none by pod set
