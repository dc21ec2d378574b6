"""Who may run a cycle, and how a burst of kicks becomes one message."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from celery import current_app

from kube.errors import ServerError
from kube.resources import SHARDS
from scheduler.loop import services
from scheduler.loop.cycle import CycleSummary
from scheduler.loop.report import Reporter
from scheduler.loop.services import RunningShard
from tests.scheduler.load.objects import meta
from tests.scheduler.loop.harness import Harness
from tests.scheduler.loop.harness import harness as open_harness


class FakeBroker:
    """The two commands that kicks use."""

    def __init__(self) -> None:
        self.keys: dict[str, str] = {}
        self.is_down = False

    def set(self, key: str, value: str, *, nx: bool, px: int) -> bool | None:
        if self.is_down:
            raise redis.ConnectionError("down")
        if nx and key in self.keys:
            return None
        self.keys[key] = value
        return True

    def delete(self, key: str) -> None:
        self.keys.pop(key, None)


class FakeLock:
    def __init__(self, client: FakeBroker, *, is_free: bool = True) -> None:
        self.client = client
        self.is_free = is_free
        self.fence = 7
        self.log: list[str] = []
        self.error: Exception | None = None
        self._is_held = False

    def acquire(self) -> bool:
        self.log.append("acquire")
        if self.error is not None:
            raise self.error
        self._is_held = self.is_free
        return self.is_free

    def is_held(self) -> bool:
        return self._is_held

    def release(self) -> None:
        self.log.append("release")
        self._is_held = False


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(
        current_app, "send_task", lambda name, **options: messages.append({"name": name, **options})
    )
    return messages


@pytest.fixture
def harness() -> Iterator[Harness]:
    with open_harness() as running_shard:
        yield running_shard


def running(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, *, is_free: bool = True
) -> tuple[FakeLock, list[CycleSummary]]:
    lock = FakeLock(FakeBroker(), is_free=is_free)
    reported: list[CycleSummary] = []
    reporter = Reporter("default")
    monkeypatch.setattr(Reporter, "offer", lambda _, summary: reported.append(summary))
    running_shard = RunningShard(harness.worker, lock, reporter)  # type: ignore[arg-type]
    monkeypatch.setitem(services._running, "default", running_shard)
    return lock, reported


def test_many_kicks_before_a_cycle_are_one_message(sent: list[dict[str, Any]]) -> None:
    broker = FakeBroker()
    assert services.kick(broker, "a100")  # type: ignore[arg-type]
    assert not services.kick(broker, "a100")  # type: ignore[arg-type]
    assert services.kick(broker, "default")  # type: ignore[arg-type]
    assert sent == [
        {"name": "scheduler.tasks.run_cycle", "args": (shard,), "queue": queue, "expires": 2.0}
        for shard, queue in (("a100", "shard.a100"), ("default", "shard.default"))
    ]


def test_kick_without_a_broker_is_left_to_the_clock(sent: list[dict[str, Any]]) -> None:
    broker = FakeBroker()
    broker.is_down = True
    assert not services.kick(broker, "default")  # type: ignore[arg-type]
    assert sent == []


def test_cycle_runs_under_the_lock_and_opens_the_way_for_the_next_kick(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, reported = running(harness, monkeypatch)
    lock.client.keys[services.kick_key("default")] = "1"
    harness.cluster().pending("pg").watch()
    summary = services.run_cycle("default")
    assert summary is not None
    assert [ref.name for ref in summary.commit.bound] == ["pg-0"]
    assert reported == [summary]
    assert lock.client.keys == {}
    # The lock is kept, so that no other worker decides on an older view.
    services.run_cycle("default")
    assert lock.log == ["acquire"]


def test_no_cycle_while_another_worker_holds_the_shard(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, reported = running(harness, monkeypatch, is_free=False)
    harness.cluster().pending("pg").watch()
    assert services.run_cycle("default") is None
    assert (lock.log, reported) == (["acquire"], [])


def test_no_cycle_before_the_cluster_is_known(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, _ = running(harness, monkeypatch)
    harness.cluster().pending("pg")
    assert services.run_cycle("default") is None
    assert lock.log == []


def test_lock_is_given_back_when_a_cycle_fails(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, reported = running(harness, monkeypatch)
    harness.watch()

    def fail(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(type(harness.worker), "cycle", lambda _, **options: fail(**options))
    with pytest.raises(ZeroDivisionError):
        services.run_cycle("default")
    assert (lock.log, reported) == (["acquire", "release"], [])


def test_a_worker_stands_by_while_another_holds_the_lock(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, _ = running(harness, monkeypatch, is_free=False)
    assert not services.is_standby("default")  # it knows nothing of the cluster yet
    harness.cluster().watch()
    assert services.is_standby("default")
    lock.is_free = True
    assert not services.is_standby("default")
    assert not services.is_standby("default")
    assert lock.log == ["acquire", "acquire"]


@pytest.mark.parametrize("error", [redis.ConnectionError("away"), ServerError("away")])
def test_a_lock_that_cannot_be_asked_for_makes_no_standby(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    lock, _ = running(harness, monkeypatch)
    harness.cluster().watch()
    lock.error = error
    assert not services.is_standby("default")


def test_a_taken_port_keeps_no_shard_from_scheduling(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.KAIWEB_DEBUG_TOKEN = "s3cret"
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = settings.KAIWEB_SCHEDULER_METRICS_PORT = listener.getsockname()[1]
        listener.listen()
        running(harness, monkeypatch)
        harness.cluster().pending("pg").watch()
        summary = services.run_cycle("default")
        assert summary is not None
        assert [ref.name for ref in summary.commit.bound] == ["pg-0"]
    services.run_cycle("default")
    assert _status(port, "/metrics") == 200
    # A page of a plugin is there while the plugin is on.
    assert _status(port, "/get-job-order") == 404
    spec = {"plugins": {"reflectjoborder": {"enabled": True}}}
    harness.seed(SHARDS, {"metadata": meta("default"), "spec": spec}).watch()
    services.run_cycle("default")
    services.run_cycle("default")
    assert _status(port, "/get-job-order") == 200
    pages = services._running["default"].pages
    assert pages is not None
    pages.stop()


def _status(port: int, path: str) -> int:
    try:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}{path}", headers={"Authorization": "Bearer s3cret"}
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return int(error.code)
