"""Take back moves of victims whose old places have room for them once everybody in a trial is placed.

In its turn each victim goes to the place that scores best, which may be another one than its own. If those
with later turns leave its own place free, the move was needless: a pod would be deleted and created again.
"""

from __future__ import annotations

from collections.abc import Sequence

from scheduler.core.cluster.status import NOMINATED, RELEASING
from scheduler.core.placement.home import has_room_at_home
from scheduler.core.placement.place import Placer
from scheduler.core.session.nodeset import NodeSet
from scheduler.core.session.session import Session
from scheduler.core.session.statement import Statement
from scheduler.core.solver.bounds import has_topology_constraint


def take_back_moves(session: Session, placer: Placer, statement: Statement, nodes: NodeSet) -> None:
    """Let moved victims stay where they were if there is room: pod group by pod group, then all together.

    Together, because two victims may have taken each other's place.

    Parameters
    ----------
    statement : open; it has evicted the victims and placed everybody
    nodes : where those victims are placed that cannot stay
    """
    moves = _Moves(session, placer, statement, nodes)
    moved_by_group = moves.by_group()
    took_back = True
    while took_back:
        took_back = False
        for tasks in moved_by_group.values():
            if any(has_room_at_home(session, task) for task in tasks):
                took_back = moves.take_back(tasks) or took_back
        moved_by_group = moves.by_group()
    remaining = [task for tasks in moved_by_group.values() for task in tasks]
    if len(remaining) > 1:
        moves.take_back(remaining)


class _Moves:
    """The victims that a statement has moved."""

    def __init__(
        self, session: Session, placer: Placer, statement: Statement, nodes: NodeSet
    ) -> None:
        self._session = session
        self._placer = placer
        self._statement = statement
        self._nodes = nodes

    def by_group(self) -> dict[int, list[int]]:
        """Return the moved victims by pod group."""
        pod_group_of = self._session.state.tasks.pod_group
        moved: dict[int, list[int]] = {}
        for task in self._statement.moved():
            moved.setdefault(pod_group_of[task], []).append(task)
        return moved

    def take_back(self, tasks: Sequence[int]) -> bool:
        """Put tasks back where they were, and the rest anywhere; return whether fewer are moved than before.

        Otherwise everything is left as it was.
        """
        start = self._statement.checkpoint()
        for task in tasks:
            self._statement.unmove(task)
        displaced = [task for task in tasks if not self._put_back(task)]
        if len(displaced) < len(tasks) and all(map(self._place_elsewhere, displaced)):
            return True
        self._statement.rollback(start)
        return False

    def _put_back(self, task: int) -> bool:
        """Let a task stay in its place if that has room; return whether it does."""
        start = self._statement.checkpoint()
        view = self._session.view(self._session.state.tasks.pod_group[task])
        if self._placer.put_back(self._statement, view, task):
            # Still nominated: on its own node, but with other devices or zones, so it would move all the same.
            if self._session.state.tasks.status[task] not in (NOMINATED, RELEASING):
                return True
            self._statement.rollback(start)
        return False

    def _place_elsewhere(self, task: int) -> bool:
        """Find another place for a task; return whether there is one.

        A task that has to be near others of its pod group is not moved alone.
        """
        pod_group = self._session.state.tasks.pod_group[task]
        view = self._session.view(pod_group)
        return not has_topology_constraint(view.root) and self._placer.place(
            self._statement, view, [task], self._nodes, nominate_only=True
        )
