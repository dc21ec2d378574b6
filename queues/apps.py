"""The queues room as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    """Queues, pod groups and the mirror of the cluster."""

    name = "queues"
