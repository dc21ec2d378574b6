"""Nodes and their devices."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.api.schema.shared import Page


class Holder(s.Serializer[object]):
    pod = s.CharField()
    workload = s.CharField(allow_blank=True)
    queue = s.CharField(allow_blank=True)
    gpu = s.FloatField()


class Device(s.Serializer[object]):
    index = s.IntegerField()
    state = s.CharField()
    used = s.FloatField()
    group = s.CharField(allow_blank=True)
    holders = Holder(many=True)
    utilisation = s.FloatField(allow_null=True, help_text="in percent; null: unknown, or free")
    idleSince = s.DateTimeField(
        allow_null=True,
        help_text="since when the pods that hold it do not use it; null: they do, or unknown",
    )


class Gpu(Device):
    node = s.CharField()
    model = s.CharField()


class GpuList(Page):
    items = Gpu(many=True)


class Taken(s.Serializer[object]):
    allocatable = s.FloatField()
    allocated = s.FloatField()


class Rest(s.Serializer[object]):
    until = s.DateTimeField(help_text="the node gets no new pods before")
    pods = s.ListField(
        child=s.CharField(allow_blank=True),
        help_text="waiting pods that failed on this node only; without names for who sees some queues only",
    )


class NodeRetried(s.Serializer[object]):
    name = s.CharField()
    workloads = s.ListField(
        child=s.CharField(), help_text="workloads whose failed binds are forgotten"
    )


class Node(s.Serializer[object]):
    name = s.CharField()
    model = s.CharField(allow_blank=True)
    pool = s.CharField(allow_blank=True)
    zone = s.CharField(allow_blank=True)
    rack = s.CharField(allow_blank=True)
    ready = s.BooleanField()
    cordoned = s.BooleanField()
    rest = Rest(allow_null=True, required=False, help_text="after failed binds; null otherwise")
    gpuTotal = s.IntegerField()
    gpuAllocated = s.FloatField()
    gpuMemoryBytes = s.IntegerField()
    gpuUtilisation = s.FloatField(
        allow_null=True, help_text="mean of its allocated GPUs in percent; null: unknown"
    )
    gpuIdle = s.IntegerField(allow_null=True, help_text="allocated but idle; null: unknown")
    cpu = Taken()
    memory = Taken()
    pods = s.IntegerField()
    taints = s.ListField(child=s.CharField())
    devices = Device(many=True)


class NodeDetail(Node):
    labels = s.DictField(child=s.CharField())


class NodeList(Page):
    items = Node(many=True)
