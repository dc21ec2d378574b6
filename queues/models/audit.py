"""The audit log: who did what, when, why, and with what result."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from queues.models.lengths import MAX_KEY, MAX_NAME


class ChangeState(models.TextChoices):
    """The state of a write in the audit log (`queues.editing.audit`)."""

    INTENDED = "intended"
    DONE = "done"
    FAILED = "failed"
    UNCLEAR = "unclear"


class AuditKind(models.TextChoices):
    """What an entry of the audit log is about."""

    QUEUE = "queue"
    WORKLOAD = "workload"
    USER = "user"
    ROLE_BINDING = "roleBinding"
    TOKEN = "token"
    SHARD = "shard"
    POLICY = "policy"
    PRICE = "price"
    NOTIFICATION = "notification"


class AuditAction(models.TextChoices):
    """What was done."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"
    HOLD = "hold"
    RELEASE = "release"
    REQUEUE = "requeue"
    RETRY_BIND = "retryBind"
    TAKE_OVER = "takeOver"
    TEST = "test"


class QuotaChange(models.Model):
    """An entry of the audit log, not only of quotas: who did what to which object, when and why, and the result.

    Attributes
    ----------
    queue : the queue that was written; for other kinds the queue concerned, empty if there is none
    uid : the uid of the queue before the write
    target : the object of another kind, e.g. a workload as `namespace/name`; empty for queues
    """

    kind = models.CharField(
        max_length=16, choices=AuditKind.choices, default=AuditKind.QUEUE, db_index=True
    )
    queue = models.CharField(max_length=MAX_NAME, blank=True, db_index=True)
    target = models.CharField(max_length=MAX_KEY, blank=True, default="")
    action = models.CharField(max_length=16)
    state = models.CharField(
        max_length=16, choices=ChangeState.choices, default=ChangeState.DONE, db_index=True
    )
    actor = models.CharField(max_length=255)
    at = models.DateTimeField(db_index=True)
    diff = models.JSONField(default=list)
    reason = models.TextField(blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    version_before = models.CharField(max_length=32, blank=True, default="")
    version_after = models.CharField(max_length=32, blank=True, default="")
    generation_before = models.BigIntegerField(default=0)
    uid = models.CharField(max_length=64, blank=True, default="", help_text="of the queue before")

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(action__in=AuditAction.values), name="quotachange_action_valid"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=AuditKind.values), name="quotachange_kind_valid"
            ),
            models.CheckConstraint(
                condition=Q(state__in=ChangeState.values), name="quotachange_state_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.target or self.queue} by {self.actor}"
