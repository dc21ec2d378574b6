"""Why a workload waits: one dominant reason as a code with a text, the same in list, page, REST and events.

The first that applies wins, from "nobody could schedule this" to "the scheduler tried and said why". What
the mirror knows by itself (queue, gates, missing pods, failing binds) is judged here; everything else the
scheduler judges from its own evidence once per cycle (`scheduler.explain.codes`) and hands over as a
`Standing`. Nobody reads a code out of a text. Codes that KAI has keep KAI's spelling; the texts are those
on the cluster's own objects, so that kubectl and the dashboard never disagree.

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
TOPOLOGY = "TopologyFragmented"
NO_NODE = "NoNodeFits"
DEVICES = "DeviceShortage"
VOLUME = "VolumeOrClaim"
ORDER_BEHIND = "OrderBehind"
BIND_FAILING = "BindFailing"
NOT_EVALUATED = "NotEvaluated"
#: Carried by the events that tell why something waits, for tools that want the code and not the text.
# Reasons of the scheduler's conditions that are codes already.
KAI_CODES = frozenset({NON_PREEMPTIBLE_OVER_QUOTA, OVER_LIMIT, PREEMPTION_DELAY, QUEUE_MISSING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The dominant reason; an empty code means that nothing blocks."""

    code: str = ""
    text: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What the last cycle says of a pod group that waits.

    Attributes
    ----------
    text : empty if the group's own condition says it
    position : place among those that found no room, 1 is next; None beyond those that are counted
    """

    code: str
    text: str = ""
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a waiting pod group.

    Attributes
    ----------
    queue_problem : why the scheduler drops its queue, empty if it does not
    is_backed_off : it asked to be tried once on its node pool, and was
    conditions : its scheduling conditions, as the mirror keeps them, newest last
    pod_reason, pod_message, pod_since : of the oldest pod that says why it waits
    bind_error : the error of a failed bind request or binding, if there is one
    standing : the scheduler's own word; None before its first cycle, or where KAI schedules
    """

    queue: str
    is_queue_known: bool = True
    queue_problem: str = ""
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
    if facts.is_backed_off:
        return _held(facts)
    if facts.alive - facts.gated < needed:
        return Reason(code=GATED, text=_not_ready(facts))
    if facts.standing is not None:
        said = _said(facts)
        told = "" if said.code == NOT_EVALUATED else said.text
        text = facts.standing.text or told
        return Reason(code=facts.standing.code, text=text, since=said.since)
    if facts.bind_error or facts.pod_reason == "BindingError":
        text = facts.bind_error or facts.pod_message
        return Reason(code=BIND_FAILING, text=text, since=facts.pod_since)
    return _said(facts)


def _said(facts: Facts) -> Reason:
    """Return what the objects of the cluster say."""
    if facts.conditions:
        return _of_condition(facts.conditions[-1])
    if facts.pod_message:
        head = facts.pod_message.partition(":")[0]
        code = head if head in KAI_CODES else NO_NODE
        return Reason(code=code, text=facts.pod_message, since=facts.pod_since)
    return Reason(code=NOT_EVALUATED, text="The scheduler has not looked at it yet")


def _of_condition(condition: dict[str, Any]) -> Reason:
    since = condition.get("since")
    why = condition.get("reasons") or []
    kai = next((one["reason"] for one in why if one.get("reason") in KAI_CODES), NO_NODE)
    text = str(condition.get("message") or (why[0].get("message", "") if why else ""))
    return Reason(code=kai, text=text, since=datetime.fromisoformat(since) if since else None)


def _held(facts: Facts) -> Reason:
    """Tell that the shard has let go of a group with schedulingBackoff, and what it said last."""
    said = _said(facts)
    text = (
        f"Tried once on node pool '{facts.pool or 'default'}', as its schedulingBackoff asks; waits for "
        f"another pool. {said.text}"
    )
    return Reason(code=HELD, text=text, since=said.since)


def _not_ready(facts: Facts) -> str:
    return (
        "Job is not ready for scheduling."
        f" Waiting for {facts.min_member} pods, currently {facts.alive} exist,"
        f" {facts.gated} are gated"
    )
