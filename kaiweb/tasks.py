"""Celery tasks: run simulations, and delete old rows."""

from __future__ import annotations

from celery import shared_task
from django.contrib.sessions.models import Session
from django.utils import timezone

from kaiweb import history
from kaiweb.api import idempotency
from kaiweb.planning import simulations
from queues.cluster import gateway


@shared_task(name="kaiweb.tasks.trim_history", soft_time_limit=60)
def trim_history() -> int:
    """Delete records of old cycles, log-ins that have ended and stored answers to repeated requests."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    idempotency.trim()
    simulations.trim(now)
    return history.trim_cycles(now)


@shared_task(name=simulations.TASK)
def run_simulation(pk: int) -> str:
    """Answer a question; return the state of its row."""
    return simulations.run(pk, gateway(), timezone.now)
