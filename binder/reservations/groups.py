"""The GPU groups of pods, and how pods and bind requests are found by them.

A GPU group is an id that the scheduler assigns to one physical device.
"""

from __future__ import annotations

from kube.keys import GPU_GROUP, GPU_GROUP_PREFIX
from kube.objects.bindrequest import BindRequest
from kube.objects.pod import Pod
from kube.resources import BINDREQUESTS, PODS
from kube.store import Store

BY_GROUP = "gpu-group"
BY_NODE = "gpu-group-node"


def groups_of(pod: Pod) -> list[str]:
    """Return the GPU groups on a pod's labels."""
    return sorted(set(group_labels(pod).values()) - {""})


def group_labels(pod: Pod) -> dict[str, str]:
    """Return the labels of a pod that name a GPU group: one for the whole pod, or one per device."""
    return {
        key: value
        for key, value in pod.metadata.labels.items()
        if key == GPU_GROUP or key.startswith(GPU_GROUP_PREFIX)
    }


def add_indexes(store: Store) -> None:
    """Index the pods that have a GPU group by group and by node, and open bind requests by group."""
    store.add_index(PODS, BY_GROUP, groups_of)
    store.add_index(
        PODS,
        BY_NODE,
        lambda pod: [pod.spec.node_name] if pod.spec.node_name and groups_of(pod) else [],
    )
    store.add_index(
        BINDREQUESTS,
        BY_GROUP,
        lambda request: request.spec.selected_gpu_groups if not is_over(request) else (),
    )


def is_over(request: BindRequest) -> bool:
    """Return whether a request uses its groups no more: its pod is bound, or no attempt is left."""
    return request.is_failed or request.status.phase == "Succeeded"
