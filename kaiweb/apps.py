"""The composition root as a Django app: it has the management commands and loads Celery."""

from __future__ import annotations

from django.apps import AppConfig


class KaiwebConfig(AppConfig):
    """Makes `shared_task` bind to our Celery app in every process, the web included."""

    name = "kaiweb"

    def ready(self) -> None:
        """Import the Celery app after Django has loaded the settings, which Celery reads."""
        import kaiweb.celery  # noqa: F401
