"""Rows that show people what the scheduler does: shards, sessions, and each queue's share.

`scheduler.loop.report` writes them once per cycle. No decision is ever read back from these rows. The mirror joins
the standings of pod groups with its own rows.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q

MAX_NAME = 253


class Shard(models.Model):
    """A node pool with its own scheduling worker."""

    name = models.CharField(max_length=MAX_NAME, primary_key=True)
    partition_value = models.CharField(max_length=MAX_NAME, blank=True, default="")
    is_paused = models.BooleanField(default=False)
    last_number = models.BigIntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class SessionRecord(models.Model):
    """The record of one cycle, listed as a session in REST: how long it took and what it decided.

    `actions` is a list of `{"name": "allocate", "ms": 1.2, ...}` in the order in which they ran; `decisions` has the
    first entries of `scheduler.loop.workload_decisions`, and `decided` counts all.
    """

    shard = models.CharField(max_length=MAX_NAME)
    number = models.BigIntegerField()
    started_at = models.DateTimeField(db_index=True)
    duration_ms = models.FloatField()
    snapshot_ms = models.FloatField(default=0)
    commit_ms = models.FloatField(default=0)
    nodes = models.IntegerField(default=0)
    queues = models.IntegerField(default=0)
    pod_groups = models.IntegerField(default=0)
    pods = models.IntegerField(default=0)
    pending_before = models.IntegerField(default=0)
    bound = models.IntegerField(default=0)
    evicted = models.IntegerField(default=0)
    nominated = models.IntegerField(default=0)
    unschedulable = models.IntegerField(default=0)
    actions = models.JSONField(default=list)
    decisions = models.JSONField(default=list)
    decided = models.IntegerField(default=0)
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["shard", "number"], name="cycle_number_unique"),
            models.CheckConstraint(condition=Q(duration_ms__gte=0), name="cycle_duration_valid"),
        ]

    def __str__(self) -> str:
        return f"{self.shard} #{self.number}"


class EvictionRecord(models.Model):
    """The pods of one workload that one cycle evicted for the same reason; kept longer than the session itself.

    `rule` is the action, `requeue` for an eviction that a person requested, or `maxruntime` after a maximum run time;
    `session` is the key of the session.
    """

    session = models.BigIntegerField(db_index=True)
    at = models.DateTimeField()
    shard = models.CharField(max_length=MAX_NAME)
    rule = models.CharField(max_length=32)
    workload = models.CharField(max_length=2 * MAX_NAME + 1, help_text="namespace/name")
    queue = models.CharField(max_length=MAX_NAME, blank=True, default="")
    evictor = models.CharField(max_length=2 * MAX_NAME + 1, blank=True, default="")
    evictor_queue = models.CharField(max_length=MAX_NAME, blank=True, default="")
    pods = models.IntegerField()
    gpu = models.FloatField()
    text = models.TextField(blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-id"]
        indexes: ClassVar = [
            models.Index(fields=["at"], name="eviction_at"),
            models.Index(fields=["workload", "at"], name="eviction_workload"),
        ]

    def __str__(self) -> str:
        return f"{self.rule} of {self.workload} at {self.at}"


class PlacementRecord(models.Model):
    """Why a pod was placed on its node; kept as long as its workload. `reason` is what REST shows."""

    pod = models.CharField(
        max_length=2 * MAX_NAME + 1, primary_key=True, help_text="namespace/name"
    )
    workload = models.CharField(max_length=2 * MAX_NAME + 1, help_text="namespace/name")
    shard = models.CharField(max_length=MAX_NAME)
    node = models.CharField(max_length=MAX_NAME)
    at = models.DateTimeField()
    reason = models.JSONField(default=dict)

    class Meta:
        ordering: ClassVar = ["-at", "pod"]
        indexes: ClassVar = [
            models.Index(fields=["at"], name="placement_at"),
            models.Index(fields=["workload", "at"], name="placement_workload"),
        ]

    def __str__(self) -> str:
        return f"{self.pod} on {self.node}"


class QueueShare(models.Model):
    """The share of one queue in the last cycle of one shard (GPUs, millicores, bytes)."""

    shard = models.CharField(max_length=MAX_NAME)
    queue = models.CharField(max_length=MAX_NAME, db_index=True)
    cycle = models.BigIntegerField(help_text="number of the cycle")
    gpu = models.FloatField(default=0)
    cpu = models.FloatField(default=0)
    memory = models.FloatField(default=0)

    class Meta:
        ordering: ClassVar = [F("queue").asc()]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["shard", "queue"], name="queueshare_unique")
        ]

    def __str__(self) -> str:
        return f"{self.queue} in {self.shard}"


class RestingNode(models.Model):
    """A node that gets no new pods for a while, because binds failed on it; see `scheduler.load.bind_memory`."""

    name = models.CharField(max_length=MAX_NAME, primary_key=True)
    shard = models.CharField(max_length=MAX_NAME, db_index=True)
    until = models.DateTimeField()
    pods = models.JSONField(default=list, help_text="the pods that failed on it, namespace/name")

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return f"{self.name} until {self.until}"


class GroupStanding(models.Model):
    """Where a waiting pod group stood in the last cycle; see `queues.workloads.reasons.Standing`."""

    key = models.CharField(
        max_length=2 * MAX_NAME + 1, primary_key=True, help_text="namespace/name"
    )
    shard = models.CharField(max_length=MAX_NAME, db_index=True)
    code = models.CharField(max_length=64)
    text = models.TextField(blank=True, default="")
    position = models.IntegerField(null=True)

    class Meta:
        ordering: ClassVar = ["key"]

    def __str__(self) -> str:
        return f"{self.key}: {self.code}"
