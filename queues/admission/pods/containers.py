"""Read and edit the containers of an unvalidated pod."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kube.keys import GPU_FRACTION_CONTAINER, MIG_PREFIX, NVIDIA_GPU
from queues.admission.bodies import Json, list_at, map_at
from queues.admission.review import DeniedError


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRef:
    """A container of a pod and the index by which the names of its ConfigMaps refer to it.

    Attributes
    ----------
    index : the position among its kind, with a leading `i` for an init container, e.g. `0` or `i0`
    """

    container: Json
    index: str


def annotations_of(pod: Json) -> dict[str, str]:
    annotations = map_at(map_at(pod, "metadata"), "annotations")
    return {key: value for key, value in annotations.items() if isinstance(value, str)}


def regular_containers(pod: Json) -> list[Json]:
    return list_at(map_at(pod, "spec"), "containers")


def init_containers(pod: Json) -> list[Json]:
    return list_at(map_at(pod, "spec"), "initContainers")


def all_containers(pod: Json) -> Iterator[Json]:
    yield from regular_containers(pod)
    yield from init_containers(pod)


def fraction_container(pod: Json) -> ContainerRef | None:
    """Return the container that gets the shared device; None if the pod has no containers.

    Raises
    ------
    DeniedError : the named container does not exist
    """
    name = annotations_of(pod).get(GPU_FRACTION_CONTAINER)
    regular = regular_containers(pod)
    if not name:
        return ContainerRef(container=regular[0], index="0") if regular else None
    for prefix, containers in (("i", init_containers(pod)), ("", regular)):
        for index, container in enumerate(containers):
            if container.get("name") == name:
                return ContainerRef(container=container, index=f"{prefix}{index}")
    raise DeniedError(
        "failed to get fraction container ref: "
        f"container with name {name} not found for fraction request"
    )


def limits_of(container: Json) -> Json:
    return map_at(map_at(container, "resources"), "limits")


def requests_gpu(container: Json) -> bool:
    """Return whether a container requests whole devices or MIG slices; a limit counts where there is no request."""
    resources = map_at(container, "resources")
    merged = {**map_at(resources, "limits"), **map_at(resources, "requests")}
    return any(
        (name == NVIDIA_GPU or str(name).startswith(MIG_PREFIX)) and str(amount) not in ("0", "")
        for name, amount in merged.items()
    )


def env_of(container: Json) -> list[Json]:
    return list_at(container, "env")


def set_env(container: Json, new_variable: Json) -> None:
    """Set an environment variable, replacing one of the same name."""
    other_variables = [
        variable for variable in env_of(container) if variable.get("name") != new_variable["name"]
    ]
    container["env"] = [*other_variables, new_variable]
