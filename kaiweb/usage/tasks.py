"""Celery tasks: take a sample, sum up, delete old rows."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from kaiweb.usage import events, rollup, sampler


@shared_task(name="kaiweb.usage.tasks.sample", soft_time_limit=60)
def sample() -> bool:
    """Take a sample of the mirror and sum up what is complete; return whether one was taken."""
    now = timezone.now()
    if not sampler.sample(now):
        return False
    events.note(now)
    if rollup.roll_up(now):
        rollup.trim(now)
    return True


@shared_task(name="kaiweb.usage.tasks.close_days", soft_time_limit=120)
def close_days() -> int:
    """Count starts and evictions of days that have ended."""
    return events.close_days(timezone.now())
