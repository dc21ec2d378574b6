"""The live log: which rows changed."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q

from queues.models.lengths import MAX_KEY


class LiveEpoch(models.Model):
    """The epoch of the live log; a new value makes every client request a snapshot."""

    only = models.BooleanField(primary_key=True, default=True)
    value = models.CharField(max_length=32)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(only=True), name="liveepoch_single_row")
        ]

    def __str__(self) -> str:
        return self.value


class LiveChange(models.Model):
    """An entry of the live log: which row changed. The state of the row is read when the change is sent to a client.

    Entries are written in the transaction of the change itself, so that none is lost when a process dies. Their
    ids are the positions (`seq`) of the live protocol.
    """

    kind = models.CharField(max_length=16)
    key = models.CharField(max_length=MAX_KEY)
    at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["at"], name="livechange_at")]

    def __str__(self) -> str:
        return f"{self.pk}:{self.kind}:{self.key}"
