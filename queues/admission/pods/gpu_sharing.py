"""Validate requests for a fraction of a GPU, and add what the container needs to find its device.

The device is known only when the binder has placed the pod, so the container refers to ConfigMaps that do not exist
yet; the kubelet waits until the binder has created them.
"""

from __future__ import annotations

import re

from kube.errors import BadValueError
from kube.keys import (
    GPU_FRACTION,
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_MIB,
    NVIDIA_GPU,
    SHARED_GPU_CONFIG_MAP,
)
from kube.values.numbers import int_or_none, is_hex_float, parse_float
from queues.admission.bodies import Json, list_at, map_at
from queues.admission.pods.containers import (
    all_containers,
    annotations_of,
    fraction_container,
    limits_of,
    set_env,
)
from queues.admission.review import DeniedError
from queues.admission.settings import SUFFIX_LENGTH, AdmissionSettings

MPS = "mps"
VISIBLE_DEVICES = "NVIDIA_VISIBLE_DEVICES"
INJECTED = (VISIBLE_DEVICES, "RUNAI_NUM_OF_GPUS", "GPU_PORTION")
MAX_UINT64 = 2**64 - 1
# The longest base name that leaves room for the random part, the container index and the longest suffix.
BASE_LENGTH = 33


def is_fraction_pod(pod: Json) -> bool:
    annotations = annotations_of(pod)
    return GPU_FRACTION in annotations or GPU_MEMORY_MIB in annotations


def validate(pod: Json, settings: AdmissionSettings) -> None:
    """Refuse contradictory requests for fractions of a GPU.

    Raises
    ------
    DeniedError : the first violated rule, in a fixed order
    """
    annotations = annotations_of(pod)
    fraction, memory = annotations.get(GPU_FRACTION), annotations.get(GPU_MEMORY_MIB)
    is_shared = fraction is not None or memory is not None
    if is_shared and not settings.gpu_sharing:
        raise DeniedError(
            f"attempting to create a pod {_full_name(pod)} with gpu sharing request, "
            "while GPU sharing is disabled"
        )
    if annotations.get(MPS) == "true" and not is_shared:
        raise DeniedError("MPS is only supported with GPU fraction request")
    has_gpu_limit = any(NVIDIA_GPU in limits_of(container) for container in all_containers(pod))
    if fraction is not None and has_gpu_limit:
        raise DeniedError(
            "cannot have both GPU fraction request and whole GPU resource request/limit"
        )
    if memory is not None and (fraction is not None or has_gpu_limit):
        raise DeniedError("cannot request both GPU and GPU memory")
    devices = annotations.get(GPU_FRACTION_DEVICES)
    if devices is not None and not is_shared:
        raise DeniedError(
            "cannot request multiple fractional devices without specifying fraction portion or gpu-memory"
        )
    if memory is not None and not _is_positive(memory):
        raise DeniedError("gpu-memory annotation value must be a positive integer greater than 0")
    if fraction is not None:
        _check_fraction(fraction)
    if devices is not None and not _is_positive(devices):
        raise DeniedError(
            "fraction count annotation value must be a positive integer greater than 0"
        )


def mutate(pod: Json, settings: AdmissionSettings) -> None:
    """Make the fraction container refer to its ConfigMaps; repeating it changes nothing."""
    if not is_fraction_pod(pod):
        return
    ref = fraction_container(pod)
    if ref is None:
        return
    prefix = annotations_of(pod).get(SHARED_GPU_CONFIG_MAP)
    if not prefix:
        prefix = config_map_prefix(pod, ref.index, settings.suffix())
        pod["metadata"]["annotations"][SHARED_GPU_CONFIG_MAP] = prefix
    name = f"{prefix}-{ref.index}"
    for variable in INJECTED:
        source = {"configMapKeyRef": {"name": name, "key": variable}}
        set_env(ref.container, {"name": variable, "valueFrom": source})
    _add_volume(pod, name)
    _add_env_from(ref.container, f"{name}-evar")


def config_map_prefix(pod: Json, index: str, suffix: str) -> str:
    """Return `<base>-<suffix>-shared-gpu`, short enough for every name derived from it."""
    metadata = map_at(pod, "metadata")
    owners = list_at(metadata, "ownerReferences")
    owner_name = owners[0].get("name") if owners else ""
    base = str(owner_name or metadata.get("name") or metadata.get("generateName") or "pod")
    room = BASE_LENGTH + 1 - len(index) + SUFFIX_LENGTH - len(suffix)
    return f"{base[:room].rstrip('.-')}-{suffix}-shared-gpu"


def volume_name(config_map: str) -> str:
    """Return the name of the volume of a ConfigMap, a valid DNS label."""
    return re.sub(r"[^a-z0-9-]", "-", f"{config_map}-vol".lower()).strip("-")


def _check_fraction(text: str) -> None:
    if not 0 < _number(text) < 1:
        raise DeniedError(
            "gpu-fraction annotation value must be a positive number smaller than 1.0"
        )
    if is_hex_float(text):
        raise DeniedError(
            "gpu-fraction annotation value must be a float written with a decimal point "
            f"or a scientific notation .given value: {text}"
        )


def _number(text: str) -> float:
    try:
        return parse_float(text)
    except BadValueError:
        return 0.0


def _is_positive(text: str) -> bool:
    return int_or_none(text, smallest=1, largest=MAX_UINT64) is not None


def _add_volume(pod: Json, config_map: str) -> None:
    spec = pod["spec"]
    name = volume_name(config_map)
    others = [volume for volume in list_at(spec, "volumes") if volume.get("name") != name]
    spec["volumes"] = [*others, {"name": name, "configMap": {"name": config_map}}]


def _add_env_from(container: Json, config_map: str) -> None:
    listed = list_at(container, "envFrom")
    if not any(map_at(entry, "configMapRef").get("name") == config_map for entry in listed):
        source = {"configMapRef": {"name": config_map, "optional": False}}
        container["envFrom"] = [*listed, source]


def _full_name(pod: Json) -> str:
    metadata = map_at(pod, "metadata")
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
