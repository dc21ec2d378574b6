"""Find the pods that people requested to wait in their queue again (`queues.workloads.holds`)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kube.keys import REQUEUE_BEFORE
from kube.objects.pod import Pod
from queues.workloads.holds import requeue_before
from scheduler.load.build import Snapshot
from scheduler.settings.params import ShardParams


def pods_to_requeue(
    snapshot: Snapshot, params: ShardParams, refused: Collection[str]
) -> Iterator[tuple[Pod, str]]:
    """Yield the pods on nodes that are older than the request on their pod group, with the key of the group.

    Parameters
    ----------
    refused : uids of pods whose eviction was refused a moment ago, which are left alone for a while
    """
    limits = {
        key: limit
        for key in sorted(snapshot.marked_groups)
        if (group := snapshot.groups.get(key)) is not None
        and REQUEUE_BEFORE in group.metadata.annotations
        and params.owns(group.metadata.labels)
        and (limit := requeue_before(group.metadata.annotations)) is not None
    }
    if not limits:
        return
    for pod, key in snapshot.running_pods(limits):
        if pod.metadata.created < limits[key] and pod.metadata.uid not in refused:
            yield pod, key
