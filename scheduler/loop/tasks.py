"""Celery tasks of the scheduler. The only argument of a message is the name of a shard."""

from __future__ import annotations

import logging
import threading
from typing import Any

import redis
from celery import bootsteps, current_app, shared_task
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


class FollowLocks(bootsteps.StartStopStep):
    """Follows the lock of each shard of a worker; a step, because timers end with the connection to the broker."""

    requires = ("celery.worker.consumer.tasks:Tasks",)

    def __init__(self, parent: Any, **_options: Any) -> None:
        #: Also those that the worker does not consume at the moment.
        self._queues: set[str] = set()
        self._entries: list[Any] = []

    def start(self, parent: Any) -> None:
        """Begin to look, at the start and after each new connection."""
        selected = parent.app.amqp.queues.consume_from
        self._queues |= {queue for queue in selected if queue.startswith(SHARD_TASK_PREFIX)}
        self._entries = [
            parent.timer.call_repeatedly(LOOK_S, follow_lock, (parent, queue))
            for queue in sorted(self._queues)
        ]

    def stop(self, parent: Any) -> None:
        """Stop looking until the broker is back."""
        for entry in self._entries:
            entry.cancel()
        self._entries = []


current_app.steps["consumer"].add(FollowLocks)


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
