"""Doorways for Celery: housekeeping of the queues room."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from queues import live


@shared_task(name="queues.tasks.trim_live_log", soft_time_limit=30)
def trim_live_log() -> int:
    """Keep the change log at its promised length."""
    return live.trim(timezone.now())
