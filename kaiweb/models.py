"""Rows of the REST API itself."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.db import models


class IdempotentAnswer(models.Model):
    """The answer to a request with an Idempotency-Key, for repetitions of the request.

    A row without a status stands for a request that is still running.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=255)
    digest = models.CharField(max_length=64, help_text="SHA-256 of what was asked")
    at = models.DateTimeField(db_index=True)
    status = models.IntegerField(null=True)
    headers = models.JSONField(default=dict)
    body = models.JSONField(default=dict)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotentanswer_unique")
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.user}: {self.status or 'at work'}"


class SimulationState(models.TextChoices):
    """How far a simulation is; `failed` has no answer."""

    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class Simulation(models.Model):
    """A what-if question and, once a worker has run it, the answer."""

    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="simulations"
    )
    created_at = models.DateTimeField(db_index=True)
    state = models.CharField(
        max_length=16, choices=SimulationState.choices, default=SimulationState.QUEUED
    )
    question = models.JSONField(default=dict)
    answer = models.JSONField(default=dict)
    verdict = models.CharField(max_length=16, blank=True, default="")
    error = models.TextField(blank=True, default="", help_text="why there is no answer")
    finished_at = models.DateTimeField(null=True)

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(state__in=SimulationState.values), name="simulation_state_valid"
            )
        ]

    def __str__(self) -> str:
        return f"simulation {self.pk} of {self.author}: {self.state}"


class ChangeSetState(models.TextChoices):
    """How far a change set is; `stuck` could neither be applied nor rolled back as a whole."""

    DRAFT = "draft"
    REQUESTED = "requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    APPLYING = "applying"
    APPLIED = "applied"
    ROLLED_BACK = "rolledBack"
    STUCK = "stuck"


class ChangeSet(models.Model):
    """Edits of queues that are reviewed, applied and undone together.

    Attributes
    ----------
    edits : as in a simulation's `queues`
    tags : queue -> edit tag when the edits were written; "" for a queue that did not exist
    """

    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="change_sets"
    )
    title = models.CharField(max_length=200)
    reason = models.TextField(blank=True, default="")
    state = models.CharField(
        max_length=16, choices=ChangeSetState.choices, default=ChangeSetState.DRAFT
    )
    edits = models.JSONField(default=list)
    tags = models.JSONField(default=dict)
    policy = models.CharField(max_length=8, default="warn")
    policies = models.JSONField(default=dict, help_text="queue -> its policy, if it has its own")
    drained = models.JSONField(default=list, help_text="workloads that were requeued, as in REST")
    preview = models.ForeignKey(Simulation, on_delete=models.SET_NULL, null=True, related_name="+")
    reverts = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-id"]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(state__in=ChangeSetState.values), name="changeset_state_valid"
            )
        ]

    def __str__(self) -> str:
        return f"change set {self.pk}"


class ChangeStepState(models.TextChoices):
    """How far one step of a change set is."""

    PENDING = "pending"
    STARTED = "started"
    DONE = "done"
    UNDONE = "undone"
    FAILED = "failed"


class ChangeStep(models.Model):
    """One write of a change set. A step is `started` before the cluster is written, so that no write is forgotten."""

    change_set = models.ForeignKey(ChangeSet, on_delete=models.CASCADE, related_name="steps")
    number = models.IntegerField()
    queue = models.CharField(max_length=253)
    action = models.CharField(max_length=16)
    before = models.JSONField(default=dict, help_text="the queue's editable fields by JSON pointer")
    after = models.JSONField(default=dict)
    state = models.CharField(
        max_length=16, choices=ChangeStepState.choices, default=ChangeStepState.PENDING
    )
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["change_set", "number"], name="changestep_unique"),
            models.CheckConstraint(
                condition=models.Q(state__in=ChangeStepState.values), name="changestep_state_valid"
            ),
        ]

    def __str__(self) -> str:
        return f"step {self.number} of {self.change_set}"
