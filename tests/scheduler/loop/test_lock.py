"""One holder per shard, renewed while it lives, with a fence that grows from holder to holder."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from kaiweb.supervisor.broker import broker_command, broker_url, write_broker_config
from kube.errors import ServerError
from scheduler.loop.lock import ShardLock

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home: Path = tmp_path_factory.mktemp("broker")
    write_broker_config(port=port, home=home)
    process = subprocess.Popen(broker_command(home))
    connection = redis.Redis.from_url(broker_url(port=port, home=home))
    try:
        for _ in range(100):
            try:
                connection.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        yield connection
    finally:
        connection.close()
        process.terminate()
        process.wait(10)


@pytest.fixture(autouse=True)
def clean(client: redis.Redis) -> None:
    client.flushall()


class Fences:
    """Numbers that rise, as the cluster keeps them."""

    def __init__(self) -> None:
        self.last = 100
        self.is_down = False

    def next_fence(self) -> int:
        if self.is_down:
            raise ServerError("the cluster is away")
        self.last += 1
        return self.last


@pytest.fixture
def fences() -> Fences:
    return Fences()


@pytest.fixture
def lock(client: redis.Redis, fences: Fences) -> Callable[..., ShardLock]:
    """Return a function that makes locks which share one source of fences."""

    def make(**options: Any) -> ShardLock:
        return ShardLock(client, "default", fences.next_fence, **options)

    return make


def test_second_worker_waits_until_the_first_lets_go(lock: Callable[..., ShardLock]) -> None:
    first, second = lock(), lock()
    assert first.acquire()
    assert first.is_held()
    assert not second.acquire()
    first.release()
    assert not first.is_held()
    assert second.acquire()
    second.release()


def test_fence_grows_with_the_holder_not_with_the_cycle(lock: Callable[..., ShardLock]) -> None:
    first, second = lock(), lock()
    fences = []
    for holder in (first, first, second, first):
        assert holder.acquire()
        fences.append(holder.fence)
        holder.release()
    assert fences == [101, 101, 102, 103]


def test_killed_holder_is_replaced_after_its_time(lock: Callable[..., ShardLock]) -> None:
    dead, heir = lock(ttl_s=0.2), lock()
    assert dead.acquire()
    assert dead._stop is not None
    dead._stop.set()  # its renewing thread died with it
    assert not heir.acquire()
    deadline = time.monotonic() + 2
    while not heir.acquire():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert not dead.is_held()
    assert not dead.renew()
    heir.release()


def test_long_cycle_keeps_its_lock(lock: Callable[..., ShardLock]) -> None:
    holder, other = lock(ttl_s=0.3), lock()
    assert holder.acquire()
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        assert not other.acquire()
        assert holder.is_held()
        time.sleep(0.05)
    holder.release()


def test_release_leaves_the_lock_of_another_alone(lock: Callable[..., ShardLock]) -> None:
    late, owner = lock(ttl_s=0.1), lock()
    assert late.acquire()
    assert late._stop is not None
    late._stop.set()
    time.sleep(0.2)
    assert owner.acquire()
    late.release()
    assert not lock().acquire()
    owner.release()


def test_fence_rises_when_the_broker_has_forgotten_everything(
    client: redis.Redis, lock: Callable[..., ShardLock]
) -> None:
    holder = lock()
    assert holder.acquire()
    before = holder.fence
    holder.release()
    client.flushall()
    assert holder.acquire()
    assert holder.fence == before + 1
    holder.release()


def test_without_a_fence_number_the_lock_is_given_back(
    lock: Callable[..., ShardLock], fences: Fences
) -> None:
    fences.is_down = True
    unlucky, other = lock(), lock()
    with pytest.raises(ServerError):
        unlucky.acquire()
    assert not unlucky.is_held()
    fences.is_down = False
    assert other.acquire()
    other.release()
    assert unlucky.acquire()
    assert unlucky.fence == other.fence + 1
    unlucky.release()


@pytest.mark.parametrize("life_s", [None, 6000])
def test_a_lock_that_nobody_renews_is_removed(
    client: redis.Redis, lock: Callable[..., ShardLock], life_s: int | None
) -> None:
    """A key without expiry that no scheduler set, or one of a dead holder after the clock has stepped back."""
    client.set("kaiweb:lock:default", "evil", ex=life_s)
    now = [100.0]
    waiting = lock(clock=lambda: now[0])
    for _ in range(6):
        assert not waiting.acquire()
        now[0] += 1.0
    assert client.get("kaiweb:lock:default") == b"evil"
    assert not waiting.acquire()
    assert waiting.acquire()
    waiting.release()


def test_a_living_holder_is_never_removed(
    client: redis.Redis, lock: Callable[..., ShardLock]
) -> None:
    holder = lock()
    now = [100.0]
    waiting = lock(clock=lambda: now[0])
    assert holder.acquire()
    for _ in range(20):
        assert not waiting.acquire()
        now[0] += 1.0
    assert holder.renew()
    holder.release()


def test_a_lock_that_was_lost_is_taken_again_with_one_renewing_thread(
    client: redis.Redis, lock: Callable[..., ShardLock]
) -> None:
    holder = lock(ttl_s=0.3)
    assert holder.acquire()
    first = holder._stop
    client.flushall()
    assert not holder.renew()
    assert holder.acquire()
    assert first is not None
    assert first.is_set()
    time.sleep(0.5)
    assert holder.is_held()
    holder.release()
