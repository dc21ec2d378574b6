"""Celery tasks: run simulations, roll back lost change sets, and delete old rows."""

from __future__ import annotations

import logging

from celery import shared_task
from django.contrib.sessions.models import Session
from django.utils import timezone

from kaiweb import history
from kaiweb.api import idempotency
from kaiweb.planning import change_sets, simulations
from kube.errors import KubeError
from queues.access import tokens
from queues.cluster import gateway

log = logging.getLogger(__name__)


@shared_task(name="kaiweb.tasks.trim_history", soft_time_limit=60)
def trim_history() -> int:
    """Delete records of old cycles, log-ins and exchanged tokens that have ended, and stored answers to repeated requests."""
    now = timezone.now()
    Session.objects.filter(expire_date__lt=now).delete()
    idempotency.trim()
    simulations.trim(now)
    tokens.trim_exchanged(now)
    history.trim_evictions(now)
    history.trim_placements(now)
    return history.trim_cycles(now)


@shared_task(name=simulations.TASK)
def run_simulation(pk: int) -> str:
    """Answer a question; return the state of its row."""
    return simulations.run(pk, gateway(), timezone.now)


@shared_task(name="kaiweb.tasks.settle_change_sets", soft_time_limit=60)
def settle_change_sets() -> int:
    """Roll back change sets whose process ended half-way."""
    try:
        return change_sets.settle(gateway(), timezone.now())
    except KubeError as error:
        log.warning("cannot settle change sets, will retry: %s", error)
        return 0
