"""The nodes of one set for one class of tasks, best first, kept up to date instead of computed again.

The first time, room, filters and scores of all nodes are array operations. Afterwards only the nodes that
were touched since are computed again, one by one in plain floats, and the best is an argmax over a float
array. Filling a node thus costs the same on ten nodes and on a thousand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, isnan

import numpy as np

from scheduler.core.arrays import Bools, Floats
from scheduler.core.cluster.axis import GPU_ROW, PODS_ROW
from scheduler.core.cluster.changes import Cursor
from scheduler.core.cluster.classes import RowAmounts, TaskClass
from scheduler.core.cluster.gpus import fitting_shared_gpus
from scheduler.core.placement.fill_score import FillScore, buffer
from scheduler.core.placement.room import FREE, FREEING, NONE, room_on
from scheduler.core.placement.rules import ClassRules
from scheduler.core.session.hooks import Scope
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session

#: The plugins whose scores are computed here, with the room of nodes, and that of the scores of node sets.
AVAILABILITY, SHARING, TOPOLOGY = "nodeavailability", "gpusharingorder", "topology"

#: Sets this small are cheaper to compute node by node.
SMALL = 12


def _needs(task_class: TaskClass) -> tuple[Floats, RowAmounts]:
    """Return the amounts that must be free: the fixed rows as a column, and the other rows."""
    column = np.full((PODS_ROW + 1, 1), -inf)
    for row, amount in task_class.must_be_free:
        if row <= PODS_ROW:
            column[row, 0] = amount
    return column, tuple(cell for cell in task_class.must_be_free if cell[0] > PODS_ROW)


class Candidates:
    """The nodes of a set that may take a task of one class; `task` is any task of it."""

    __slots__ = (
        "_base",
        "_base_view",
        "_cursor",
        "_fill",
        "_keeps_best",
        "_last",
        "_more",
        "_need",
        "_nodes",
        "_outdated",
        "_prefers_sharing",
        "_rooms",
        "_session",
        "_static_scores",
        "_task",
        "_task_class",
        "_value",
        "_value_view",
        "fitting",
        "node_set",
        "passing",
        "rules",
    )

    def __init__(
        self, session: Session, task_class: TaskClass, rules: ClassRules, nodes: NodeSet, task: int
    ) -> None:
        self._session = session
        self._nodes = session.state.nodes
        self._cursor = Cursor(session.state.nodes.touched)
        self._task_class = task_class
        self.rules = rules
        self.node_set = nodes
        self._task = task
        self._fill = FillScore(session, task_class, nodes)
        self.passing: Bools = self.node_set.take(rules.static_mask)
        self._static_scores: Floats = self.node_set.take(rules.static_scores)
        if nodes.extra_scores is not None:
            self._static_scores = self._static_scores + self.node_set.take(nodes.extra_scores)
            self.passing = self.passing & ~np.isnan(self._static_scores)
        self._prefers_sharing = session.hooks.sharing_weight > 0 and (
            task_class.is_shared or task_class.is_cpu_only
        )
        self._need, self._more = _needs(task_class)
        #: How many nodes may take a task, and the positions whose value must be computed again.
        self.fitting = 0
        self._outdated: list[int] = []
        #: The node returned last, -1 if none; and whether filling it can only make it better.
        self._last = -1
        self._keeps_best = (
            self._fill.is_binpack
            and not task_class.is_shared
            and not rules.is_volatile
            and not rules.node_filters
            and not rules.node_scores
        )
        self._build()

    # --------------------------------------------------------------------------------- public

    def best(self) -> int:
        """Return the best node that may take a task of the class now, -1 if there is none."""
        cursor = self._cursor
        if cursor.position != len(cursor.log):
            if self._is_still_best():
                return self._last
            self._refresh()
        if not self.fitting:
            return -1
        # The only node needs no fill score. On a full cluster, one node at a time gets room.
        values = self._base if self.fitting == 1 else self._values()
        position = int(values.argmax())
        self._last = position if self.node_set.is_all else int(self.node_set.indices[position])
        return self._last

    def _is_still_best(self) -> bool:
        """Return whether the node returned last is the best again, because only it was touched.

        When nodes are filled up, a node only gets better by being filled, as long as it has free room.
        So a run of equal tasks needs no new comparison until the node is full.
        """
        if not self._keeps_best or self._last < 0:
            return False
        last, changed = self._last, self._cursor.unread()
        if changed.count(last) != len(changed):
            return False
        fill, row = self._fill, self._fill.row
        amount = self._nodes.idle_rows[row][last] + self._nodes.releasing_rows[row][last]
        position = last if self.node_set.position_of is None else self.node_set.position_of[last]
        return (
            amount < fill.amount_view[position]
            and self._rooms[position] == FREE
            and room_on(self._nodes, self._task_class, self._task_class.must_be_free, last) == FREE
        )

    def in_order(self) -> Iterator[int]:
        """Return all nodes that may take a task of the class now, best first."""
        first = self.best()
        if first < 0:
            return
        yield first
        values = self._values().copy()
        values[int(values.argmax())] = -inf
        while len(values):
            position = int(values.argmax())
            if values[position] == -inf:
                return
            yield int(self.node_set.indices[position])
            values[position] = -inf

    def is_free(self, node: int) -> bool:
        """Return whether a node that may take a task has free room for it now."""
        if self._rooms[self.position(node)] != FREE:
            return False
        waits = self.rules.waits
        return not waits or not any(
            wait.must_wait(self._task, node, self._task_class) for wait in waits
        )

    def needs(self, node: int) -> RowAmounts:
        """Return what must be free on a node, after the rules of plugins."""
        needs = self._task_class.must_be_free
        for rule in self.rules.fit_rules:
            needs = rule.adjust(self._task, node, needs)
        return needs

    def position(self, node: int) -> int:
        """Return the position of a node in the set."""
        position_of = self.node_set.position_of
        return node if position_of is None else position_of[node]

    def scores_now(self) -> Floats:
        """Return the score of every node of the set, -inf for those that cannot take a task now."""
        if self._cursor.is_behind():
            self._refresh()
        return self._values()

    def terms(self, node: int) -> dict[str, float]:
        """Return the parts of the score of a node that may take a task, by the name of what adds them.

        To be called after `scores_now`; the parts add up to what that returns.
        """
        position, fill, hooks = self.position(node), self._fill, self._session.hooks
        terms: dict[str, float] = {}
        if hooks.placement is not None and fill.is_scored:
            terms[hooks.placement.name_for(self._task_class)] = fill.score(position)
        if self._rooms[position] == FREE:
            terms[AVAILABILITY] = hooks.availability_weight
        if self._prefers_sharing:
            terms[SHARING] = self._sharing_score(node)
        for score in self.rules.scores:
            if score.scope is Scope.CLUSTER:
                alone = NodeSet.of([node])
                value = float(score.scores(self._task, self._task_class, alone)[0])
            else:
                value = score.score(self._task, self._task_class, node)
            terms[score.name] = terms.get(score.name, 0.0) + value
        if self.node_set.extra_scores is not None:
            extra = float(self.node_set.extra_scores[node])
            terms[TOPOLOGY] = terms.get(TOPOLOGY, 0.0) + extra
        return terms

    # ---------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._cursor.catch_up()
        self._fill.read_all()
        self._base: Floats = np.full(len(self.node_set), -inf)
        self._base_view = buffer(self._base)
        self._rooms = bytearray(len(self.node_set))
        if self._is_cheaper_by_node():
            for position, node in enumerate(self.node_set.indices.tolist()):
                self._base_view[position] = self._base_of(position, node)
        else:
            self._build_base()
        self.fitting = int(np.count_nonzero(self._base != -inf))
        self._revalue()

    def _is_cheaper_by_node(self) -> bool:
        return len(self.node_set) <= SMALL or bool(self.rules.fit_rules)

    def _build_base(self) -> None:
        """Compute room and scores of all nodes of the set with array operations.

        For tasks that share devices, nodes with shared devices are computed one by one, because each
        device has to be looked at.
        """
        nodes, hooks, task_class = self._nodes, self._session.hooks, self._task_class
        idle, both = nodes.idle, nodes.idle_and_releasing
        if not self.node_set.is_all:
            idle, both = idle[:, self.node_set.indices], both[:, self.node_set.indices]
        free = (idle[: len(self._need)] >= self._need).all(axis=0)
        fits = (both[: len(self._need)] >= self._need).all(axis=0)
        fits &= self.passing
        for row, amount in self._more:
            free &= idle[row] >= amount
            fits &= both[row] >= amount
        if task_class.is_shared:
            free &= np.floor(idle[GPU_ROW]) >= task_class.devices
            fits &= np.floor(both[GPU_ROW]) >= task_class.devices
            fits &= self.node_set.take(nodes.gpu_memory_array) >= task_class.share_memory_mib
        base = self._static_scores + hooks.availability_weight * free
        self._rooms = bytearray((free.view(np.uint8) + np.uint8(FREEING)).tobytes())
        for node_filter in self.rules.node_filters + self.rules.cluster_filters:
            if fits.any():
                fits &= self.node_set.take(node_filter.mask(self._task, task_class))
        scores = self.rules.node_scores + self.rules.cluster_scores
        for score in scores:
            base = base + score.scores(self._task, task_class, self.node_set)
        if scores:
            fits &= ~np.isnan(base)
        self._base[:] = np.where(fits, base, -inf)
        if task_class.is_shared:
            for position, node in self._sharing_nodes():
                self._base_view[position] = self._base_of(position, node)
        elif self._prefers_sharing:
            for position, node in self._sharing_nodes():
                self._base_view[position] += self._sharing_score(node)

    def _sharing_nodes(self) -> Iterator[tuple[int, int]]:
        """Return position and index of the nodes of the set that have shared devices."""
        position_of = self.node_set.position_of
        for node in self._nodes.sharing:
            position = node if position_of is None else position_of.get(node, -1)
            if position >= 0 and self._nodes.shared_gpus[node]:
                yield position, node

    def _sharing_score(self, node: int) -> float:
        """Return the score of a node for a shared device that the task could join.

        A task without GPU could join any of them: that draws it to nodes whose whole devices are broken
        into already, and keeps the CPUs beside whole devices for tasks that need these.
        """
        if not self._nodes.shared_gpus[node]:
            return 0.0
        memory = self._task_class.memory_on(self._nodes.gpu_memory[node])
        has_joinable = fitting_shared_gpus(self._nodes, node, memory)
        return self._session.hooks.sharing_weight if has_joinable else 0.0

    def _base_of(self, position: int, node: int) -> float:
        """Return the score of one node without the fill score, -inf if it cannot take a task."""
        if not self.passing[position]:
            return -inf
        task_class, rules, task = self._task_class, self.rules, self._task
        needs = self.needs(node) if self.rules.fit_rules else task_class.must_be_free
        room = room_on(self._nodes, task_class, needs, node)
        self._rooms[position] = room
        if room == NONE:
            return -inf
        for node_filter in rules.node_filters:
            if not node_filter.passes(task, task_class, node):
                return -inf
        for node_filter in rules.cluster_filters:
            if not node_filter.passes(task, task_class, node):
                return -inf
        hooks = self._session.hooks
        base = float(self._static_scores[position])
        if room == FREE:
            base += hooks.availability_weight
        if self._prefers_sharing:
            base += self._sharing_score(node)
        for score in rules.node_scores:
            base += score.score(task, task_class, node)
        if rules.cluster_scores:
            alone = NodeSet.of([node])
            for score in rules.cluster_scores:
                base += float(score.scores(task, task_class, alone)[0])
        return -inf if isnan(base) else base

    # ------------------------------------------------------------------------------ fill score

    def _values(self) -> Floats:
        """Return the score of every node with the fill score, brought up to date."""
        outdated, fill = self._outdated, self._fill
        if not outdated:
            return self._value
        if fill.has_new_extent() or len(outdated) > SMALL:
            self._revalue()
            return self._value
        for position in outdated:
            self._value_view[position] = self._base_view[position] + fill.score(position)
        outdated.clear()
        return self._value

    def _revalue(self) -> None:
        """Add the fill score to all nodes."""
        self._outdated.clear()
        self._value: Floats = self._base + self._fill.scores()
        self._value_view = buffer(self._value)

    # -------------------------------------------------------------------------------- refresh

    def _refresh(self) -> None:
        cursor = self._cursor
        if cursor.position == len(cursor.log) - 1 and not self.rules.is_volatile:
            cursor.position += 1
            self._refresh_nodes((cursor.log[-1],))
            return
        changed = cursor.unread()
        if self.rules.is_volatile or len(changed) > len(self.node_set) + SMALL:
            self._build()
            return
        cursor.catch_up()
        self._refresh_nodes(dict.fromkeys(changed))

    def _refresh_nodes(self, changed: Iterable[int]) -> None:
        position_of, fill = self.node_set.position_of, self._fill
        idle, releasing = self._nodes.idle_rows[fill.row], self._nodes.releasing_rows[fill.row]
        base = self._base_view
        for node in changed:
            position = node if position_of is None else position_of.get(node, -1)
            if position < 0:
                continue
            self._outdated.append(position)
            old_base = base[position]
            new_base = base[position] = self._base_of(position, node)
            self.fitting += (new_base != -inf) - (old_base != -inf)
            fill.put(position, idle[node] + releasing[node])
