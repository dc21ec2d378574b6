"""Rows that mirror the cluster, and rows of our own: audit log, live log, rights and tokens."""

from queues.models.access import (
    ApiToken,
    ExternalIdentity,
    LiveTicket,
    Role,
    RoleBinding,
    UserPreferences,
)
from queues.models.audit import AuditAction, AuditKind, ChangeState, QuotaChange
from queues.models.lengths import MAX_KEY, MAX_NAME
from queues.models.live import LiveChange, LiveEpoch
from queues.models.mirror import (
    GroupingWarning,
    MirrorRow,
    MirrorState,
    Node,
    Pod,
    PodGroup,
    PriorityClass,
    Queue,
    WorkloadState,
)
from queues.models.policies import ApprovalRule, BelowUse, ChangePolicy

__all__ = [
    "MAX_KEY",
    "MAX_NAME",
    "ApiToken",
    "ApprovalRule",
    "AuditAction",
    "AuditKind",
    "BelowUse",
    "ChangePolicy",
    "ChangeState",
    "ExternalIdentity",
    "GroupingWarning",
    "LiveChange",
    "LiveEpoch",
    "LiveTicket",
    "MirrorRow",
    "MirrorState",
    "Node",
    "Pod",
    "PodGroup",
    "PriorityClass",
    "Queue",
    "QuotaChange",
    "Role",
    "RoleBinding",
    "UserPreferences",
    "WorkloadState",
]
