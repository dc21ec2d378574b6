"""Follow the maximum run times: which workloads have reached theirs, and the deadlines to write on the others.

Nothing is remembered between cycles. A run begins at the last start on the pod group, and a deadline is computed from the
settings of this moment; the annotation with the deadline is for people and tools that read it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kube.keys import LAST_START, MAX_RUN_TIME, POD_GROUP, REQUEUE_DELAY, RUN_DEADLINE
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.values.times import format_time, time_or_none
from queues.tree.options import read_options
from queues.workloads.holds import BY_MAX_RUN_TIME, Hold, annotations_of_hold, hold_of
from queues.workloads.run_times import (
    NOTHING_STATED,
    RunTimeLimit,
    StatedRunTime,
    inherited,
    limit_of,
    read_run_time,
    stated_run_time,
)
from scheduler.load.build import Snapshot
from scheduler.settings.params import ShardParams


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedRun:
    """A pod group with a maximum run time, or with a deadline that no longer holds.

    Attributes
    ----------
    deadline : when it must have ended; None if it does not run, or may run for ever
    limit : None if it may run for ever
    pods : those on nodes, if the deadline has passed
    """

    group: PodGroup
    deadline: datetime | None = None
    limit: RunTimeLimit | None = None
    pods: tuple[Pod, ...] = ()

    @property
    def is_over(self) -> bool:
        """Return whether the pods must go."""
        return bool(self.pods)

    @property
    def text(self) -> str:
        """Return why its pods must go."""
        assert self.limit is not None
        return f"the workload ran for its maximum run time of {self.limit.text}"

    def annotations(self, now: datetime) -> dict[str, Any]:
        """Return the merge patch of annotations: the deadline, and once it has passed the hold of what waits then."""
        patch: dict[str, Any] = {RUN_DEADLINE: self.written_deadline}
        if not self.is_over or self.limit is None or not self.limit.delay_s:
            return patch
        until = now.replace(microsecond=0) + timedelta(seconds=self.limit.delay_s)
        present = hold_of(self.group.metadata.annotations)
        if present is not None and (present.until is None or present.until >= until):
            return patch
        hold = Hold(f"ran for its maximum of {self.limit.text}", until, BY_MAX_RUN_TIME)
        return {**patch, **annotations_of_hold(hold)}

    @property
    def written_deadline(self) -> str | None:
        """Return the deadline as its annotation has it; None for no annotation."""
        return None if self.deadline is None else format_time(self.deadline)

    @property
    def is_written(self) -> bool:
        """Return whether the pod group carries this deadline."""
        return self.group.metadata.annotations.get(RUN_DEADLINE) == self.written_deadline


def limited_runs(
    snapshot: Snapshot, params: ShardParams, refused: Collection[str]
) -> Iterator[LimitedRun]:
    """Yield the shard's pod groups for which something must be written, because of their maximum run time.

    Parameters
    ----------
    refused : uids of pods whose eviction was refused a moment ago, which are left alone for a while
    """
    limits = _limits(snapshot, params)
    if not limits:
        return
    running = _running_pods(snapshot, limits)
    for key, limit in limits.items():
        group, pods = snapshot.groups[key], running.get(key, [])
        start = _start_of_run(group, pods) if limit is not None else None
        if limit is None or start is None:
            run = LimitedRun(group=group)
        else:
            end = start + limit.maximum_s
            over = [pod for pod in pods if pod.metadata.uid not in refused]
            run = LimitedRun(
                group=group,
                deadline=datetime.fromtimestamp(round(end), UTC),
                limit=limit,
                pods=tuple(over) if snapshot.now >= end else (),
            )
        if run.is_over or not run.is_written:
            yield run


def _limits(snapshot: Snapshot, params: ShardParams) -> dict[str, RunTimeLimit | None]:
    """Return the limits by key of the pod group; None where one carries a deadline, but has no limit any more."""
    of_queue = _limits_of_queues(snapshot)
    limits: dict[str, RunTimeLimit | None] = {}
    # Where no queue states a maximum, only the pod groups with an annotation of their own matter.
    for key in snapshot.groups if of_queue else sorted(snapshot.marked_groups):
        group = snapshot.groups[key]
        annotations = group.metadata.annotations
        is_stated = MAX_RUN_TIME in annotations or RUN_DEADLINE in annotations
        if not is_stated and group.spec.queue not in of_queue:
            continue
        if not params.owns(group.metadata.labels):
            continue
        limit = limit_of(
            stated_run_time(annotations), of_queue.get(group.spec.queue, NOTHING_STATED)
        )
        if limit is not None or RUN_DEADLINE in annotations:
            limits[key] = limit
    return limits


def _limits_of_queues(snapshot: Snapshot) -> dict[str, StatedRunTime]:
    """Return what holds in each queue that has a maximum, its own or an inherited one."""
    stated = {
        name: run_time
        for name, queue in snapshot.queues.items()
        if (run_time := _run_time_of(queue)) is not NOTHING_STATED
    }
    if not stated:
        return {}
    parent_of = {name: queue.spec.parent_queue for name, queue in snapshot.queues.items()}
    of_queue = {name: inherited(name, parent_of, stated) for name in parent_of}
    return {name: limit for name, limit in of_queue.items() if limit != NOTHING_STATED}


def _run_time_of(queue: Queue) -> StatedRunTime:
    annotations = queue.metadata.annotations
    if MAX_RUN_TIME not in annotations and REQUEUE_DELAY not in annotations:
        return NOTHING_STATED  # the case of nearly all queues, in every cycle
    options, _ = read_options(annotations)
    return read_run_time(options.max_run_time, options.requeue_delay)


def _running_pods(
    snapshot: Snapshot, limits: Mapping[str, RunTimeLimit | None]
) -> dict[str, list[Pod]]:
    """Return the pods on nodes that are not on their way out, by key of their pod group."""
    running: dict[str, list[Pod]] = {}
    for pod in snapshot.pods.values():
        meta = pod.metadata
        key = f"{meta.namespace}/{meta.annotations.get(POD_GROUP, '')}"
        is_running = pod.spec.node_name and not pod.is_finished and meta.deletion_timestamp is None
        if is_running and key in limits:
            running.setdefault(key, []).append(pod)
    return running


def _start_of_run(group: PodGroup, pods: list[Pod]) -> float | None:
    """Return when a pod group started to run (Unix time); None if it does not run, or this is not known yet.

    A start that is older than all pods belongs to an earlier run: the pods were created after that had ended.
    """
    if not pods:
        return None
    last_start = time_or_none(group.metadata.annotations.get(LAST_START))
    if last_start is not None:
        start = last_start.timestamp()
        if start >= min(pod.metadata.created for pod in pods):
            return start
    bound = [
        condition.last_transition_time.timestamp()
        for pod in pods
        if (condition := pod.condition("PodScheduled")) is not None
        and condition.status == "True"
        and condition.last_transition_time is not None
    ]
    return min(bound, default=None)
