"""Find the pod group of a snapshot that a person names."""

from __future__ import annotations

from kube.objects.pod import Pod
from kube.objects.podgroup import PodGroup
from kube.resources import PODGROUPS, PODS
from kube.store import StoreView
from queues.workloads.owners import owner_of

MAX_LISTED = 20


class UnknownWorkloadError(ValueError):
    """The snapshot has no such workload, or several."""


def pod_group_named(view: StoreView, name: str) -> str:
    """Return the key of a pod group by `namespace/name` of itself, of its owner (a Job, say), or of one of its pods.

    Raises
    ------
    UnknownWorkloadError : there is none, or there are several
    """
    groups = view.of(PODGROUPS, PodGroup)
    if name in groups:
        return name
    pod = view.of(PODS, Pod).get(name)
    if pod is not None and pod.pod_group_key in groups:
        return pod.pod_group_key
    owned = [
        key
        for key, group in groups.items()
        if f"{group.metadata.namespace}/{owner_of(group)[1]}" == name
    ]
    if len(owned) == 1:
        return owned[0]
    listed = ", ".join(sorted(owned or groups)[:MAX_LISTED])
    problem = f"has {len(owned)} pod groups" if owned else "is not in the snapshot"
    raise UnknownWorkloadError(f"workload '{name}' {problem}: expected one of {listed}")
