"""Rows that mirror the cluster.

A mirror row holds the columns that dashboard and REST API need, not the whole object: the cluster is the source
of truth. Only `queues.mirror` writes mirror rows. Natural keys (`name`, `namespace/name`) are the primary keys, so
that an upsert needs no look-up. References are names without foreign keys, because the cluster may hold a queue
whose parent is missing, and the mirror must show it.

Amounts of a queue's spec are in the unit of the custom resource (GPUs, millicores, 10^6 bytes); NULL is unset, -1
is unlimited. Usage and the requests of pods are in GPUs, millicores and bytes. "Used" of a node is what "allocated"
is of a queue.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from queues.models.lengths import MAX_KEY, MAX_NAME
from queues.tree.unlimited import UNLIMITED


class MirrorRow(models.Model):
    """Columns of every mirror row. `version` is the resourceVersion, which orders the events of an object."""

    uid = models.CharField(max_length=64)
    version = models.BigIntegerField()
    created_at = models.DateTimeField()

    class Meta:
        abstract = True


def _is_amount(name: str) -> models.CheckConstraint:
    is_valid = Q(**{f"{name}__isnull": True}) | Q(**{f"{name}__gte": 0}) | Q(**{name: UNLIMITED})
    return models.CheckConstraint(condition=is_valid, name=f"queue_{name}_valid")


class Queue(MirrorRow):
    """A queue of the cluster, with the usage from its status.

    An invalid amount (which the API server's schema refuses) is mirrored as unset, so that one invalid object
    cannot stop the mirror.

    Attributes
    ----------
    manager : the field manager that wrote the spec last, empty if unknown
    """

    name = models.CharField(max_length=MAX_NAME, primary_key=True)
    generation = models.BigIntegerField(default=0)
    display_name = models.TextField(blank=True, default="")
    parent = models.CharField(max_length=MAX_NAME, blank=True, default="", db_index=True)
    priority = models.BigIntegerField(null=True)
    preempt_min_runtime = models.CharField(max_length=64, blank=True, default="")
    reclaim_min_runtime = models.CharField(max_length=64, blank=True, default="")
    quota_gpu = models.FloatField(null=True)
    quota_cpu = models.FloatField(null=True)
    quota_memory = models.FloatField(null=True)
    limit_gpu = models.FloatField(null=True)
    limit_cpu = models.FloatField(null=True)
    limit_memory = models.FloatField(null=True)
    weight_gpu = models.FloatField(null=True)
    weight_cpu = models.FloatField(null=True)
    weight_memory = models.FloatField(null=True)
    allocated_gpu = models.FloatField(default=0)
    allocated_cpu = models.FloatField(default=0)
    allocated_memory = models.FloatField(default=0)
    non_preemptible_gpu = models.FloatField(
        default=0, help_text="allocated to non-preemptible pods"
    )
    non_preemptible_cpu = models.FloatField(default=0)
    non_preemptible_memory = models.FloatField(default=0)
    requested_gpu = models.FloatField(default=0)
    requested_cpu = models.FloatField(default=0)
    requested_memory = models.FloatField(default=0)
    manager = models.CharField(max_length=128, blank=True, default="")
    labels = models.JSONField(default=dict)
    options = models.JSONField(default=dict, help_text="the annotations that are options")

    class Meta:
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            *(
                _is_amount(f"{amount}_{resource}")
                for amount in ("quota", "limit")
                for resource in ("gpu", "cpu", "memory")
            ),
            models.CheckConstraint(
                condition=Q(weight_gpu__isnull=True) | Q(weight_gpu__gte=0),
                name="queue_weight_gpu_valid",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class WorkloadState(models.TextChoices):
    """The state of a pod group, derived from its pods."""

    PENDING = "pending"
    GATED = "gated"
    PARTIAL = "partial"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"


class PodGroup(MirrorRow):
    """A workload: a pod group with the sums over its pods, or a lone pod.

    A lone pod is a pod of our scheduler without a pod group. It has a row of its own (`is_lone_pod`, named
    `pod:<name>`, which is no valid object name), so that the dashboard lists it.

    Attributes
    ----------
    is_backed_off : it requested a single attempt in its node pool and has had it
    held_by : the part of kaiweb that made the hold, empty if a person did
    last_start : when the scheduler says that it started last
    gpu_kind : how its pods request GPUs: none, whole, fraction or memory
    started_at : the earliest start of its pods; `last_start` if none has started
    """

    key = models.CharField(max_length=MAX_KEY, primary_key=True)
    namespace = models.CharField(max_length=MAX_NAME)
    name = models.CharField(max_length=MAX_NAME)
    queue = models.CharField(max_length=MAX_NAME, blank=True, default="")
    owner_kind = models.CharField(max_length=128, blank=True, default="")
    owner_name = models.CharField(max_length=MAX_NAME, blank=True, default="")
    user = models.CharField(max_length=MAX_NAME, blank=True, default="")
    pool = models.CharField(max_length=MAX_NAME, blank=True, default="")
    priority_class = models.CharField(max_length=MAX_NAME, blank=True, default="")
    preemptibility = models.CharField(max_length=32, blank=True, default="")
    is_lone_pod = models.BooleanField(default=False)
    is_backed_off = models.BooleanField(default=False, help_text="tried once on its node pool")
    is_held = models.BooleanField(default=False, help_text="its waiting pods are held back")
    hold_reason = models.TextField(blank=True, default="")
    hold_until = models.DateTimeField(null=True, help_text="end of the hold; none: until release")
    held_by = models.CharField(max_length=32, blank=True, default="", help_text="empty: a person")
    run_deadline = models.DateTimeField(null=True, help_text="end of its maximum run time")
    binds_reset_at = models.DateTimeField(
        null=True, help_text="failed binds of its pods up to this time are forgotten"
    )
    min_member = models.IntegerField(default=1)
    sub_groups = models.JSONField(default=list)
    conditions = models.JSONField(default=list)
    allocated_gpu = models.FloatField(default=0)
    reason_code = models.CharField(max_length=64, blank=True, default="")
    reason_text = models.TextField(blank=True, default="")
    reason_since = models.DateTimeField(null=True)
    last_start = models.DateTimeField(null=True)
    last_eviction = models.DateTimeField(null=True)
    evictions = models.IntegerField(default=0)
    # Sums over the pods, written by the roll-up.
    state = models.CharField(
        max_length=16, choices=WorkloadState.choices, default=WorkloadState.PENDING
    )
    priority = models.BigIntegerField(null=True)
    pods = models.IntegerField(default=0)
    pods_pending = models.IntegerField(default=0)
    pods_gated = models.IntegerField(default=0)
    pods_bound = models.IntegerField(default=0)
    pods_succeeded = models.IntegerField(default=0)
    pods_failed = models.IntegerField(default=0)
    gpu = models.FloatField(default=0)
    gpu_kind = models.CharField(max_length=16, default="none")
    nodes = models.JSONField(default=list)
    started_at = models.DateTimeField(null=True)
    position = models.IntegerField(null=True, help_text="place in its shard's order, 1 is next")

    class Meta:
        ordering: ClassVar = ["key"]
        indexes: ClassVar = [
            models.Index(fields=["pool", "position"], name="podgroup_position"),
            models.Index(fields=["queue", "state"], name="podgroup_queue_state"),
            models.Index(fields=["state", "reason_code"], name="podgroup_state_reason"),
            models.Index(fields=["created_at", "key"], name="podgroup_created"),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["namespace", "name"], name="podgroup_name_unique"),
            models.CheckConstraint(
                condition=Q(state__in=WorkloadState.values), name="podgroup_state_valid"
            ),
        ]

    def __str__(self) -> str:
        return self.key


class Pod(MirrorRow):
    """A pod: its requests, its node, why it waits, and its GPU cells on the node.

    Attributes
    ----------
    group : key of its pod group
    gpu_groups : the GPU groups in which it holds fractions
    reserves_group : the GPU group that it reserves a device for, if it is a reservation
    """

    key = models.CharField(max_length=MAX_KEY, primary_key=True)
    namespace = models.CharField(max_length=MAX_NAME)
    name = models.CharField(max_length=MAX_NAME)
    group = models.CharField(max_length=MAX_KEY, blank=True, default="", db_index=True)
    scheduler = models.CharField(max_length=MAX_NAME, blank=True, default="")
    queue = models.CharField(max_length=MAX_NAME, blank=True, default="", help_text="by its label")
    skips_grouping = models.BooleanField(default=False)
    node = models.CharField(max_length=MAX_NAME, blank=True, default="", db_index=True)
    phase = models.CharField(max_length=16, blank=True, default="")
    is_gated = models.BooleanField(default=False)
    is_deleting = models.BooleanField(default=False)
    priority = models.BigIntegerField(null=True)
    cpu = models.FloatField(default=0)
    memory = models.FloatField(default=0)
    gpu = models.FloatField(default=0, help_text="devices asked for, fractions summed")
    gpu_kind = models.CharField(max_length=16, default="none")
    gpu_share = models.FloatField(default=0, help_text="part of each shared device, 0 if unknown")
    gpu_groups = models.JSONField(default=list)
    reserves_group = models.CharField(max_length=128, blank=True, default="")
    devices = models.JSONField(default=list)
    placement = models.JSONField(default=dict, help_text="what a waiting pod demands of its node")
    reason = models.CharField(max_length=128, blank=True, default="")
    message = models.TextField(blank=True, default="")
    reason_since = models.DateTimeField(null=True)
    bind_failures = models.JSONField(
        default=dict, help_text="the failed binds of a waiting pod, as its annotation counts them"
    )
    started_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["key"]
        indexes: ClassVar = [
            # Few pods wait, and they are queried every second.
            models.Index(fields=["created_at"], condition=Q(node=""), name="pod_waiting"),
        ]

    def __str__(self) -> str:
        return self.key


class GroupingWarning(MirrorRow):
    """A warning event of the pod grouper: why it could not group a pod."""

    key = models.CharField(max_length=MAX_KEY, primary_key=True)
    pod = models.CharField(max_length=MAX_KEY, db_index=True)
    message = models.TextField()

    def __str__(self) -> str:
        return f"{self.pod}: {self.message}"


class Node(MirrorRow):
    """A node and its usage."""

    name = models.CharField(max_length=MAX_NAME, primary_key=True)
    pool = models.CharField(max_length=MAX_NAME, blank=True, default="")
    model = models.CharField(max_length=MAX_NAME, blank=True, default="")
    zone = models.CharField(max_length=MAX_NAME, blank=True, default="")
    rack = models.CharField(max_length=MAX_NAME, blank=True, default="")
    is_ready = models.BooleanField(default=False)
    is_cordoned = models.BooleanField(default=False)
    gpus = models.IntegerField(default=0)
    gpus_healthy = models.IntegerField(default=0)
    gpu_memory_mib = models.BigIntegerField(default=0)
    cpu = models.FloatField(default=0)
    memory = models.FloatField(default=0)
    taints = models.JSONField(default=list)
    labels = models.JSONField(default=dict)
    # Sums over the pods, written by the roll-up.
    used_gpu = models.FloatField(default=0)
    used_cpu = models.FloatField(default=0)
    used_memory = models.FloatField(default=0)
    pods = models.IntegerField(default=0)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class PriorityClass(MirrorRow):
    """A priority class; its value decides whether a workload may be preempted."""

    name = models.CharField(max_length=MAX_NAME, primary_key=True)
    value = models.BigIntegerField()
    is_default = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["name"]

    def __str__(self) -> str:
        return self.name


class MirrorState(models.Model):
    """How far the mirror has read one kind; the age of `seen_at` is the mirror's lag.

    Attributes
    ----------
    kind : further workers of the mirror have rows of their own, `Pod-1` and so on (`queues.mirror.part`)
    version : in the row `mirror`, the position of the live log up to which the worker has read
    listed_at : when all objects of the kind were last read
    identity : the uid of the cluster, in the one row that records which cluster is mirrored; its version is the
        number of workers (0: one)
    """

    kind = models.CharField(max_length=64, primary_key=True)
    version = models.BigIntegerField(default=0)
    listed_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField()
    identity = models.CharField(max_length=64, blank=True, default="")

    def __str__(self) -> str:
        return f"{self.kind}@{self.version}"
