"""Liveness of the web process, and readiness of the whole installation.

Anybody may ask at any rate: the checks run at most once a second, and for one request at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.http import HttpRequest, JsonResponse
from django.utils import timezone

from kaiweb.health.checks import (
    BrokerCheck,
    Check,
    CyclesCheck,
    DatabaseCheck,
    HomeCheck,
    InBackground,
    MigrationsCheck,
    MirrorCheck,
    config_fault,
    processes_fault,
)
from kube.values.times import format_time

FRESH_S = 1.0
TIMEOUT_S = 2.0


@dataclass(frozen=True, slots=True)
class Fault:
    """What one check has found wrong, and since when."""

    check: str
    text: str
    since: datetime


@dataclass(slots=True)
class Readiness:
    """Runs the checks and remembers each fault and since when it holds."""

    checks: Mapping[str, Check]
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], datetime] = timezone.now
    timeout_s: float = TIMEOUT_S
    _faults: tuple[Fault, ...] = ()
    _since: dict[str, datetime] = field(default_factory=dict)
    _checked_at: float = float("-inf")
    _started_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def faults(self) -> tuple[Fault, ...]:
        """Return the present faults, at most a second old."""
        if self.clock() - self._checked_at < FRESH_S:
            return self._faults
        # Another request runs the checks. Do not wait long, or a hanging check would occupy all threads.
        if not self._lock.acquire(timeout=self.timeout_s):
            running_s = self.clock() - self._started_at
            text = f"a check has not answered for {running_s:.0f} s"
            return (*self._faults, Fault("readiness", text, self.wall()))
        try:
            if self.clock() - self._checked_at >= FRESH_S:
                self._started_at = self.clock()
                self._faults = tuple(self._run_checks())
                self._checked_at = self.clock()
            return self._faults
        finally:
            self._lock.release()

    def forget(self) -> None:
        """Run the checks at the next call, also within the second (for tests)."""
        self._checked_at = float("-inf")

    def _run_checks(self) -> list[Fault]:
        now = self.wall()
        texts = {name: check() for name, check in self.checks.items()}
        self._since = {name: self._since.get(name, now) for name, text in texts.items() if text}
        return [Fault(name, text, self._since[name]) for name, text in texts.items() if text]


CYCLES = CyclesCheck()
READINESS = Readiness(
    {
        "database": DatabaseCheck(),
        "home": HomeCheck(),
        "migrations": MigrationsCheck(),
        "broker": BrokerCheck(),
        "cluster": InBackground(config_fault),
        "processes": processes_fault,
        "cycles": CYCLES,
        "mirror": MirrorCheck(),
    }
)


def healthz(_request: HttpRequest) -> JsonResponse:
    """Answer 200, which shows that the process is alive."""
    return JsonResponse({"status": "ok"})


def readyz(_request: HttpRequest) -> JsonResponse:
    """Answer 200 when every check passes, else 503; the body names each check, its fault and since when."""
    faults = READINESS.faults()
    texts = {fault.check: fault.text for fault in faults}
    body: dict[str, Any] = {
        "status": "unready" if faults else "ok",
        "checks": {**dict.fromkeys(READINESS.checks, "ok"), **texts},
    }
    if faults:
        body["since"] = {fault.check: format_time(fault.since) for fault in faults}
    return JsonResponse(body, status=503 if faults else 200)
