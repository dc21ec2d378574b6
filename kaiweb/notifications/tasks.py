"""Celery tasks: collect what webhooks are told, and send it."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from kaiweb.notifications import outbox

DELIVER = "kaiweb.notifications.tasks.deliver"


@shared_task(name="kaiweb.notifications.tasks.collect", soft_time_limit=60)
def collect() -> int:
    """Make messages of what happened since the last look."""
    return outbox.collect(timezone.now())


@shared_task(name=DELIVER, soft_time_limit=30)
def deliver() -> int:
    """Send what is due."""
    return outbox.deliver(timezone.now())
