"""Rules about gangs: evictions take them whole, or only what they have beyond their minimum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from scheduler.core.cluster.inputs import PodGroupInput, SubGroupInput
from scheduler.core.cluster.status import TaskStatus
from scheduler.core.decisions import ActionName
from tests.scheduler.fuzz.cycles import CycleRun, Finding, Pod

_ALIVE = (TaskStatus.PENDING, TaskStatus.GATED)


def gangs_are_not_broken(cycle_run: CycleRun) -> Iterator[Finding]:
    """A gang that ran its minimum before the cycle runs it after, or runs nothing; each of its pod sets too."""
    for group in cycle_run.cluster.pod_groups:
        pods = cycle_run.pods_of(group.name)
        before = Counter(pod.subgroup for pod in pods if pod.held_before)
        after = Counter(pod.subgroup for pod in pods if pod.holds_after)
        if after == before or not before:
            continue
        minimums = _minimums(group, pods)
        if not _runs_minimum(group.root, before, minimums):
            continue
        if after.total() and not _runs_minimum(group.root, after, minimums):
            yield Finding("gang broken", f"{group.name} ran {dict(before)}, now {dict(after)}")
            continue
        for name, minimum in minimums.items():
            if before[name] >= minimum and 0 < after[name] < minimum:
                text = f"{group.name}/{name} needs {minimum}, ran {before[name]}, now {after[name]}"
                yield Finding("subgroup broken", text)


def gangs_start_whole(cycle_run: CycleRun) -> Iterator[Finding]:
    """A pod group that gets its first pods gets its minimum, bound together or nominated together."""
    moved = {eviction.task.name for eviction in cycle_run.evictions}
    for group in cycle_run.cluster.pod_groups:
        pods = cycle_run.pods_of(group.name)
        after = Counter(pod.subgroup for pod in pods if pod.holds_after)
        # Pods that are evicted in the cycle that bound them have a rule of their own.
        if any(pod.held_before or pod.name in moved for pod in pods) or not after:
            continue
        minimums = _minimums(group, pods)
        if not _runs_minimum(group.root, after, minimums):
            yield Finding("gang started in part", f"{group.name} got {dict(after)}")
        bound = Counter(pod.subgroup for pod in pods if pod.after == TaskStatus.BINDING)
        if bound and not _runs_minimum(group.root, bound, minimums):
            yield Finding("gang bound in part", f"{group.name}: only {dict(bound)} are bound")


def only_preemptible_work_is_evicted(cycle_run: CycleRun) -> Iterator[Finding]:
    """Work that is not preemptible is evicted only as the rest of a stale gang."""
    for eviction in cycle_run.evictions:
        pod = cycle_run.pods[eviction.task.name]
        if not pod.preemptible and eviction.reason.action != ActionName.STALE_GANG_EVICTION:
            yield Finding("non-preemptible evicted", f"{pod.name} by {eviction.reason.action}")


def _minimums(group: PodGroupInput, pods: list[Pod]) -> dict[str, int]:
    """Return the minimum of each pod set; succeeded tasks count where too few could still run."""
    minimums = {}
    for pod_set in _pod_sets(group.root):
        members = [pod for pod in pods if pod.subgroup == pod_set.name]
        alive = sum(pod.held_before or pod.before in _ALIVE for pod in members)
        succeeded = sum(pod.before == TaskStatus.SUCCEEDED for pod in members)
        lacking = max(pod_set.min_available - alive, 0)
        minimums[pod_set.name] = pod_set.min_available - min(succeeded, lacking)
    return minimums


def _pod_sets(root: SubGroupInput):
    yield from root.pod_sets
    for inner in root.subgroups:
        yield from _pod_sets(inner)


def _runs_minimum(
    root: SubGroupInput, running: Mapping[str, int], minimums: Mapping[str, int]
) -> bool:
    complete = sum(running.get(leaf.name, 0) >= minimums[leaf.name] for leaf in root.pod_sets)
    complete += sum(_runs_minimum(inner, running, minimums) for inner in root.subgroups)
    members = len(root.pod_sets) + len(root.subgroups)
    return complete >= (members if root.min_subgroups is None else root.min_subgroups)
