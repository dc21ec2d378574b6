"""Celery tasks of the binder. A message only triggers a sweep; the requests are read from the cluster."""

from __future__ import annotations

import threading
from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down

QUEUE = "binding"
STOP_S = 5.0


@shared_task(name="binder.tasks.sweep", ignore_result=True, time_limit=60)
def sweep() -> int:
    """Queue every unfinished request; start the binder of this worker process if it does not run yet."""
    from binder.process import binder

    return binder().sweep()


@worker_ready.connect
def start_with_worker(sender: Any = None, **_kwargs: Any) -> None:
    """Start the binder with a worker that serves the binding queue, before any message comes."""
    if sender is not None and QUEUE in sender.app.amqp.queues.consume_from:
        from binder.process import binder

        binder()


@worker_shutting_down.connect
def stop_with_worker(**_kwargs: Any) -> None:
    """Finish running binds before the process ends.

    This runs in a signal handler, which may have interrupted the main thread while it holds a lock. So the
    binder is stopped in a separate thread, and the wait for it is limited.
    """
    from binder.process import stop_binder

    stopping = threading.Thread(target=stop_binder, name="stop", daemon=True)
    stopping.start()
    stopping.join(timeout=STOP_S)
