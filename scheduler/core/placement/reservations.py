"""Room that is kept for pod groups at the head of the order until they can start.

A pod group that does not fit now gets a reservation if it is certain to fit later: if running workloads declare how
long they run at most, and what they will have released by some moment is enough together with what is free already.
Its room is kept until that moment. A pod group later in the order may take only what the reservation does not need,
unless its own declared run time ends before that moment.

Reservations are computed anew in every cycle. A later reservation assumes that the pod groups of the earlier ones
start and never end. So a task that will end at some moment must leave alone, on each node, the largest amount that
any reservation before that moment needs beyond what is released until then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from math import inf

from scheduler.core.cluster.status import ACTIVE_ALLOCATED, NOMINATED
from scheduler.core.cluster.tasks import NOWHERE
from scheduler.core.decisions import ActionName, EvictReason
from scheduler.core.placement.place import Placer
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement

ALLOCATE = ActionName.ALLOCATE
#: The search for reservations ends after this many pod groups per allowed reservation, to bound its cost.
TRIES_PER_RESERVATION = 2
#: A trial represents the end of a workload as an eviction, which needs a reason; nothing is really evicted.
_SIMULATED_END = EvictReason(action=ALLOCATE)

#: (node, row of the resource axis) -> amount in the unit of the row
NodeAmounts = Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Where and when a pod group will start at the latest.

    Attributes
    ----------
    starts_by : the latest moment of the start; it is earlier if workloads end before their declared ends
    nodes : task -> node
    requests : what its tasks request on those nodes
    releases : what other tasks release by `starts_by`, on all nodes
    awaited_pod_groups : the pod groups on those nodes that must end first, in the order of their ends
    """

    pod_group: int
    starts_by: float
    nodes: Mapping[int, int]
    requests: NodeAmounts
    releases: NodeAmounts
    awaited_pod_groups: tuple[int, ...]


class Reservations:
    """The reservations of a session; attached to it if the shard keeps room.

    Attributes
    ----------
    entries : the reservations, sorted by the moment of the start
    blocked_pod_groups : pod groups that would fit if no room were kept
    """

    def __init__(self, session: Session, max_count: int) -> None:
        self._session = session
        self._state = session.state
        self._max_count = max_count
        self._tries_left = max_count * TRIES_PER_RESERVATION
        self.entries: list[Reservation] = []
        self.blocked_pod_groups: set[int] = set()
        #: Entry `n` holds what the first `n` reservations keep together.
        self._kept_amounts: list[NodeAmounts] = [{}]
        #: How many reservations, counted from the first, the arrays of the nodes account for.
        self._applied_count = 0

    @classmethod
    def of(cls, session: Session) -> Reservations | None:
        """Return the session's reservations; None if the shard keeps no room."""
        max_count = session.hooks.reservations
        if not max_count:
            return None
        return session.attached(cls) or session.attach(cls(session, max_count))

    def reservation_of(self, pod_group: int) -> Reservation | None:
        """Return the reservation of a pod group, None if it has none."""
        return next((entry for entry in self.entries if entry.pod_group == pod_group), None)

    # ------------------------------------------------------------------- use of the room by others

    @contextmanager
    def room_available_to(self, view: GangView) -> Iterator[None]:
        """Let a pod group use the kept room that it may use; keep what is left of it again afterwards.

        A reservation of the pod group itself is removed, and restored if none of its pending tasks were placed.
        """
        own_reservation = self.reservation_of(view.pod_group)
        pending = self._state.pod_groups.pending
        pending_before = pending[view.pod_group]
        if own_reservation is not None:
            self._replace([entry for entry in self.entries if entry is not own_reservation])
        self._apply(self._count_before(end_of(self._session, view.pod_group, self._state.now)))
        try:
            yield
        finally:
            if own_reservation is not None and pending[view.pod_group] == pending_before:
                self._replace([*self.entries, own_reservation])
            self._apply(len(self.entries))

    def handle_unplaced(self, placer: Placer, view: GangView) -> None:
        """Keep room for a pod group that did not fit, or note that room is kept from it."""
        if self.reservation_of(view.pod_group) is not None:
            return
        if self.entries and self._would_fit_without_reservations(placer, view):
            self.blocked_pod_groups.add(view.pod_group)
        if len(self.entries) < self._max_count and self._tries_left:
            self._tries_left -= 1
            self._apply(0)
            reservation = self._find(placer, view)
            self._replace(self.entries if reservation is None else [*self.entries, reservation])
            self._apply(len(self.entries))

    def _count_before(self, end: float) -> int:
        return sum(entry.starts_by < end for entry in self.entries)

    def _would_fit_without_reservations(self, placer: Placer, view: GangView) -> bool:
        self._apply(0)
        statement = Statement(self._session, ALLOCATE)
        chunk = view.next_chunk(include_evicted=False)
        fits = placer.place(statement, view, chunk, self._session.all_nodes, nominate_only=True)
        statement.discard()
        self._apply(len(self.entries))
        return fits

    # -------------------------------------------------------------------- amounts that are kept

    def _replace(self, reservations: Sequence[Reservation]) -> None:
        """Set the reservations, and compute what the first one keeps, the first two, and so on."""
        self._apply(0)
        self.entries = sorted(reservations, key=lambda entry: (entry.starts_by, entry.pod_group))
        total_requests: dict[tuple[int, int], float] = defaultdict(float)
        kept_amounts: dict[tuple[int, int], float] = {}
        self._kept_amounts = [{}]
        for reservation in self.entries:
            for node_and_row, amount in reservation.requests.items():
                total_requests[node_and_row] += amount
            for node_and_row, amount in total_requests.items():
                shortfall = amount - reservation.releases.get(node_and_row, 0.0)
                if shortfall > kept_amounts.get(node_and_row, 0.0):
                    kept_amounts[node_and_row] = shortfall
            self._kept_amounts.append(dict(kept_amounts))

    def _apply(self, count: int) -> None:
        """Make the arrays of the nodes account for the first `count` reservations, and for no others."""
        if count == self._applied_count:
            return
        releasing, touched = self._state.nodes.releasing_rows, self._state.nodes.touched
        current, new = self._kept_amounts[self._applied_count], self._kept_amounts[count]
        for sign, amounts in ((1.0, current), (-1.0, new)):
            for (node, row), amount in amounts.items():
                releasing[row][node] += sign * amount
                touched.append(node)
        self._applied_count = count

    # ------------------------------------------------------------- search for a new reservation

    def _find(self, placer: Placer, view: GangView) -> Reservation | None:
        """Return the reservation with the earliest moment; None if no declared end lets the pod group fit."""
        chunk = view.next_chunk(include_evicted=False)
        classes = [self._state.tasks.task_class[task] for task in chunk]
        # Which devices and claims will be free cannot be told from amounts.
        if any(task_class.is_shared or task_class.is_dra for task_class in classes):
            return None
        endings = self._endings(view.pod_group)

        @cache
        def place_after(count: int) -> Reservation | None:
            return self._place_after(placer, view, chunk, endings[:count])

        if not endings or place_after(len(endings)) is None:
            return None
        counts = range(1, len(endings) + 1)
        first_enough = bisect_left(counts, True, key=lambda count: place_after(count) is not None)
        return place_after(counts[first_enough])

    def _endings(self, pod_group: int) -> list[tuple[float, int, list[int]]]:
        """Return (end, pod group, its tasks on nodes) of the other pod groups with a known end, sorted by end."""
        pod_groups, tasks = self._state.pod_groups, self._state.tasks
        latest = self._state.now + self._session.hooks.reservation_horizon_s
        endings = []
        for other_pod_group, active_count in enumerate(pod_groups.active_allocated):
            if not active_count or other_pod_group == pod_group:
                continue
            end = end_of(self._session, other_pod_group, inf)
            if end == inf or end > latest:
                continue
            placed_tasks = [
                task
                for task in pod_groups.tasks_of(other_pod_group)
                if ACTIVE_ALLOCATED[tasks.status[task]]
                and tasks.status[task] != NOMINATED
                and tasks.node[task] != NOWHERE
            ]
            if placed_tasks:
                endings.append((end, other_pod_group, placed_tasks))
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
        for reservation in self.entries:
            for task, node in reservation.nodes.items():
                statement.nominate(task, node)
        releases: dict[tuple[int, int], float] = defaultdict(float)
        for _, _, placed_tasks in endings:
            for task in placed_tasks:
                self._add(releases, task, tasks.node[task])
                statement.evict(task, _SIMULATED_END)
        new_reservation = None
        if placer.place(statement, view, chunk, session.all_nodes, nominate_only=True):
            nodes = {task: tasks.node[task] for task in chunk}
            target_nodes = set(nodes.values())
            requests: dict[tuple[int, int], float] = defaultdict(float)
            for task, node in nodes.items():
                self._add(requests, task, node)
            new_reservation = Reservation(
                pod_group=view.pod_group,
                starts_by=max(endings[-1][0], self._state.now),
                nodes=nodes,
                requests=requests,
                releases=releases,
                awaited_pod_groups=tuple(
                    other_pod_group
                    for _, other_pod_group, placed_tasks in endings
                    if any(tasks.node[task] in target_nodes for task in placed_tasks)
                ),
            )
        statement.discard()
        return new_reservation

    def _add(self, amounts: dict[tuple[int, int], float], task: int, node: int) -> None:
        for row, amount in self._state.charge_amounts(task, node):
            amounts[node, row] += amount


def awaited_by_others(session: Session, pod_group: int) -> frozenset[int]:
    """Return the pod groups whose end a reservation of another pod group counts on."""
    reservations = session.attached(Reservations)
    if reservations is None:
        return frozenset()
    return frozenset(
        awaited_pod_group
        for entry in reservations.entries
        if entry.pod_group != pod_group
        for awaited_pod_group in entry.awaited_pod_groups
    )


def room_available_to(session: Session, view: GangView) -> AbstractContextManager[None]:
    """Let a pod group use the kept room that it may use; do nothing where no room is kept."""
    reservations = session.attached(Reservations)
    return nullcontext() if reservations is None else reservations.room_available_to(view)


def end_of(session: Session, pod_group: int, start_if_waiting: float) -> float:
    """Return the moment by which a pod group must have ended.

    It is infinity if the pod group has declared no run time, or if it runs and its start is not known.

    Parameters
    ----------
    start_if_waiting : the moment of the start to assume if the pod group does not run yet
    """
    pod_groups = session.state.pod_groups
    max_run_time_s = pod_groups.inputs[pod_group].max_run_time_s
    if max_run_time_s is None:
        return inf
    if not pod_groups.active_allocated[pod_group]:
        return start_if_waiting + max_run_time_s
    known_end = pod_groups.inputs[pod_group].ends_by
    if known_end is not None:
        return known_end
    now = session.state.now
    return now + max_run_time_s if pod_groups.last_start[pod_group] == now else inf
