"""What a fault may touch: the installation under load, with its proxy, its clock and its observer."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kube.gateway import Gateway
from tests.deploy.installed import Replica
from tests.deploy.whole import WholeInstallation
from tests.faults.clock import TestClock
from tests.faults.load import Observer
from tests.faults.proxy import Proxy
from tests.processes import processes

TICK_S = 0.2


@dataclass(slots=True)
class Scene:
    """An installation under load; `gateway` and `observer` go past the proxy."""

    whole: WholeInstallation
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
        before = _processor_seconds()
        self.rest(2.0)
        after = _processor_seconds()

        def used_s(replica: Replica) -> float:
            assert replica.process is not None
            pid = replica.process.pid
            return after.get(pid, 0.0) - before.get(pid, 0.0)

        return max(replicas, key=used_s)

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


def _processor_seconds() -> dict[int, float]:
    """Return what each process of this machine has used so far, by pid."""
    return {process.pid: process.cpu_s for process in processes()}
