"""Follow the maximum run times: which workloads have reached theirs, and the deadlines to write on the others.

Nothing is remembered between cycles. A run begins at the last start on the pod group, and a deadline is computed from the
settings of this moment; the annotation with the deadline is for people and tools that read it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kube.keys import RUN_DEADLINE
from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.values.times import format_time
from queues.workloads.holds import BY_MAX_RUN_TIME, Hold, annotations_of_hold, hold_of
from queues.workloads.run_times import RunTimeLimit
from scheduler.load.build import Snapshot
from scheduler.load.run_times import start_of_run


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


def limited_runs(snapshot: Snapshot, refused: Collection[str]) -> Iterator[LimitedRun]:
    """Yield the shard's pod groups for which something must be written, because of their maximum run time.

    Parameters
    ----------
    refused : uids of pods whose eviction was refused a moment ago, which are left alone for a while
    """
    limits = snapshot.run_limits
    if not limits:
        return
    running: dict[str, list[Pod]] = defaultdict(list)
    for pod, key in snapshot.running_pods(limits):
        running[key].append(pod)
    for key, limit in limits.items():
        group, pods = snapshot.groups[key], running[key]
        start = start_of_run(group, pods) if limit is not None else None
        if limit is None or start is None:
            run = LimitedRun(group=group)
        else:
            end = start + limit.maximum_s
            pods_to_end = [pod for pod in pods if pod.metadata.uid not in refused]
            run = LimitedRun(
                group=group,
                deadline=datetime.fromtimestamp(round(end), UTC),
                limit=limit,
                pods=tuple(pods_to_end) if snapshot.now >= end else (),
            )
        if run.is_over or not run.is_written:
            yield run
