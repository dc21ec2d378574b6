"""The mirror of bind requests: what was decided for a pod and how carrying it out went."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from queues.models import MAX_KEY, MAX_NAME, MirrorRow


class BindRequest(MirrorRow):
    """A bind request as the cluster has it; written by `binder.mirror` only."""

    key = models.CharField(max_length=MAX_KEY, primary_key=True)
    namespace = models.CharField(max_length=MAX_NAME)
    name = models.CharField(max_length=MAX_NAME)
    pod = models.CharField(max_length=MAX_KEY, db_index=True, help_text="namespace/name of the pod")
    node = models.CharField(max_length=MAX_NAME, blank=True, default="")
    phase = models.CharField(max_length=16, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    failed_attempts = models.IntegerField(default=0)
    resource_type = models.CharField(max_length=16, blank=True, default="")
    gpu_groups = models.JSONField(default=list)

    class Meta:
        ordering: ClassVar = ["key"]
        indexes: ClassVar = [models.Index(fields=["phase"], name="bindrequest_phase")]

    def __str__(self) -> str:
        return self.key
