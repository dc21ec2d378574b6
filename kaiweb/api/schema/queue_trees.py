"""Parts of the queue tree as nested documents."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from kaiweb.api.schema.changes import Drained, QueueDifference
from kaiweb.api.schema.queues import Finding
from kaiweb.api.schema.shared import WantedBounds, Weights
from kaiweb.planning.queue_trees import MAX_QUEUES


@extend_schema_field(
    {
        "type": "array",
        "maxItems": MAX_QUEUES,
        "items": {"$ref": "#/components/schemas/QueueTree"},
        "description": "The queues below, in the same form.",
    }
)
class Children(s.JSONField):
    """Nested queues."""


class QueueTree(s.Serializer[object]):
    name = s.CharField()
    displayName = s.CharField(required=False, allow_null=True)
    priority = s.IntegerField(required=False, allow_null=True)
    preemptMinRuntime = s.CharField(required=False, allow_null=True)
    reclaimMinRuntime = s.CharField(required=False, allow_null=True)
    quota = WantedBounds(required=False)
    limit = WantedBounds(required=False)
    weight = Weights(required=False)
    labels = s.DictField(child=s.CharField(allow_null=True), required=False)
    maxRunTime = s.CharField(required=False, allow_null=True)
    requeueDelay = s.CharField(required=False, allow_null=True)
    children = Children(required=False)


class QueueTreeWritten(s.Serializer[object]):
    changed = s.BooleanField()
    dryRun = s.BooleanField()
    change = s.IntegerField(allow_null=True, help_text="the change set that was applied")
    plan = QueueDifference(many=True)
    warnings = Finding(many=True)
    drains = Drained(many=True)
    simulation = s.IntegerField(allow_null=True)
    verdict = s.CharField(allow_null=True, help_text="of the simulation")
