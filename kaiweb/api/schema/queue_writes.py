"""The answer to the write of a queue."""

from __future__ import annotations

from rest_framework import serializers as s

from kaiweb.api.schema.queues import Difference, Finding, Queue
from kaiweb.api.schema.simulations import WithPreview


class QueueWritten(WithPreview):
    queue = Queue()
    changed = s.BooleanField()
    dryRun = s.BooleanField()
    warnings = Finding(many=True)
    diff = Difference(many=True)
