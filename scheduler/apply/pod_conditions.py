"""Write one condition of a pod."""

from __future__ import annotations

from collections.abc import Mapping

from kube.gateway import Gateway, PatchType
from kube.objects.pod import Pod
from kube.resources import PODS


def patch_pod_condition(gateway: Gateway, pod: Pod, condition: Mapping[str, str]) -> None:
    """Add a condition to a pod, or replace the one of its type.

    Raises
    ------
    kube.errors.KubeError : the pod is gone, or the API server refuses
    """
    meta = pod.metadata
    gateway.patch(
        PODS,
        meta.name,
        {"status": {"conditions": [dict(condition)]}},
        namespace=meta.namespace,
        sub="status",
        patch_type=PatchType.STRATEGIC,
    )
