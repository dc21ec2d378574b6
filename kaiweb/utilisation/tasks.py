"""The Celery task that reads the utilisation of all GPUs: one for the installation, none for a request."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from kaiweb.utilisation import reader
from queues.cluster import gateway


@shared_task(name="kaiweb.utilisation.tasks.read", soft_time_limit=60)
def read() -> int:
    """Take a reading; return of how many devices the utilisation is known."""
    return reader.read(gateway(), timezone.now())
