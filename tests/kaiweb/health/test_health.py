"""Readiness tells the truth: each check by what really happened, all of them cheap to ask for."""

from __future__ import annotations

import errno
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError
from django.test import Client
from django.utils import timezone

from kaiweb.health import checks
from kaiweb.health import views as health
from kaiweb.health.checks import (
    BrokerCheck,
    CyclesCheck,
    DatabaseCheck,
    Freshness,
    HomeCheck,
    InBackground,
    MigrationsCheck,
    MirrorCheck,
)
from kaiweb.health.views import Readiness
from kaiweb.items.cluster import mirror_time
from kaiweb.supervisor.desired import DesiredProcesses, write_desired
from kaiweb.supervisor.watchdog import children_file
from kube.process import progress
from kube.process.left_out import HeldObject, add_entry
from kube.resources import CONFIGS
from queues.mirror.feed import write_heartbeat
from queues.mirror.part import Part
from queues.models import MirrorState
from scheduler.models import SessionRecord
from tests.fakes.gateway import FakeGateway

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 30, tzinfo=UTC)


class Clock:
    """A monotonic clock that tests move."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def home(tmp_path: Path, settings) -> Path:
    settings.KAIWEB_HOME = tmp_path
    return tmp_path


def cycle(number: int, shard: str = "default", age_s: float = 0.0) -> None:
    started_at = timezone.now() - timedelta(seconds=age_s)
    SessionRecord.objects.create(shard=shard, number=number, duration_ms=1, started_at=started_at)


def readiness(clock: Clock, wall: Callable[[], datetime] = lambda: NOW, **checks_) -> Readiness:
    return Readiness(checks_, clock=clock, wall=wall)


# ------------------------------------------------------------------------------------- the answer


def test_an_object_without_faults_gets_five_good_conditions(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    monkeypatch.setattr(
        health, "READINESS", readiness(clock, database=lambda: "", mirror=lambda: "")
    )
    assert Client().get("/healthz").json() == {"status": "ok"}
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()) == (
        200, {"status": "ok", "checks": {"database": "ok", "mirror": "ok"}},
    )  # fmt: skip


def test_a_failed_check_is_named_with_its_fault_and_since_when(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    wall = [NOW]
    ready = readiness(clock, lambda: wall[0], database=lambda: "", mirror=lambda: "it is late")
    monkeypatch.setattr(health, "READINESS", ready)
    Client().get("/readyz")
    clock.now, wall[0] = clock.now + 60, NOW + timedelta(seconds=60)
    answer = Client().get("/readyz")
    assert (answer.status_code, answer.json()) == (
        503,
        {
            "status": "unready",
            "checks": {"database": "ok", "mirror": "it is late"},
            "since": {"mirror": "2026-11-30T00:00:00Z"},
        },
    )


def test_many_requests_run_the_checks_once_a_second(clock: Clock) -> None:
    looks: list[float] = []
    ready = readiness(clock, database=lambda: looks.append(clock.now) or "")
    for _ in range(100):
        ready.faults()
    clock.now += health.FRESH_S
    ready.faults()
    assert len(looks) == 2


def test_a_check_that_hangs_does_not_hold_up_other_askers(clock: Clock) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hang() -> str:
        begun.set()
        go_on.wait(10)
        return ""

    ready = Readiness({"database": hang}, clock=clock, wall=lambda: NOW, timeout_s=0.01)
    first = threading.Thread(target=ready.faults)
    first.start()
    begun.wait(10)
    clock.now += 7
    try:
        (fault,) = ready.faults()
    finally:
        go_on.set()
        first.join()
    assert (fault.check, fault.text) == ("readiness", "a check has not answered for 7 s")


# ------------------------------------------------------------------------------------- the checks


def test_the_database_must_take_a_write_now_and_then(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = DatabaseCheck(clock)
    assert check() == ""
    assert MirrorState.objects.filter(kind=checks.WRITE_TEST).count() == 1

    def full(**_values: object) -> None:
        raise DatabaseError("database or disk is full")

    monkeypatch.setattr(MirrorState.objects, "update_or_create", full)
    assert check() == ""
    clock.now += checks.WRITE_EVERY_S
    assert "database or disk is full" in check()
    assert "database or disk is full" in check()


def test_migrations_are_planned_once_while_they_are_fine(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = MigrationsCheck(clock)
    assert check() == ""
    monkeypatch.setattr(checks, "MigrationExecutor", None)
    assert check() == ""


def test_an_unreachable_broker_is_reported(settings) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    assert BrokerCheck()().startswith("the broker does not answer: ")


class FakeBroker:
    """The three questions that the check asks."""

    def __init__(self) -> None:
        self.keys: dict[str, bytes] = {}
        self.life_ms = 5000

    def ping(self) -> None: ...

    def mget(self, *names: str) -> list[bytes | None]:
        return [self.keys.get(name) for name in names]

    def pttl(self, _name: str) -> int:
        return self.life_ms


def test_a_lock_held_by_no_scheduler_is_reported_when_it_lasts(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, settings, home: Path
) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/7"
    broker = FakeBroker()
    monkeypatch.setattr(checks, "_broker", lambda _url: broker)
    check = BrokerCheck(clock)
    broker.keys = {"kaiweb:lock:default": b"token", "kaiweb:holder:default": b"token"}
    assert check() == ""
    broker.keys["kaiweb:lock:default"] = b"evil"
    assert check() == ""
    clock.now += checks.FOREIGN_LOCK_S
    assert "the lock of shard default is held by something that is no scheduler" in check()
    broker.keys["kaiweb:lock:default"] = b"token"
    assert check() == ""


def test_a_shard_without_a_recent_cycle_is_reported(clock: Clock, home: Path) -> None:
    check = CyclesCheck(Freshness(clock))
    assert check().startswith("shard default has not finished a scheduling cycle yet")
    cycle(1)
    assert check() == ""
    clock.now += checks.CYCLE_S + 1
    assert check().startswith("shard default has finished no scheduling cycle for 30 s")
    cycle(2)
    assert check() == ""


def test_a_clock_set_back_makes_no_cycle_old(clock: Clock, home: Path) -> None:
    check = CyclesCheck(Freshness(clock))
    cycle(1)
    assert check() == ""
    clock.now += 1000
    cycle(2, age_s=6000)
    assert check() == ""


def test_a_cycle_of_a_former_life_counts_as_old_as_it_is(clock: Clock, home: Path) -> None:
    cycle(1, age_s=600)
    assert "no scheduling cycle for 30 s" in CyclesCheck(Freshness(clock))()


def test_every_wanted_shard_must_have_cycles_and_none_that_is_off(clock: Clock, home: Path) -> None:
    write_desired(home, DesiredProcesses(shards=("amber", "default"), off=("scheduling-default",)))
    fault = CyclesCheck(Freshness(clock))()
    assert "shard amber" in fault
    assert "shard default" not in fault


def test_a_long_cycle_that_reports_progress_is_no_fault(clock: Clock, home: Path) -> None:
    check = CyclesCheck(Freshness(clock))
    cycle(1)
    check()
    clock.now += 120
    progress.start("scheduling-default", home)
    try:
        progress.track().beat("cycle: reclaim")
        assert check() == ""
        progress.track().beat("waiting for messages")
        assert "no scheduling cycle for 30 s" in check()
    finally:
        progress.stop()


def test_of_several_workers_of_the_mirror_the_late_one_is_named(clock: Clock) -> None:
    check = MirrorCheck(Freshness(clock))
    now = timezone.now()
    MirrorState.objects.create(kind="cluster", identity="uid", version=2, seen_at=now)
    write_heartbeat(now, Part(0, 2))
    assert check() == "mirror-1 has not met the cluster yet; see logs/mirror-1.log"
    assert mirror_time() is None
    earlier = now - timedelta(seconds=5)
    write_heartbeat(earlier, Part(1, 2))
    assert check() == ""
    # The data is as old as that of the worker that is behind.
    assert mirror_time() == earlier
    clock.now += 31
    write_heartbeat(now + timedelta(seconds=31), Part(0, 2))
    assert check() == "mirror-1 has not heard of the cluster for 30 s; see logs/mirror-1.log"


def test_a_mirror_that_is_late_is_reported(clock: Clock) -> None:
    check = MirrorCheck(Freshness(clock))
    assert check().startswith("the mirror has not met the cluster yet")
    write_heartbeat(timezone.now())
    assert check() == ""
    clock.now += checks.MIRROR_S + 1
    assert check().startswith("the mirror has not heard of the cluster for 30 s")
    write_heartbeat(timezone.now())
    assert check() == ""


def test_a_missing_config_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = FakeGateway()
    monkeypatch.setattr(checks, "gateway", lambda: gateway)
    assert checks.config_fault() == "Config kai-config does not exist; run: kaiweb bootstrap"
    gateway.create(CONFIGS, {"metadata": {"name": "kai-config"}})
    assert checks.config_fault() == ""


def test_a_slow_cluster_is_reported_and_asked_only_once(clock: Clock) -> None:
    calls: list[int] = []
    go_on = threading.Event()

    def slow() -> str:
        calls.append(1)
        go_on.wait(10)
        return "gone"

    check = InBackground(slow, wait_s=0.01, clock=clock)
    assert check() == "no answer for 0 s"
    clock.now += 5
    assert check() == "no answer for 5 s"
    go_on.set()
    check.wait_s = 10
    assert check() == "gone"
    assert len(calls) <= 2


def test_readiness_reports_the_faults_the_watchdog_found(home: Path) -> None:
    assert checks.processes_fault() == ""
    well = {"pid": 1, "is_steady": True, "restarts": 0, "hangs": 0, "fault": ""}
    states = {"mirror": {**well, "fault": "it makes no progress"}, "web": well}
    children_file(home).parent.mkdir()
    children_file(home).write_text(json.dumps(states))
    assert checks.processes_fault() == "mirror: it makes no progress"


def test_without_a_supervisor_the_signs_of_life_are_read(home: Path) -> None:
    progress.start("mirror", home)
    try:
        progress.track().beat("work", limit_s=-1.0)  # late already
        assert checks.processes_fault() == "mirror: it makes no progress"
        progress.track().beat("work")
        assert checks.processes_fault() == ""
    finally:
        progress.stop()


def test_a_state_folder_that_takes_no_writes_is_a_fault_until_it_does(
    home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = HomeCheck(clock)
    assert check() == ""
    test_file = home / "run" / checks.WRITE_TEST
    assert test_file.stat().st_mode & 0o777 == 0o600

    def full(*_args: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checks, "write_private", full)
        assert check() == ""  # written a moment ago
        clock.now += checks.WRITE_EVERY_S
        assert check() == "KAIWEB_HOME takes no writes: No space left on device"
    assert check() == ""


def test_the_metrics_tell_the_age_of_each_process_and_its_ends(home: Path) -> None:
    progress.start("mirror", home)
    try:
        progress.track().beat("work")
        state = {"pid": 1, "is_steady": True, "restarts": 3, "hangs": 2, "fault": ""}
        children_file(home).write_text(json.dumps({"mirror": state}))
        text = Client().get("/metrics").content.decode()
    finally:
        progress.stop()
    ages = [x for x in text.splitlines() if x.startswith("kaiweb_process_progress_age_seconds{")]
    assert [line.partition(" ")[0] for line in ages] == [
        'kaiweb_process_progress_age_seconds{process="mirror"}'
    ]
    assert 0 <= float(ages[0].split()[1]) < 60
    assert 'kaiweb_watchdog_restarts_total{process="mirror"} 2.0' in text
    assert 'kaiweb_mirror_age_seconds{kind="readyz"}' not in text


def test_who_has_signed_in_learns_which_objects_are_left_out(
    home: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "READINESS", readiness(clock, processes=lambda: "mirror: late"))
    state = {"pid": 1, "is_steady": True, "restarts": 1, "hangs": 1, "fault": "late"}
    children_file(home).parent.mkdir()
    children_file(home).write_text(json.dumps({"mirror": {**state, "held": "Pod team/worse"}}))
    add_entry(
        home, "mirror", HeldObject("mirror", "Pod", "team", "bad", "u", "7"), NOW, "no progress"
    )
    client = Client()
    assert client.get("/api/v1/health").status_code == 401
    client.force_login(User.objects.create_user("ada"))
    assert client.get("/api/v1/health").json() == {
        "status": "unready",
        "faults": [
            {"check": "processes", "fault": "mirror: late", "since": "2026-11-30T00:00:00Z"}
        ],
        "processes": [
            {
                "name": "mirror",
                "fault": "late",
                "heldObject": "Pod team/worse",
                "restarts": 1,
                "hangs": 1,
            }
        ],
        "setAside": [
            {
                "process": "mirror",
                "kind": "Pod",
                "namespace": "team",
                "name": "bad",
                "time": "2026-11-30T00:00:00Z",
                "reason": "no progress",
            }
        ],
    }
