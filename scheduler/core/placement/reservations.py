"""Room that is kept for pod groups at the head of the order until they can start.

A pod group that does not fit now gets a reservation if it will fit for certain: workloads that have declared how long they run
at most end by then, and what they free, with what is free already, is enough. Until that moment the room is kept: whoever comes later in
the order may take of it only what is not needed at the moment, or declares to have ended before it.

Reservations are computed anew in every cycle. A later one counts those before it, as if their pod groups stayed for ever. So for a
task that ends at a time, the room that is kept on a node is the most that any reservation before that time needs beyond what is freed until
then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from math import inf

from scheduler.core.cluster.status import ACTIVE_ALLOCATED, NOMINATED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement

ALLOCATE = ActionName.ALLOCATE
#: So many pod groups are tried for each reservation that may be made.
TRIES_EACH = 2
#: Stands for the end of a workload in a trial; nobody is evicted.
_ENDS = EvictReason(action=ALLOCATE)

#: (node, row of the resource axis) -> amount
Cells = Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Where and when a pod group will start at the latest.

    Attributes
    ----------
    until : moment of the start, if nobody ends before his time
    nodes : task -> node
    needs : what it takes there
    frees : what ends by then frees, on all nodes
    awaited : pod groups that must end, the last one last
    """

    pod_group: int
    until: float
    nodes: Mapping[int, int]
    needs: Cells
    frees: Cells
    awaited: tuple[int, ...]


class Reservations:
    """The reservations of a session; attached to it if the shard keeps room.

    Attributes
    ----------
    made : by the moment of the start
    kept_from : pod groups that would fit, were no room kept
    """

    def __init__(self, session: Session, most: int) -> None:
        self._session = session
        self._state = session.state
        self._most = most
        self._tries_left = most * TRIES_EACH
        self.made: list[Reservation] = []
        self.kept_from: set[int] = set()
        #: For each number of reservations, the first by moment: what is kept by all of them together.
        self._kept: list[Cells] = [{}]
        #: How many reservations the arrays of the nodes account for.
        self._level = 0

    @classmethod
    def of(cls, session: Session) -> Reservations | None:
        """Return the session's reservations; None if the shard keeps no room."""
        most = session.hooks.reservations
        if not most:
            return None
        return session.attached(cls) or session.attach(cls(session, most))

    def reservation_of(self, pod_group: int) -> Reservation | None:
        """Return the reservation of a pod group, None if it has none."""
        return next((each for each in self.made if each.pod_group == pod_group), None)

    # ---------------------------------------------------------------------------------- in use

    @contextmanager
    def opened_to(self, view: GangView) -> Iterator[None]:
        """Let a pod group use the room that it may use, and keep the rest again afterwards.

        The reservation of the pod group itself is given up, and made again if it still does not fit.
        """
        own = self.reservation_of(view.pod_group)
        pending = self._state.pod_groups.pending
        before = pending[view.pod_group]
        if own is not None:
            self._replace([each for each in self.made if each is not own])
        self._apply(self._count_before(end_of(self._session, view.pod_group, self._state.now)))
        try:
            yield
        finally:
            if own is not None and pending[view.pod_group] == before:
                self._replace([*self.made, own])
            self._apply(len(self.made))

    def refused(self, placer: Placer, view: GangView) -> None:
        """Keep room for a pod group that did not fit, or note that room is kept from it."""
        if self.reservation_of(view.pod_group) is not None:
            return
        if self.made and self._would_fit_otherwise(placer, view):
            self.kept_from.add(view.pod_group)
        if len(self.made) < self._most and self._tries_left:
            self._tries_left -= 1
            self._apply(0)
            reservation = self._find(placer, view)
            self._replace(self.made if reservation is None else [*self.made, reservation])
            self._apply(len(self.made))

    def _count_before(self, end: float) -> int:
        return sum(each.until < end for each in self.made)

    def _would_fit_otherwise(self, placer: Placer, view: GangView) -> bool:
        self._apply(0)
        statement = Statement(self._session, ALLOCATE)
        chunk = view.next_chunk(include_evicted=False)
        fits = placer.place(statement, view, chunk, self._session.all_nodes, nominate_only=True)
        statement.discard()
        self._apply(len(self.made))
        return fits

    # ------------------------------------------------------------------------------ bookkeeping

    def _replace(self, reservations: Sequence[Reservation]) -> None:
        """Set the reservations, and compute what is kept for the first of them, the first two, and so on."""
        self._apply(0)
        self.made = sorted(reservations, key=lambda each: (each.until, each.pod_group))
        needed: dict[tuple[int, int], float] = defaultdict(float)
        kept: dict[tuple[int, int], float] = {}
        self._kept = [{}]
        for reservation in self.made:
            for cell, amount in reservation.needs.items():
                needed[cell] += amount
            for cell, amount in needed.items():
                lacking = amount - reservation.frees.get(cell, 0.0)
                if lacking > kept.get(cell, 0.0):
                    kept[cell] = lacking
            self._kept.append(dict(kept))

    def _apply(self, level: int) -> None:
        """Take what the first `level` reservations keep out of the room of the nodes, instead of what is out now."""
        if level == self._level:
            return
        releasing, touched = self._state.nodes.releasing_rows, self._state.nodes.touched
        for sign, cells in ((1.0, self._kept[self._level]), (-1.0, self._kept[level])):
            for (node, row), amount in cells.items():
                releasing[row][node] += sign * amount
                touched.append(node)
        self._level = level

    # -------------------------------------------------------------------------------- searching

    def _find(self, placer: Placer, view: GangView) -> Reservation | None:
        """Return the reservation with the earliest moment; None if no declared end lets the pod group fit."""
        chunk = view.next_chunk(include_evicted=False)
        classes = [self._state.tasks.task_class[task] for task in chunk]
        # Which devices and claims will be free cannot be told from amounts.
        if any(each.is_shared or each.is_dra for each in classes):
            return None
        endings = self._endings(view.pod_group)
        if not endings or self._place_after(placer, view, chunk, endings) is None:
            return None
        first = bisect_left(
            range(1, len(endings) + 1),
            True,
            key=lambda count: self._place_after(placer, view, chunk, endings[:count]) is not None,
        )
        return self._place_after(placer, view, chunk, endings[: first + 1])

    def _endings(self, pod_group: int) -> list[tuple[float, int, list[int]]]:
        """Return the ends that other pod groups have declared, each with its tasks, sorted."""
        groups, tasks = self._state.pod_groups, self._state.tasks
        latest = self._state.now + self._session.hooks.reservation_horizon_s
        endings = []
        for other, active in enumerate(groups.active_allocated):
            if not active or other == pod_group:
                continue
            end = end_of(self._session, other, inf)
            if end == inf or end > latest:
                continue
            present = [
                task
                for task in groups.tasks_of(other)
                if ACTIVE_ALLOCATED[tasks.status[task]]
                and tasks.status[task] != NOMINATED
                and tasks.node[task] != NOWHERE
            ]
            if present:
                endings.append((end, other, present))
        return sorted(endings)

    def _place_after(
        self,
        placer: Placer,
        view: GangView,
        chunk: Sequence[int],
        endings: Sequence[tuple[float, int, list[int]]],
    ) -> Reservation | None:
        """Return where a pod group would start once some others have ended; None if it would not fit."""
        session, tasks = self._session, self._state.tasks
        statement = Statement(session, ALLOCATE)
        for earlier in self.made:
            for task, node in earlier.nodes.items():
                statement.nominate(task, node)
        frees: dict[tuple[int, int], float] = defaultdict(float)
        for _, _, present in endings:
            for task in present:
                self._add(frees, task, tasks.node[task])
                statement.evict(task, _ENDS)
        reservation = None
        if placer.place(statement, view, chunk, session.all_nodes, nominate_only=True):
            nodes = {task: tasks.node[task] for task in chunk}
            occupied = set(nodes.values())
            needs: dict[tuple[int, int], float] = defaultdict(float)
            for task, node in nodes.items():
                self._add(needs, task, node)
            reservation = Reservation(
                pod_group=view.pod_group,
                until=max(endings[-1][0], self._state.now),
                nodes=nodes,
                needs=needs,
                frees=frees,
                awaited=tuple(
                    other
                    for _, other, present in endings
                    if any(tasks.node[task] in occupied for task in present)
                ),
            )
        statement.discard()
        return reservation

    def _add(self, cells: dict[tuple[int, int], float], task: int, node: int) -> None:
        for row, amount in self._state.charge_amounts(task, node):
            cells[node, row] += amount


def awaited_by_others(session: Session, pod_group: int) -> frozenset[int]:
    """Return the pod groups whose end a reservation of another pod group counts on."""
    reservations = session.attached(Reservations)
    if reservations is None:
        return frozenset()
    return frozenset(
        awaited
        for each in reservations.made
        if each.pod_group != pod_group
        for awaited in each.awaited
    )


def opened_to(session: Session, view: GangView) -> AbstractContextManager[None]:
    """Let a pod group use the room that it may use; does nothing where no room is kept."""
    reservations = session.attached(Reservations)
    return nullcontext() if reservations is None else reservations.opened_to(view)


def end_of(session: Session, pod_group: int, unstarted: float) -> float:
    """Return the moment by which a pod group must have ended; infinity if it has declared no run time.

    Parameters
    ----------
    unstarted : when it starts, if it does not run yet
    """
    groups = session.state.pod_groups
    declared = groups.inputs[pod_group].max_run_time_s
    if declared is None:
        return inf
    if not groups.active_allocated[pod_group]:
        return unstarted + declared
    known = groups.inputs[pod_group].ends_by
    if known is not None:
        return known
    now = session.state.now
    return now + declared if groups.last_start[pod_group] == now else inf
