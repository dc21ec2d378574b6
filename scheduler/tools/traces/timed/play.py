"""Play jobs in virtual time through the real core: what waits, who gets how much, what is evicted.

Time jumps from event to event: a cycle runs when jobs arrive or end, on a grid of steps, and one step
after a cycle that made room. An evicted job begins anew. Nothing sleeps, so months take minutes.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil, inf

from kube.objects.config import PlacementStrategy, ShardSpec
from scheduler.core.arrays import GPU_INDEX
from scheduler.core.cluster.inputs import (
    UNLIMITED_AMOUNTS,
    PodGroupInput,
    PodSetInput,
    QueueAmounts,
    QueueInput,
    SubGroupInput,
    TaskInput,
)
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import Evict
from scheduler.core.session.session import Session
from scheduler.settings.shard import core_config
from scheduler.tools.simulate.living import LivingCluster
from scheduler.tools.traces.timed.jobs import TimedJob, TimedTrace
from scheduler.tools.traces.timed.result import QueueResult, Sample, TimedResult, percentile
from scheduler.tools.traces.trace import (
    DEPARTMENT,
    WHOLE_DEVICE,
    constraints_of,
    node_input,
    request_of,
    unlimited_queue,
)

#: (jobs that ended, jobs in all), called after each cycle.
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class _JobState:
    """How one job fares; `starts` counts them, so that the end of an evicted run is ignored."""

    job: TimedJob
    waits_since_s: float
    waited_s: float = 0.0
    started_s: float | None = None
    starts: int = 0
    evictions: int = 0


@dataclass(slots=True)
class _Totals:
    """What is summed up over time."""

    gpu_seconds: float = 0.0
    unfair_gpu_seconds: float = 0.0
    lost_gpu_seconds: float = 0.0
    evictions: dict[str, int] = field(default_factory=dict)
    session_s: list[float] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)


def play(
    trace: TimedTrace, strategy: str, *, step_s: float = 60.0, progress: Progress | None = None
) -> TimedResult:
    """Return how all jobs of a trace fare under a placement strategy."""
    return _Play(trace, strategy, step_s).run(progress)


class _Play:
    """One run."""

    def __init__(self, trace: TimedTrace, strategy: str, step_s: float) -> None:
        placement = PlacementStrategy(gpu=strategy, cpu=strategy)
        self._trace, self._strategy, self._step_s = trace, strategy, step_s
        self._cluster = LivingCluster(
            nodes=tuple(node_input(node) for node in trace.nodes),
            queues=_queues(trace),
            config=core_config(ShardSpec(placement_strategy=placement)),
        )
        self._states: dict[str, _JobState] = {}
        self._done: list[_JobState] = []
        self._arrivals = list(reversed(trace.jobs))
        #: (when it ends, the job, which of its starts)
        self._ends: list[tuple[float, str, int]] = []
        self._totals = _Totals()

    def run(self, progress: Progress | None) -> TimedResult:
        """Play until every job has ended, or what waits can never run."""
        now_s = self._grid(self._next_event_s())
        while now_s < inf:
            self._cluster.now_s = now_s
            self._end_jobs(now_s)
            self._submit_jobs(now_s)
            started = time.perf_counter()
            session = self._cluster.step()
            self._totals.session_s.append(time.perf_counter() - started)
            self._note_evictions(session, now_s)
            self._note_starts(now_s)
            if progress is not None:
                progress(len(self._done), len(self._trace.jobs))
            again_s = now_s + self._step_s if session.decisions else inf
            next_s = min(self._grid(self._next_event_s()), again_s)
            self._sum_up(session, now_s, next_s)
            now_s = next_s
        return self._result()

    def _next_event_s(self) -> float:
        ends = self._ends[0][0] if self._ends else inf
        return min(ends, self._arrivals[-1].submit_s if self._arrivals else inf)

    def _grid(self, moment_s: float) -> float:
        return ceil(moment_s / self._step_s) * self._step_s if moment_s < inf else inf

    # ---------------------------------------------------------------------------------- events

    def _end_jobs(self, now_s: float) -> None:
        while self._ends and self._ends[0][0] <= now_s:
            _, name, start = heapq.heappop(self._ends)
            state = self._states.get(name)
            if state is not None and state.starts == start and state.started_s is not None:
                self._cluster.finish(name)
                self._done.append(self._states.pop(name))

    def _submit_jobs(self, now_s: float) -> None:
        while self._arrivals and self._arrivals[-1].submit_s <= now_s:
            job = self._arrivals.pop()
            self._states[job.name] = _JobState(job, job.submit_s)
            self._cluster.submit(_pod_group(job))

    def _note_evictions(self, session: Session, now_s: float) -> None:
        """Count evictions; a job that lost a pod waits again."""
        evictions = self._totals.evictions
        for decision in session.decisions:
            if not isinstance(decision, Evict):
                continue
            action = str(decision.reason.action)
            evictions[action] = evictions.get(action, 0) + 1
            state = self._states[decision.pod_group]
            state.evictions += 1
            if state.started_s is not None:
                ran_s = now_s - state.started_s
                self._totals.lost_gpu_seconds += (
                    state.job.gpu_seconds / state.job.duration_s * ran_s
                )
                state.started_s, state.waits_since_s = None, now_s

    def _note_starts(self, now_s: float) -> None:
        for name, state in self._states.items():
            if state.started_s is None and self._cluster.is_running(name):
                state.waited_s += now_s - state.waits_since_s
                state.started_s = now_s
                state.starts += 1
                heapq.heappush(self._ends, (now_s + state.job.duration_s, name, state.starts))

    # --------------------------------------------------------------------------------- figures

    def _sum_up(self, session: Session, now_s: float, next_s: float) -> None:
        """Add what holds from now until the next cycle."""
        gpus_by_queue: dict[str, float] = {}
        for state in self._states.values():
            running = sum(
                self._cluster.places[_uid(state.job, number)].status is TaskStatus.RUNNING
                for number in range(state.job.pods)
            )
            gpus = running * state.job.shape.gpu_milli / WHOLE_DEVICE
            gpus_by_queue[state.job.queue] = gpus_by_queue.get(state.job.queue, 0.0) + gpus
        ledger = session.policy.ledger
        fair = {
            name: ledger.fair_shares[index][GPU_INDEX] for index, name in enumerate(ledger.names)
        }
        missing = sum(max(fair[queue] - amount, 0.0) for queue, amount in gpus_by_queue.items())
        total = sum(gpus_by_queue.values())
        waiting = sum(state.started_s is None for state in self._states.values())
        gpus = self._trace.gpus
        self._totals.samples.append(
            Sample(now_s, 100 * total / gpus, 100 * missing / gpus, waiting)
        )
        if next_s < inf:
            self._totals.gpu_seconds += total * (next_s - now_s)
            self._totals.unfair_gpu_seconds += missing * (next_s - now_s)

    def _result(self) -> TimedResult:
        totals = self._totals
        samples = totals.samples
        span_s = samples[-1].time_s - samples[0].time_s if samples else 0.0
        capacity = max(self._trace.gpus * span_s, 1.0)
        states = [*self._done, *self._states.values()]
        return TimedResult(
            workload=self._trace.name,
            strategy=self._strategy,
            gpus=self._trace.gpus,
            jobs=len(states),
            unfinished=len(self._states),
            span_s=span_s,
            allocated=100 * totals.gpu_seconds / capacity,
            unfair=100 * totals.unfair_gpu_seconds / capacity,
            evictions=dict(sorted(totals.evictions.items())),
            lost_gpu_hours=totals.lost_gpu_seconds / 3600,
            cycles=len(totals.session_s),
            session_mean_s=sum(totals.session_s) / max(len(totals.session_s), 1),
            session_max_s=max(totals.session_s, default=0.0),
            queues=tuple(
                _queue_result(name, [state for state in states if state.job.queue == name])
                for name in sorted({state.job.queue for state in states})
            ),
            samples=tuple(samples),
        )


def _queue_result(name: str, states: list[_JobState]) -> QueueResult:
    waits = sorted(state.waited_s for state in states)
    return QueueResult(
        name=name,
        jobs=len(states),
        mean_wait_s=sum(waits) / len(waits),
        median_wait_s=percentile(waits, 50),
        p95_wait_s=percentile(waits, 95),
        evictions=sum(state.evictions for state in states),
    )


def _queues(trace: TimedTrace) -> tuple[QueueInput, ...]:
    """Return one department and below it the queues, each with a quota by what its jobs use in all."""
    return (
        unlimited_queue(DEPARTMENT, parent=""),
        *(
            QueueInput(
                name=name,
                parent=DEPARTMENT,
                cpu=UNLIMITED_AMOUNTS,
                memory=UNLIMITED_AMOUNTS,
                gpu=QueueAmounts(quota=quota, limit=inf, over_quota_weight=max(quota, 1.0)),
            )
            for name, quota in sorted(trace.quotas().items())
        ),
    )


def _uid(job: TimedJob, number: int) -> str:
    return f"{job.name}-{number}"


def _pod_group(job: TimedJob) -> PodGroupInput:
    task = TaskInput(
        name=job.name,
        uid=job.name,
        request=request_of(job.shape),
        constraints=constraints_of(job.shape.models),
    )
    tasks = tuple(
        replace(task, name=_uid(job, number), uid=_uid(job, number)) for number in range(job.pods)
    )
    return PodGroupInput(
        name=job.name,
        uid=job.name,
        queue=job.queue,
        created=job.submit_s,
        preemptible=job.preemptible,
        root=SubGroupInput(pod_sets=(PodSetInput(min_available=job.pods),)),
        tasks=tasks,
    )
