"""Queues and their edits."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.api.schema.shared import (
    Amounts,
    Bounds,
    ModelBounds,
    Page,
    WantedBounds,
    WantedModelBounds,
    Weights,
)


class Queue(s.Serializer[object]):
    name = s.CharField()
    displayName = s.CharField()
    parent = s.CharField(allow_null=True)  # type: ignore[assignment]  # DRF has a `parent` too
    depth = s.IntegerField()
    children = s.ListField(child=s.CharField())
    leaf = s.BooleanField()
    priority = s.IntegerField(allow_null=True)
    preemptMinRuntime = s.CharField(allow_null=True)
    reclaimMinRuntime = s.CharField(allow_null=True)
    quota = Bounds()
    limit = Bounds()
    weight = Weights()
    allocated = Amounts()
    allocatedNonPreemptible = Amounts()
    requested = Amounts()
    share = Amounts(allow_null=True)
    pendingWorkloads = s.IntegerField()
    runningWorkloads = s.IntegerField()
    totalWorkloads = s.IntegerField()
    orphan = s.BooleanField()
    problems = s.ListField(child=s.CharField())
    userFairness = s.BooleanField()
    gpuModels = ModelBounds()
    maxRunTime = s.CharField(allow_null=True)
    requeueDelay = s.CharField(allow_null=True)
    managedBy = s.CharField()
    labels = s.DictField(child=s.CharField())
    createdAt = s.DateTimeField()
    generation = s.IntegerField()
    etag = s.CharField()


class QueueWrite(s.Serializer[object]):
    displayName = s.CharField(required=False, allow_null=True)
    parent = s.CharField(required=False, allow_null=True)  # type: ignore[assignment]  # DRF has a `parent` too
    priority = s.IntegerField(required=False, allow_null=True)
    preemptMinRuntime = s.CharField(required=False, allow_null=True)
    reclaimMinRuntime = s.CharField(required=False, allow_null=True)
    quota = WantedBounds(required=False)
    limit = WantedBounds(required=False)
    weight = Weights(required=False)
    labels = s.DictField(child=s.CharField(allow_null=True), required=False)
    userFairness = s.BooleanField(required=False, allow_null=True)
    gpuModels = WantedModelBounds(required=False)
    maxRunTime = s.CharField(
        required=False, allow_null=True, help_text="a duration; inherited by the queues below"
    )
    requeueDelay = s.CharField(
        required=False, allow_null=True, help_text="a duration; inherited by the queues below"
    )


class QueueCreate(QueueWrite):
    name = s.CharField()


class Finding(s.Serializer[object]):
    pointer = s.CharField()
    code = s.CharField()
    message = s.CharField()
    given = s.JSONField(allow_null=True)
    allowed = s.JSONField(allow_null=True)


class Difference(s.Serializer[object]):
    pointer = s.CharField()
    before = s.JSONField(allow_null=True)
    after = s.JSONField(allow_null=True)


class QueueWaited(s.Serializer[object]):
    reached = s.BooleanField()
    generation = s.IntegerField(help_text="the newest that is shown")


class QueueList(Page):
    items = Queue(many=True)
