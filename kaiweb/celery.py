"""The Celery app of all workers and of beat. A tick is a message that names a shard and nothing else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from celery import Celery, bootsteps
from celery.signals import (
    beat_init,
    celeryd_init,
    setup_logging,
    task_prerun,
    worker_init,
    worker_shutdown,
)
from django.conf import settings

from kube.process import progress
from kube.process.files import use_private_umask

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kaiweb.settings.local")
# System checks would load every view into every worker; CI runs them.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

SIGN_EVERY_S = 1.0

app = Celery("kaiweb")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# The scheduler keeps its tasks with the loop that they drive.
app.autodiscover_tasks(["scheduler.loop"])


@celeryd_init.connect
@beat_init.connect
def _create_private_files(**_kwargs: object) -> None:
    use_private_umask()


@setup_logging.connect
def _keep_django_logging(**_kwargs: object) -> None:
    """Do nothing: a receiver of this signal keeps Celery from replacing the handlers of `settings.LOGGING`."""


# Signs of life (`kube.process.progress`). The main thread of a worker runs the event loop and, in it, the tasks.


class SignsOfLife(bootsteps.StartStopStep):
    """Gives signs of life from the event loop of a worker, while the broker is connected.

    Without a broker Celery waits in the main thread, which is no hang.
    """

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **_options: Any) -> None:
        self._entry: Any = None

    def start(self, parent: Any) -> None:
        """Give a sign once a second from the event loop."""
        self._entry = parent.timer.call_repeatedly(SIGN_EVERY_S, _beat)

    def stop(self, parent: Any) -> None:
        """Expect no signs until the broker is back."""
        if self._entry is not None:
            self._entry.cancel()
        progress.track().rest()


app.steps["consumer"].add(SignsOfLife)


def _beat() -> None:
    # The loop may wait for a broker that does not answer.
    progress.track().beat("waiting for messages", progress.WAIT_S)


@worker_init.connect
def _start_worker(sender: Any = None, **_kwargs: Any) -> None:
    progress.start(str(sender.hostname).partition("@")[0], Path(settings.KAIWEB_HOME))


@beat_init.connect
def _start_beat(**_kwargs: Any) -> None:
    progress.start("beat", Path(settings.KAIWEB_HOME))


@task_prerun.connect
def _task_begins(task: Any = None, **_kwargs: Any) -> None:
    progress.track().beat(f"task {task.name}", progress.WAIT_S)


@worker_shutdown.connect
def _stop_worker(**_kwargs: Any) -> None:
    progress.stop()
