"""Limits on how many of some pods may be evicted in a cycle, as the snapshot states them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class LimitKind(StrEnum):
    """What sets a limit; the comments say what `DisruptionLimit.subject` names."""

    BUDGET = "budget"  # the disruption budget
    SEVERAL_BUDGETS = "several-budgets"  # the budgets; no pod of more than one can be evicted
    OWNER = "owner"  # the controller of the pods
    REFUSAL = "refusal"  # the pod; its eviction was refused a moment ago


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionLimit:
    """At most `allowed` of the pods may be evicted in this cycle.

    Attributes
    ----------
    subject : names what sets the limit, for messages
    detail : for a refusal, what the API server answered
    pods : uids of the pods whose eviction counts
    """

    kind: LimitKind
    subject: str
    allowed: int
    pods: frozenset[str]
    detail: str = ""
