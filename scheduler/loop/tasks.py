"""Celery tasks of the scheduler. The only argument of a message is the name of a shard."""

from __future__ import annotations

import logging
import threading
from typing import Any

import redis
from celery import shared_task
from celery.signals import worker_ready, worker_shutting_down

from kube.errors import UnauthorizedError
from kube.keys import SHARD_TASK_PREFIX
from kube.process.fatal import end_process
from scheduler.loop import services

log = logging.getLogger(__name__)
#: How long the end of a worker waits for its running writes.
STOP_S = 5.0


@shared_task(name=services.RUN_CYCLE, ignore_result=True, acks_late=False)
def run_cycle(shard: str) -> None:
    """Run one cycle of a shard; sent by Celery beat, and after a change of the cluster."""
    try:
        services.run_cycle(shard)
    except UnauthorizedError as error:
        end_process(error)
    except redis.RedisError as error:
        log.warning("shard %s: no cycle without the broker's lock: %s", shard, error)


@worker_ready.connect
def start_with_worker(sender: Any = None, **_kwargs: Any) -> None:
    """List the cluster for this worker's shards before the first tick comes."""
    if sender is None:
        return
    for queue in sender.app.amqp.queues.consume_from:
        if queue.startswith(SHARD_TASK_PREFIX):
            services.shard_start(queue.removeprefix(SHARD_TASK_PREFIX))


@worker_shutting_down.connect
def stop_with_worker(**_kwargs: Any) -> None:
    """Finish running writes and release the lock.

    This runs inside a signal handler, which may have interrupted the main thread while it holds a lock.
    So the work is done in another thread, and only waited for as long as STOP_S.
    """
    stopping = threading.Thread(target=services.shard_stop_all, name="stop", daemon=True)
    stopping.start()
    stopping.join(timeout=STOP_S)
