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
#: How often a worker looks whether the lock of its shard is free.
LOOK_S = 1.0
#: The queues of this worker, also those that it does not consume at the moment.
_shard_queues: set[str] = set()


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
    for queue in list(sender.app.amqp.queues.consume_from):
        if queue.startswith(SHARD_TASK_PREFIX):
            _shard_queues.add(queue)
    for queue in _shard_queues:
        services.shard_start(queue.removeprefix(SHARD_TASK_PREFIX))
        # The timers of a worker end with its connection to the broker, after which this signal comes again.
        sender.timer.call_repeatedly(LOOK_S, follow_lock, (sender, queue))


def follow_lock(consumer: Any, queue: str) -> None:
    """Take messages of a shard only while no other worker schedules it, or ticks would be lost here."""
    is_consuming = bool(consumer.task_consumer.consuming_from(queue))
    is_standby = services.is_standby(queue.removeprefix(SHARD_TASK_PREFIX))
    if is_standby == is_consuming:
        log.info("queue %s: %s", queue, "another worker schedules" if is_standby else "our turn")
        change = consumer.cancel_task_queue if is_standby else consumer.add_task_queue
        change(queue)


@worker_shutting_down.connect
def stop_with_worker(**_kwargs: Any) -> None:
    """Finish running writes and release the lock.

    This runs inside a signal handler, which may have interrupted the main thread while it holds a lock.
    So the work is done in another thread, and only waited for as long as STOP_S.
    """
    stopping = threading.Thread(target=services.shard_stop_all, name="stop", daemon=True)
    stopping.start()
    stopping.join(timeout=STOP_S)
