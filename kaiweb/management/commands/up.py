"""`kaiweb up`: start a whole installation, print how to reach it, and keep it running until Ctrl-C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from kaiweb.__main__ import USAGE_EXIT
from kaiweb.first_user import NAME as FIRST_USER
from kaiweb.first_user import first_password
from kaiweb.machine import accepts
from kaiweb.settings import env
from kaiweb.settings.env import EnvError
from kaiweb.supervisor import ports
from kaiweb.supervisor.announcement import Announcement
from kaiweb.supervisor.broker import write_broker_config
from kaiweb.supervisor.desired import DesiredFile, DesiredProcesses
from kaiweb.supervisor.errors import StartError
from kaiweb.supervisor.home import claim_home, prepare_home
from kaiweb.supervisor.layout import (
    EMBEDDED_PORTS,
    Installation,
    check_environment,
    read_installation,
    specs_with_ports,
)
from kaiweb.supervisor.preflight import (
    check_cluster_file,
    check_database,
    check_redis,
    check_web_port,
)
from kaiweb.supervisor.process import ProcessSpec
from kaiweb.supervisor.supervisor import Supervisor
from kaiweb.terminal_access import write_terminal_access

#: Broker and cluster start in wave 0; the processes of the waves after it start when both answer.
LAST_WAVE = 2
START_S = 60.0
# Short, because the children are not supervised meanwhile.
READY_TIMEOUT_S = 3.0


class Command(BaseCommand):
    """Start, watch and stop the processes."""

    help = "Start everything on embedded defaults and print the URL (Ctrl-C ends it all)."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Start the processes wave by wave; each wave needs the one before it."""
        started = time.monotonic()
        home = Path(settings.KAIWEB_HOME)
        try:
            claim = claim_home(home, _url(settings.KAIWEB_PORT))
            plan = _prepare(home)
            desired = DesiredFile(home, self._say)
            first = specs_with_ports(plan, desired.changed() or DesiredProcesses())
        except (EnvError, StartError) as error:
            raise CommandError(str(error), returncode=USAGE_EXIT) from error
        try:
            self._run(plan, desired, first, started)
        finally:
            os.close(claim)

    def _run(
        self, plan: Installation, desired: DesiredFile, first: list[ProcessSpec], started: float
    ) -> None:
        home = plan.home
        supervisor = Supervisor(first, home=home, say=self._say)
        supervisor.handle_signals()
        try:
            supervisor.start_wave(0)
            if not supervisor.wait_for(
                lambda: _answers_all(plan), what="broker and cluster", timeout_s=START_S
            ):
                return
            self._bootstrap(plan)
            for wave in range(1, LAST_WAVE + 1):
                supervisor.start_wave(wave)
            announcement = Announcement(
                lambda: _unready(plan),
                lambda: self._welcome(plan, time.monotonic() - started),
                self._say,
            )

            def follow() -> list[ProcessSpec] | None:
                announcement.look()
                return self._follow(plan, desired)

            supervisor.run(follow)
        except TimeoutError as error:
            raise CommandError(f"{error} in {home / 'logs'}") from error
        finally:
            self._say("stopping")
            supervisor.stop()
            self._say("everything is stopped")

    def _say(self, line: str) -> None:
        self.stdout.write(f"kaiweb: {line}")
        self.stdout.flush()

    def _follow(self, plan: Installation, file: DesiredFile) -> list[ProcessSpec] | None:
        desired = file.changed()
        if desired is None:
            return None
        try:
            return specs_with_ports(plan, desired)
        except (StartError, OSError) as error:
            self._say(f"cannot apply the wanted file, the processes stay as they are: {error}")
            return None

    def _bootstrap(self, plan: Installation) -> None:
        log = plan.home / "logs" / "bootstrap.log"
        with log.open("w") as stream:
            result = subprocess.run(
                [sys.executable, "-m", "kaiweb", "bootstrap"],
                env={**os.environ, **plan.environment},
                stdout=stream,
                stderr=stream,
                check=False,
            )
        if result.returncode:
            last_line = (log.read_text().strip().splitlines() or ["no output"])[-1]
            raise CommandError(f"bootstrap failed: {last_line}; all of its output is in {log}")

    def _welcome(self, plan: Installation, seconds: float) -> None:
        password = _prepare_access(plan)
        login = f"{FIRST_USER} / {password}" if password else "as configured"
        self.stdout.write(
            f"\n  kaiweb is up after {seconds:.1f} s\n"
            f"  URL    {_url(plan.web_port)}\n"
            f"  login  {login}\n"
            f"  export KUBECONFIG={plan.kubeconfig}\n"
            f"  shell  kaiweb top, kaiweb queues, kaiweb why NAMESPACE/NAME, kaiweb order\n"
            f"  logs   {plan.home / 'logs'}    Ctrl-C ends everything\n"
        )
        self.stdout.flush()


def _prepare_access(plan: Installation) -> str | None:
    """Write the access file of the terminal; return the first user's generated password if it is still valid."""
    try:
        write_terminal_access(plan.home, _url(plan.web_port).rstrip("/"))
        return first_password(plan.home)
    except DatabaseError:
        return None  # the database was there a moment ago; the password is still in its file
    finally:
        connection.close()


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}/"


def _prepare(home: Path) -> Installation:
    """Check the environment and prepare the home, which this process has claimed."""
    check_environment()
    prepare_home(home)
    check_web_port(settings.KAIWEB_PORT)
    check_database(settings.DATABASES["default"], env.text("DATABASE_URL"))
    plan = read_installation(home, ports.remembered(home, EMBEDDED_PORTS))
    if plan.has_sandbox:
        check_cluster_file(home)
    if plan.has_own_broker:
        write_broker_config(port=plan.ports["broker"], home=home)
    else:
        check_redis(plan.redis_url)
    return plan


def _answers_all(plan: Installation) -> bool:
    expected = []
    if plan.has_own_broker:
        expected.append(plan.ports["broker"])
    if plan.has_sandbox:
        if not plan.kubeconfig.exists():
            return False
        expected.append(plan.ports["cluster"])
    return all(accepts(port) for port in expected)


def _unready(plan: Installation) -> dict[str, str]:
    """Return the faults that readiness reports, by check."""
    url = f"http://127.0.0.1:{plan.web_port}/readyz"
    try:
        with urllib.request.urlopen(url, timeout=READY_TIMEOUT_S):
            return {}
    except urllib.error.HTTPError as error:
        try:
            checks: dict[str, str] = json.loads(error.read())["checks"]
        except (OSError, ValueError, KeyError):
            return {"web": f"{url} answers {error.code}"}
        return {name: text for name, text in checks.items() if text != "ok"}
    except OSError as error:
        return {"web": f"{url} does not answer yet: {error}; see logs/web.log"}
