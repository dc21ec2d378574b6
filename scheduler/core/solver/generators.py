"""Which sets of victims are tried, and in what order.

Both generators let a set of victims grow batch by batch in eviction order. `NodeLocalGreedy` tries, for
every node the newest victim's pod group is on, only what was collected on that node. `MultiNodeGang`
sorts the nodes by what they could offer, least first, and tries longer and longer prefixes of them. Both
begin with the victims that earlier probes have settled on, which are part of every trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np

from scheduler.core.arrays import GPU_INDEX, Floats, Ints
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import ProbeDemand
from scheduler.core.solver.filters import VictimFilters
from scheduler.core.solver.slots import LocalGpuBound, columns
from scheduler.core.solver.usefulness import BatchTest
from scheduler.core.solver.victims import Batch, VictimSequence, joined

NODE_LOCAL_GREEDY = "NodeLocalGreedy"
MULTI_NODE_GANG = "MultiNodeGang"

#: So many batches are added to a set of victims one by one before the filters look ahead; most sets pass before.
FEW = 32

#: Victims of one trial besides the settled ones.
VictimSet = tuple[int, ...]


class Probe:
    """What a generator works on: a demand, settled victims, and the sequence of further ones.

    Attributes
    ----------
    settled : victims of earlier probes, part of every trial
    is_useful : whether a batch may be proposed; None: every batch
    has_skipped : whether `is_useful` excluded a batch
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

    def growing(self, bound: LocalGpuBound | None = None) -> Iterator[Sequence[Batch]]:
        """Add batches to the set of victims, and yield those that were added since the last time.

        First comes nothing for the empty set, if that passes the filters. Then each batch comes alone. After some
        batches many come together where no set before the last one is of use: it would not pass the filters, or
        the bound would rule out the node of its newest victim. Sets that are left out count as rejected.

        bound : all batches are added to it too
        """
        filters, proposed = self.filters, self._proposed()
        if filters.passes():
            yield ()
        yield from self._one_by_one(islice(proposed, FEW), bound)
        if not self.session.disruptions:  # reading ahead would note limits that no trial met
            yield from self._until_passing(proposed, bound)
            if bound is not None and filters.has_passed:
                yield from self._until_fitting(proposed, bound)
        yield from self._one_by_one(proposed, bound)

    def _one_by_one(
        self, batches: Iterable[Batch], bound: LocalGpuBound | None
    ) -> Iterator[Sequence[Batch]]:
        filters = self.filters
        for batch in batches:
            if bound is not None:
                bound.add(batch)
            if not filters.has_passed:
                filters.add(batch.nodes, batch.gpus)
            yield (batch,)

    def _until_passing(
        self, proposed: Iterator[Batch], bound: LocalGpuBound | None
    ) -> Iterator[Sequence[Batch]]:
        """Add more and more batches at once until the set passes the filters, if these can look ahead."""
        filters, size = self.filters, FEW
        while not filters.has_passed and filters.can_look_ahead:
            size *= 2
            batches = list(islice(proposed, size))
            if not batches:
                return
            count = filters.add_until_passing(batches)
            if bound is not None:
                for batch in batches[:count]:
                    bound.add(batch)
            yield batches[:count]
            yield from self._one_by_one(batches[count:], bound)

    def _until_fitting(
        self, proposed: Iterator[Batch], bound: LocalGpuBound
    ) -> Iterator[Sequence[Batch]]:
        """Add more and more batches at once up to each whose node the bound does not rule out."""
        size = FEW
        while batches := list(islice(proposed, size)):
            size *= 2
            if not bound.can_look_ahead(batches):
                yield from self._one_by_one(batches, bound)
                continue
            start = 0
            for number in (*bound.add_all(batches), len(batches) - 1):
                if number >= start:
                    self.filters.rejected += number - start
                    yield batches[start : number + 1]
                    start = number + 1

    def _proposed(self) -> Iterator[Batch]:
        """Return the batches that may be proposed, in order.

        Batches with settled victims are skipped. So are useless ones, unless a later batch of the same pod group is
        useful: it would break a gang of which more is left. Nothing more is taken from a pod group whose next
        batch is barred.
        """
        skipped: dict[int, list[Batch]] = {}
        barred: set[int] = set()
        settled, is_useful = self.settled_set, self.is_useful
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
            yield batch

    def _is_barred(self, batch: Batch) -> bool:
        """Return whether used-up disruption limits allow no eviction of a batch; note those of useful ones."""
        ledger = self.session.disruptions
        exhausted = ledger.exhausted(batch.tasks)
        if exhausted and self.is_useful is not None:
            ledger.in_the_way |= exhausted
        return bool(exhausted)


def node_local_greedy(probe: Probe) -> Iterator[VictimSet]:
    """Yield sets of victims that share a node with the newest victim.

    Notes
    -----
    A pod group with any victim on the node contributes all its victims collected so far, wherever they
    are.
    """
    batches_by_node = _BatchesByNode()
    bound = LocalGpuBound.make(probe.session, probe.demand, probe.room)
    filters = probe.filters
    for batches in probe.growing(bound):
        if not batches:
            if probe.settled:
                yield ()
            continue
        for batch in batches:
            batches_by_node.add(batch)
        if not filters.has_passed and not filters.passes():
            continue
        yielded: set[VictimSet] = set()
        for node in _nodes_of(probe.session, batches[-1].pod_group):
            if bound is not None and not bound.may_fit(node):
                filters.rejected += 1
                continue
            victims = batches_by_node.victims_on(node)
            if victims and victims not in yielded:
                yielded.add(victims)
                yield victims


class _BatchesByNode:
    """The batches collected so far, by node."""

    def __init__(self) -> None:
        self._on_node: dict[int, list[Batch]] = {}
        #: Pod group that loses its tasks in several batches -> these batches.
        self._of_pod_group: dict[int, list[Batch]] = {}

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        nodes = batch.nodes if len(batch.nodes) == 1 else dict.fromkeys(batch.nodes)
        for node in nodes:
            on_node = self._on_node.get(node)
            if on_node is None:
                self._on_node[node] = [batch]
            else:
                on_node.append(batch)
        if not batch.is_rest or batch.pod_group in self._of_pod_group:
            self._of_pod_group.setdefault(batch.pod_group, []).append(batch)

    def victims_on(self, node: int) -> VictimSet:
        """Return the victims of all pod groups with a victim on a node, in the order of their first victim there."""
        by_group: dict[int, Sequence[Batch]] = {}
        for batch in self._on_node.get(node, ()):
            by_group.setdefault(batch.pod_group, self._of_pod_group.get(batch.pod_group, (batch,)))
        return tuple(
            task for batches in by_group.values() for batch in batches for task in batch.tasks
        )


def multi_node_gang(probe: Probe) -> Iterator[VictimSet]:
    """Yield sets of victims from nodes that together offer enough GPUs, the nodes with least first.

    Notes
    -----
    The first prefix of nodes covers the demand that nodes without victims leave open; it then grows
    by 1, 2, 4 ... nodes. Picking a node takes every batch with a task on it, entirely. A batch of several
    tasks takes the earlier ones of its pod group with it: alone it would leave a gang below its minimum.
    """
    batches_of_nodes = _BatchesOfNodes(probe)
    for batches in probe.growing():
        if not batches:
            if probe.settled:
                yield ()
            continue
        for batch in batches:
            batches_of_nodes.add(batch)
        if probe.filters.has_passed or probe.filters.passes():
            yield from batches_of_nodes.prefixes()


class _BatchesOfNodes:
    """The batches collected so far, and what each node can offer with them gone."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._batches: list[Batch] = []
        #: Pod group that loses its tasks in several batches -> the numbers of these batches.
        self._of_pod_group: dict[int, list[int]] = {}
        #: How many batches are counted in the attributes below.
        self._counted = 0
        #: Shape (counted victims,): the node of each victim, and the number of its batch.
        self._nodes: Ints = np.zeros(0, dtype=np.int64)
        self._numbers: Ints = np.zeros(0, dtype=np.int64)
        #: By node: GPUs that are free with the counted victims gone.
        self._capacity = probe.room.copy()
        #: Nodes with counted victims, in the order of the first victim of each.
        self._with_victims: dict[int, None] = {}
        self._smallest = probe.demand.gpus[-1]
        in_play = probe.room > 0 if probe.demand.wants_gpu else np.ones(len(probe.room), bool)
        for task in probe.settled:
            in_play[probe.session.state.tasks.node[task]] = True
        self._in_play = in_play
        #: GPUs that nodes without victims offer.
        self._baseline = float(probe.room[in_play].sum())

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        if not batch.is_rest or batch.pod_group in self._of_pod_group:
            self._of_pod_group.setdefault(batch.pod_group, []).append(len(self._batches))
        self._batches.append(batch)

    def prefixes(self) -> Iterator[VictimSet]:
        """Yield the victims of longer and longer prefixes of the nodes, those with least first."""
        self._count()
        capacity = self._capacity.tolist()
        nodes = [
            node
            for node in self._with_victims
            if self._smallest <= 0 or capacity[node] >= self._smallest - 1e-9
        ]
        nodes.sort(key=capacity.__getitem__)
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

    def _count(self) -> None:
        """Count the batches that were added since; their nodes no longer count in the baseline."""
        batches = self._batches[self._counted :]
        nodes, gpus = columns(batches)
        numbers = np.repeat(
            np.arange(self._counted, len(self._batches)), [len(batch.tasks) for batch in batches]
        )
        self._counted = len(self._batches)
        is_somewhere = nodes >= 0
        nodes, gpus, numbers = nodes[is_somewhere], gpus[is_somewhere], numbers[is_somewhere]
        self._nodes = np.concatenate([self._nodes, nodes])
        self._numbers = np.concatenate([self._numbers, numbers])
        np.add.at(self._capacity, nodes, gpus)
        for node in nodes.tolist():
            if node not in self._with_victims:
                self._with_victims[node] = None
                if self._in_play[node]:
                    self._baseline -= float(self._probe.room[node])

    def _first_prefix(self, nodes: Sequence[int]) -> int | None:
        """Return how many nodes cover the demand; None if all together do not."""
        need = self._probe.demand.total_gpus - self._baseline
        if need <= 1e-9:
            return 0
        for number, node in enumerate(nodes, start=1):
            need -= float(self._capacity[node])
            if need <= 1e-9:
                return number
        return None

    def _victims_on(self, nodes: Sequence[int]) -> VictimSet:
        is_chosen = np.zeros(len(self._capacity), dtype=np.bool_)
        is_chosen[list(nodes)] = True
        numbers = set(self._numbers[is_chosen[self._nodes]].tolist())
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
