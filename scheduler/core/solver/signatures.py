"""Which pod groups are alike in what they demand of nodes, and which of them need no second look.

When a pod group found no victims, another one with the same demands is only worth a search if it is
easier: fewer tasks, or some smaller task. KAI's heuristic is kept as it is: amounts, labels, device
claims and config maps are not part of the signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.core.cluster.constraints import TaskConstraints, Toleration
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session

Vectors = list[tuple[float, ...]]


class FailedSearches:
    """The easiest pod group of each signature that failed, per scope (a queue, or everything)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._failed: dict[tuple[int | None, object], Vectors] = {}
        self._of_constraints: dict[int, object] = {}

    def is_worth_a_search(self, scope: int | None, view: GangView) -> bool:
        """Tell whether a pod group is unlike those that failed, or easier than the easiest."""
        known = self._failed.get((scope, self._signature(view)))
        return known is None or _is_easier(self._vectors(view), known)

    def note_failure(self, scope: int | None, view: GangView) -> None:
        """Remember a pod group that failed, if it is at most as demanding as the one known."""
        key = (scope, self._signature(view))
        mine = self._vectors(view)
        known = self._failed.get(key)
        if known is None or _is_at_most(mine, known):
            self._failed[key] = mine

    # -------------------------------------------------------------------------------- vectors

    def _vectors(self, view: GangView) -> Vectors:
        """Return the amounts of the pending tasks, smallest first."""
        task_class = self._session.state.tasks.task_class
        tasks = [
            task
            for pod_set in self._session.state.pod_groups.pod_sets_of(view.pod_group)
            for task in view.allocatable_tasks(pod_set, include_evicted=False)
        ]
        vectors = []
        for task in tasks:
            one = task_class[task]
            vectors.append((*one.vector.tolist(), float(one.share_memory_mib * one.devices)))
        return sorted(vectors)

    # ------------------------------------------------------------------------------ signatures

    def _signature(self, view: GangView) -> object:
        parts: list[str] = []
        self._collect(view, view.root, (), parts)
        return tuple(sorted(parts))

    def _collect(
        self, view: GangView, group: SubgroupNode, above: tuple[str, ...], parts: list[str]
    ) -> None:
        levels = (*above, _topology_text(group.topology))
        for member in group.members:
            if isinstance(member, SubgroupNode):
                self._collect(view, member, levels, parts)
                continue
            waiting = self._waiting(member.index)
            if waiting:
                own = (*levels, _topology_text(member.topology))
                pods = sorted(self._of_task(task) for task in waiting)
                parts.append("|".join((*own, *pods)))

    def _waiting(self, pod_set: int) -> list[int]:
        status = self._session.state.tasks.status
        return [
            task
            for task in self._session.state.pod_groups.pod_sets.tasks[pod_set]
            if not ACTIVE_ALLOCATED[status[task]]
        ]

    def _of_task(self, task: int) -> str:
        constraints = self._session.state.tasks.task_class[task].constraints
        found = self._of_constraints.get(id(constraints))
        if found is None:
            found = repr(self._relevant(constraints))
            self._of_constraints[id(constraints)] = found
        return str(found)

    def _relevant(self, one: TaskConstraints) -> tuple[Any, ...]:
        volumes = one.volume_claims if self._session.config.schedule_csi_storage else ()
        return (
            volumes,
            one.node_selector,
            one.node_affinity,
            one.pod_affinity,
            one.pod_anti_affinity,
            one.preferred_pod_affinity,
            one.preferred_pod_anti_affinity,
            tuple(sorted(_toleration(each) for each in one.tolerations)),
            one.priority_class,
            one.host_ports,
            one.signature_extra,
        )


def _is_easier(mine: Sequence[tuple[float, ...]], known: Sequence[tuple[float, ...]]) -> bool:
    if len(mine) < len(known):
        return True
    for one, other in zip(mine, known, strict=False):
        if one != other and all(a <= b for a, b in zip(one, other, strict=True)):
            return True
    return False


def _is_at_most(mine: Sequence[tuple[float, ...]], known: Sequence[tuple[float, ...]]) -> bool:
    return len(mine) <= len(known) and all(
        a <= b
        for one, other in zip(mine, known, strict=False)
        for a, b in zip(one, other, strict=True)
    )


def _toleration(one: Toleration) -> tuple[str, str, str, str]:
    return (one.key, str(one.operator), one.value, one.effect)


def _topology_text(wish: Any) -> str:
    if wish is None:
        return ""
    return f"{wish.topology}:{wish.required_level}:{wish.preferred_level}"
