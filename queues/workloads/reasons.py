"""Why a workload waits: one dominant reason as a code with a text, the same in list, page, REST and events.

`dominant` returns the first reason that applies; reasons that make scheduling impossible come first. The mirror
can see for itself whether the queue, pods or gates block, and whether binds fail. For everything else the
scheduler computes a `Standing` once per cycle (`scheduler.explain.codes`); codes are never parsed from texts.
Codes that KAI has keep KAI's spelling, and the texts are those of the cluster's objects, so that kubectl and the
dashboard agree.

Pure: no Django.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

UNMANAGED = "Unmanaged"
GROUP_INCOMPLETE = "GroupIncomplete"
QUEUE_MISSING = "QueueDoesNotExist"
QUEUE_ORPHAN = "QueueOrphan"
HELD = "Held"
GATED = "Gated"
NEVER_FITS = "NeverFits"
NON_PREEMPTIBLE_OVER_QUOTA = "NonPreemptibleOverQuota"
OVER_LIMIT = "OverLimit"
PREEMPTION_DELAY = "PreemptionDelayNotElapsed"
WAITING_FOR_VICTIMS = "WaitingForVictims"
START_EXPECTED = "StartExpected"
ROOM_KEPT = "RoomKept"
DISRUPTION_BUDGET = "DisruptionBudget"
TOPOLOGY = "TopologyFragmented"
NO_NODE = "NoNodeFits"
DEVICES = "DeviceShortage"
GPU_MODEL = "GpuModelBound"
VOLUME = "VolumeOrClaim"
ORDER_BEHIND = "OrderBehind"
BIND_FAILING = "BindFailing"
NOT_EVALUATED = "NotEvaluated"
# KAI's condition reasons that serve as codes here.
KAI_CODES = frozenset({NON_PREEMPTIBLE_OVER_QUOTA, OVER_LIMIT, PREEMPTION_DELAY, QUEUE_MISSING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason that a workload waits; the code is empty if nothing blocks it."""

    code: str = ""
    text: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Why a pod group waited in the scheduler's last cycle, and its place in the order.

    Attributes
    ----------
    text : empty if the group's own condition has the text
    position : place among the groups that were not placed, 1 is next; None beyond the places that are counted
    """

    code: str
    text: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What the mirror knows about a waiting pod group.

    Attributes
    ----------
    queue_problem : why the scheduler ignores its queue; empty if it does not
    hold : text about the hold by a person; empty without one
    is_backed_off : it requested a single attempt in its node pool and has had it
    conditions : its scheduling conditions, as the mirror stores them, newest last
    pod_reason, pod_message, pod_since : from the oldest pod with an unschedulable condition
    bind_error : the error of a failed bind request or binding, empty if there is none
    standing : None before the scheduler's first cycle, or where KAI schedules
    """

    queue: str
    is_queue_known: bool = True
    queue_problem: str = ""
    hold: str = ""
    is_backed_off: bool = False
    pool: str = ""
    alive: int = 0
    gated: int = 0
    min_member: int = 1
    conditions: Sequence[dict[str, Any]] = field(default_factory=tuple)
    pod_reason: str = ""
    pod_message: str = ""
    pod_since: datetime | None = None
    bind_error: str = ""
    standing: Standing | None = None


def dominant(facts: Facts) -> Reason:
    """Return the first reason that applies."""
    needed = max(1, facts.min_member)
    if facts.alive < needed:
        return Reason(code=GROUP_INCOMPLETE, text=_not_ready(facts))
    if not facts.queue or not facts.is_queue_known:
        return Reason(code=QUEUE_MISSING, text=f"Queue '{facts.queue}' does not exist")
    if facts.queue_problem:
        return Reason(code=QUEUE_ORPHAN, text=f"Queue '{facts.queue}': {facts.queue_problem}")
    if facts.hold:
        return Reason(code=HELD, text=facts.hold)
    if facts.is_backed_off:
        return _backed_off(facts)
    if facts.alive - facts.gated < needed:
        return Reason(code=GATED, text=_not_ready(facts))
    if facts.standing is not None:
        reported = _reported(facts)
        reported_text = "" if reported.code == NOT_EVALUATED else reported.text
        text = facts.standing.text or reported_text
        return Reason(code=facts.standing.code, text=text, since=reported.since)
    if facts.bind_error or facts.pod_reason == "BindingError":
        text = facts.bind_error or facts.pod_message
        return Reason(code=BIND_FAILING, text=text, since=facts.pod_since)
    return _reported(facts)


def _reported(facts: Facts) -> Reason:
    """Return the reason that conditions of the pod group or its pods report."""
    if facts.conditions:
        return _of_condition(facts.conditions[-1])
    if facts.pod_message:
        head = facts.pod_message.partition(":")[0]
        code = head if head in KAI_CODES else NO_NODE
        return Reason(code=code, text=facts.pod_message, since=facts.pod_since)
    return Reason(code=NOT_EVALUATED, text="The scheduler has not looked at it yet")


def _of_condition(condition: dict[str, Any]) -> Reason:
    since = condition.get("since")
    reasons = condition.get("reasons") or []
    code = next(
        (reason["reason"] for reason in reasons if reason.get("reason") in KAI_CODES), NO_NODE
    )
    text = str(condition.get("message") or (reasons[0].get("message", "") if reasons else ""))
    return Reason(code=code, text=text, since=datetime.fromisoformat(since) if since else None)


def _backed_off(facts: Facts) -> Reason:
    """Return the reason of a group whose schedulingBackoff allows no further attempt, with the last reported text."""
    reported = _reported(facts)
    text = (
        f"Not retried on node pool '{facts.pool or 'default'}', because its schedulingBackoff allows one "
        f"attempt. {reported.text}"
    )
    return Reason(code=HELD, text=text, since=reported.since)


def _not_ready(facts: Facts) -> str:
    return (
        "Job is not ready for scheduling."
        f" Waiting for {facts.min_member} pods, currently {facts.alive} exist,"
        f" {facts.gated} are gated"
    )
