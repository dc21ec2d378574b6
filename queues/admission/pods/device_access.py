"""Reject pods that set NVIDIA_VISIBLE_DEVICES: only the device plugin may, or a container could see other pods' GPUs."""

from __future__ import annotations

from queues.admission.bodies import Json
from queues.admission.pods.containers import (
    all_containers,
    env_of,
    fraction_container,
    requests_gpu,
)
from queues.admission.pods.gpu_sharing import VISIBLE_DEVICES, is_fraction_pod
from queues.admission.review import DeniedError
from queues.admission.settings import AdmissionSettings

HARMLESS = ("void", "none")


def validate(pod: Json, settings: AdmissionSettings) -> None:
    """Refuse values of the variable other than `void` and `none`.

    Raises
    ------
    DeniedError : with the container and the value
    """
    if not settings.block_visible_devices:
        return
    for container in _others(pod):
        for entry in env_of(container):
            if entry.get("name") != VISIBLE_DEVICES:
                continue
            name = container.get("name", "")
            if entry.get("valueFrom"):
                raise DeniedError(
                    f"container {name} has an environment variable {VISIBLE_DEVICES} defined with a "
                    "valueFrom reference. This is forbidden due to possible conflicts with Nvidia's "
                    "device plugin"
                )
            value = entry.get("value", "")
            if value not in HARMLESS:
                raise DeniedError(
                    f"container {name} has an environment variable {VISIBLE_DEVICES} defined with a "
                    f"value of {value}. This is forbidden due to conflicts with Nvidia's device plugin. "
                    "The only values that are allowed are 'void' or 'none'"
                )


def mutate(pod: Json, settings: AdmissionSettings) -> None:
    """Hide all devices from containers that request none."""
    if not settings.block_visible_devices:
        return
    for container in _others(pod):
        if requests_gpu(container):
            continue
        entries = [entry for entry in env_of(container) if entry.get("name") == VISIBLE_DEVICES]
        if not entries:
            container["env"] = [*env_of(container), {"name": VISIBLE_DEVICES, "value": "void"}]
        for entry in entries:
            if not entry.get("valueFrom"):
                entry["value"] = "void"


def _others(pod: Json) -> list[Json]:
    """Return all containers except the one that gets the pod's fraction of a GPU."""
    shared = fraction_container(pod) if is_fraction_pod(pod) else None
    shared_container = shared.container if shared is not None else None
    return [container for container in all_containers(pod) if container is not shared_container]
