"""Update the conditions that a component owns in an object's list; keep all the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.objects.meta import Condition, as_body
from kube.values.times import format_time


@dataclass(frozen=True, slots=True)
class ConditionState:
    """The content of a condition; `generation` is the observed generation of its object, 0 for none."""

    status: str
    reason: str
    message: str
    generation: int = 0


def merged_conditions(
    stored: Iterable[Condition], desired: Mapping[str, ConditionState], now: datetime
) -> list[dict[str, Any]] | None:
    """Return the whole list with the desired conditions updated, or None when nothing differs.

    Parameters
    ----------
    stored : the object's conditions now; those of other types are kept as they are
    desired : condition type -> its new content
    now : transition time of conditions whose status changes; the others keep theirs
    """
    conditions = tuple(stored)
    by_type = {condition.type: condition for condition in conditions}
    if all(
        name in by_type and _state_of(by_type[name]) == state for name, state in desired.items()
    ):
        return None
    # `as_body` leaves out empty texts, but the conditions of some kinds (Config) require both fields.
    unchanged = [
        {"reason": "", "message": "", **as_body(condition)}
        for condition in conditions
        if condition.type not in desired
    ]
    return unchanged + [
        _body(by_type.get(name), name, state, now) for name, state in desired.items()
    ]


def _state_of(condition: Condition) -> ConditionState:
    return ConditionState(
        condition.status, condition.reason, condition.message, condition.observed_generation
    )


def _body(
    before: Condition | None, condition_type: str, state: ConditionState, now: datetime
) -> dict[str, Any]:
    since = now
    if before is not None and before.status == state.status and before.last_transition_time:
        since = before.last_transition_time
    body: dict[str, Any] = {
        "type": condition_type,
        "status": state.status,
        "reason": state.reason,
        "message": state.message,
        "lastTransitionTime": format_time(since),
    }
    return {**body, "observedGeneration": state.generation} if state.generation else body
