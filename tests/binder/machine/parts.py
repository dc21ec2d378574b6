"""The real scheduler and the real binder as parts of a machine that runs in one thread."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import timedelta
from itertools import count
from threading import Event
from typing import Any
from uuid import UUID

from scheduler.loop.cycle import CycleSummary
from scheduler.metrics import METRICS
from tests.binder.interrupted import Killed
from tests.binder.machine.cluster import DeviceCluster
from tests.binder.machine.faults import FaultyGateway
from tests.binder.machine.kubelet import Kubelet
from tests.binder.objects import Harness as BinderHarness
from tests.scheduler.loop.harness import START
from tests.scheduler.loop.harness import Harness as SchedulerHarness


class InlineExecutor(Executor):
    """Runs work when it is submitted, so that a sequence happens in the same order each time."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class SchedulerPart:
    """The scheduler of the shard; a killed one is replaced by a new process."""

    def __init__(self, cluster: DeviceCluster) -> None:
        self.cluster = cluster
        self.gateway = FaultyGateway(cluster)
        self.seeds = count(1)
        self.fences = count(1)
        self.restart()

    def restart(self) -> None:
        self.gateway.plan.clear()
        self.harness = SchedulerHarness(gateway=self.gateway)  # type: ignore[arg-type]
        runner = self.harness.worker.runner
        runner.close()
        runner._writers = runner._status_writers = InlineExecutor()  # type: ignore[assignment]
        runner._apply_settings()
        runner.new_seed = lambda: UUID(int=next(self.seeds))
        self.fence = next(self.fences)
        self.is_new = True

    def cycle(self, *, sees_changes: bool = True) -> CycleSummary | None:
        """Run a cycle; None if the scheduler was killed in it, or does not know the whole cluster yet."""
        self.harness.now = START + timedelta(seconds=self.cluster.seconds)
        # Each cycle compares what is kept from cycle to cycle with what is made anew.
        self.harness.worker.runner.kept_cluster._checked_at = float("-inf")
        repairs = _repairs()
        try:
            if sees_changes or self.is_new:
                self.harness.watch()
            self.is_new = not self.harness.worker.is_ready()  # a list failed
            summary = None if self.is_new else self.harness.cycle_unseen(fence=self.fence)
            assert _repairs() == repairs, "the kept snapshot or state was wrong"
            return summary
        except Killed:
            self.restart()
            return None


def _repairs() -> float:
    (series,) = METRICS.repairs.collect()
    return sum(sample.value for sample in series.samples if sample.name.endswith("_total"))


class BinderPart:
    """One binder; a killed one is replaced by a new process."""

    def __init__(self, cluster: DeviceCluster, kubelet: Kubelet) -> None:
        self.cluster, self.kubelet = cluster, kubelet
        self.gateway = FaultyGateway(cluster)
        self.restart()

    def restart(self) -> None:
        self.gateway.plan.clear()
        self.harness = BinderHarness(self.gateway, now=self.cluster.seconds)  # type: ignore[arg-type]
        self.harness.worker.reports.wall = lambda: self.cluster.now
        self.harness.while_waiting.append(self.kubelet.start_reservations)
        self.is_new = True

    def work(self, *, watched: slice = slice(None)) -> None:
        """Follow some of the watches, then do all queued work."""
        harness = self.harness
        harness.now = max(harness.now, self.cluster.seconds)
        try:
            if self.is_new:
                harness.watch()
                harness.worker._guarded(harness.worker.reservations.sync_all)
                self.is_new = False
            for reflector in harness._reflectors[watched]:
                reflector.pass_once(Event())
            harness.worker.sweep()
            harness.work()
            harness.worker.recorder.flush()
        except Killed:
            self.restart()
