"""One shard's scheduling worker: the parts that live as long as the process, and when a cycle may run.

Watches fill the store for as long as the process lives; a cycle takes a snapshot of it, decides, and applies
the decisions. Whoever calls `cycle` guarantees that no other worker of the same shard does so at the same
time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kube.errors import KubeError
from kube.events import Recorder
from kube.gateway import Gateway
from kube.objects.pod import Pod
from kube.process.progress import track
from kube.resources import PODS
from kube.store import Store
from scheduler.loop.cycle import CycleRunner, CycleSummary
from scheduler.loop.settings_follower import SettingsFollower
from scheduler.loop.wake import Waker
from scheduler.loop.watches import start_watches, wait_for_first_lists
from scheduler.settings.shard import ShardSettings
from scheduler.settings.watched import WATCHED


@dataclass(slots=True)
class ShardWorker:
    """The scheduler of one shard in this process.

    Parameters
    ----------
    on_fatal : called when the API server refuses our credentials for good
    is_allowed : asked before each write; False once the shard's lock is lost
    folder : where the shard may keep files (its usage history); None for nowhere
    """

    name: str
    gateway: Gateway
    on_fatal: Callable[[KubeError], None]
    is_allowed: Callable[[], bool] = lambda: True
    folder: Path | None = None
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    store: Store = field(default_factory=lambda: Store([kind.resource for kind in WATCHED]))
    recorder: Recorder = field(init=False)
    follower: SettingsFollower = field(init=False)
    runner: CycleRunner = field(init=False)
    _waker: Waker | None = None
    _stop: threading.Event = field(default_factory=threading.Event)
    _idle: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Make the parts; nothing runs yet."""
        self._idle.set()
        self.follower = SettingsFollower(self.name, self.store, self.folder)
        self.recorder = Recorder(self.gateway, self.settings.params.scheduler_name)
        self.runner = CycleRunner(
            self.name,
            self.gateway,
            self.store,
            self.recorder,
            self.on_fatal,
            is_allowed=self.is_allowed,
            wall=self.wall,
        )

    @property
    def settings(self) -> ShardSettings:
        return self.follower.current

    @property
    def order(self) -> dict[str, Any] | None:
        """Return the order of pod groups in the last cycle; None unless plugin `reflectjoborder` is on."""
        return self.runner.order

    def start(self, wake: Callable[[], object] | None = None) -> None:
        """Follow the cluster; return when everything has been listed once, or after a minute.

        Parameters
        ----------
        wake : called soon after a change that matters, to ask for a cycle
        """
        self.recorder.start()
        start_watches(self.gateway, self.store, self._stop, on_fatal=self.on_fatal)
        wait_for_first_lists(self.store, self.name)
        if wake is not None:
            self._waker = Waker(self._interrupting(wake))
            self.store.subscribe(self._waker.on_change)
            self._waker.follow(self.store.view().of(PODS, Pod).values())
            self._waker.start()

    def is_ready(self) -> bool:
        """Return whether a cycle may run: the whole cluster is known, and what this shard is.

        A cycle on half of the cluster would see free nodes. A shard other than `default` without an object
        (it is gone, or was never valid) has no part of the cluster: defaults would give it another's.
        """
        if not self.store.is_synced():
            return False
        self._refresh_settings()
        return self.follower.is_known

    def cycle(self, *, fence: int = 0) -> CycleSummary:
        """Run one cycle with the shard's present settings and apply it; see `CycleRunner.run`."""
        self._idle.clear()
        try:
            track().beat("cycle: settings")
            self._refresh_settings()
            return self.runner.run(fence=fence)
        finally:
            self._idle.set()

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait for the end of a running cycle, if there is one; return whether it came in time."""
        return self._idle.wait(timeout_s)

    def stop(self) -> None:
        """End the threads; running writes are finished.

        If a signal interrupted a cycle, the threads that write stay: the cycle ends by itself, and without its
        lock it writes nothing more.
        """
        self._stop.set()
        if self._waker is not None:
            self._waker.stop()
        if self._idle.is_set():
            self.runner.close()
        self.recorder.stop()

    def _refresh_settings(self) -> None:
        if self.follower.refresh():
            self.runner.use(self.follower.current, self.follower.usage)

    def _interrupting(self, wake: Callable[[], object]) -> Callable[[], object]:
        """Return `wake` preceded by the interruption of a search under way."""

        def interrupt_and_wake() -> object:
            self.runner.pacer.interrupt()
            return wake()

        return interrupt_and_wake
