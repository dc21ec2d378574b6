"""Celery doorways of the binder. Work is found in the cluster; a message only says "look"."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down

QUEUE = "binding"


@shared_task(name="binder.tasks.sweep", ignore_result=True, time_limit=60)
def sweep() -> int:
    """Queue every unfinished request; starts the binder of this worker at first use."""
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
    """Finish running binds before the process ends."""
    from binder.process import stop_binder

    stop_binder()
