"""What a fault may touch, and the table that is printed about it."""

from __future__ import annotations

import os
import pathlib
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kube.gateway import Gateway
from tests.deploy.installed import Replica
from tests.deploy.whole import Whole
from tests.faults.clock import TestClock
from tests.faults.load import Observer
from tests.faults.proxy import Proxy

TICK_S = 0.2
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Scene:
    """An installation under load; `gateway` and `observer` go past the proxy."""

    whole: Whole
    proxy: Proxy
    gateway: Gateway
    observer: Observer
    clock: TestClock | None

    def rest(self, seconds: float) -> None:
        """Wait while replicas that end are started again, as kubelets do."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.whole.installed.tend()
            time.sleep(TICK_S)

    def await_that(self, holds: Callable[[], bool], timeout_s: float) -> float | None:
        """Wait until it holds; return the seconds, None if it never did."""
        began = time.monotonic()
        while not holds():
            if time.monotonic() - began > timeout_s:
                return None
            self.rest(TICK_S)
        return time.monotonic() - began

    def busiest(self, process: str) -> Replica:
        """Return the replica of a process that works: the leader, where one leads."""
        replicas = [
            replica
            for replica in self.whole.installed.replicas
            if replica.name.startswith(f"{process}-") and replica.is_alive
        ]
        before = {replica.name: _processor_s(replica) for replica in replicas}
        self.rest(2.0)
        return max(replicas, key=lambda replica: _processor_s(replica) - before[replica.name])

    @contextmanager
    def stopped(self, *replicas: Replica) -> Iterator[None]:
        """Let replicas stand still (SIGSTOP) while the block runs."""
        for replica in replicas:
            _signal(replica, signal.SIGSTOP)
        try:
            yield
        finally:
            for replica in replicas:
                _signal(replica, signal.SIGCONT)


def _signal(replica: Replica, sign: signal.Signals) -> None:
    assert replica.process is not None
    os.killpg(replica.process.pid, sign)


def _processor_s(replica: Replica) -> float:
    assert replica.process is not None
    with pathlib.Path(f"/proc/{replica.process.pid}/stat").open() as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND
