"""Name the visible device to the container of a shared-GPU pod, through two ConfigMaps.

Admission has made the container read its environment from them; they can only be created when the device is
known. Both are owned by the pod and deleted with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from binder.params import StepConfig
from binder.steps.base import BindJob
from binder.steps.shared_container import map_names, shared_container
from kube.errors import AlreadyExistsError, NotFoundError
from kube.gateway import Gateway
from kube.objects.cluster import ConfigMap
from kube.objects.pod import Container, Pod
from kube.resources import CONFIGMAPS

VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
OLD_VISIBLE_DEVICES = "RUNAI-VISIBLE-DEVICES"
CDI_PREFIX = "k8s.device-plugin.nvidia.com/gpu="


class GpuSharing:
    """The step for `Fraction` requests."""

    def __init__(self, gateway: Gateway, config: StepConfig) -> None:
        self._gateway = gateway
        self._uses_cdi = config.flag("cdiEnabled")

    def concerns(self, job: BindJob) -> bool:
        return job.is_fraction

    def prepare(self, job: BindJob) -> None:
        names = map_names(job.pod)
        target = shared_container(job.pod)
        devices = [f"{CDI_PREFIX}{device}" if self._uses_cdi else device for device in job.devices]
        visible = {VISIBLE_DEVICES: ",".join(devices)}
        portion = job.request.spec.received_gpu.portion if job.request.spec.received_gpu else ""
        capabilities = {"GPU_PORTION": portion, "RUNAI_NUM_OF_GPUS": portion}
        direct: dict[str, str] = {}
        (capabilities if _reads_visible_devices(target.container) else direct).update(visible)
        self._put(job.pod, names[0], capabilities)
        self._put(job.pod, names[1], direct)

    def roll_back(self, job: BindJob) -> None:
        for name in map_names(job.pod):
            try:
                self._gateway.delete(CONFIGMAPS, name, namespace=job.pod.metadata.namespace)
            except NotFoundError:
                continue

    def _put(self, pod: Pod, name: str, data: Mapping[str, str]) -> None:
        """Create the map, or update an existing one: the pod's own is merged, any other is replaced."""
        namespace = pod.metadata.namespace
        body = _map_body(pod, name, data)
        try:
            self._gateway.create(CONFIGMAPS, body, namespace=namespace)
            return
        except AlreadyExistsError:
            existing = self._gateway.get(CONFIGMAPS, name, as_type=ConfigMap, namespace=namespace)
        is_ours = any(owner.uid == pod.metadata.uid for owner in existing.metadata.owner_references)
        if is_ours:
            changed = {key: value for key, value in data.items() if value}
            if OLD_VISIBLE_DEVICES in existing.data and VISIBLE_DEVICES in changed:
                changed[OLD_VISIBLE_DEVICES] = changed[VISIBLE_DEVICES]
            patch: dict[str, Any] = {"data": changed}
        else:
            removals = {key: None for key in existing.data if key not in data}
            owners = body["metadata"]["ownerReferences"]
            patch = {"metadata": {"ownerReferences": owners}, "data": {**removals, **data}}
        self._gateway.patch(CONFIGMAPS, name, patch, namespace=namespace)


def _reads_visible_devices(container: Container) -> bool:
    return any(
        variable.name == VISIBLE_DEVICES
        and variable.value_from is not None
        and variable.value_from.config_map_key_ref is not None
        for variable in container.env
    )


def _map_body(pod: Pod, name: str, data: Mapping[str, str]) -> dict[str, Any]:
    meta = pod.metadata
    owner = {"apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": meta.uid}
    return {
        "apiVersion": CONFIGMAPS.api_version,
        "kind": CONFIGMAPS.kind,
        "metadata": {"name": name, "namespace": meta.namespace, "ownerReferences": [owner]},
        "data": dict(data),
    }
