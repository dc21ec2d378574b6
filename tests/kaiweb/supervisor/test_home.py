"""The state folder: private, of one installation at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaiweb.settings.env import EnvError
from kaiweb.supervisor import ports
from kaiweb.supervisor.errors import StartError
from kaiweb.supervisor.home import claim_home, prepare_home

URL = "http://127.0.0.1:8000/"


@pytest.fixture(autouse=True)
def umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_a_home_in_use_is_refused_with_the_pid_and_url_of_the_running_installation(
    tmp_path: Path,
) -> None:
    first = claim_home(tmp_path, URL)
    with pytest.raises(StartError, match=rf"in use by another .*\(pid {os.getpid()}, {URL}\)"):
        claim_home(tmp_path, "http://127.0.0.1:9000/")
    with pytest.raises(StartError, match=rf"pid {os.getpid()}, {URL}"):
        claim_home(tmp_path, "http://127.0.0.1:9000/")
    os.close(first)
    os.close(claim_home(tmp_path, "http://127.0.0.1:9000/"))


def test_a_second_start_changes_nothing_in_a_home_in_use(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"broker": 1}')
    (tmp_path / "processes.json").write_text('{"web": 1}')
    (tmp_path / "secret-key").write_text("key")
    (tmp_path / "debug-token").write_text("token")
    claim = claim_home(tmp_path, URL)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    second = _up({"KAIWEB_HOME": str(tmp_path), "KAIWEB_PORT": str(ports.pick())})
    os.close(claim)
    assert second.returncode == 2
    assert f"is in use by another `kaiweb up` (pid {os.getpid()}, {URL})" in second.stderr
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_old_home_is_made_private_and_cleared_of_beats_file(tmp_path: Path) -> None:
    for name in (
        "kaiweb.sqlite3",
        "kaiweb.sqlite3-wal",
        "kaiweb.sqlite3-shm",
        "celerybeat-schedule",
    ):
        (tmp_path / name).write_text("")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "web.log").write_text("")
    os.close(claim_home(tmp_path, URL))
    prepare_home(tmp_path)
    readable = [path for path in [tmp_path, *tmp_path.rglob("*")] if path.stat().st_mode & 0o077]
    assert (readable, (tmp_path / "celerybeat-schedule").exists()) == ([], False)


def test_a_folder_that_all_users_share_is_no_home_and_stays_as_it_is(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    with pytest.raises(EnvError, match=r"KAIWEB_HOME: expected a folder .*all users share"):
        claim_home(shared, URL)
    assert shared.stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("{", "Expecting property name"),
        ("[]", "a list"),
        ('{"broker": "x"}', "'x' for 'broker'"),
        ('{"broker": 70000}', "70000 for 'broker'"),
        ("\x00", "Expecting value"),
    ],
)
def test_a_damaged_ports_file_is_named_and_left_alone(
    tmp_path: Path, content: str, fault: str
) -> None:
    file = tmp_path / "ports.json"
    file.write_text(content)
    with pytest.raises(StartError, match=rf"{file}: expected .*{fault}.*delete the file"):
        ports.remembered(tmp_path, ("broker",))
    assert file.read_text() == content


def _up(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `kaiweb up` to its end: the environment must be one that is refused."""
    inherited = {key: value for key, value in os.environ.items() if key != "REDIS_URL"}
    return subprocess.run(
        [sys.executable, "-m", "kaiweb", "up"],
        env={**inherited, "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("KAIWEB_PORT", "80000", "expected a port from 1 to 65535, got '80000'"),
        ("KAIWEB_NODES", "9", "expected demo, none or <nodes>x<GPUs>, e.g. 500x8, got '9'"),
        (
            "REDIS_URL",
            "redis://:hidden@127.0.0.1:1/0",
            "expected a Redis or Valkey that answers, got 'redis://:***@127.0.0.1:1/0' (Error",
        ),
        (
            "DATABASE_URL",
            "postgresql://u:hidden@127.0.0.1:1/db",
            "expected a database that takes connections, got 'postgresql://u:***@127.0.0.1:1/db' (",
        ),
        ("KAIWEB_HOME", "/proc/kaiweb", "can be written, got /proc/kaiweb (No such file"),
    ],
)
def test_a_wrong_variable_is_one_line_that_names_it_before_anything_starts(
    tmp_path: Path, variable: str, value: str, expected: str
) -> None:
    home = {"KAIWEB_HOME": str(tmp_path), "KAIWEB_PORT": str(ports.pick())}
    refused = _up({**home, variable: value})
    (line,) = refused.stderr.strip().splitlines()
    assert f"{variable}: expected" in line
    assert expected in line
    assert "hidden" not in line
    assert (refused.returncode, refused.stdout) == (2, "")
    assert not (tmp_path / "processes.json").exists()


def test_a_damaged_database_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "kaiweb.sqlite3").write_text("no database")
    refused = _up({"KAIWEB_HOME": str(tmp_path), "KAIWEB_PORT": str(ports.pick())})
    (line,) = refused.stderr.strip().splitlines()
    assert f"{tmp_path / 'kaiweb.sqlite3'}: expected a SQLite database, got a damaged file" in line
    assert "users, tokens, edits and settings are only in this file" in line
    assert (refused.returncode, refused.stdout) == (2, "")
