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
