"""What no set of victims can give: conditions that refuse a search or a trial without running it.

Each bound is necessary for success, so refusing by it never changes what is decided; it only saves
trials that were bound to fail. They hold for tasks that take whole devices and are passed over
whenever the figures would not be exact (shared devices, device claims).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from scheduler.core.cluster.constraints import PodTerm
from scheduler.core.cluster.podgroups import TreeGroup
from scheduler.core.fairshare.division import Floats
from scheduler.core.session.session import Session
from scheduler.core.solver.demand import Demand, whole_units
from scheduler.core.solver.filters import DomainGpusFilter
from scheduler.core.solver.victims import Batch


class PlacesBound:
    """Counts how many equal whole-device tasks fit if given victims are gone and nobody returns."""

    def __init__(self, session: Session, demand: Demand, room: Floats) -> None:
        self._tasks = session.state.tasks
        self._room = room
        self._unit = demand.unit if not _has_shared_devices(session) else 0.0
        self._wanted = len(demand.tasks)
        if self._unit:
            self._base = int(np.maximum(np.floor((room + 1e-6) / self._unit), 0).sum())

    def allows(self, victims: Iterable[int]) -> bool:
        """Tell whether evicting these (besides settled victims) could make room for all tasks."""
        if not self._unit:
            return True
        node_of, accepted = self._tasks.node, self._tasks.accepted
        more: dict[int, float] = {}
        for task in victims:
            node = node_of[task]
            if node >= 0:
                more[node] = more.get(node, 0.0) + accepted[task][2]
        places = self._base
        for node, freed in more.items():
            old = float(self._room[node])
            places += whole_units(old + freed, self._unit) - whole_units(old, self._unit)
        return places >= self._wanted


def is_hopeless(
    session: Session, demand: Demand, room: Floats, batches: Sequence[Batch], takeable: float
) -> bool:
    """Tell whether not even all victims together could make room for a demand.

    Parameters
    ----------
    demand : the whole chunk
    room : shape (nodes,); GPUs idle or being freed
    batches : every batch that could be taken
    takeable : GPUs that the rules of the action let go at most (exclusive), inf if not known
    """
    if not demand.unit or _has_shared_devices(session):
        return False
    most = room.copy()
    for batch in batches:
        for node, gpus in zip(batch.nodes, batch.gpus, strict=True):
            if node >= 0:
                most[node] += gpus
    if int(np.maximum(np.floor((most + 1e-6) / demand.unit), 0).sum()) < len(demand.tasks):
        return True
    if demand.total_gpus - float(np.maximum(room, 0).sum()) >= takeable - 1e-9:
        return True
    domains = DomainGpusFilter.make(session, demand, most)
    if domains is not None and not domains.passes():
        return True
    return _needs_more_domains(session, demand, most)


def _needs_more_domains(session: Session, demand: Demand, most: Floats) -> bool:
    """Tasks that keep away from each other: is there a domain with room for each of them."""
    klass = session.state.tasks.klass[demand.tasks[0]]
    if any(session.state.tasks.klass[task] is not klass for task in demand.tasks):
        return False
    labels = session.state.tasks.inputs[demand.tasks[0]].labels
    usable = np.flatnonzero(most + 1e-6 >= demand.unit).tolist()
    for term in klass.constraints.pod_anti_affinity:
        if not _matches_itself(term, labels):
            continue
        values = [session.state.nodes.inputs[node].labels.get(term.topology_key) for node in usable]
        if None not in values and len(set(values)) < len(demand.tasks):
            return True
    return False


def _matches_itself(term: PodTerm, labels: object) -> bool:
    """Tell whether a task with these labels is one its own term keeps away; False if unsure."""
    selector = term.selector
    if term.namespaces or term.namespace_selector or selector.nothing:
        return False
    if not isinstance(labels, dict) or not selector.expressions:
        return False
    return all(
        one.operator == "In" and labels.get(one.key) in one.values for one in selector.expressions
    )


def has_topology_wish(group: TreeGroup) -> bool:
    """Tell whether any member of a tree is confined to domains."""
    if group.topology is not None and group.topology.topology:
        return True
    return any(
        has_topology_wish(member)
        if isinstance(member, TreeGroup)
        else member.topology is not None and bool(member.topology.topology)
        for member in group.members
    )


def _has_shared_devices(session: Session) -> bool:
    return any(session.state.nodes.groups)
