"""Simulations: the question, and the answer."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.api.schema.queues import Finding, QueueWrite
from kaiweb.api.schema.shared import Amounts, Page
from kaiweb.models import SimulationState
from scheduler.tools.simulate.what_if.answer import VERDICTS


class QueueEdit(s.Serializer[object]):
    name = s.CharField()
    action = s.ChoiceField(choices=["update", "replace", "create", "delete"], required=False)
    edit = QueueWrite(required=False)


class NewWorkload(s.Serializer[object]):
    name = s.CharField()
    queue = s.CharField()
    namespace = s.CharField(required=False)
    pods = s.IntegerField(required=False, min_value=1)
    minMember = s.IntegerField(required=False, min_value=1, allow_null=True)
    priorityClass = s.CharField(required=False, allow_blank=True)
    preemptibility = s.CharField(required=False, allow_blank=True)
    gpu = s.FloatField(required=False, min_value=0)
    gpuMemoryMib = s.IntegerField(required=False, min_value=0)
    cpuMilli = s.FloatField(required=False, min_value=0)
    memoryBytes = s.FloatField(required=False, min_value=0)
    nodeSelector = s.DictField(child=s.CharField(), required=False)


class NewNodes(s.Serializer[object]):
    count = s.IntegerField(required=False, min_value=1)
    name = s.CharField(required=False)
    like = s.CharField(required=False, allow_blank=True)
    gpu = s.IntegerField(required=False, min_value=0)
    cpuMilli = s.FloatField(required=False, min_value=0)
    memoryBytes = s.FloatField(required=False, min_value=0)
    gpuMemoryMib = s.IntegerField(required=False, min_value=0)
    labels = s.DictField(child=s.CharField(), required=False)


class WorkloadEdits(s.Serializer[object]):
    add = NewWorkload(many=True, required=False)
    manifests = s.ListField(child=s.DictField(), required=False)
    remove = s.ListField(child=s.CharField(), required=False)
    hold = s.ListField(child=s.CharField(), required=False)
    release = s.ListField(child=s.CharField(), required=False)
    requeue = s.ListField(child=s.CharField(), required=False)


class NodeEdits(s.Serializer[object]):
    add = NewNodes(many=True, required=False)
    remove = s.ListField(child=s.CharField(), required=False)


class Question(s.Serializer[object]):
    shard = s.CharField(required=False)
    cycles = s.IntegerField(required=False, min_value=1, max_value=50)
    queues = QueueEdit(many=True, required=False)
    workloads = WorkloadEdits(required=False)
    nodes = NodeEdits(required=False)
    settings = s.DictField(required=False)


class WorkloadCheck(s.Serializer[object]):
    manifests = s.ListField(child=s.DictField(), required=False)
    workload = NewWorkload(required=False)
    shard = s.CharField(required=False)
    cycles = s.IntegerField(required=False, min_value=1, max_value=50)


class Snapshot(s.Serializer[object]):
    takenAt = s.DateTimeField()
    version = s.CharField()
    nodes = s.IntegerField()
    queues = s.IntegerField()
    workloads = s.IntegerField()
    pods = s.IntegerField()


class QueueState(s.Serializer[object]):
    share = Amounts()
    allocated = Amounts()


class ShareChange(s.Serializer[object]):
    queue = s.CharField()
    before = QueueState(allow_null=True)
    after = QueueState(allow_null=True)
    changed = s.BooleanField()


class SimulatedStart(s.Serializer[object]):
    cycle = s.IntegerField()
    workload = s.CharField()
    pod = s.CharField()
    queue = s.CharField()
    node = s.CharField()
    gpu = s.FloatField()
    action = s.CharField()
    withoutEdits = s.BooleanField()


class SimulatedEviction(SimulatedStart):
    evictor = s.CharField(allow_null=True)
    evictorQueue = s.CharField(allow_null=True)
    rule = s.CharField()
    runTimeSeconds = s.IntegerField(allow_null=True)


class BlockedWorkload(s.Serializer[object]):
    workload = s.CharField()
    queue = s.CharField()
    before = s.CharField(allow_null=True)
    after = s.CharField()
    text = s.CharField(allow_blank=True)


class Totals(s.Serializer[object]):
    evictedPods = s.IntegerField()
    evictedWorkloads = s.IntegerField()
    evictedGpu = s.FloatField()
    evictedOnlyByEdits = s.IntegerField()
    startedPods = s.IntegerField()
    startedWorkloads = s.IntegerField()
    startedGpu = s.FloatField()
    blockedWorkloads = s.IntegerField()


class Answer(s.Serializer[object]):
    snapshot = Snapshot()
    assumptions = s.ListField(child=s.CharField())
    cyclesRun = s.IntegerField()
    verdict = s.ChoiceField(choices=VERDICTS)
    shares = ShareChange(many=True)
    evictions = SimulatedEviction(many=True)
    starts = SimulatedStart(many=True)
    blocked = BlockedWorkload(many=True)
    errors = Finding(many=True)  # type: ignore[assignment]  # DRF has `errors` too
    warnings = Finding(many=True)
    totals = Totals()
    durationMs = s.FloatField()


class SimulationSummary(s.Serializer[object]):
    id = s.IntegerField()
    author = s.CharField()
    createdAt = s.DateTimeField()
    finishedAt = s.DateTimeField(allow_null=True)
    state = s.ChoiceField(choices=SimulationState.choices)
    verdict = s.ChoiceField(choices=VERDICTS, allow_null=True)
    error = s.CharField(allow_null=True)


class Simulation(SimulationSummary):
    question = Question()
    answer = Answer(allow_null=True)


class WithPreview(s.Serializer[object]):
    """What a dry run with `simulate` adds to its answer."""

    simulation = s.IntegerField(required=False, allow_null=True, help_text="Only with simulate.")
    verdict = s.ChoiceField(
        choices=VERDICTS, required=False, allow_null=True, help_text="Null: not finished in time."
    )
    simulated = Simulation(required=False)


class SimulationList(Page):
    items = SimulationSummary(many=True)
