"""Which sets of victims are tried, and in what order.

Both generators let a set of victims grow batch by batch in eviction order. `NodeLocalGreedy` tries, for
every node the newest victim's pod group is on, only what was collected on that node. `MultiNodeGang`
sorts the nodes by what they could offer, least first, and tries longer and longer prefixes of them. Both
begin with the victims that earlier probes have settled on, which are part of every trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from scheduler.core.arrays import GPU_INDEX, Floats
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.filters import LocalGpuBound, VictimFilters
from scheduler.core.solver.usefulness import BatchTest
from scheduler.core.solver.victims import Batch, VictimSequence, joined

NODE_LOCAL_GREEDY = "NodeLocalGreedy"
MULTI_NODE_GANG = "MultiNodeGang"

#: Victims of one trial besides the settled ones.
Potential = tuple[int, ...]


class Probe:
    """What a generator works on: a demand, settled victims, and the sequence of further ones.

    Attributes
    ----------
    settled : victims of earlier probes, part of every trial
    is_useful : which batches may be proposed
    has_skipped : whether a batch was left out by it
    room : shape (nodes,); GPUs idle or being freed, those of settled victims included
    """

    __slots__ = (
        "demand",
        "filters",
        "has_skipped",
        "is_useful",
        "room",
        "sequence",
        "session",
        "settled",
        "settled_set",
    )

    def __init__(
        self,
        session: Session,
        demand: ProbeDemand,
        settled: Sequence[int],
        room: Floats,
        sequence: VictimSequence,
        is_useful: BatchTest | None = None,
    ) -> None:
        self.is_useful = is_useful
        self.has_skipped = False
        self.session = session
        self.demand = demand
        self.settled = tuple(settled)
        self.settled_set = frozenset(settled)
        self.sequence = sequence
        self.room = room.copy()
        tasks = session.state.tasks
        for task in self.settled:
            node = tasks.node[task]
            if node >= 0:
                self.room[node] += tasks.accepted[task][GPU_INDEX]
        self.filters = VictimFilters(session, demand, self.room)

    def growing(self) -> Iterator[Batch | None]:
        """Add batches to the set of victims one by one, and yield each after it was added.

        First comes None for the empty set, if that passes the filters. Batches with settled victims are
        skipped. So are useless ones, unless a later batch of the same pod group is useful: it would break a
        gang of which more is left. Nothing more is taken from a pod group whose next batch is barred.
        """
        skipped: dict[int, list[Batch]] = {}
        barred: set[int] = set()
        if self.filters.passes():
            yield None
        settled, is_useful, filters = self.settled_set, self.is_useful, self.filters
        has_limits = bool(self.session.disruptions)
        for batch in self.sequence.read():
            if settled and not settled.isdisjoint(batch.tasks):
                continue
            if barred and batch.pod_group in barred:
                continue
            if is_useful is not None:
                if not is_useful(batch):
                    self.has_skipped = True
                    skipped.setdefault(batch.pod_group, []).append(batch)
                    continue
                if skipped and batch.pod_group in skipped:
                    batch = joined([*skipped.pop(batch.pod_group), batch])
            if has_limits and self._is_barred(batch):
                barred.add(batch.pod_group)
                continue
            if not filters.has_passed:
                filters.add(batch.nodes, batch.gpus)
            yield batch

    def _is_barred(self, batch: Batch) -> bool:
        """Return whether used-up disruption limits allow no eviction of a batch; note those of useful ones."""
        ledger = self.session.disruptions
        exhausted = ledger.exhausted(batch.tasks)
        if exhausted and self.is_useful is not None:
            ledger.in_the_way |= exhausted
        return bool(exhausted)


def node_local_greedy(probe: Probe) -> Iterator[Potential]:
    """Yield sets of victims that share a node with the newest victim.

    Notes
    -----
    A pod group with any victim on the node contributes all its victims collected so far, wherever they
    are.
    """
    tasks_of: dict[int, list[int]] = {}
    groups_on: dict[int, dict[int, None]] = {}
    bound = LocalGpuBound.make(probe.session, probe.demand, probe.room)
    filters = probe.filters
    for batch in probe.growing():
        if batch is None:
            if probe.settled:
                yield ()
            continue
        tasks_of.setdefault(batch.pod_group, []).extend(batch.tasks)
        for node in batch.nodes:
            groups_on.setdefault(node, {})[batch.pod_group] = None
        if bound is not None:
            bound.add(batch)
        if not filters.has_passed and not filters.passes():
            continue
        yielded: set[Potential] = set()
        for node in _nodes_of(probe.session, batch.pod_group):
            if bound is not None and not bound.may_fit(node):
                filters.rejected += 1
                continue
            potential = tuple(
                task for pod_group in groups_on.get(node, ()) for task in tasks_of[pod_group]
            )
            if potential and potential not in yielded:
                yielded.add(potential)
                yield potential


def multi_node_gang(probe: Probe) -> Iterator[Potential]:
    """Yield sets of victims from nodes that together offer enough GPUs, the nodes with least first.

    Notes
    -----
    The first prefix of nodes covers the demand that nodes without victims leave open; it then grows
    by 1, 2, 4 ... nodes. Picking a node takes every batch with a task on it, entirely. A batch of several
    tasks takes the earlier ones of its pod group with it: alone it would leave a gang below its minimum.
    """
    collected = _Collected(probe)
    for batch in probe.growing():
        if batch is None:
            if probe.settled:
                yield ()
            continue
        collected.add(batch)
        if probe.filters.has_passed or probe.filters.passes():
            yield from collected.prefixes()


class _Collected:
    """The batches collected so far, by node."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._batches: list[Batch] = []
        #: Node -> numbers of the collected batches with victims on it.
        self._on_node: dict[int, list[int]] = {}
        #: pod group that loses its tasks in several batches -> their numbers
        self._of_pod_group: dict[int, list[int]] = {}
        #: Node -> GPUs that are free with the collected victims gone.
        self._capacity: dict[int, float] = {}
        self._smallest = probe.demand.gpus[-1]
        in_play = probe.room > 0 if probe.demand.wants_gpu else np.ones(len(probe.room), bool)
        for task in probe.settled:
            in_play[probe.session.state.tasks.node[task]] = True
        self._in_play = in_play
        self._baseline = float(probe.room[in_play].sum())

    def add(self, batch: Batch) -> None:
        """Add a batch; its nodes no longer count in the baseline."""
        number = len(self._batches)
        self._batches.append(batch)
        if not batch.is_rest or batch.pod_group in self._of_pod_group:
            self._of_pod_group.setdefault(batch.pod_group, []).append(number)
        for node, gpus in zip(batch.nodes, batch.gpus, strict=True):
            on_node = self._on_node.get(node)
            if on_node is None:
                on_node = self._on_node[node] = []
                self._capacity[node] = float(self._probe.room[node])
                if self._in_play[node]:
                    self._baseline -= float(self._probe.room[node])
            if not on_node or on_node[-1] != number:
                on_node.append(number)
            self._capacity[node] += gpus

    def prefixes(self) -> Iterator[Potential]:
        """Yield the victims of longer and longer prefixes of the nodes, those with least first."""
        nodes = [
            node
            for node, capacity in self._capacity.items()
            if self._smallest <= 0 or capacity >= self._smallest - 1e-9
        ]
        nodes.sort(key=self._capacity.__getitem__)
        count = self._first_prefix(nodes)
        if count is None:
            return
        step = 1
        while True:
            yield self._victims_on(nodes[:count])
            if count >= len(nodes):
                return
            count = min(count + step, len(nodes))
            step *= 2

    def _first_prefix(self, nodes: Sequence[int]) -> int | None:
        """Return how many nodes cover the demand; None if all together do not."""
        need = self._probe.demand.total_gpus - self._baseline
        if need <= 1e-9:
            return 0
        for number, node in enumerate(nodes, start=1):
            need -= self._capacity[node]
            if need <= 1e-9:
                return number
        return None

    def _victims_on(self, nodes: Sequence[int]) -> Potential:
        numbers = {number for node in nodes for number in self._on_node[node]}
        for number in tuple(numbers):
            batch = self._batches[number]
            if len(batch.tasks) > 1 and batch.pod_group in self._of_pod_group:
                earlier = self._of_pod_group[batch.pod_group]
                numbers.update(earlier[: earlier.index(number)])
        return tuple(task for number in sorted(numbers) for task in self._batches[number].tasks)


def _nodes_of(session: Session, pod_group: int) -> list[int]:
    """Return the nodes that tasks of a pod group are on, in order of name."""
    pod_groups, tasks = session.state.pod_groups, session.state.tasks
    first = pod_groups.first_task[pod_group]
    count = pod_groups.task_count[pod_group]
    if count == 1:
        return [tasks.node[first]]
    nodes = {tasks.node[task] for task in range(first, first + count)}
    return sorted(node for node in nodes if node >= 0)


GENERATORS = {
    "sg-nodelocalgreedy": (NODE_LOCAL_GREEDY, node_local_greedy),
    "sg-multinodegang": (MULTI_NODE_GANG, multi_node_gang),
}
