"""Doorways for Celery: housekeeping of what only grows."""

from __future__ import annotations

from celery import shared_task
from django.contrib.sessions.models import Session
from django.utils import timezone

from kaiweb import history
from kaiweb.api import idempotency


@shared_task(name="kaiweb.tasks.trim_history", soft_time_limit=60)
def trim_history() -> int:
    """Drop old scheduling sessions, log-ins that are over and answers kept for repeated requests."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    idempotency.trim()
    return history.trim_cycles(now)
