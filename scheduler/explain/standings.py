"""Where each waiting pod group stands after a cycle: its code, its place in the order.

Places are those of the turns that allocate really gave, so they show what queues hold by now, and not only
what they held when the cycle began. Only the first thousand are told: whenever somebody starts, all behind
move up, and nobody reads the number of the ten thousandth.
"""

from __future__ import annotations

from collections.abc import Iterable

from queues.workloads.reasons import Standing
from scheduler.core.decisions import Nominate
from scheduler.core.session.session import Session
from scheduler.explain.codes import Cause, waits_for_room
from scheduler.explain.verdicts import GroupVerdict

TOLD = 1_000


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
    """Return the groups of which every pod has a place that is still being freed."""
    asked = {
        (one.pod_group_namespace, one.pod_group)
        for one in session.decisions
        if isinstance(one, Nominate) and not one.is_moved_victim
    }
    if not asked:
        return
    for group, given in enumerate(session.state.pod_groups.inputs):
        if (given.namespace, given.name) in asked:
            cause = waits_for_room(session, group)
            if cause is not None:
                yield f"{given.namespace}/{given.name}", cause


def _places(session: Session, waiting: Iterable[str]) -> dict[str, int]:
    names, known = session.state.pod_groups.name, set(waiting)
    keys = (names(group) for group in session.turned_away)
    in_order = (key for key in keys if key in known)
    return {key: place for place, key in zip(range(1, TOLD + 1), in_order, strict=False)}
