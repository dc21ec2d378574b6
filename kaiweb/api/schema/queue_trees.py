"""Parts of the queue tree as nested documents."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as s

from kaiweb.api.schema.changes import Drained, QueueDifference
from kaiweb.api.schema.queues import Finding, QueueCreate
from kaiweb.api.schema.simulations import WithPreview
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


class QueueTree(QueueCreate):
    parent = None  # type: ignore[assignment]  # the nesting says it
    children = Children(required=False)


class QueueTreeWritten(WithPreview):
    changed = s.BooleanField()
    dryRun = s.BooleanField()
    change = s.IntegerField(allow_null=True, help_text="the change set that was applied")
    plan = QueueDifference(many=True)
    warnings = Finding(many=True)
    drains = Drained(many=True)
