"""Signatures of pod groups, so that a search that failed for one is not repeated for another like it.

When the search for a pod group has failed, another one with the same constraints is worth a search only
if it is easier: fewer tasks, or some smaller task. This is KAI's heuristic: amounts, labels, device claims
and config maps are not part of the signature.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from scheduler.core.cluster.constraints import TaskConstraints, Toleration
from scheduler.core.cluster.inputs import TopologyConstraint
from scheduler.core.cluster.podgroups import SubgroupNode
from scheduler.core.cluster.status import ACTIVE_ALLOCATED
from scheduler.core.session.fit import GroupFit
from scheduler.core.session.gang import GangView
from scheduler.core.session.session import Session

Vectors = list[tuple[float, ...]]


class FailedSearches:
    """The failed searches: of each signature, the easiest pod group; per scope (a queue; None: all queues)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        #: (Scope, signature) -> the amounts of the easiest pod group whose search failed.
        self._failed: dict[tuple[int | None, object], Vectors] = {}
        #: (Scope, signature) -> why the last search failed.
        self._causes: dict[tuple[int | None, object], GroupFit] = {}
        #: `id` of the constraints of a class -> their text in a signature.
        self._constraints_texts: dict[int, str] = {}

    def is_worth_a_search(self, scope: int | None, view: GangView) -> bool:
        """Return whether no pod group with the signature of this one failed, or this one is easier than those."""
        if not self._failed:
            return True
        easiest = self._failed.get((scope, self._signature(view)))
        return easiest is None or _is_easier(self._vectors(view), easiest)

    def cause(self, scope: int | None, view: GangView) -> GroupFit | None:
        """Return why the last search for a pod group with the same signature failed; None if not known."""
        return self._causes.get((scope, self._signature(view))) if self._causes else None

    def note_failure(
        self, scope: int | None, view: GangView, cause: GroupFit | None = None
    ) -> None:
        """Remember a pod group that failed, unless one that asks for less has failed before."""
        key = (scope, self._signature(view))
        if cause is not None:
            self._causes[key] = cause
        vectors = self._vectors(view)
        easiest = self._failed.get(key)
        if easiest is None or _is_at_most(vectors, easiest):
            self._failed[key] = vectors

    # -------------------------------------------------------------------------------- vectors

    def _vectors(self, view: GangView) -> Vectors:
        """Return the amounts of the pending tasks, smallest first."""
        class_of = self._session.state.tasks.task_class
        tasks = [
            task
            for pod_set in self._session.state.pod_groups.pod_sets_of(view.pod_group)
            for task in view.allocatable_tasks(pod_set, include_evicted=False)
        ]
        vectors = []
        for task in tasks:
            task_class = class_of[task]
            shared_memory = float(task_class.share_memory_mib * task_class.devices)
            vectors.append((*task_class.vector.tolist(), shared_memory))
        return sorted(vectors)

    # ------------------------------------------------------------------------------ signatures

    def _signature(self, view: GangView) -> object:
        parts: list[str] = []
        self._collect(view, view.root, (), parts)
        return tuple(sorted(parts))

    def _collect(
        self, view: GangView, subgroup: SubgroupNode, above: tuple[str, ...], parts: list[str]
    ) -> None:
        levels = (*above, _topology_text(subgroup.topology))
        for member in subgroup.members:
            if isinstance(member, SubgroupNode):
                self._collect(view, member, levels, parts)
                continue
            waiting = self._waiting(member.index)
            if waiting:
                topology = _topology_text(member.topology)
                pods = sorted(self._constraints_text(task) for task in waiting)
                parts.append("|".join((*levels, topology, *pods)))

    def _waiting(self, pod_set: int) -> list[int]:
        status = self._session.state.tasks.status
        return [
            task
            for task in self._session.state.pod_groups.pod_sets.tasks[pod_set]
            if not ACTIVE_ALLOCATED[status[task]]
        ]

    def _constraints_text(self, task: int) -> str:
        constraints = self._session.state.tasks.task_class[task].constraints
        text = self._constraints_texts.get(id(constraints))
        if text is None:
            text = self._constraints_texts[id(constraints)] = repr(self._relevant(constraints))
        return text

    def _relevant(self, constraints: TaskConstraints) -> tuple[Any, ...]:
        volumes = constraints.volume_claims if self._session.config.schedule_csi_storage else ()
        return (
            volumes,
            constraints.node_selector,
            constraints.node_affinity,
            constraints.pod_affinity,
            constraints.pod_anti_affinity,
            constraints.preferred_pod_affinity,
            constraints.preferred_pod_anti_affinity,
            tuple(sorted(_toleration(entry) for entry in constraints.tolerations)),
            constraints.priority_class,
            constraints.host_ports,
            constraints.signature_extra,
        )


def _is_easier(vectors: Vectors, failed: Vectors) -> bool:
    """Return whether there are fewer tasks than in the failed search, or some task is smaller."""
    if len(vectors) < len(failed):
        return True
    return any(
        left != right and _all_at_most(left, right)
        for left, right in zip(vectors, failed, strict=False)
    )


def _is_at_most(vectors: Vectors, failed: Vectors) -> bool:
    """Return whether there are no more tasks than in the failed search, and none is larger."""
    return len(vectors) <= len(failed) and all(
        _all_at_most(left, right) for left, right in zip(vectors, failed, strict=False)
    )


def _all_at_most(left: Sequence[float], right: Sequence[float]) -> bool:
    return all(a <= b for a, b in zip(left, right, strict=True))


def _toleration(toleration: Toleration) -> tuple[str, str, str, str]:
    return (toleration.key, str(toleration.operator), toleration.value, toleration.effect)


def _topology_text(topology: TopologyConstraint | None) -> str:
    if topology is None:
        return ""
    return f"{topology.topology}:{topology.required_level}:{topology.preferred_level}"
