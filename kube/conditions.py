"""Conditions of our own objects: brought up to date as a whole list, without touching anybody else's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kube.objects.meta import Condition, as_body
from kube.times import format_time


@dataclass(frozen=True, slots=True)
class Said:
    """What a condition should say; `generation` is that of the object it speaks of, 0 for none."""

    status: str
    reason: str
    message: str
    generation: int = 0


def merged_conditions(
    stored: Iterable[Condition], wanted: Mapping[str, Said], now: datetime
) -> list[dict[str, Any]] | None:
    """Return the whole list with ours brought up to date, or None when nothing differs.

    Parameters
    ----------
    stored : what the object says now; conditions of other types are kept as they are
    wanted : type -> what it should say
    now : time of the change; a condition whose status stays keeps its own time
    """
    stored = tuple(stored)
    by_type = {condition.type: condition for condition in stored}
    if all(kind in by_type and _said(by_type[kind]) == said for kind, said in wanted.items()):
        return None
    others = [
        {"reason": "", "message": "", **as_body(condition)}
        for condition in stored
        if condition.type not in wanted
    ]
    return others + [_body(by_type.get(kind), kind, said, now) for kind, said in wanted.items()]


def _said(condition: Condition) -> Said:
    return Said(
        condition.status, condition.reason, condition.message, condition.observed_generation
    )


def _body(before: Condition | None, kind: str, said: Said, now: datetime) -> dict[str, Any]:
    since = now
    if before is not None and before.status == said.status and before.last_transition_time:
        since = before.last_transition_time
    body: dict[str, Any] = {
        "type": kind,
        "status": said.status,
        "reason": said.reason,
        "message": said.message,
        "lastTransitionTime": format_time(since),
    }
    return {**body, "observedGeneration": said.generation} if said.generation else body
