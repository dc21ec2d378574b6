"""The Celery app of all workers and of beat. Ticks are a clock: a message names a shard and nothing else."""

from __future__ import annotations

import os

from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging

from kube.files import use_private_umask

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.local")
# System checks would load every view into every worker; CI runs them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

app = Celery("kaiweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect
@beat_init.connect
def _create_private_files(**_kwargs: object) -> None:
    use_private_umask()


@setup_logging.connect
def _keep_django_logging(**_kwargs: object) -> None:
    """Having a receiver at all keeps Celery from replacing the handlers of `settings.LOGGING`."""
