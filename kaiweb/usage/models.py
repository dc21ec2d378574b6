"""Rows of the history: how many GPU-seconds were held, waited for and owned, by tier and start.

A tier is a length of time in seconds; tier 0 holds the samples themselves. All amounts are integrals over the
observed part of their span (GPU-seconds), so that rows of a coarser tier are plain sums of finer ones, and an
average is a sum divided by `Span.covered_s`. A queue that neither holds nor waits for GPUs has no row: where a span
was observed, a missing row means zero; where there is no span, nothing is known.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from queues.models import MAX_NAME


class Clock(models.Model):
    """When the last sample was taken: one row, locked while a sample is written so that no other worker writes it."""

    only = models.BooleanField(primary_key=True, default=True)
    sampled_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(only=True), name="usage_clock_single_row")
        ]

    def __str__(self) -> str:
        return f"sampled at {self.sampled_at}"


class Span(models.Model):
    """A span of time that was observed, and for how many of its seconds."""

    tier = models.IntegerField()
    start = models.DateTimeField()
    covered_s = models.FloatField()

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["tier", "start"], name="usage_span_unique")
        ]

    def __str__(self) -> str:
        return f"{self.tier} s from {self.start}"


class QueueUse(models.Model):
    """GPU-seconds of a queue and all queues below it; what is in quota is measured by its own quota."""

    KEYS: ClassVar = ("queue",)
    SUMS: ClassVar = ("allocated", "in_quota", "waiting", "share")

    tier = models.IntegerField()
    start = models.DateTimeField()
    queue = models.CharField(max_length=MAX_NAME)
    allocated = models.FloatField()
    in_quota = models.FloatField()
    waiting = models.FloatField()
    share = models.FloatField()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["tier", "start"], name="usage_queue_time"),
            models.Index(fields=["queue", "tier", "start"], name="usage_queue_series"),
        ]

    def __str__(self) -> str:
        return f"{self.queue}: {self.tier} s from {self.start}"


class OwnerUse(models.Model):
    """GPU-seconds of one user's workloads in one queue on one GPU model.

    Work that waits has no model yet (""). The part in quota is that of the queue that holds the work, divided
    among its users and models in proportion to what they hold.
    """

    KEYS: ClassVar = ("queue", "owner", "model")
    SUMS: ClassVar = ("allocated", "in_quota", "waiting")

    tier = models.IntegerField()
    start = models.DateTimeField()
    queue = models.CharField(max_length=MAX_NAME)
    owner = models.CharField(max_length=MAX_NAME)
    model = models.CharField(max_length=MAX_NAME)
    allocated = models.FloatField()
    in_quota = models.FloatField()
    waiting = models.FloatField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tier", "start"], name="usage_owner_time")]

    def __str__(self) -> str:
        return f"{self.owner} in {self.queue} on {self.model}: {self.tier} s from {self.start}"


class ModelUse(models.Model):
    """GPU-seconds of all nodes with one GPU model: what there is, and what any pod holds of it."""

    KEYS: ClassVar = ("model",)
    SUMS: ClassVar = ("capacity", "allocated")

    tier = models.IntegerField()
    start = models.DateTimeField()
    model = models.CharField(max_length=MAX_NAME)
    capacity = models.FloatField()
    allocated = models.FloatField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["tier", "start"], name="usage_model_time")]

    def __str__(self) -> str:
        return f"{self.model}: {self.tier} s from {self.start}"


class QueueBounds(models.Model):
    """GPU quota and limit of a queue from a moment on; NULL is unset, -1 is unlimited."""

    queue = models.CharField(max_length=MAX_NAME)
    at = models.DateTimeField()
    quota = models.FloatField(null=True)
    limit = models.FloatField(null=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["queue", "at"], name="usage_bounds_series")]

    def __str__(self) -> str:
        return f"{self.queue} from {self.at}"


class EventKind(models.TextChoices):
    """What happened to a workload."""

    START = "start"
    EVICTION = "eviction"


class WorkloadEvent(models.Model):
    """A workload started or was evicted. The uid makes it one event however often it is seen."""

    kind = models.CharField(max_length=16, choices=EventKind.choices)
    uid = models.CharField(max_length=64)
    at = models.DateTimeField()
    queue = models.CharField(max_length=MAX_NAME)
    waited_s = models.FloatField(null=True, help_text="of a start: since created or evicted")

    class Meta:
        indexes: ClassVar = [models.Index(fields=["at"], name="usage_event_at")]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["kind", "uid", "at"], name="usage_event_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=EventKind.values), name="usage_event_kind_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.uid} at {self.at}"


class QueueDay(models.Model):
    """Starts, waiting times and evictions of a queue and all queues below it on one day (UTC)."""

    day = models.DateField()
    queue = models.CharField(max_length=MAX_NAME)
    starts = models.IntegerField()
    evictions = models.IntegerField()
    waited_p50_s = models.FloatField(null=True)
    waited_p90_s = models.FloatField(null=True)
    waited_max_s = models.FloatField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["queue", "day"], name="usage_day_unique")
        ]
        indexes: ClassVar = [models.Index(fields=["day"], name="usage_day_day")]

    def __str__(self) -> str:
        return f"{self.queue} on {self.day}"


class GpuPrice(models.Model):
    """The price of a GPU-hour of one model from a day on (UTC), until a later price of the same model."""

    model = models.CharField(max_length=MAX_NAME, help_text="`*`: all models without their own")
    price = models.FloatField()
    valid_from = models.DateField()
    version = models.IntegerField(default=1, help_text="counts the edits")

    class Meta:
        ordering: ClassVar = ["model", "valid_from"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["model", "valid_from"], name="usage_price_unique"),
            models.CheckConstraint(
                condition=models.Q(price__gte=0), name="usage_price_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model} from {self.valid_from}"


class PriceCurrency(models.Model):
    """What all prices are in: one row, and without it the setting KAIWEB_CURRENCY."""

    only = models.BooleanField(primary_key=True, default=True)
    currency = models.CharField(max_length=16)
    version = models.IntegerField(default=0, help_text="counts the edits")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(only=True), name="usage_currency_single_row")
        ]

    def __str__(self) -> str:
        return self.currency
