"""URLs of the broker, and a failover between servers that Sentinels watch."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from celery import Celery
from channels_redis.utils import create_pool
from kombu.exceptions import OperationalError

from kaiweb.settings import env
from kaiweb.supervisor import ports
from kaiweb.supervisor.broker import broker_binary
from queues.broker import connect_broker
from queues.broker_address import SentinelGroup, sentinel_group
from scheduler.loop.lock import ShardLock
from tests.integration.stack import wait_until

URL = "sentinel://:se%40cret@one:26379,two/3?master=kaiweb&sentinel_password=other"


def test_a_sentinel_url_names_the_sentinels_the_primary_and_both_passwords() -> None:
    assert sentinel_group(URL) == SentinelGroup(
        sentinels=(("one", 26379), ("two", 26379)),
        master="kaiweb",
        database=3,
        password="se@cret",
        sentinel_password="other",
    )


def test_the_url_of_one_server_is_no_group() -> None:
    assert sentinel_group("redis://:pw@host:6379/0") is None


def test_celery_and_channels_get_the_group_in_their_own_forms() -> None:
    group = sentinel_group(URL)
    assert group is not None
    assert group.celery_url() == (
        "sentinel://:se%40cret@one:26379/3;sentinel://:se%40cret@two:26379/3"
    )
    assert group.channels_host() == {
        "sentinels": [("one", 26379), ("two", 26379)],
        "master_name": "kaiweb",
        "db": 3,
        "password": "se@cret",
        "sentinel_kwargs": {"socket_timeout": 2.0, "password": "other"},
    }
    assert create_pool(group.channels_host()).service_name == "kaiweb"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sentinel://one:26379/0", "the name of the primary"),
        ("sentinel://one:x/0?master=m", "REDIS_URL: "),
        ("sentinel:///0?master=m", "HOST:PORT,HOST:PORT"),
        ("sentinel://one/zero?master=m", "a number as database"),
        ("sentinel://one/0?master=m&tls=1", "got tls"),
        ("http://one", "sentinel://"),
    ],
)
def test_an_url_that_cannot_be_used_is_refused_with_what_is_expected(
    url: str, message: str
) -> None:
    with pytest.raises(env.EnvError, match=message):
        env.redis_url(env={"REDIS_URL": url})


def test_both_passwords_are_left_out_of_messages() -> None:
    assert env.without_password(URL) == (
        "sentinel://:***@one:26379,two/3?master=kaiweb&sentinel_password=***"
    )


@dataclass(slots=True)
class Group:
    """A primary, a replica and a Sentinel."""

    url: str
    primary: subprocess.Popen[bytes]


@pytest.fixture
def group(tmp_path: Path) -> Iterator[Group]:
    first, second, sentinel = ports.pick(), ports.pick(), ports.pick()
    shared = ["bind 127.0.0.1", "requirepass secret", "masterauth secret", 'save ""']
    configs = {
        "first": [f"port {first}", *shared],
        "second": [f"port {second}", *shared, f"replicaof 127.0.0.1 {first}"],
        "sentinel": [
            f"port {sentinel}",
            "bind 127.0.0.1",
            f"sentinel monitor kaiweb 127.0.0.1 {first} 1",
            "sentinel auth-pass kaiweb secret",
            "sentinel down-after-milliseconds kaiweb 500",
            "sentinel failover-timeout kaiweb 2000",
        ],
    }
    with ExitStack() as stack:
        processes = {}
        for name, lines in configs.items():
            folder = tmp_path / name
            folder.mkdir()
            file = folder / "conf"
            file.write_text("\n".join([*lines, f"dir {folder}"]) + "\n")
            mode = ["--sentinel"] if name == "sentinel" else []
            processes[name] = subprocess.Popen(
                [broker_binary(), str(file), *mode], stdout=subprocess.DEVNULL
            )
            stack.callback(processes[name].wait)
            stack.callback(processes[name].kill)
        client = redis.Redis(port=sentinel)
        wait_until(lambda: _knows_a_replica(client), what="a Sentinel that knows the replica")
        client.close()
        url = f"sentinel://:secret@127.0.0.1:{sentinel}/0?master=kaiweb"
        yield Group(url, processes["first"])


def _knows_a_replica(client: redis.Redis) -> bool:
    try:
        replicas = client.sentinel_slaves("kaiweb")
    except redis.RedisError:
        return False
    return any(replica["master-link-status"] == "ok" for replica in replicas)


@pytest.mark.integration
def test_the_lock_and_messages_go_to_the_new_primary_after_a_failover(group: Group) -> None:
    client = connect_broker(group.url, socket_timeout=5)
    fences = iter(range(1, 100))
    first = ShardLock(client, "default", lambda: next(fences))
    assert first.acquire()
    group.primary.kill()
    other = connect_broker(group.url, socket_timeout=5)
    second = ShardLock(other, "default", lambda: next(fences))

    def takes_over() -> bool:
        try:
            return second.acquire()
        except redis.RedisError:
            return False

    began = time.monotonic()
    first.release()
    wait_until(takes_over, what="the lock at the new primary", timeout_s=60)
    print(f"the lock was taken {time.monotonic() - began:.1f} s after the primary was killed")
    assert second.fence > first.fence
    _check_that_messages_arrive(group.url, other)
    second.release()
    client.close()
    other.close()


def _check_that_messages_arrive(url: str, client: redis.Redis) -> None:
    addresses = sentinel_group(url)
    assert addresses is not None
    app = Celery("test", broker=addresses.celery_url())
    app.conf.broker_transport_options = {
        "master_name": addresses.master,
        "sentinel_kwargs": addresses.sentinel_options,
    }

    def is_sent() -> bool:
        try:
            app.send_task("a.task", queue="shard.default")
        except OperationalError:
            return False
        return True

    wait_until(is_sent, what="a message that was sent", timeout_s=30)
    assert client.llen("shard.default") == 1
    app.close()
