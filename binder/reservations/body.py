"""The body of a reservation pod."""

from __future__ import annotations

import hashlib
from typing import Any

from binder.params import ReservationParams
from kube.keys import GPU_GROUP, NVIDIA_GPU
from kube.objects.meta import as_body
from kube.objects.pod import Pod
from kube.resources import PODS


def reservation_body(pod: Pod, node: str, group: str, params: ReservationParams) -> dict[str, Any]:
    """Return the pod that holds a device; node and group determine its name."""
    digest = hashlib.sha256(f"{node}/{group}".encode()).hexdigest()[:16]
    configured = {kind: dict(params.resources.get(kind, {})) for kind in ("requests", "limits")}
    resources = {kind: {**values, NVIDIA_GPU: "1"} for kind, values in configured.items()}
    fields = (("POD_NAME", "metadata.name"), ("POD_NAMESPACE", "metadata.namespace"))
    container: dict[str, Any] = {
        "name": "resource-reservation",
        "image": params.image,
        "imagePullPolicy": "IfNotPresent",
        "resources": resources,
        "env": [
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields
        ],
    }
    if params.container_security:
        container["securityContext"] = dict(params.container_security)
    spec: dict[str, Any] = {
        "nodeName": node,
        "serviceAccountName": params.service_account,
        "tolerations": [as_body(item) for item in pod.spec.tolerations],
        "containers": [container],
    }
    if params.runtime_class:
        spec["runtimeClassName"] = params.runtime_class
    if params.pod_security:
        spec["securityContext"] = dict(params.pod_security)
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "name": f"gpu-reservation-{digest}",
            "namespace": params.namespace,
            "labels": {"app": params.app_label, GPU_GROUP: group},
            "annotations": {"karpenter.sh/do-not-disrupt": "true"},
        },
        "spec": spec,
    }
