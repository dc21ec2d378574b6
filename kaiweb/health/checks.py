"""The checks of readiness: each is a callable that returns a fault, or "" without one.

A check looks for work that was really done (a finished cycle, a written row), not for things that exist. Ages
are measured by our own clock from the moment when a value was seen to change, so that a wall clock that was set
back does not distort them.
"""

from __future__ import annotations

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

from kaiweb.machine import is_alive
from kaiweb.supervisor.desired import read_desired, scheduling_process
from kaiweb.supervisor.watchdog import ChildState, read_children
from kube.errors import KubeError, NotFoundError
from kube.objects.meta import KubeObject
from kube.process.files import write_private
from kube.process.progress import FOLDER, HANG_S, beat_file, read_beat, standstill
from kube.resources import CONFIGS
from queues.broker import connect_broker
from queues.cluster import gateway
from queues.mirror.feed import HEARTBEAT, last_contacts
from queues.models import MirrorState
from scheduler.models import SessionRecord
from scheduler.settings.shard import CONFIG_NAME

Check = Callable[[], str]
Clock = Callable[[], float]

#: Idle cycles are recorded once in ten seconds.
CYCLE_S = 30.0
MIRROR_S = 30.0
FOREIGN_LOCK_S = 10.0
WRITE_EVERY_S = 5.0
PLAN_EVERY_S = 60.0
CLUSTER_WAIT_S = 2.0
BROKER_TIMEOUT_S = 1.0
#: The row, and the file, that are written to test whether database and state folder take writes.
WRITE_TEST = "readyz"


@dataclass(slots=True)
class Freshness:
    """Measures by our own clock how long ago values last changed."""

    clock: Clock = time.monotonic
    #: Key -> (last value, when it changed).
    _last_changes: dict[str, tuple[object, float]] = field(default_factory=dict)

    def age_s(self, key: str, value: object, moment: datetime) -> float:
        """Return the age of a value. That of a value seen for the first time is computed from `moment`."""
        now = self.clock()
        last_change = self._last_changes.get(key)
        if last_change is None:
            last_change = (value, now - max(0.0, (timezone.now() - moment).total_seconds()))
        elif last_change[0] != value:
            last_change = (value, now)
        self._last_changes[key] = last_change
        return now - last_change[1]


@dataclass(slots=True)
class DatabaseCheck:
    """The database answers, and takes a write every few seconds, because only a write shows a full disk."""

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
class HomeCheck:
    """The state folder takes writes: with a database elsewhere no other check would notice a full disk."""

    clock: Clock = time.monotonic
    _written_at: float = float("-inf")

    def __call__(self) -> str:
        if self.clock() - self._written_at < WRITE_EVERY_S:
            return ""
        folder = Path(settings.KAIWEB_HOME) / FOLDER
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            write_private(folder / WRITE_TEST, timezone.now().isoformat())
        except OSError as error:
            self._written_at = float("-inf")
            return f"KAIWEB_HOME takes no writes: {error.strerror}"
        self._written_at = self.clock()
        return ""


@dataclass(slots=True)
class MigrationsCheck:
    """All migrations are applied. They stay applied, so this is checked only once a minute."""

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
    return connect_broker(
        url, socket_timeout=BROKER_TIMEOUT_S, socket_connect_timeout=BROKER_TIMEOUT_S
    )


@dataclass(slots=True)
class BrokerCheck:
    """The broker answers, and the lock of every shard is free or held by a scheduler."""

    clock: Clock = time.monotonic
    #: Shard -> since when a lock of somebody else has been seen.
    _foreign_since: dict[str, float] = field(default_factory=dict)

    def __call__(self) -> str:
        url: str = settings.CELERY_BROKER_URL
        if url.startswith("memory://"):
            return ""
        try:
            client = _broker(url)
            client.ping()
            foreign = {shard for shard in expected_shards() if _has_foreign_holder(client, shard)}
        except redis.RedisError as error:
            return f"the broker does not answer: {error}"
        now = self.clock()
        self._foreign_since = {shard: self._foreign_since.get(shard, now) for shard in foreign}
        lasting = [s for s, since in self._foreign_since.items() if now - since >= FOREIGN_LOCK_S]
        return "; ".join(
            f"the lock of shard {shard} is held by something that is no scheduler; "
            f"delete the key {_lock_key(shard)} in the broker"
            for shard in sorted(lasting)
        )


def _has_foreign_holder(client: redis.Redis, shard: str) -> bool:
    """Return whether something other than a scheduler holds the lock.

    The lock of a scheduler expires by itself, and the token of its holder is stored beside it.
    """
    lock_token, holder = client.mget(_lock_key(shard), f"kaiweb:holder:{shard}")
    return lock_token is not None and (lock_token != holder or client.pttl(_lock_key(shard)) == -1)


def _lock_key(shard: str) -> str:
    return f"kaiweb:lock:{shard}"


def expected_shards() -> list[str]:
    """Return the shards that should have cycles."""
    try:
        desired = read_desired(Path(settings.KAIWEB_HOME))
    except ValueError:
        return list(settings.KAIWEB_SHARDS)
    shards = {*settings.KAIWEB_SHARDS, *desired.shards}
    return sorted(shard for shard in shards if scheduling_process(shard) not in desired.off)


@dataclass(slots=True)
class CyclesCheck:
    """Every shard has finished a cycle lately, or its scheduler gives signs of work in a long one."""

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
            SessionRecord.objects.filter(shard=shard)
            .order_by("-number")
            .values_list("number", "started_at")
            .first()
        )
        log_hint = f"see logs/{scheduling_process(shard)}.log"
        if last is None:
            return f"shard {shard} has not finished a scheduling cycle yet; {log_hint}"
        age_s = self.freshness.age_s(shard, last[0], last[1])
        if age_s <= CYCLE_S or _is_in_cycle(shard):
            return ""
        return f"shard {shard} has finished no scheduling cycle for {CYCLE_S:.0f} s; {log_hint}"


def _is_in_cycle(shard: str) -> bool:
    """Return whether the shard's scheduler gives signs of a cycle in progress."""
    beat = read_beat(beat_file(Path(settings.KAIWEB_HOME), scheduling_process(shard)))
    now = time.monotonic()
    return beat is not None and any(
        sign.doing.startswith("cycle:") and now - sign.moment < HANG_S for sign in beat.signs
    )


@dataclass(slots=True)
class MirrorCheck:
    """All workers of the mirror have written a heartbeat lately, so they read the cluster and write rows."""

    freshness: Freshness = field(default_factory=Freshness)

    def __call__(self) -> str:
        try:
            contacts = last_contacts()
        except DatabaseError as error:
            return f"the mirror's state cannot be read: {error}"
        faults = (self.of(name, seen_at) for name, seen_at in contacts.items())
        return "; ".join(fault for fault in faults if fault)

    def of(self, name: str, seen_at: datetime | None) -> str:
        """Return the fault of the worker with this name, which last had an answer at `seen_at`."""
        who = "the mirror" if name == HEARTBEAT else name
        if seen_at is None:
            return f"{who} has not met the cluster yet; see logs/{name}.log"
        if self.freshness.age_s(name, seen_at, seen_at) <= MIRROR_S:
            return ""
        return f"{who} has not heard of the cluster for {MIRROR_S:.0f} s; see logs/{name}.log"


def config_fault() -> str:
    """Return why the Config cannot be read; without it the operator does not know what to run."""
    try:
        gateway().get(CONFIGS, CONFIG_NAME, as_type=KubeObject)
    except NotFoundError:
        return f"Config {CONFIG_NAME} does not exist; run: kaiweb bootstrap"
    except KubeError as error:
        return f"the cluster does not answer: {error}"
    return ""


@dataclass(slots=True)
class InBackground:
    """Runs a check in a thread, so that a server that does not answer delays the caller for two seconds only."""

    check: Check
    wait_s: float = CLUSTER_WAIT_S
    clock: Clock = time.monotonic
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _answered: threading.Event | None = None
    _started_at: float = 0.0
    _fault: str = ""

    def __call__(self) -> str:
        with self._lock:
            if self._answered is None or self._answered.is_set():
                self._answered, self._started_at = threading.Event(), self.clock()
                threading.Thread(target=self._run, args=(self._answered,), daemon=True).start()
            answered = self._answered
        if answered.wait(self.wait_s):
            return self._fault
        return f"no answer for {self.clock() - self._started_at:.0f} s"

    def _run(self, answered: threading.Event) -> None:
        try:
            self._fault = self.check()
        finally:
            answered.set()


def processes_fault() -> str:
    """Return which processes of this machine do not run, make no progress or end again and again."""
    return "; ".join(f"{name}: {fault}" for name, fault in sorted(process_faults().items()))


def process_faults() -> Mapping[str, str]:
    """Return the faults by process: from the watchdog, or without a supervisor from the signs of life."""
    home = Path(settings.KAIWEB_HOME)
    children = read_children(home)
    if children is not None:
        return {name: child.fault for name, child in children.items() if child.fault}
    faults = {}
    for file in sorted((home / FOLDER).glob("*.beat")):
        beat = read_beat(file)
        still = standstill(beat, time.monotonic()) if beat and is_alive(beat.pid) else None
        if still is not None:
            faults[file.stem] = "it makes no progress"
    return faults


def children() -> Mapping[str, ChildState]:
    """Return the states of the supervised processes; none without a supervisor."""
    return read_children(Path(settings.KAIWEB_HOME)) or {}
