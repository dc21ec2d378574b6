"""Workloads, why they wait, their pods and the order they are served in."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.api.schema.shared import AsOf, Page
from kaiweb.api.schema.simulations import WithPreview


class HoldState(s.Serializer[object]):
    reason = s.CharField(allow_blank=True)
    until = s.DateTimeField(allow_null=True, help_text="null: until it is released")
    by = s.CharField(
        allow_blank=True, help_text="empty: a person; else what holds, e.g. max-run-time"
    )


class Workload(s.Serializer[object]):
    namespace = s.CharField()
    name = s.CharField()
    kind = s.CharField()
    owner = s.CharField()
    user = s.CharField()
    queue = s.CharField()
    priorityClass = s.CharField()
    priority = s.IntegerField(allow_null=True)
    preemptible = s.BooleanField()
    protectsMinimum = s.BooleanField(
        help_text="semi-preemptible: only pods above the minimum may be evicted"
    )
    state = s.ChoiceField(choices=["pending", "gated", "partial", "running", "finished", "failed"])
    minMember = s.IntegerField()
    ready = s.IntegerField()
    pods = s.IntegerField()
    gated = s.IntegerField()
    gpu = s.FloatField()
    gpuKind = s.ChoiceField(choices=["whole", "fraction", "memory", "none"])
    gpuUtilisation = s.FloatField(
        allow_null=True, help_text="mean of its GPUs in percent; null: unknown"
    )
    gpuIdle = s.FloatField(
        allow_null=True, help_text="GPUs that it holds but does not use; null: unknown"
    )
    idleSince = s.DateTimeField(
        allow_null=True, help_text="since when it uses none of its GPUs; null: it does, or unknown"
    )
    nodes = s.ListField(child=s.CharField())
    hold = HoldState(allow_null=True, required=False)
    reason = s.CharField(allow_blank=True)
    reasonText = s.CharField(allow_blank=True)
    reasonSince = s.DateTimeField(allow_null=True)
    position = s.IntegerField(
        allow_null=True, help_text="Place among those that wait for room, 1 is next."
    )
    createdAt = s.DateTimeField()
    startedAt = s.DateTimeField(allow_null=True)
    runDeadline = s.DateTimeField(
        allow_null=True, help_text="evicted then, because of its maximum run time; null: never"
    )
    evictions = s.IntegerField()
    rv = s.CharField()


class WorkloadUtilisationCourse(s.Serializer[object]):
    stepSeconds = s.IntegerField()
    times = s.ListField(child=s.DateTimeField(), help_text="starts of the steps")
    utilisation = s.ListField(
        child=s.FloatField(allow_null=True),
        help_text="percent in each step, mean of its GPUs; null: unknown",
    )


class WorkloadList(Page):
    items = Workload(many=True)


class WorkloadOrder(s.Serializer[object]):
    items = Workload(many=True)
    next = s.CharField(allow_null=True)
    count = s.IntegerField(required=False)
    asOf = AsOf()


class FailedBinds(s.Serializer[object]):
    count = s.IntegerField()
    lastAt = s.DateTimeField()
    nextAt = s.DateTimeField(help_text="the pod is tried again after")
    nodes = s.ListField(child=s.CharField(), help_text="where binds failed, the latest last")
    error = s.CharField(allow_blank=True)


class WorkloadPod(s.Serializer[object]):
    name = s.CharField()
    state = s.CharField()
    node = s.CharField(allow_blank=True)
    gpu = s.FloatField()
    devices = s.ListField(child=s.IntegerField())
    reason = s.CharField(allow_blank=True)
    message = s.CharField(allow_blank=True)
    failedBinds = FailedBinds(allow_null=True, required=False)
    createdAt = s.DateTimeField()
    startedAt = s.DateTimeField(allow_null=True)


class PodList(s.Serializer[object]):
    items = WorkloadPod(many=True)


class Evidence(s.Serializer[object]):
    name = s.CharField()
    asked = s.CharField(allow_blank=True)
    available = s.CharField(allow_blank=True)
    where = s.CharField(allow_blank=True)


class OtherReason(s.Serializer[object]):
    reason = s.CharField()
    text = s.CharField()


class Stage(s.Serializer[object]):
    stage = s.CharField()
    state = s.CharField()
    text = s.CharField(allow_blank=True)


class Ahead(s.Serializer[object]):
    namespace = s.CharField()
    name = s.CharField()
    owner = s.CharField(allow_blank=True)
    queue = s.CharField()
    gpu = s.FloatField()
    position = s.IntegerField()


class Place(s.Serializer[object]):
    position = s.IntegerField()
    of = s.IntegerField(help_text="How many have a place in this node pool.")
    aheadInQueue = s.IntegerField()
    ahead = Ahead(many=True, help_text="The nearest, nearest first.")


class Explanation(s.Serializer[object]):
    reason = s.CharField(allow_blank=True)
    text = s.CharField(allow_blank=True)
    since = s.DateTimeField(allow_null=True)
    evidence = Evidence(many=True)
    others = OtherReason(many=True)
    order = Place(allow_null=True)
    stages = Stage(many=True)


class ScoreTerm(s.Serializer[object]):
    name = s.CharField(help_text="binpack, spread, fragmentation, or the plugin that adds it")
    chosen = s.FloatField()
    next = s.FloatField(allow_null=True)


class NodeRefusals(s.Serializer[object]):
    reason = s.CharField(
        help_text="a resource, the name of a filter, devices (too little left on each), or rules"
    )
    nodes = s.IntegerField()


class PodPlacement(s.Serializer[object]):
    pod = s.CharField()
    node = s.CharField()
    at = s.DateTimeField(help_text="when the cycle began that decided it")
    strategy = s.CharField(allow_blank=True)
    decidedBy = s.CharField(
        help_text="the part of the score by which the node leads most; promise: evictions made room there;"
        " only-node: no other could take it; name: all were equal"
    )
    score = s.FloatField()
    nextNode = s.CharField(allow_null=True, help_text="the best of the other nodes")
    nextScore = s.FloatField(allow_null=True)
    terms = ScoreTerm(many=True, help_text="the parts of both scores")
    nodes = s.IntegerField(help_text="of the shard")
    considered = s.IntegerField(help_text="nodes looked at, e.g. of one topology domain")
    possible = s.IntegerField(help_text="nodes that could take it")
    refused = NodeRefusals(many=True, help_text="a node counts for its first reason")


class Unblock(s.Serializer[object]):
    code = s.ChoiceField(choices=["raise-limit", "raise-quota", "add-node"])
    text = s.CharField()
    edits = s.DictField(help_text="as in a simulation: queues or nodes")
    simulation = s.IntegerField()
    evictedWorkloads = s.IntegerField()


class Explain(Explanation):
    state = s.CharField()
    asOf = AsOf()
    placements = PodPlacement(
        many=True, help_text="why its pods are on their nodes; the newest 100 that were recorded"
    )
    unblocks = Unblock(many=True, required=False, help_text="only with verify=true")


class SubGroup(s.Serializer[object]):
    name = s.CharField()
    parent = s.CharField(allow_null=True)  # type: ignore[assignment]  # DRF has a `parent` too
    minMember = s.IntegerField(allow_null=True)


class WorkloadDetail(Workload):
    subGroups = SubGroup(many=True)
    podList = WorkloadPod(many=True)
    explain = Explanation()


class ReleaseWrite(s.Serializer[object]):
    reason = s.CharField(required=False, allow_blank=True, max_length=1024)


class HoldWrite(ReleaseWrite):
    until = s.DateTimeField(required=False, allow_null=True)


class WorkloadWaited(s.Serializer[object]):
    reached = s.BooleanField()
    state = s.ChoiceField(choices=["pending", "gated", "partial", "running", "finished", "failed"])
    reason = s.CharField(allow_blank=True)
    reasonText = s.CharField(allow_blank=True)


class WorkloadActed(WithPreview):
    namespace = s.CharField()
    name = s.CharField()
    hold = HoldState(allow_null=True)
    requeueBefore = s.DateTimeField(
        allow_null=True, help_text="pods created before are evicted; null without a request"
    )
