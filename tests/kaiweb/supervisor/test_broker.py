"""The embedded broker asks for a password that no other user of the machine can read."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
from kombu import Connection
from redis.backoff import NoBackoff
from redis.retry import Retry

from kaiweb.supervisor.broker import (
    broker_command,
    broker_password,
    broker_url,
    write_broker_config,
)


def test_the_password_is_kept_in_private_files_and_on_no_command_line(tmp_path: Path) -> None:
    home = tmp_path / 'a "home" with spaces'
    write_broker_config(port=6379, home=home)
    password = broker_password(home)
    assert len(password) >= 32
    assert broker_password(home) == password
    assert {file.stat().st_mode & 0o777 for file in home.iterdir()} == {0o600}
    assert not any(password in word for word in broker_command(home))
    assert broker_url(port=6379, home=home) == f"redis://:{password}@127.0.0.1:6379/0"


@dataclass(frozen=True, slots=True)
class Broker:
    port: int
    home: Path
    output: Path

    @property
    def url(self) -> str:
        return broker_url(port=self.port, home=self.home)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = tmp_path_factory.mktemp("home") / 'with "quotes" and spaces'
    write_broker_config(port=port, home=home)
    output = home / "broker.log"
    with output.open("wb") as stream:
        process = subprocess.Popen(broker_command(home), stdout=stream, stderr=stream)
    try:
        deadline = time.monotonic() + 10
        while not _accepts(port) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield Broker(port, home, output)
    finally:
        process.terminate()
        process.wait(10)


def _accepts(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=0.5).close()
    except OSError:
        return False
    return True


@pytest.mark.integration
@pytest.mark.parametrize("password", [None, "", "guessed"])
def test_a_connection_without_the_password_is_refused(broker: Broker, password: str | None) -> None:
    with redis.Redis(port=broker.port, password=password, retry=Retry(NoBackoff(), 0)) as stranger:
        with pytest.raises(redis.AuthenticationError):
            stranger.set("kaiweb:lock:default", "evil")
        with pytest.raises(redis.AuthenticationError):
            stranger.ping()


@pytest.mark.integration
def test_our_own_clients_get_in_and_the_password_is_not_logged(broker: Broker) -> None:
    with redis.Redis.from_url(broker.url) as client:
        assert client.ping()
    with Connection(broker.url) as connection:
        connection.ensure_connection(max_retries=1)
        assert broker_password(broker.home) not in connection.as_uri()
    assert broker_password(broker.home) not in broker.output.read_text()
