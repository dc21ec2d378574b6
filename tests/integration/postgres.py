"""A PostgreSQL server of our own on a free port, or a skip where PostgreSQL is not installed."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from kaiweb.supervisor import ports

OLDEST = 15
START_S = 30.0
_OWNER = "postgres"


@dataclass(slots=True)
class PostgresServer:
    """A server with an empty database; `url` is its DATABASE_URL."""

    url: str
    command: list[str]
    folder: Path
    user: str | None
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server process."""
        self.process = subprocess.Popen(
            self.command,
            user=self.user,
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self) -> None:
        """End the server as an administrator does who does not wait for open connections."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)  # "fast shutdown"
        self.process.wait(20)


@contextmanager
def postgres_or_skip() -> Iterator[str]:
    """Start a server with an empty database and yield its DATABASE_URL."""
    with postgres_server_or_skip() as server:
        yield server.url


@contextmanager
def postgres_server_or_skip() -> Iterator[PostgresServer]:
    """Start a server with an empty database; stop it and remove its data at the end."""
    programs = _programs()
    # A folder that the server's user can reach, which those of pytest are not.
    folder = Path(tempfile.mkdtemp(prefix="kaiweb-postgres-"))
    # PostgreSQL refuses to run as root; Debian's package brings a user for it.
    user = _OWNER if os.geteuid() == 0 else None
    if user:
        shutil.chown(folder, user)
    data, port = folder / "data", ports.pick()
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", "kaiweb", "-A", "trust", "-N"]
    subprocess.run(initdb, user=user, cwd=folder, capture_output=True, check=True)
    options = ["-D", str(data), "-p", str(port), "-k", str(folder)]
    options += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
    url = f"postgresql://kaiweb@127.0.0.1:{port}/"
    server = PostgresServer(
        url=f"{url}kaiweb",
        command=[str(programs / "postgres"), *options],
        folder=folder,
        user=user,
    )
    server.start()
    try:
        _create_database(url)
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder)


def _programs() -> Path:
    """Return the folder of the newest server programs."""
    installed = {
        int(path.parts[-3]): path.parent
        for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")
        if path.parts[-3].isdecimal()
    }
    on_path = shutil.which("initdb")
    if not installed and on_path:
        text = subprocess.run([on_path, "--version"], capture_output=True, text=True, check=True)
        version = re.search(r"(\d+)", text.stdout)
        assert version, f"initdb --version printed {text.stdout!r}"
        installed[int(version[1])] = Path(on_path).resolve().parent
    if not installed or max(installed) < OLDEST:
        pytest.skip(f"no PostgreSQL {OLDEST} or newer: apt-get install postgresql")
    return installed[max(installed)]


def _create_database(url: str) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            with psycopg.connect(f"{url}postgres", autocommit=True) as connection:
                connection.execute("CREATE DATABASE kaiweb")
                return
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
