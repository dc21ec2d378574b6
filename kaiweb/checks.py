"""What must hold so that the installation does its work, each as a function that returns its fault.

A check asks for what really happened (a finished cycle, a written row), not for what exists. Ages are measured
by our own clock from the moment a value was seen to change, so that a clock set back makes nothing old.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path

import redis
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from kaiweb.supervisor.wanted import read_wanted, scheduling_process
from kaiweb.supervisor.watchdog import ChildState, read_children
from kube.errors import KubeError, NotFoundError
from kube.objects.meta import KubeObject
from kube.progress import FOLDER, HANG_S, beat_file, read, standstill
from kube.resources import CONFIGS
from queues.cluster import gateway
from queues.mirror.feed import HEARTBEAT
from queues.models import MirrorState
from scheduler.models import Cycle
from scheduler.settings.shard import CONFIG_NAME

Check = Callable[[], str]
Clock = Callable[[], float]

#: Idle cycles are recorded once in ten seconds.
CYCLE_S = 30.0
MIRROR_S = 30.0
STRANGER_S = 10.0
WRITE_EVERY_S = 5.0
PLAN_EVERY_S = 60.0
CLUSTER_WAIT_S = 2.0
BROKER_TIMEOUT_S = 1.0
#: The row that shows whether the database takes writes.
WRITE_TEST = "readyz"


@dataclass(slots=True)
class Freshness:
    """How long ago values last changed, by our own clock."""

    clock: Clock = time.monotonic
    _seen: dict[str, tuple[object, float]] = field(default_factory=dict)

    def age_s(self, key: str, value: object, moment: datetime) -> float:
        """Return the age of a value; one that is new to us is as old as its own time says."""
        now = self.clock()
        known = self._seen.get(key)
        if known is None:
            known = (value, now - max(0.0, (timezone.now() - moment).total_seconds()))
        elif known[0] != value:
            known = (value, now)
        self._seen[key] = known
        return now - known[1]


@dataclass(slots=True)
class DatabaseCheck:
    """The database answers, and now and then it must take a write: a full disk shows in nothing else."""

    clock: Clock = time.monotonic
    _written_at: float = float("-inf")

    def __call__(self) -> str:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            if self.clock() - self._written_at >= WRITE_EVERY_S:
                MirrorState.objects.update_or_create(
                    kind=WRITE_TEST, defaults={"seen_at": timezone.now()}
                )
                self._written_at = self.clock()
        except DatabaseError as error:
            self._written_at = float("-inf")
            return f"the database takes no writes, or does not answer: {error}"
        return ""


@dataclass(slots=True)
class MigrationsCheck:
    """All tables are there. Once they are they stay, so this is looked up seldom."""

    clock: Clock = time.monotonic
    _fine_at: float = float("-inf")

    def __call__(self) -> str:
        if self.clock() - self._fine_at < PLAN_EVERY_S:
            return ""
        try:
            executor = MigrationExecutor(connection)
            waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
        except DatabaseError as error:
            return f"the migrations cannot be read: {error}"
        if waiting:
            return f"{len(waiting)} migrations are not applied; run: kaiweb bootstrap"
        self._fine_at = self.clock()
        return ""


@cache
def _broker(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=BROKER_TIMEOUT_S, socket_connect_timeout=BROKER_TIMEOUT_S
    )


@dataclass(slots=True)
class BrokerCheck:
    """The broker answers, and no shard's lock is held by somebody who is no scheduler."""

    clock: Clock = time.monotonic
    _strange_since: dict[str, float] = field(default_factory=dict)

    def __call__(self) -> str:
        url: str = settings.CELERY_BROKER_URL
        if url.startswith("memory://"):
            return ""
        try:
            client = _broker(url)
            client.ping()
            strange = {shard for shard in expected_shards() if _has_stranger(client, shard)}
        except redis.RedisError as error:
            return f"the broker does not answer: {error}"
        now = self.clock()
        self._strange_since = {shard: self._strange_since.get(shard, now) for shard in strange}
        lasting = [s for s, since in self._strange_since.items() if now - since >= STRANGER_S]
        return "; ".join(
            f"the lock of shard {shard} is held by something that is no scheduler; "
            f"delete the key {_lock_key(shard)} in the broker"
            for shard in sorted(lasting)
        )


def _has_stranger(client: redis.Redis, shard: str) -> bool:
    """Return whether the lock has a holder that did not take it as a scheduler does.

    A scheduler's lock runs out by itself, and its token is written beside it.
    """
    held, holder = client.mget(_lock_key(shard), f"kaiweb:holder:{shard}")
    return held is not None and (held != holder or client.pttl(_lock_key(shard)) == -1)


def _lock_key(shard: str) -> str:
    return f"kaiweb:lock:{shard}"


def expected_shards() -> list[str]:
    """Return the shards that should have cycles."""
    try:
        wanted = read_wanted(Path(settings.KAIWEB_HOME))
    except ValueError:
        return list(settings.KAIWEB_SHARDS)
    shards = {*settings.KAIWEB_SHARDS, *wanted.shards}
    return sorted(shard for shard in shards if scheduling_process(shard) not in wanted.off)


@dataclass(slots=True)
class CyclesCheck:
    """Every shard has finished a cycle lately, or is seen to be at work in a long one."""

    freshness: Freshness = field(default_factory=Freshness)

    def __call__(self) -> str:
        try:
            faults = (self.of(shard) for shard in expected_shards())
            return "; ".join(fault for fault in faults if fault)
        except DatabaseError as error:
            return f"the cycles cannot be read: {error}"

    def of(self, shard: str) -> str:
        """Return the fault of one shard.

        Raises
        ------
        django.db.DatabaseError : the cycles cannot be read
        """
        last = (
            Cycle.objects.filter(shard=shard)
            .order_by("-number")
            .values_list("number", "started_at")
            .first()
        )
        where = f"see logs/{scheduling_process(shard)}.log"
        if last is None:
            return f"shard {shard} has not finished a scheduling cycle yet; {where}"
        age_s = self.freshness.age_s(shard, last[0], last[1])
        if age_s <= CYCLE_S or _is_in_cycle(shard):
            return ""
        return f"shard {shard} has finished no scheduling cycle for {CYCLE_S:.0f} s; {where}"


def _is_in_cycle(shard: str) -> bool:
    """Return whether the shard's scheduler gives signs of a cycle that goes on."""
    beat = read(beat_file(Path(settings.KAIWEB_HOME), scheduling_process(shard)))
    now = time.monotonic()
    return beat is not None and any(
        sign.doing.startswith("cycle:") and now - sign.moment < HANG_S for sign in beat.signs
    )


@dataclass(slots=True)
class MirrorCheck:
    """The mirror has heard of the cluster lately, and written so."""

    freshness: Freshness = field(default_factory=Freshness)

    def __call__(self) -> str:
        try:
            state = MirrorState.objects.filter(kind=HEARTBEAT).first()
        except DatabaseError as error:
            return f"the mirror's state cannot be read: {error}"
        if state is None:
            return "the mirror has not met the cluster yet; see logs/mirror.log"
        age_s = self.freshness.age_s(HEARTBEAT, state.seen_at, state.seen_at)
        if age_s <= MIRROR_S:
            return ""
        return f"the mirror has not heard of the cluster for {MIRROR_S:.0f} s; see logs/mirror.log"


def config_fault() -> str:
    """Return why the one Config is not to be had; without it nobody says what runs."""
    try:
        gateway().get(CONFIGS, CONFIG_NAME, as_type=KubeObject)
    except NotFoundError:
        return f"Config {CONFIG_NAME} does not exist; run: kaiweb bootstrap"
    except KubeError as error:
        return f"the cluster does not answer: {error}"
    return ""


@dataclass(slots=True)
class InBackground:
    """A check whose servers may keep it waiting for a minute: whoever asks waits for a moment only."""

    check: Check
    wait_s: float = CLUSTER_WAIT_S
    clock: Clock = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _answered: threading.Event | None = None
    _asked_at: float = 0.0
    _fault: str = ""

    def __call__(self) -> str:
        with self._lock:
            if self._answered is None or self._answered.is_set():
                self._answered, self._asked_at = threading.Event(), self.clock()
                threading.Thread(target=self._run, args=(self._answered,), daemon=True).start()
            answered = self._answered
        if answered.wait(self.wait_s):
            return self._fault
        return f"no answer for {self.clock() - self._asked_at:.0f} s"

    def _run(self, answered: threading.Event) -> None:
        try:
            self._fault = self.check()
        finally:
            answered.set()


def processes_fault() -> str:
    """Return which processes of this machine do not run, stand still or end again and again."""
    return "; ".join(f"{name}: {fault}" for name, fault in sorted(process_faults().items()))


def process_faults() -> Mapping[str, str]:
    """Return the faults by process: the watchdog's, or without a supervisor what the signs of life say."""
    home = Path(settings.KAIWEB_HOME)
    children = read_children(home)
    if children is not None:
        return {name: child.fault for name, child in children.items() if child.fault}
    faults = {}
    for file in sorted((home / FOLDER).glob("*.beat")):
        beat = read(file)
        still = standstill(beat, time.monotonic()) if beat and _is_alive(beat.pid) else None
        if still is not None:
            faults[file.stem] = "it makes no progress"
    return faults


def children() -> Mapping[str, ChildState]:
    """Return how the supervised processes are; nothing without a supervisor."""
    return read_children(Path(settings.KAIWEB_HOME)) or {}


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
