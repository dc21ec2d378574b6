"""Sessions, bind requests and the overview of the cluster."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.api.schema.shared import AsOf, Page


class Action(s.Serializer[object]):
    name = s.CharField()
    ms = s.FloatField()
    attempted = s.IntegerField(required=False)
    succeeded = s.IntegerField(required=False)


class Session(s.Serializer[object]):
    id = s.IntegerField()
    shard = s.CharField()
    number = s.IntegerField()
    startedAt = s.DateTimeField()
    durationMs = s.FloatField()
    snapshotMs = s.FloatField()
    commitMs = s.FloatField()
    actions = Action(many=True)
    nodes = s.IntegerField()
    queues = s.IntegerField()
    podGroups = s.IntegerField()
    pods = s.IntegerField()
    pendingBefore = s.IntegerField()
    bound = s.IntegerField()
    evicted = s.IntegerField()
    nominated = s.IntegerField()
    unschedulable = s.IntegerField()
    decided = s.IntegerField(help_text="Decisions about workloads; a session lists the first 300.")
    error = s.CharField(allow_blank=True)


class SessionList(Page):
    items = Session(many=True)


class Decision(s.Serializer[object]):
    action = s.CharField(help_text="The action, or `requeue` where a person requested it.")
    kind = s.ChoiceField(choices=["bind", "nominate", "move", "evict"])
    workload = s.CharField()
    queue = s.CharField(allow_blank=True)
    evictor = s.CharField(allow_blank=True, help_text="The workload that gets the room.")
    evictorQueue = s.CharField(allow_blank=True)
    pods = s.IntegerField()
    refused = s.IntegerField(help_text="Pods for which the cluster refused it.")
    gpu = s.FloatField()
    nodes = s.ListField(child=s.CharField(), help_text="At most 8 are named.")
    text = s.CharField(allow_blank=True)


class DecisionList(s.Serializer[object]):
    items = Decision(many=True)


class SessionDetail(Session):
    decisions = Decision(many=True)


class Eviction(s.Serializer[object]):
    id = s.IntegerField()
    session = s.IntegerField()
    at = s.DateTimeField()
    shard = s.CharField()
    rule = s.CharField()
    workload = s.CharField()
    queue = s.CharField(allow_blank=True)
    evictor = s.CharField(allow_blank=True)
    evictorQueue = s.CharField(allow_blank=True)
    pods = s.IntegerField()
    gpu = s.FloatField()
    text = s.CharField(allow_blank=True)


class EvictionList(Page):
    items = Eviction(many=True)


class EvictionSum(s.Serializer[object]):
    queue = s.CharField(allow_blank=True, help_text="Whose pods were evicted.")
    evictorQueue = s.CharField(allow_blank=True, help_text="Who got the room; empty for nobody.")
    rule = s.CharField()
    evictions = s.IntegerField(help_text="Workloads, counted once per session.")
    pods = s.IntegerField()
    gpu = s.FloatField()


class EvictionMatrix(s.Serializer[object]):
    start = s.DateTimeField()
    end = s.DateTimeField()
    items = EvictionSum(many=True)


class BindRequest(s.Serializer[object]):
    namespace = s.CharField()
    name = s.CharField()
    pod = s.CharField()
    node = s.CharField()
    phase = s.CharField()
    reason = s.CharField(allow_blank=True)
    failedAttempts = s.IntegerField()
    resourceType = s.CharField(allow_blank=True)
    gpuGroups = s.ListField(child=s.CharField())
    createdAt = s.DateTimeField()


class BindRequestList(Page):
    items = BindRequest(many=True)


class Gpus(s.Serializer[object]):
    total = s.FloatField()
    allocated = s.FloatField()
    free = s.FloatField()
    unusable = s.FloatField()


class ModelGpus(Gpus):
    model = s.CharField()


class FreeByNode(s.Serializer[object]):
    model = s.CharField()
    free = s.IntegerField(help_text="Whole GPUs free on each of these nodes.")
    nodes = s.IntegerField()


class NodeCounts(s.Serializer[object]):
    total = s.IntegerField()
    ready = s.IntegerField()
    cordoned = s.IntegerField()


class QueueCounts(s.Serializer[object]):
    total = s.IntegerField()
    orphans = s.IntegerField()


class WorkloadCounts(s.Serializer[object]):
    pending = s.IntegerField()
    running = s.IntegerField()
    finished = s.IntegerField()
    failed = s.IntegerField()


class ReasonCount(s.Serializer[object]):
    reason = s.CharField()
    workloads = s.IntegerField()
    gpu = s.FloatField()


class QueueGpus(s.Serializer[object]):
    queue = s.CharField()
    gpu = s.FloatField()


class SessionCounts(s.Serializer[object]):
    perMinute = s.IntegerField()
    lastId = s.IntegerField(allow_null=True)
    lastDurationMs = s.FloatField(allow_null=True)
    lastStartedAt = s.DateTimeField(allow_null=True)
    p95Ms = s.FloatField(allow_null=True)


class Cluster(s.Serializer[object]):
    gpus = Gpus()
    models = ModelGpus(many=True)
    freeByNode = FreeByNode(many=True)
    nodes = NodeCounts()
    queues = QueueCounts()
    workloads = WorkloadCounts()
    pendingByReason = ReasonCount(many=True)
    starved = QueueGpus(many=True)
    borrowing = QueueGpus(many=True)
    sessions = SessionCounts()
    mirrorAt = s.DateTimeField(allow_null=True)
    asOf = AsOf()
