"""The standing of each waiting pod group after a cycle: the code of its reason and its position in the order.

The order is that in which allocate tried the pod groups. Only the first `MAX_POSITIONS` get a position: whenever a pod
group starts, all positions behind it change, and each change is a write to the database.
"""

from __future__ import annotations

from collections.abc import Iterable

from queues.workloads.reasons import Standing
from scheduler.core.decisions import Nominate
from scheduler.core.session.session import Session
from scheduler.explain.codes import Cause, waits_for_room
from scheduler.explain.verdicts import GroupVerdict

MAX_POSITIONS = 1_000


def standings(session: Session, verdicts: Iterable[GroupVerdict]) -> dict[str, Standing]:
    """Return the standing of each pod group that still waits after the cycle; the keys are `namespace/name`."""
    causes = {
        f"{verdict.namespace}/{verdict.name}": verdict.cause
        for verdict in verdicts
        if verdict.cause is not None
    }
    causes |= {key: cause for key, cause in _nominated_causes(session) if key not in causes}
    positions = _positions(session, causes)
    return {
        key: Standing(code=cause.code, text=cause.text, position=positions.get(key))
        for key, cause in causes.items()
    }


def _nominated_causes(session: Session) -> Iterable[tuple[str, Cause]]:
    """Return (`namespace/name`, cause) of the pod groups with nominated pods, which wait until their room is free."""
    nominated_names = {
        (decision.pod_group_namespace, decision.pod_group)
        for decision in session.decisions
        if isinstance(decision, Nominate) and not decision.is_moved_victim
    }
    if not nominated_names:
        return
    for pod_group, pod_group_input in enumerate(session.state.pod_groups.inputs):
        if (pod_group_input.namespace, pod_group_input.name) in nominated_names:
            cause = waits_for_room(session, pod_group)
            if cause is not None:
                yield session.state.pod_groups.name(pod_group), cause


def _positions(session: Session, waiting: Iterable[str]) -> dict[str, int]:
    name_of, waiting_keys = session.state.pod_groups.name, set(waiting)
    keys = (name_of(pod_group) for pod_group in session.unplaced_groups)
    ordered_keys = (key for key in keys if key in waiting_keys)
    positions = range(1, MAX_POSITIONS + 1)
    return {key: position for position, key in zip(positions, ordered_keys, strict=False)}
