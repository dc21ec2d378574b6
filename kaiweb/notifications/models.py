"""Webhooks, what each of them was told already, and the deliveries to it."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from queues.models import MAX_NAME

MAX_URL = 2000


class Event(models.TextChoices):
    """What a webhook can be told about."""

    WORKLOAD_WAITS = "workloadWaits"
    WORKLOAD_EVICTED = "workloadEvicted"
    CHANGE_REQUESTED = "changeRequested"
    CHANGE_APPLIED = "changeApplied"
    SHARD_NOT_READY = "shardNotReady"
    USAGE_REPORT = "usageReport"


#: The event of a delivery that an admin requested to try a webhook.
TEST = "test"
ALL_EVENTS = (*Event.values, TEST)


class ReportPeriod(models.TextChoices):
    """How often the usage report comes: after each week from Monday on, or after each month (UTC)."""

    WEEKLY = "weekly"
    MONTHLY = "monthly"


class Webhook(models.Model):
    """An address that is told about events.

    Attributes
    ----------
    secret : encrypted (`kaiweb.notifications.signing`); empty: deliveries are not signed
    subtree : workloads, changes and use below this queue only; empty: of the whole cluster
    since : what happened before is not told
    looked_at : up to when events were collected
    failures : deliveries that failed in a row; until `next_try_at` none is tried
    """

    name = models.CharField(max_length=64, unique=True)
    url = models.CharField(max_length=MAX_URL)
    secret = models.TextField(blank=True, default="")
    events = models.JSONField(default=list)
    subtree = models.CharField(max_length=MAX_NAME, blank=True, default="")
    wait_minutes = models.IntegerField(default=30)
    report = models.CharField(
        max_length=16, choices=ReportPeriod.choices, default=ReportPeriod.MONTHLY
    )
    is_enabled = models.BooleanField(default=True)
    version = models.IntegerField(default=1, help_text="counts the edits")
    created_at = models.DateTimeField()
    since = models.DateTimeField()
    looked_at = models.DateTimeField()
    failures = models.IntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(report__in=ReportPeriod.values), name="webhook_report_valid"
            )
        ]

    def __str__(self) -> str:
        return self.name


class ToldEvent(models.Model):
    """An event that was collected for a webhook; kept as long as it could be collected again."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="told")
    key = models.CharField(max_length=600)
    at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["webhook", "key"], name="toldevent_unique")
        ]

    def __str__(self) -> str:
        return self.key


class DeliveryState(models.TextChoices):
    """How far a delivery is; `failed` is tried no more."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


class Delivery(models.Model):
    """One message to a webhook.

    Attributes
    ----------
    message : its id, the same for each try, so that the receiver can tell repetitions
    body : the JSON that is sent and signed, byte for byte
    claimed_until : until then a worker is sending it
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    message = models.CharField(max_length=64, unique=True)
    event = models.CharField(max_length=32)
    body = models.TextField()
    state = models.CharField(
        max_length=16, choices=DeliveryState.choices, default=DeliveryState.PENDING
    )
    attempts = models.IntegerField(default=0)
    created_at = models.DateTimeField()
    claimed_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    status = models.IntegerField(null=True, help_text="HTTP status of the last answer")
    error = models.TextField(blank=True, default="", help_text="why the last try failed")

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [models.Index(fields=["state", "id"], name="delivery_state")]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(state__in=DeliveryState.values), name="delivery_state_valid"
            ),
            models.CheckConstraint(condition=Q(event__in=ALL_EVENTS), name="delivery_event_valid"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook_id}: {self.state}"
