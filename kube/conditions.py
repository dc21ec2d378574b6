"""Update our own conditions in the list of an object, and leave those of other writers as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.objects.meta import Condition, as_body
from kube.times import format_time


@dataclass(frozen=True, slots=True)
class ConditionState:
    """What a condition states; `generation` is the object generation it was computed for, 0 for none."""

    status: str
    reason: str
    message: str
    generation: int = 0


def merged_conditions(
    stored: Iterable[Condition], wanted: Mapping[str, ConditionState], now: datetime
) -> list[dict[str, Any]] | None:
    """Return the whole list with ours brought up to date, or None when nothing differs.

    Parameters
    ----------
    stored : the present conditions of the object; those of other types are kept as they are
    wanted : type -> what it should state
    now : time of the change; a condition whose status stays keeps its own time
    """
    stored = tuple(stored)
    by_type = {condition.type: condition for condition in stored}
    if all(kind in by_type and _state_of(by_type[kind]) == state for kind, state in wanted.items()):
        return None
    others = [
        {"reason": "", "message": "", **as_body(condition)}
        for condition in stored
        if condition.type not in wanted
    ]
    return others + [_body(by_type.get(kind), kind, state, now) for kind, state in wanted.items()]


def _state_of(condition: Condition) -> ConditionState:
    return ConditionState(
        condition.status, condition.reason, condition.message, condition.observed_generation
    )


def _body(
    before: Condition | None, kind: str, state: ConditionState, now: datetime
) -> dict[str, Any]:
    since = now
    if before is not None and before.status == state.status and before.last_transition_time:
        since = before.last_transition_time
    body: dict[str, Any] = {
        "type": kind,
        "status": state.status,
        "reason": state.reason,
        "message": state.message,
        "lastTransitionTime": format_time(since),
    }
    return {**body, "observedGeneration": state.generation} if state.generation else body
