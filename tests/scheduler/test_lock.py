"""One holder per shard, renewed while it lives, with a fence that grows from holder to holder."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from kaiweb.supervisor.broker import broker_command, broker_url, write_broker_config
from scheduler.lock import ShardLock

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis.Redis]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home: Path = tmp_path_factory.mktemp("broker")
    write_broker_config(port=port, home=home)
    process = subprocess.Popen(broker_command(home))
    made = redis.Redis.from_url(broker_url(port=port, home=home))
    try:
        for _ in range(100):
            try:
                made.ping()
                break
            except redis.ConnectionError:
                time.sleep(0.05)
        yield made
    finally:
        made.close()
        process.terminate()
        process.wait(10)


@pytest.fixture(autouse=True)
def clean(client: redis.Redis) -> None:
    client.flushall()


def lock(client: redis.Redis, *, ttl_s: float = 5.0) -> ShardLock:
    return ShardLock(client, "default", ttl_s=ttl_s, first_fence=100)


def test_second_worker_waits_until_the_first_lets_go(client: redis.Redis) -> None:
    first, second = lock(client), lock(client)
    assert first.acquire()
    assert first.is_held()
    assert not second.acquire()
    first.release()
    assert not first.is_held()
    assert second.acquire()
    second.release()


def test_fence_grows_with_the_holder_not_with_the_cycle(client: redis.Redis) -> None:
    first, second = lock(client), lock(client)
    fences = []
    for one in (first, first, second, first):
        assert one.acquire()
        fences.append(one.fence)
        one.release()
    assert fences == [101, 101, 102, 103]


def test_killed_holder_is_replaced_after_its_time(client: redis.Redis) -> None:
    dead, heir = lock(client, ttl_s=0.2), lock(client)
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


def test_long_cycle_keeps_its_lock(client: redis.Redis) -> None:
    holder, other = lock(client, ttl_s=0.3), lock(client)
    assert holder.acquire()
    deadline = time.monotonic() + 1.0
    while time.monotonic() < deadline:
        assert not other.acquire()
        assert holder.is_held()
        time.sleep(0.05)
    holder.release()


def test_release_leaves_the_lock_of_another_alone(client: redis.Redis) -> None:
    late, owner = lock(client, ttl_s=0.1), lock(client)
    assert late.acquire()
    assert late._stop is not None
    late._stop.set()
    time.sleep(0.2)
    assert owner.acquire()
    late.release()
    assert not lock(client).acquire()
    owner.release()
