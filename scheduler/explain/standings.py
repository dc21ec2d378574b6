"""The standing of each waiting pod group after a cycle: the code of its reason and its place in the order.

The order is that in which allocate tried the pod groups. Only the first thousand get a place: whenever a pod
group starts, all places behind it change and would have to be written.
"""

from __future__ import annotations

from collections.abc import Iterable

from queues.workloads.reasons import Standing
from scheduler.core.decisions import Nominate
from scheduler.core.session.session import Session
from scheduler.explain.codes import Cause, waits_for_room
from scheduler.explain.verdicts import GroupVerdict

MAX_RANKED = 1_000


def standings(session: Session, verdicts: Iterable[GroupVerdict]) -> dict[str, Standing]:
    """Return the standings of all pod groups (`namespace/name`) that were tried and still wait."""
    causes = {
        f"{verdict.namespace}/{verdict.name}": verdict.cause
        for verdict in verdicts
        if verdict.cause is not None
    }
    causes |= {key: cause for key, cause in _nominated(session) if key not in causes}
    places = _places(session, causes)
    return {
        key: Standing(code=cause.code, text=cause.text, position=places.get(key))
        for key, cause in causes.items()
    }


def _nominated(session: Session) -> Iterable[tuple[str, Cause]]:
    """Return the groups whose pods are all nominated, with the cause."""
    nominated = {
        (decision.pod_group_namespace, decision.pod_group)
        for decision in session.decisions
        if isinstance(decision, Nominate) and not decision.is_moved_victim
    }
    if not nominated:
        return
    for group, pod_group in enumerate(session.state.pod_groups.inputs):
        if (pod_group.namespace, pod_group.name) in nominated:
            cause = waits_for_room(session, group)
            if cause is not None:
                yield f"{pod_group.namespace}/{pod_group.name}", cause


def _places(session: Session, waiting: Iterable[str]) -> dict[str, int]:
    names, known = session.state.pod_groups.name, set(waiting)
    keys = (names(group) for group in session.turned_away)
    in_order = (key for key in keys if key in known)
    return {key: place for place, key in zip(range(1, MAX_RANKED + 1), in_order, strict=False)}
