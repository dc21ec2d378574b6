"""A running embedded API server for tests, on a free port and in a process of its own.

    with sandbox_server(tmp_path) as server:
        client = Client.from_kubeconfig(server.kubeconfig)

As a pytest fixture: `from tests.fakes.sandbox_server import sandbox` (session scope, in memory) and
mark the test `integration`.
"""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
READY_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxServer:
    """Where the server is and how to talk to it."""

    url: str
    token: str
    kubeconfig: Path
    home: Path
    ca_file: Path
    pid: int

    @property
    def folder(self) -> Path:
        """Where programs beside it keep their files and logs."""
        return self.home

    def add_token(self, token: str, user: str, *groups: str) -> None:
        """Let another user in; the server reads the file when it meets the token."""
        path = self.home / "tokens.yaml"
        entries = yaml.safe_load(path.read_text())
        entries.append({"token": token, "user": user, "groups": list(groups)})
        path.write_text(yaml.safe_dump(entries))


@contextmanager
def sandbox_server(home: Path, *flags: str, persistent: bool = False) -> Iterator[SandboxServer]:
    """Start a server below `home`, yield when it answers, stop it at the end."""
    command = [sys.executable, "-m", "sandbox.apiserver", "--home", str(home), *flags]
    if not persistent:
        command.append("--in-memory")
    home.mkdir(parents=True, exist_ok=True)
    log = home / "apiserver.log"
    with log.open("wb") as stream:
        process = subprocess.Popen(command, cwd=CHECKOUT, stderr=stream)
    try:
        _await_ready(process, log)
        config = yaml.safe_load((home / "kubeconfig").read_text())
        server = SandboxServer(
            url=config["clusters"][0]["cluster"]["server"],
            token=config["users"][0]["user"]["token"],
            kubeconfig=home / "kubeconfig",
            home=home,
            ca_file=home / "pki" / "ca.crt",
            pid=process.pid,
        )
        _ask_version(server)
        yield server
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(process: subprocess.Popen[bytes], log: Path) -> None:
    """Read the log until the server says that it listens."""
    deadline = time.monotonic() + READY_TIMEOUT_S
    while b"sandbox API at" not in log.read_bytes():
        if process.poll() is not None:
            raise RuntimeError(f"the sandbox ended at start: {log.read_text()}")
        if time.monotonic() > deadline:
            raise TimeoutError(
                f"the sandbox did not start in {READY_TIMEOUT_S} s: {log.read_text()}"
            )
        time.sleep(0.02)


def _ask_version(server: SandboxServer) -> None:
    context = ssl.create_default_context(cafile=server.ca_file)
    with urllib.request.urlopen(f"{server.url}/version", context=context, timeout=5) as reply:
        reply.read()


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SandboxServer]:
    with sandbox_server(tmp_path_factory.mktemp("sandbox")) as server:
        yield server
