"""Why a workload waits: one dominant reason as a code with a text, the same in list, page and REST.

The first that applies wins, from "nobody could schedule this" to "the scheduler tried and said why". Codes
that KAI has keep KAI's spelling; the texts are those on the cluster's own objects, so that kubectl and the
dashboard never disagree.

Pure: no Django.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

GROUP_INCOMPLETE = "GroupIncomplete"
QUEUE_MISSING = "QueueDoesNotExist"
QUEUE_ORPHAN = "QueueOrphan"
GATED = "Gated"
NEVER_FITS = "NeverFits"
TOPOLOGY = "TopologyFragmented"
NO_NODE = "NoNodeFits"
DEVICES = "DeviceShortage"
VOLUME = "VolumeOrClaim"
BIND_FAILING = "BindFailing"
NOT_EVALUATED = "NotEvaluated"
# Reasons of the scheduler's conditions that are codes already.
KAI_CODES = frozenset(
    {"NonPreemptibleOverQuota", "OverLimit", "PreemptionDelayNotElapsed", QUEUE_MISSING}
)
# What a fit error's text says, most specific first.
FIT_HINTS: Sequence[tuple[str, str]] = (
    ("No node in the ", NEVER_FITS),
    ("is topped at", NEVER_FITS),
    ("topology", TOPOLOGY),
    ("node-group", TOPOLOGY),
    ("persistent", VOLUME),
    ("storage", VOLUME),
    ("claim", VOLUME),
    ("configmap", VOLUME),
    ("resources: GPU", DEVICES),
    ("resource: GPU", DEVICES),
    ("mig profile", DEVICES),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The dominant reason; an empty code means that nothing blocks."""

    code: str = ""
    text: str = ""
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What is known about a waiting pod group.

    Attributes
    ----------
    queue_problem : why the scheduler drops its queue, empty if it does not
    conditions : its scheduling conditions, as the mirror keeps them, newest last
    pod_reason, pod_message, pod_since : of the oldest pod that says why it waits
    bind_error : the error of a failed bind request or binding, if there is one
    """

    queue: str
    is_queue_known: bool = True
    queue_problem: str = ""
    alive: int = 0
    gated: int = 0
    min_member: int = 1
    conditions: Sequence[dict[str, Any]] = field(default_factory=tuple)
    pod_reason: str = ""
    pod_message: str = ""
    pod_since: datetime | None = None
    bind_error: str = ""


def dominant(facts: Facts) -> Reason:
    """Return the first reason that applies."""
    if not facts.queue or not facts.is_queue_known:
        return Reason(code=QUEUE_MISSING, text=f"Queue '{facts.queue}' does not exist")
    if facts.queue_problem:
        return Reason(code=QUEUE_ORPHAN, text=f"Queue '{facts.queue}': {facts.queue_problem}")
    ready = facts.alive - facts.gated
    if facts.gated and ready < max(1, facts.min_member):
        return Reason(code=GATED, text=_not_ready(facts))
    if ready < max(1, facts.min_member):
        return Reason(code=GROUP_INCOMPLETE, text=_not_ready(facts))
    if facts.bind_error or facts.pod_reason == "BindingError":
        text = facts.bind_error or facts.pod_message
        return Reason(code=BIND_FAILING, text=text, since=facts.pod_since)
    if facts.conditions:
        return _of_condition(facts.conditions[-1])
    if facts.pod_message:
        return Reason(
            code=code_of_text(facts.pod_reason, facts.pod_message),
            text=facts.pod_message,
            since=facts.pod_since,
        )
    return Reason(code=NOT_EVALUATED, text="The scheduler has not looked at it yet")


def _not_ready(facts: Facts) -> str:
    return (
        "Job is not ready for scheduling."
        f" Waiting for {facts.min_member} pods, currently {facts.alive} exist,"
        f" {facts.gated} are gated"
    )


def _of_condition(condition: dict[str, Any]) -> Reason:
    since = condition.get("since")
    why = condition.get("reasons") or []
    kai = next((one["reason"] for one in why if one.get("reason") in KAI_CODES), "")
    text = str(condition.get("message") or (why[0].get("message", "") if why else ""))
    detail = " ".join(str(one.get("message", "")) for one in why)
    return Reason(
        code=kai or code_of_text(str(condition.get("reason", "")), f"{text} {detail}"),
        text=text,
        since=datetime.fromisoformat(since) if since else None,
    )


def code_of_text(reason: str, text: str) -> str:
    """Return the code that a fit error's text stands for."""
    if reason in KAI_CODES:
        return reason
    for code in KAI_CODES:
        if text.startswith(code):
            return code
    lowered = text.lower()
    for hint, code in FIT_HINTS:
        if hint.lower() in lowered:
            return code
    return NO_NODE
