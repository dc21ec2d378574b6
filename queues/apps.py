"""The Django app `queues`."""

from __future__ import annotations

from django.apps import AppConfig
from django.db.models.signals import post_migrate

from queues.editing import audit_guard


class QueuesConfig(AppConfig):
    """Queues, pod groups and the mirror of the cluster."""

    name = "queues"

    def ready(self) -> None:
        """Install the guard of the audit log after each migration."""
        post_migrate.connect(audit_guard.install_after_migrate, sender=self)
