"""Run cycles in a Celery worker: start the shard's worker, take and keep its lock, rest between cycles.

The Celery task (beat's tick or a kick after a change) calls `run_cycle`. A process keeps one worker per shard;
the lock lets one process at a time run cycles.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import redis
from celery import current_app
from django.conf import settings

from kube.errors import KubeError, UnauthorizedError
from kube.keys import SHARD_TASK_PREFIX
from kube.lease import candidate_identity
from kube.process.fatal import end_process
from queues.broker import connect_broker
from queues.cluster import gateway
from scheduler.loop.cycle import CycleSummary
from scheduler.loop.debug_server import PluginServer, metrics_page, plugin_pages
from scheduler.loop.fence import FenceLease
from scheduler.loop.lock import ShardLock
from scheduler.loop.report import Reporter
from scheduler.loop.worker import ShardWorker

log = logging.getLogger(__name__)

#: The name of the Celery task; it stays when its module moves, because messages carry it.
RUN_CYCLE = "scheduler.tasks.run_cycle"
KICK_LIFE_MS = 2_000
MAX_REST_S = 0.5


@dataclass(slots=True)
class RunningShard:
    """Everything a process keeps for one shard.

    Attributes
    ----------
    rest_until : by the monotonic clock; after a cycle the shard rests as long as it computed, so that
        the API server and the binder get their part of the machine in a burst
    pages : metrics, and what KAI's plugin server shows, on a port of the loopback
    """

    worker: ShardWorker
    lock: ShardLock
    reporter: Reporter
    rest_until: float = 0.0
    pages: PluginServer | None = None


_guard = threading.Lock()
_running: dict[str, RunningShard] = {}


def shard_start(shard: str, *, wake: Callable[[], object] | None = None) -> RunningShard:
    """Return the shard's worker of this process, started at first use."""
    with _guard:
        running = _running.get(shard)
        if running is None:
            client = broker()
            cluster = gateway()
            fences = FenceLease(gateway=cluster, shard=shard, holder=candidate_identity())
            lock = ShardLock(client, shard, fences.next_fence)
            worker = ShardWorker(
                shard,
                cluster,
                end_process,
                is_allowed=lock.is_held,
                folder=settings.KAIWEB_HOME,
            )
            running = RunningShard(worker, lock, Reporter(shard))
            worker.start(wake=wake or (lambda: kick(client, shard)))
            running.reporter.start()
            _running[shard] = running
            log.info("shard %s: worker is ready", shard)
        _serve_pages(running)
        return running


def _serve_pages(running: RunningShard) -> None:
    """Serve pages if asked to; which ones there are follows from the shard's settings.

    Scheduling does not depend on it: a port that is taken is tried again by the next cycle.
    """
    port = getattr(settings, "KAIWEB_SCHEDULER_METRICS_PORT", 0)
    if not port:
        return
    pages = {"/metrics": metrics_page, **plugin_pages(running.worker)}
    if running.pages is not None:
        running.pages.pages = pages
        return
    host = settings.KAIWEB_SCHEDULER_METRICS_HOST
    server = PluginServer(host, port, pages, token=settings.KAIWEB_DEBUG_TOKEN)
    try:
        server.start()
    except OSError as error:
        log.warning("no metrics on port %d yet: %s", port, error)
        return
    running.pages = server


def shard_stop_all() -> None:
    """Stop all workers of this process and release their locks."""
    with _guard:
        for running in _running.values():
            running.worker.stop()
            running.lock.release()
            running.reporter.stop()
            if running.pages is not None:
                running.pages.stop()
        _running.clear()


def run_cycle(shard: str) -> CycleSummary | None:
    """Run one cycle of a shard, if this process may and knows the cluster; else None.

    Raises
    ------
    kube.errors.UnauthorizedError : the process must end
    """
    running = shard_start(shard)
    pause_s = running.rest_until - time.monotonic()
    if pause_s > 0:
        time.sleep(pause_s)  # changes that come meanwhile belong to this cycle
    running.lock.client.delete(kick_key(shard))  # changes from here on need another cycle
    if not running.worker.is_ready() or not (running.lock.is_held() or _acquire(running.lock)):
        return None
    started = time.thread_time()
    summary = None
    try:
        summary = running.worker.cycle(fence=running.lock.fence)
    finally:
        if summary is None:
            running.lock.release()  # the cycle failed; let another worker try
        running.rest_until = time.monotonic() + min(MAX_REST_S, time.thread_time() - started)
    running.reporter.offer(summary)
    return summary


def is_standby(shard: str) -> bool:
    """Return whether another process schedules the shard; take its lock if it is free.

    The lock is kept between cycles. Workers that took turns would decide on views of different age: one could
    give away what the other has just given to somebody.
    """
    running = shard_start(shard)
    if running.lock.is_held() or not running.worker.is_ready():
        return False
    try:
        return not running.lock.acquire()
    except (redis.RedisError, KubeError) as error:
        log.warning("shard %s: cannot take the lock: %s", shard, error)
        return False


def _acquire(lock: ShardLock) -> bool:
    try:
        return lock.acquire()
    except UnauthorizedError:
        raise
    except KubeError as error:
        log.warning("shard %s: no cycle without a fence number: %s", lock.shard, error)
        return False


def kick(client: redis.Redis, shard: str) -> bool:
    """Request a cycle now; return whether a message was sent: only the first kick before a cycle sends one."""
    try:
        if not client.set(kick_key(shard), "1", nx=True, px=KICK_LIFE_MS):
            return False
        # By name: the module of the task imports this one.
        current_app.send_task(
            RUN_CYCLE,
            args=(shard,),
            queue=f"{SHARD_TASK_PREFIX}{shard}",
            expires=KICK_LIFE_MS / 1000,
        )
    except (redis.RedisError, OSError) as error:
        log.warning("shard %s: no kick, the next tick will do: %s", shard, error)
        return False
    return True


def kick_key(shard: str) -> str:
    return f"kaiweb:kick:{shard}"


def broker() -> redis.Redis:
    """Return a client of the broker."""
    return connect_broker(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=5)
