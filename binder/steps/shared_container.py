"""Find the container of a pod that gets the shared GPU, and the names of its two ConfigMaps."""

from __future__ import annotations

from dataclasses import dataclass

from binder.errors import BindError
from kube.keys import GPU_FRACTION_CONTAINER, SHARED_GPU_CONFIG_MAP
from kube.objects.pod import Container, Pod


@dataclass(frozen=True, slots=True)
class SharedContainer:
    """The container that gets the device; `index` as it appears in the names of the maps."""

    container: Container
    index: str


def map_names(pod: Pod) -> tuple[str, str]:
    """Return the names of a pod's capability map and of its map of plain variables."""
    prefix = pod.metadata.annotations.get(SHARED_GPU_CONFIG_MAP, "")
    if not prefix:
        raise BindError(f"no desired configmap name found in pod {pod.metadata.key} annotations")
    base = f"{prefix}-{shared_container(pod).index}"
    return base, f"{base}-evar"


def shared_container(pod: Pod) -> SharedContainer:
    """Return the container that gets the device: the named one, else the first regular one."""
    container_name = pod.metadata.annotations.get(GPU_FRACTION_CONTAINER, "")
    if not container_name:
        return SharedContainer(pod.spec.containers[0], "0")
    for index, container in enumerate(pod.spec.init_containers):
        if container.name == container_name:
            return SharedContainer(container, f"i{index}")
    for index, container in enumerate(pod.spec.containers):
        if container.name == container_name:
            return SharedContainer(container, str(index))
    raise BindError(f"container with name {container_name} not found for fraction request")
