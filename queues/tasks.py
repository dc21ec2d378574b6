"""Doorways for Celery: housekeeping of the queues room."""

from __future__ import annotations

import logging

from celery import shared_task
from django.utils import timezone

from kube.errors import KubeError
from queues import live
from queues.cluster import gateway
from queues.editing import audit

log = logging.getLogger(__name__)


@shared_task(name="queues.tasks.trim_live_log", soft_time_limit=30)
def trim_live_log() -> int:
    """Keep the change log at its promised length."""
    return live.trim(timezone.now())


@shared_task(name="queues.tasks.settle_changes", soft_time_limit=30)
def settle_changes() -> int:
    """Complete the entries of writes whose requests could not do it themselves."""
    try:
        return audit.settle(gateway(), timezone.now())
    except KubeError as error:
        log.warning("the open entries of the change log wait for the cluster: %s", error)
        return 0
