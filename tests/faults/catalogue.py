"""The faults by name. Each function makes the fault, holds it and ends it; the load goes on meanwhile."""

from __future__ import annotations

import resource
from collections.abc import Callable
from contextlib import suppress

import psycopg
import redis
from psycopg import sql

from tests.faults.scene import Scene

Fault = Callable[[Scene], None]

HOLD_S = 30.0
STOPPED_S = 60.0
AN_HOUR_S = 3600.0


def no_fault(scene: Scene) -> None:
    """nothing, for comparison"""


def kill_each(scene: Scene) -> None:
    """kill -9 of every process in turn, each started again as kubelets do"""
    for replica in list(scene.whole.installed.replicas):
        replica.kill()
        scene.rest(3.0)


def api_gone(scene: Scene) -> None:
    """kube-apiserver killed, back after 30 s"""
    scene.whole.cluster.restart(lambda: scene.rest(HOLD_S))


def compaction(scene: Scene) -> None:
    """all connections cut and etcd's history dropped: watches that resume are answered with 410"""
    for _ in range(3):
        scene.whole.cluster.compact(scene.whole.cluster.revision())
        scene.proxy.cut()
        scene.rest(3.0)


def redis_flushed(scene: Scene) -> None:
    """FLUSHALL, then the broker killed and back after 5 s, empty"""
    client = redis.Redis.from_url(scene.whole.broker.url)
    client.flushall()
    client.close()
    scene.rest(3.0)
    scene.whole.broker.kill()
    scene.rest(5.0)
    scene.whole.broker.start()


def postgres_restarted(scene: Scene) -> None:
    """PostgreSQL stopped (fast), back after 10 s"""
    scene.whole.database.stop()
    scene.rest(10.0)
    scene.whole.database.start()


def clock_stepped(scene: Scene) -> None:
    """the wall clock of all kaiweb's processes set back by an hour, after 20 s set right again"""
    assert scene.clock is not None, "no C compiler: the clock cannot be set for kaiweb alone"
    scene.clock.set_offset(-AN_HOUR_S)
    try:
        scene.rest(20.0)
    finally:
        scene.clock.set_offset(0.0)


def watches_silent(scene: Scene) -> None:
    """all open watches fall silent without being closed, for good"""
    scene.proxy.silence_watches()


def latency(scene: Scene) -> None:
    """each request takes 500 ms longer, for 30 s"""
    scene.proxy.delay_s = 0.5
    try:
        scene.rest(HOLD_S)
    finally:
        scene.proxy.delay_s = 0.0


def too_many_requests(scene: Scene) -> None:
    """half of all requests are answered with 429, for 30 s"""
    scene.proxy.busy_part = 0.5
    try:
        scene.rest(HOLD_S)
    finally:
        scene.proxy.busy_part = 0.0


def leaders_stopped(scene: Scene) -> None:
    """the leading scheduler, the leading controllers and a binder stopped for 60 s (SIGSTOP), then resumed"""
    replicas = [scene.busiest(name) for name in ("scheduling-default", "controllers", "binding")]
    with scene.stopped(*replicas):
        scene.rest(STOPPED_S)


def disk_full(scene: Scene) -> None:
    """no process of kaiweb can write to a file for 30 s (its file size limit is 0)"""
    pids = [
        replica.process.pid
        for replica in scene.whole.installed.replicas
        if replica.is_alive and replica.process is not None
    ]
    for pid in pids:
        _limit_files(pid, 0)
    try:
        scene.rest(HOLD_S)
    finally:
        for pid in pids:
            _limit_files(pid, resource.RLIM_INFINITY)


def database_locked(scene: Scene) -> None:
    """all tables locked by another session for 30 s"""
    with psycopg.connect(scene.whole.database.url) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        ).fetchall()
        tables = sql.SQL(", ").join(sql.Identifier(name) for (name,) in names)
        connection.execute(sql.SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(tables))
        scene.rest(HOLD_S)


def rolling_upgrade(scene: Scene) -> None:
    """helm upgrade to another tag: every replica replaced as its Deployment says"""
    scene.whole.install("upgrade", "--set", "global.tag=next")
    scene.whole.installed.roll(scene.rest)


def _limit_files(pid: int, size: int) -> None:
    _soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    with suppress(ProcessLookupError):
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


FAULTS: dict[str, Fault] = {
    "none": no_fault,
    "kill": kill_each,
    "api-gone": api_gone,
    "compaction": compaction,
    "redis": redis_flushed,
    "postgres": postgres_restarted,
    "clock": clock_stepped,
    "watches": watches_silent,
    "latency": latency,
    "429": too_many_requests,
    "leaders": leaders_stopped,
    "disk": disk_full,
    "database-locked": database_locked,
    "upgrade": rolling_upgrade,
}
