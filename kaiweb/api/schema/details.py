"""Shares with their steps, access, topologies, events, and the pods of a node."""

from __future__ import annotations

from rest_framework import serializers as s


class ShareStep(s.Serializer[object]):
    kind = s.ChoiceField(
        choices=["quota", "weight", "demand", "limit", "rest", "other"],
        help_text="quota: granted first; weight: the part of what is left; demand, limit: cut off; rest: whole units "
        "and what siblings left over; other: past use and node pools.",
    )
    amount = s.FloatField(help_text="Negative where it lowers the share.")


class ShareSibling(s.Serializer[object]):
    queue = s.CharField()
    priority = s.IntegerField()
    weight = s.FloatField()
    requested = s.FloatField()
    share = s.FloatField(allow_null=True)


class ResourceShare(s.Serializer[object]):
    pool = s.FloatField(help_text="What the siblings divide: the parent's share, or the cluster.")
    requested = s.FloatField()
    share = s.FloatField(allow_null=True)
    wouldGet = s.FloatField(help_text="The share if the queue requested everything.")
    steps = ShareStep(many=True)
    siblings = ShareSibling(many=True)


class ResourceShares(s.Serializer[object]):
    gpu = ResourceShare()
    cpuMilli = ResourceShare()
    memoryBytes = ResourceShare()


class QueueShareSteps(s.Serializer[object]):
    queue = s.CharField()
    parent = s.CharField(allow_null=True)  # type: ignore[assignment]  # DRF has a `parent` too
    resources = ResourceShares()


class AccessEntry(s.Serializer[object]):
    username = s.CharField()
    displayName = s.CharField()
    role = s.CharField()
    subtree = s.CharField(allow_null=True, help_text="null: the whole cluster.")
    mayEdit = s.BooleanField(help_text="Whether it includes the queue itself.")


class QueueAccess(s.Serializer[object]):
    items = AccessEntry(many=True)


class TakeOver(s.Serializer[object]):
    owner = s.CharField(help_text="The manager that owns the queue now; another one is refused.")


class TopologyName(s.Serializer[object]):
    name = s.CharField()
    levels = s.ListField(child=s.CharField(), help_text="Labels of nodes, widest first.")


class TopologyList(s.Serializer[object]):
    items = TopologyName(many=True)


class TopologyLevel(s.Serializer[object]):
    label = s.CharField()  # type: ignore[assignment]  # DRF has a `label` too
    name = s.CharField()


class TopologyDomain(s.Serializer[object]):
    id = s.CharField(help_text="The values of all levels down to its own, joined by slashes.")
    parent = s.CharField(allow_null=True)  # type: ignore[assignment]  # DRF has a `parent` too
    level = s.IntegerField()
    name = s.CharField()
    nodes = s.ListField(child=s.CharField())
    gpuTotal = s.IntegerField()
    gpuAllocated = s.FloatField()
    gpuFree = s.FloatField(help_text="On nodes that are ready and not cordoned.")
    largestGang = s.IntegerField(
        help_text="Whole free GPUs, which a gang of single GPUs could use."
    )
    workloads = s.IntegerField()


class PlacedWorkload(s.Serializer[object]):
    workload = s.CharField()
    owner = s.CharField(allow_blank=True)
    queue = s.CharField(allow_blank=True)
    gpu = s.FloatField()
    nodes = s.IntegerField()
    domains = s.ListField(child=s.ListField(child=s.CharField()), help_text="Of each level.")


class Topology(s.Serializer[object]):
    name = s.CharField()
    levels = TopologyLevel(many=True)
    domains = TopologyDomain(many=True)
    outside = s.ListField(child=s.CharField(), help_text="Nodes without one of the labels.")
    workloads = PlacedWorkload(many=True, help_text="The 200 largest.")


class WorkloadEvent(s.Serializer[object]):
    about = s.CharField()
    type = s.CharField(allow_blank=True)
    reason = s.CharField(allow_blank=True)
    text = s.CharField(allow_blank=True)
    count = s.IntegerField()
    firstSeen = s.DateTimeField(allow_null=True)
    lastSeen = s.DateTimeField(allow_null=True)


class EventList(s.Serializer[object]):
    items = WorkloadEvent(many=True)


class Moment(s.Serializer[object]):
    at = s.DateTimeField()
    kind = s.ChoiceField(choices=["created", "started", "evicted", "request", "event"])
    what = s.CharField(
        allow_blank=True,
        help_text="The rule of an eviction, the action of a request, the reason of an event.",
    )
    about = s.CharField(
        allow_blank=True, help_text="Who evicted it; the object that an event is about."
    )
    text = s.CharField(allow_blank=True)
    actor = s.CharField(allow_null=True, help_text="Who requested it.")
    session = s.IntegerField(allow_null=True)
    count = s.IntegerField(help_text="Evicted pods, or repetitions of an event.")


class Timeline(s.Serializer[object]):
    items = Moment(many=True)


class NodePod(s.Serializer[object]):
    namespace = s.CharField()
    name = s.CharField()
    workload = s.CharField(allow_blank=True)
    queue = s.CharField(allow_blank=True)
    user = s.CharField(allow_blank=True)
    state = s.CharField()
    gpu = s.FloatField()
    cpuMilli = s.FloatField()
    memoryBytes = s.FloatField()
    devices = s.ListField(child=s.IntegerField())
    startedAt = s.DateTimeField(allow_null=True)


class NodePodList(s.Serializer[object]):
    items = NodePod(many=True)
