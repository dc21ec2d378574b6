"""The Django app `queues`."""

from __future__ import annotations

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    """Queues, pod groups and the mirror of the cluster."""

    name = "queues"
