"""One shard's scheduling worker: its store, and one cycle at a time.

The store is filled by watches for as long as the process lives; a cycle takes a picture of it, lets the
core decide, and applies decisions as they come. Whoever calls `cycle` guarantees that no other worker of
the same shard does so at the same time.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kube.errors import KubeError
from kube.events import Recorder
from kube.gateway import Gateway
from kube.objects.config import Config, SchedulingShard
from kube.progress import WAIT_S, track
from kube.resources import CONFIGS, SHARDS
from kube.store import Store
from kube.watch import Reflector
from queues.workloads.reasons import Standing
from scheduler.apply.commit import CommitReport, Committer
from scheduler.apply.statuses import StatusWriter
from scheduler.core.arrays import Amounts
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import ActionName, GroupMarks
from scheduler.core.errors import ConfigError
from scheduler.core.session.session import Session
from scheduler.explain.job_order import job_order
from scheduler.explain.standings import standings
from scheduler.explain.verdicts import GroupVerdict, verdicts
from scheduler.load.build import Snapshot, SnapshotBuilder
from scheduler.load.podgroups import FreshMarks
from scheduler.loop.pacing import SEARCHING, Pacer, note_delays
from scheduler.loop.usage_feed import UsageFeed, make_feed
from scheduler.loop.wake import Waker
from scheduler.metrics import METRICS
from scheduler.settings.shard import CONFIG_NAME, DEFAULT_SHARD, ShardSettings, settings_of
from scheduler.settings.usage import UsageConfigError, with_connection
from scheduler.settings.watched import WATCHED

log = logging.getLogger(__name__)

WRITERS = 16
STATUS_WRITERS = 4
SYNC_TIMEOUT_S = 60.0
MARKS_KEPT_S = 5.0
JOB_ORDER_PLUGIN = "reflectjoborder"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSummary:
    """One finished cycle, for reports and tests; times in milliseconds."""

    started_at: datetime
    snapshot: Snapshot
    session: Session
    commit: CommitReport
    verdicts: list[GroupVerdict]
    standings: Mapping[str, Standing]
    pending_before: int
    unschedulable: int
    snapshot_ms: float
    decide_ms: float
    commit_ms: float
    duration_ms: float


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
    store: Store = field(default_factory=lambda: Store([item.resource for item in WATCHED]))
    settings: ShardSettings = field(default_factory=ShardSettings)
    config_error: str = ""
    order: dict[str, Any] | None = None
    recorder: Recorder = field(init=False)
    _builder: SnapshotBuilder = field(init=False)
    _statuses: StatusWriter = field(init=False)
    _pool: ThreadPoolExecutor = field(init=False)
    _status_pool: ThreadPoolExecutor = field(init=False)
    _marks: dict[str, FreshMarks] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _configured_by: tuple[object, ...] = ()
    _is_configured: bool = field(init=False)
    _waker: Waker | None = None
    _usage: UsageFeed | None = None
    _pacer: Pacer = field(default_factory=Pacer)
    _idle: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Make the parts that live as long as the worker."""
        self._idle.set()
        self._pool = ThreadPoolExecutor(WRITERS, thread_name_prefix=f"commit-{self.name}")
        # Apart from the binds, which must not queue behind the stories of an earlier cycle.
        self._status_pool = ThreadPoolExecutor(
            STATUS_WRITERS, thread_name_prefix=f"status-{self.name}"
        )
        self._configure(ShardSettings())
        self._is_configured = self.name == DEFAULT_SHARD

    # -------------------------------------------------------------------------------- life

    def start(self, wake: Callable[[], object] | None = None) -> None:
        """Follow the cluster; returns when everything has been listed once, or after a minute.

        Parameters
        ----------
        wake : asks whoever runs cycles for one, soon after something that matters has changed
        """
        self.recorder.start()
        for item in WATCHED:
            reflector: Reflector[Any] = Reflector(
                self.gateway,
                item.resource,
                item.as_type,
                self.store,
                field_selector=item.field_selector,
                is_optional=item.is_optional,
            )
            self._spawn(f"watch-{item.resource.plural}", self._follow(reflector))
        track().beat("waiting for first lists", WAIT_S)
        if not self.store.wait_until_synced(SYNC_TIMEOUT_S):
            log.warning("shard %s: the first lists are not in yet", self.name)
        # What was listed stays; let the collector never look at it again.
        gc.collect()
        gc.freeze()
        if wake is not None:
            self._waker = Waker(self._woken(wake))
            self.store.subscribe(self._waker.heard)
            self._waker.start()

    def is_ready(self) -> bool:
        """Tell whether a cycle may run: the whole cluster is known, and what this shard is.

        A cycle on half of the cluster would see free nodes. A shard other than `default` without an object
        (it is gone, or was never valid) has no part of the cluster: defaults would give it another's.
        """
        if not self.store.is_synced():
            return False
        self._reconfigure()
        return self._is_configured

    def stop(self) -> None:
        """End the threads; running writes are finished.

        In the middle of a cycle (a signal interrupted it) the pools stay: the cycle ends by itself, and
        without its lock it writes nothing more.
        """
        self._stop.set()
        if self._waker is not None:
            self._waker.stop()
        if self._idle.is_set():
            self._pool.shutdown(wait=True)
            self._status_pool.shutdown(wait=True)
        self.recorder.stop()

    # -------------------------------------------------------------------------------- cycle

    def cycle(self, *, fence: int = 0) -> CycleSummary:
        """Run one cycle and apply it.

        Raises
        ------
        kube.errors.UnauthorizedError : the API server refuses our credentials for good
        scheduler.core.errors.CoreError : the snapshot contradicts itself, or a defect
        """
        self._idle.clear()
        try:
            return self._cycle(fence)
        finally:
            self._idle.set()

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait for the end of a running cycle, if there is one; return whether it came in time."""
        return self._idle.wait(timeout_s)

    def _cycle(self, fence: int) -> CycleSummary:
        watch, started_at = _StopWatch(), self.wall()
        sign = track()
        sign.beat("cycle: settings")
        self._reconfigure()
        sign.beat("cycle: snapshot")
        snapshot = self._take_snapshot(started_at.timestamp())
        snapshot_ms = watch.lap()
        committer = self._committer(snapshot, fence)
        sign.beat("cycle: removing spent bind requests", WAIT_S)
        committer.clean_up()
        watch.lap()
        sign.beat("cycle: opening the session")
        try:
            session, pending_before = self._decide(snapshot, committer)
        finally:
            # Whatever became of the rest, what was decided is written while the shard is still ours.
            decide_ms = watch.lap()
            sign.beat("cycle: writing decisions", WAIT_S)
            report = committer.wait()
        sign.beat("cycle: telling pod groups", WAIT_S)
        said, unschedulable = self._tell(session, snapshot)
        report.raise_if_unauthorized()
        commit_ms = watch.lap()
        _measure(session, commit_ms, watch.total())
        return CycleSummary(
            started_at=started_at,
            snapshot=snapshot,
            session=session,
            commit=report,
            verdicts=said,
            standings=standings(session, said),
            pending_before=pending_before,
            unschedulable=unschedulable,
            snapshot_ms=snapshot_ms,
            decide_ms=decide_ms,
            commit_ms=commit_ms,
            duration_ms=watch.total(),
        )

    def _take_snapshot(self, now: float) -> Snapshot:
        usage = self._usage.usage(now) if self._usage is not None else None
        return self._builder.build(self.store.view(), now, usage=usage, marks=self._marks)

    def _committer(self, snapshot: Snapshot, fence: int) -> Committer:
        return Committer(
            self.gateway,
            self.store,
            self.recorder,
            self.settings.params,
            snapshot,
            self._pool,
            fence=fence,
            is_allowed=self.is_allowed,
            wall=self.wall,
        )

    def _tell(self, session: Session, snapshot: Snapshot) -> tuple[list[GroupVerdict], int]:
        """Start writing what the cycle says of each pod group; return it, and how many pods wait."""
        now, groups = snapshot.now, snapshot.groups
        marked = {key for key, group in groups.items() if group.status.scheduling_conditions}
        is_detailed = self.settings.params.detailed_fit_errors
        said = verdicts(session, now, marked, is_detailed=is_detailed)
        if self._usage is not None:
            self._usage.record(session, now)
        marks = list(_changed_marks(session))
        unschedulable = self._statuses.write(snapshot, said, marks)
        self._remember(marks, now)
        return said, unschedulable

    def _decide(self, snapshot: Snapshot, committer: Committer) -> tuple[Session, int]:
        """Run the core's cycle, applying what each action decides; return how many pods waited before.

        Binds are written out before a search begins: both would share one interpreter, and a pod that
        has its place should not wait for one that may never get any.
        """
        config, watch = self.settings.core, _StopWatch()
        allowed = self._pacer.begin(config.actions)
        pending_before = 0

        def after_open(session: Session) -> None:
            nonlocal pending_before
            METRICS.open_session.set(watch.lap())
            pending_before = sum(session.state.pod_groups.pending)
            if config.has_plugin(JOB_ORDER_PLUGIN):
                self.order = job_order(session)

        def before_action(name: ActionName) -> bool:
            if name not in allowed:
                return False
            if name in SEARCHING:
                track().beat("cycle: writing binds", WAIT_S)
                committer.wait()
            track().beat(f"cycle: {name.value}")
            return self._pacer.may_start(name)

        session = run_cycle(
            snapshot.cluster,
            config,
            clock=self._pacer.now,
            should_stop=self._pacer.should_stop,
            gpu_group_seed=uuid.uuid4(),
            after_open=after_open,
            before_action=before_action,
            after_action=committer.apply_all,
        )
        self._pacer.end(session.reports)
        if allowed != config.actions:
            note_delays(session)
        return session, pending_before

    def wait_for_statuses(self) -> None:
        """Wait until everything said by finished cycles is written (tests, one-shot commands)."""
        self._statuses.wait()

    def _remember(self, marks: list[GroupMarks], now: float) -> None:
        """Keep new timestamps for the next cycles: the watch brings them back a moment later."""
        self._marks = {key: mark for key, mark in self._marks.items() if mark.until > now}
        for mark in marks:
            self._marks[f"{mark.namespace}/{mark.pod_group}"] = FreshMarks(
                last_start=_absolute(mark.last_start, now),
                last_eviction=_absolute(mark.last_eviction, now),
                stale_since=_absolute(mark.stale_since, now),
                until=now + MARKS_KEPT_S,
            )

    # -------------------------------------------------------------------------------- settings

    def _reconfigure(self) -> None:
        """Take over a changed shard object; a wrong one is reported and the old settings stay."""
        shard: SchedulingShard | None = self.store.get(SHARDS, self.name)
        config: Config | None = self.store.get(CONFIGS, CONFIG_NAME)
        source = (shard.spec if shard else None, config.spec if config else None)
        if source == self._configured_by:
            return
        self._configured_by = source
        if shard is None and self.name != DEFAULT_SHARD:
            self._is_configured = False
            return
        try:
            settings = settings_of(self.name, shard, config)
            wanted = with_connection(shard.spec.usage_db_config if shard else None, config)
            usage = make_feed(wanted, self.folder, self.name)
        except (ConfigError, UsageConfigError) as error:
            self.config_error = str(error)
            log.error("shard %s keeps its old settings: %s", self.name, error)
            return
        self.config_error = ""
        self._is_configured = True
        self._usage = usage
        if settings != self.settings:
            self._configure(settings)

    def _configure(self, settings: ShardSettings) -> None:
        self.settings = settings
        self.recorder = _kept(getattr(self, "recorder", None), self.gateway, settings)
        self._builder = SnapshotBuilder(settings.params, origin=self.wall().timestamp())
        self._statuses = StatusWriter(
            self.gateway,
            self.recorder,
            settings.params,
            self._status_pool,
            wall=self.wall,
            on_fatal=self.on_fatal,
        )

    def _woken(self, wake: Callable[[], object]) -> Callable[[], object]:
        def woken() -> object:
            self._pacer.interrupt()
            return wake()

        return woken

    def _follow(self, reflector: Reflector[Any]) -> Callable[[], None]:
        return lambda: reflector.run(self._stop, on_fatal=self.on_fatal)

    def _spawn(self, name: str, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name=name, daemon=True).start()


def _kept(old: Recorder | None, gateway: Gateway, settings: ShardSettings) -> Recorder:
    """Keep the recorder with its threads and counts; its source is the scheduler's name."""
    if old is not None:
        old.component = settings.params.scheduler_name
        return old
    return Recorder(gateway, settings.params.scheduler_name)


def _changed_marks(session: Session) -> Iterator[GroupMarks]:
    """Return the timestamps of the pod groups that got other ones in this cycle."""
    groups = session.state.pod_groups
    for group, given in enumerate(groups.inputs):
        last_start, last_eviction = groups.last_start[group], groups.last_eviction[group]
        stale_since = groups.stale_since[group]
        before = (given.last_start, given.last_eviction, given.stale_since)
        if before != (last_start, last_eviction, stale_since):
            yield GroupMarks(
                pod_group=given.name,
                namespace=given.namespace,
                last_start=last_start,
                last_eviction=last_eviction,
                stale_since=stale_since,
                is_stale=stale_since is not None,
            )


def _absolute(relative: float | None, now: float) -> float | None:
    return None if relative is None else now + relative


def _shares(session: Session) -> Iterator[tuple[str, str, Amounts]]:
    ledger = session.policy.ledger
    for index, queue in enumerate(session.state.queues.inputs):
        share = ledger.fair_shares[index]
        shown = queue.display_name if queue.display_name != queue.name else ""
        yield queue.name, shown, (share[0], share[1], share[2])


def _past_use(session: Session) -> Iterator[tuple[str, str, Amounts]]:
    for queue in session.state.queues.inputs:
        shown = queue.display_name if queue.display_name != queue.name else ""
        yield queue.name, shown, (queue.cpu.usage, queue.memory.usage, queue.gpu.usage)


def _measure(session: Session, commit_ms: float, total_ms: float) -> None:
    METRICS.set_plugins(session.plugin_seconds)
    METRICS.close_session.set(commit_ms)
    METRICS.observe_actions(session.reports)
    METRICS.set_budgets(session.config.budgets)
    METRICS.set_shares(_shares(session))
    METRICS.set_usage(_past_use(session))
    METRICS.e2e.set(total_ms)


class _StopWatch:
    """Milliseconds since the last look, and since the start."""

    def __init__(self) -> None:
        self._started = self._last = time.perf_counter()

    def lap(self) -> float:
        before, self._last = self._last, time.perf_counter()
        return (self._last - before) * 1000

    def total(self) -> float:
        return (time.perf_counter() - self._started) * 1000
