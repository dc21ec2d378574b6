"""What is found wrong before a start, each named with what to do about it."""

from __future__ import annotations

import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from kaiweb.settings import env
from kaiweb.supervisor.errors import StartError
from kaiweb.supervisor.layout import check_environment
from kaiweb.supervisor.preflight import (
    check_cluster_file,
    check_database,
    check_redis,
    check_sqlite,
    check_web_port,
)


@pytest.mark.parametrize("raw", ["0", "-1", "65536", "abc", "8000.0", "9" * 5000])
def test_a_port_is_a_number_that_can_be_one(raw: str) -> None:
    with pytest.raises(env.EnvError, match=f"PORT: expected a port from 1 to 65535, got '{raw}'"):
        env.port("PORT", 8000, env={"PORT": raw})


def test_a_port_is_read_and_may_be_switched_off_where_that_means_something() -> None:
    assert env.port("PORT", 8000, env={"PORT": ""}) == 8000
    assert env.port("PORT", 8000, env={"PORT": "65535"}) == 65535
    assert env.port("PORT", 8000, may_be_off=True, env={"PORT": "0"}) == 0


def test_a_level_is_one_of_those_that_logging_knows() -> None:
    assert env.choice("LEVEL", "INFO", env.LOG_LEVELS, env={"LEVEL": "debug"}) == "DEBUG"
    with pytest.raises(env.EnvError, match=r"LEVEL: expected one of DEBUG, .*, got 'LOUD'"):
        env.choice("LEVEL", "INFO", env.LOG_LEVELS, env={"LEVEL": "LOUD"})


@pytest.mark.parametrize("url", ["localhost", "http://h/0", "redis://h:port/0", "unix:///s"])
def test_a_url_that_is_no_redis_is_refused(url: str) -> None:
    with pytest.raises(env.EnvError, match="REDIS_URL: expected"):
        env.redis_url(env={"REDIS_URL": url})


def test_a_redis_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(env.EnvError, match=r"REDIS_URL: .*got 'redis://u:\*\*\*@127.0.0.1:1/0' \("):
        check_redis("redis://u:hidden@127.0.0.1:1/0")


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://u:hidden@h/db", "postgresql:// or sqlite://, got 'mysql://u:***@h/db'"),
        ("postgresql://h:port/db", "a URL, got 'postgresql://h:port/db'"),
        ("postgresql://h/", "a database name"),
    ],
)
def test_a_database_url_of_another_form_is_refused(url: str, expected: str) -> None:
    with pytest.raises(env.EnvError) as refused:
        env.database(url, sqlite_file=Path("x"))
    assert f"DATABASE_URL: expected {expected}" in str(refused.value)


def test_a_sqlite_file_needs_a_folder(tmp_path: Path) -> None:
    entry: dict[str, Any] = env.sqlite(tmp_path / "absent" / "db")
    with pytest.raises(env.EnvError, match="expected a file in a folder that exists, got sqlite:"):
        check_database(entry, f"sqlite:///{tmp_path}/absent/db")


def test_a_damaged_file_is_named_with_what_is_in_it_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "objects.sqlite3"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE objects (body TEXT)")
        connection.executemany("INSERT INTO objects VALUES (?)", [("x" * 3000,)] * 20)
    connection.close()
    check_cluster_file(tmp_path)
    damaged = bytearray(file.read_bytes())
    damaged[4096:12288] = b"\xff" * 8192
    file.write_bytes(damaged)
    with pytest.raises(StartError) as refused:
        check_cluster_file(tmp_path)
    text = str(refused.value)
    assert text.startswith(f"{file}: expected a SQLite database, got a damaged file (")
    assert "It holds every object of the embedded cluster" in text
    assert "move it away together with its -wal and -shm files" in text
    assert file.read_bytes() == bytes(damaged)


def test_a_file_that_is_not_there_yet_is_fine(tmp_path: Path) -> None:
    check_sqlite(tmp_path / "kaiweb.sqlite3", "nothing")
    assert list(tmp_path.iterdir()) == []


def test_a_taken_web_port_is_named() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(
            StartError, match=f"port {port} is taken; choose another with KAIWEB_PORT"
        ):
            check_web_port(port)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("KAIWEB_SHARDS", "default,Two Pools"), ("KAIWEB_KUBECONFIG", "/no/such/file")],
)
def test_what_no_process_could_use_is_refused(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(env.EnvError, match=f"{variable}: expected"):
        check_environment()
