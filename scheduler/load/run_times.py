"""The maximum run times of pod groups, and the moments by which their present runs must have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from kube.keys import LAST_START, MAX_RUN_TIME, REQUEUE_DELAY, RUN_DEADLINE
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.objects.queue import Queue
from kube.values.times import time_or_none
from queues.tree.options import read_options
from queues.workloads.run_times import (
    NOTHING_STATED,
    RunTimeLimit,
    StatedRunTime,
    inherited,
    limit_of,
    read_run_time,
    stated_run_time,
)
from scheduler.core.cluster.inputs import PodGroupInput
from scheduler.settings.params import ShardParams


def with_run_times(
    pod_groups: Sequence[PodGroupInput],
    limits: Mapping[str, RunTimeLimit | None],
    groups: Mapping[str, PodGroup],
    pods: Mapping[str, Pod],
    origin: float,
) -> tuple[PodGroupInput, ...]:
    """Return the pod groups with their maximum run times and the ends of their present runs, for backfill.

    limits : as `limits_of` returns them
    origin : Unix time that times of the snapshot count from
    """
    if not any(limits.values()):
        return tuple(pod_groups)
    members: dict[str, list[Pod]] = {}
    for pod in pods.values():
        key = pod.pod_group_key
        if limits.get(key) and not pod.is_finished and pod.metadata.deletion_timestamp is None:
            members.setdefault(key, []).append(pod)
    result = []
    for pod_group in pod_groups:
        key = f"{pod_group.namespace}/{pod_group.name}"
        limit = limits.get(key)
        if limit is None:
            result.append(pod_group)
            continue
        start = _newest_start(pod_group, groups[key], members.get(key, []), origin)
        result.append(
            replace(
                pod_group,
                max_run_time_s=limit.maximum_s,
                ends_by=None if start is None else start + limit.maximum_s - origin,
            )
        )
    return tuple(result)


def _newest_start(
    pod_group: PodGroupInput, group: PodGroup, pods: list[Pod], origin: float
) -> float | None:
    """Return when the present run began (Unix time); None if unknown. The start may not be in the cluster yet."""
    if not pods:
        return None
    if pod_group.last_start is not None:
        start = pod_group.last_start + origin
        if _is_of_present_run(start, pods):
            return start
    return start_of_run(group, [pod for pod in pods if pod.spec.node_name])


def limits_of(
    groups: Mapping[str, PodGroup],
    queues: Mapping[str, Queue],
    params: ShardParams,
    marked: Collection[str],
) -> dict[str, RunTimeLimit | None]:
    """Return the limits by key of the pod group; None where one carries a deadline, but has no limit any more.

    marked : keys of all pod groups with an annotation about their run time; others among them do no harm
    """
    limit_of_queue = _limits_of_queues(queues)
    limits: dict[str, RunTimeLimit | None] = {}
    # Where no queue states a maximum, only the pod groups with an annotation of their own matter.
    for key in groups if limit_of_queue else sorted(marked):
        group = groups[key]
        annotations = group.metadata.annotations
        is_stated = MAX_RUN_TIME in annotations or RUN_DEADLINE in annotations
        if not is_stated and group.spec.queue not in limit_of_queue:
            continue
        if not params.owns(group.metadata.labels):
            continue
        limit = limit_of(
            stated_run_time(annotations), limit_of_queue.get(group.spec.queue, NOTHING_STATED)
        )
        if limit is not None or RUN_DEADLINE in annotations:
            limits[key] = limit
    return limits


def _limits_of_queues(queues: Mapping[str, Queue]) -> dict[str, StatedRunTime]:
    """Return what holds in each queue that has a maximum, its own or an inherited one."""
    stated = {
        name: run_time
        for name, queue in queues.items()
        if (run_time := _run_time_of(queue)) is not NOTHING_STATED
    }
    if not stated:
        return {}
    parent_of = {name: queue.spec.parent_queue for name, queue in queues.items()}
    limit_of_queue = {name: inherited(name, parent_of, stated) for name in parent_of}
    return {name: limit for name, limit in limit_of_queue.items() if limit != NOTHING_STATED}


def _run_time_of(queue: Queue) -> StatedRunTime:
    annotations = queue.metadata.annotations
    if MAX_RUN_TIME not in annotations and REQUEUE_DELAY not in annotations:
        return NOTHING_STATED  # the case of nearly all queues, in every cycle
    options, _ = read_options(annotations)
    return read_run_time(options.max_run_time, options.requeue_delay)


def start_of_run(group: PodGroup, pods: list[Pod]) -> float | None:
    """Return when a pod group started to run (Unix time); None if it does not run, or this is not known yet."""
    if not pods:
        return None
    last_start = time_or_none(group.metadata.annotations.get(LAST_START))
    if last_start is not None:
        start = last_start.timestamp()
        if _is_of_present_run(start, pods):
            return start
    bound = [
        condition.last_transition_time.timestamp()
        for pod in pods
        if (condition := pod.condition("PodScheduled")) is not None
        and condition.status == "True"
        and condition.last_transition_time is not None
    ]
    return min(bound, default=None)


def _is_of_present_run(start: float, pods: Sequence[Pod]) -> bool:
    """Return whether a start (Unix time) belongs to the run of these pods.

    A start that is older than all pods belongs to an earlier run: the pods were created after that had ended.
    """
    return start >= min(pod.metadata.created for pod in pods)
