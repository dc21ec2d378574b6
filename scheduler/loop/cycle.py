"""One cycle of a shard: snapshot -> session -> actions -> commit -> statuses.

The core's `run_cycle` decides; this file surrounds it with what a living cluster needs: the snapshot of the
store, the pacing of long searches, the writes, and what is reported.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from kube.errors import KubeError
from kube.events import Recorder
from kube.gateway import Gateway
from kube.process.progress import WAIT_S, track
from kube.store import Store
from queues.workloads.reasons import Standing
from scheduler.apply.commit import CommitReport, Committer
from scheduler.apply.refused_evictions import RefusedEvictions
from scheduler.apply.run_times import limited_runs
from scheduler.apply.statuses import StatusWriter
from scheduler.core.cluster.inputs import PlainRequest
from scheduler.core.cycle import run_cycle
from scheduler.core.decisions import ActionName
from scheduler.core.placement.chosen import PlacementLog
from scheduler.core.session.session import Session
from scheduler.explain.job_order import job_order
from scheduler.explain.standings import standings
from scheduler.explain.verdicts import GroupVerdict, verdicts
from scheduler.load.build import Snapshot
from scheduler.load.past_requests import RequestMemory, keeps_fragments_small
from scheduler.loop.kept_cluster import KeptCluster
from scheduler.loop.marks import MarksMemory, changed_marks
from scheduler.loop.measure import StopWatch, measure
from scheduler.loop.pacing import SEARCHING, Pacer, note_delays
from scheduler.loop.placements import Placement, placements_of
from scheduler.loop.requeue import pods_to_requeue
from scheduler.loop.usage_feed import UsageFeed
from scheduler.metrics import METRICS
from scheduler.settings.shard import ShardSettings

WRITER_THREADS = 16
STATUS_WRITER_THREADS = 4
JOB_ORDER_PLUGIN = "reflectjoborder"


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSummary:
    """One finished cycle, for reports and tests.

    Parameters
    ----------
    pending_before : how many pods were pending when the session opened
    unschedulable : how many pods were left unschedulable
    """

    started_at: datetime
    snapshot: Snapshot
    session: Session
    commit: CommitReport
    verdicts: list[GroupVerdict]
    #: Queue -> its standing.
    standings: Mapping[str, Standing]
    placements: list[Placement]
    pending_before: int
    unschedulable: int
    snapshot_ms: float
    decide_ms: float
    commit_ms: float
    duration_ms: float


@dataclass(slots=True)
class CycleRunner:
    """Runs the cycles of one shard, one at a time.

    Parameters
    ----------
    on_fatal : called when the API server refuses our credentials for good
    is_allowed : asked before each write; False once the shard's lock is lost
    new_seed : what the ids of the next cycle's new GPU groups are derived from

    Attributes
    ----------
    order : the order of the pod groups at the start of the last cycle, if plugin `reflectjoborder` is on
    """

    shard: str
    gateway: Gateway
    store: Store
    recorder: Recorder
    on_fatal: Callable[[KubeError], None]
    is_allowed: Callable[[], bool] = lambda: True
    wall: Callable[[], datetime] = lambda: datetime.now(UTC)
    pacer: Pacer = field(default_factory=Pacer)
    settings: ShardSettings = field(default_factory=ShardSettings)
    usage: UsageFeed | None = None
    new_seed: Callable[[], uuid.UUID] = uuid.uuid4
    order: dict[str, Any] | None = None
    kept_cluster: KeptCluster = field(init=False)
    statuses: StatusWriter = field(init=False)
    _refused_evictions: RefusedEvictions = field(default_factory=RefusedEvictions)
    _marks: MarksMemory = field(default_factory=MarksMemory)
    _requests: RequestMemory = field(default_factory=RequestMemory)
    _writers: ThreadPoolExecutor = field(init=False)
    _status_writers: ThreadPoolExecutor = field(init=False)

    def __post_init__(self) -> None:
        """Create the thread pools that write, and the parts that depend on the settings."""
        self._writers = ThreadPoolExecutor(
            WRITER_THREADS, thread_name_prefix=f"commit-{self.shard}"
        )
        # Statuses have threads of their own, so that binds do not queue behind those of an earlier cycle.
        self._status_writers = ThreadPoolExecutor(
            STATUS_WRITER_THREADS, thread_name_prefix=f"status-{self.shard}"
        )
        self._apply_settings()

    def use(self, settings: ShardSettings, usage: UsageFeed | None) -> None:
        """Run the next cycles with these settings and this record of past usage."""
        self.usage = usage
        if settings != self.settings:
            self.settings = settings
            self._apply_settings()

    def close(self) -> None:
        """Finish running writes and end the threads."""
        self._writers.shutdown(wait=True)
        self._status_writers.shutdown(wait=True)

    def run(self, *, fence: int = 0) -> CycleSummary:
        """Run one cycle and apply it.

        Raises
        ------
        kube.errors.UnauthorizedError : the API server refuses our credentials for good
        scheduler.core.errors.CoreError : the snapshot contradicts itself, or a defect
        """
        stopwatch, started_at, progress = StopWatch(), self.wall(), track()
        progress.beat("cycle: snapshot")
        snapshot = self._take_snapshot(started_at.timestamp())
        snapshot_ms = stopwatch.lap()
        committer = self._committer(snapshot, fence)
        progress.beat("cycle: removing spent bind requests", WAIT_S)
        committer.clean_up()
        stopwatch.lap()  # the removal counts neither as decision nor as commit
        progress.beat("cycle: opening the session")
        try:
            session, pending_before = self._decide(snapshot, committer)
            committer.remember_promises(session.decisions)
            refused = self._refused_evictions.current(snapshot.now)
            committer.requeue(pods_to_requeue(snapshot, self.settings.params, refused))
            committer.follow_runs(limited_runs(snapshot, refused))
        finally:
            # Decisions made before an error are written too, while the shard is still ours.
            decide_ms = stopwatch.lap()
            progress.beat("cycle: writing decisions", WAIT_S)
            commit = committer.wait()
        progress.beat("cycle: writing statuses", WAIT_S)
        group_verdicts = self._explain(session, snapshot)
        unschedulable = self._write_statuses(session, snapshot, group_verdicts)
        commit.raise_if_unauthorized()
        commit_ms = stopwatch.lap()
        measure(session, commit_ms=commit_ms, total_ms=stopwatch.total())
        self.kept_cluster.was_quiet = not (pending_before or commit.bound or commit.evicted)
        return CycleSummary(
            started_at=started_at,
            snapshot=snapshot,
            session=session,
            commit=commit,
            verdicts=group_verdicts,
            standings=standings(session, group_verdicts),
            placements=placements_of(session, commit.bound, started_at),
            pending_before=pending_before,
            unschedulable=unschedulable,
            snapshot_ms=snapshot_ms,
            decide_ms=decide_ms,
            commit_ms=commit_ms,
            duration_ms=stopwatch.total(),
        )

    def _apply_settings(self) -> None:
        params = self.settings.params
        self.recorder.component = params.scheduler_name
        self.kept_cluster = KeptCluster(
            params, self.wall().timestamp(), self.settings.core.full_hierarchy_fairness
        )
        self.statuses = StatusWriter(
            self.gateway,
            self.recorder,
            params,
            self._status_writers,
            wall=self.wall,
            on_fatal=self.on_fatal,
        )

    def past_requests(self, now: float) -> Mapping[PlainRequest, float]:
        """Return what pods that are gone requested, for the placement strategy `fragmentation`; else nothing."""
        return self._requests.past(now) if keeps_fragments_small(self.settings.core) else {}

    def _take_snapshot(self, now: float) -> Snapshot:
        usage = self.usage.usage(now) if self.usage is not None else None
        return self.kept_cluster.snapshot(
            self.store.view(),
            now,
            usage=usage,
            marks=self._marks.recent,
            refused_evictions=self._refused_evictions.current(now),
            past_requests=self.past_requests(now),
        )

    def _committer(self, snapshot: Snapshot, fence: int) -> Committer:
        return Committer(
            self.gateway,
            self.store,
            self.recorder,
            self.settings.params,
            snapshot,
            self._writers,
            refused=self._refused_evictions,
            fence=fence,
            is_allowed=self.is_allowed,
            wall=self.wall,
        )

    def _decide(self, snapshot: Snapshot, committer: Committer) -> tuple[Session, int]:
        """Run the core's cycle, start the writes of each action; return the session and how many pods were pending."""
        config = self.settings.core
        actions = _PacedActions(committer, self.pacer, self.pacer.begin(config.actions))
        stopwatch = StopWatch()
        pending_before = 0

        def after_open(session: Session) -> None:
            nonlocal pending_before
            if self.settings.params.recorded_placements > 0:
                session.attach(PlacementLog(self.settings.params.recorded_placements))
            METRICS.open_session.set(stopwatch.lap())
            pending_before = sum(session.state.pod_groups.pending)
            if config.has_plugin(JOB_ORDER_PLUGIN):
                self.order = job_order(session)

        session = run_cycle(
            snapshot.cluster,
            config,
            clock=self.pacer.now,
            should_stop=self.pacer.should_stop,
            gpu_group_seed=self.new_seed(),
            kept_state=self.kept_cluster.state,
            after_open=after_open,
            before_action=actions.may_run,
            after_action=committer.apply_all,
        )
        self.pacer.end(session.reports)
        if keeps_fragments_small(config):
            self._requests.observe(session.state, snapshot.now)
        if actions.allowed_actions != config.actions:
            note_delays(session)
        return session, pending_before

    def _explain(self, session: Session, snapshot: Snapshot) -> list[GroupVerdict]:
        return verdicts(
            session,
            snapshot.now,
            snapshot.judged_groups,
            held=snapshot.binds.held,
            is_detailed=self.settings.params.detailed_fit_errors,
        )

    def _write_statuses(
        self, session: Session, snapshot: Snapshot, group_verdicts: list[GroupVerdict]
    ) -> int:
        """Start writing statuses and timestamps; return how many pods are unschedulable."""
        if self.usage is not None:
            self.usage.record(session, snapshot.now)
        marks = list(changed_marks(session))
        unschedulable = self.statuses.write(snapshot, group_verdicts, marks)
        self._marks.remember(marks, snapshot.now)
        return unschedulable


@dataclass(frozen=True, slots=True)
class _PacedActions:
    """Decides before each action of a cycle whether it may run now."""

    committer: Committer
    pacer: Pacer
    allowed_actions: tuple[ActionName, ...]

    def may_run(self, name: ActionName) -> bool:
        """Return whether an action may run.

        Binds are written out before a search begins. Both would share one interpreter, and a pod that has its
        place should not wait for one that may never get any.
        """
        if name not in self.allowed_actions:
            return False
        if name in SEARCHING:
            track().beat("cycle: writing binds", WAIT_S)
            self.committer.wait()
        track().beat(f"cycle: {name.value}")
        return self.pacer.may_start(name)
