"""Periodic Celery tasks of `queues`."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from kube.errors import KubeError
from queues import live
from queues.cluster import gateway
from queues.editing import audit, audit_entries

log = logging.getLogger(__name__)


@shared_task(name="queues.tasks.trim_live_log", soft_time_limit=30)
def trim_live_log() -> int:
    """Delete old changes of the live log."""
    return live.trim(timezone.now())


@shared_task(name="queues.tasks.settle_changes", soft_time_limit=30)
def settle_changes() -> int:
    """Complete audit entries whose requests could not complete them."""
    try:
        now = timezone.now()
        return audit.settle(gateway(), now) + audit_entries.give_up(now)
    except KubeError as error:
        log.warning("cannot settle open audit entries, will retry: %s", error)
        return 0
