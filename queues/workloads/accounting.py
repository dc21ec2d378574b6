"""Count what a pod requests and holds, for scheduler, quotas, status and metrics alike.

Requests of containers, native sidecars and the pod overhead add up; ordinary init containers only raise the
maximum. A pod requests whole devices, `gpu-memory` or `gpu-fraction`, the latter two times the number of
devices; MIG slices and DRA claims are counted separately. Amounts are exact fractions in native units (cores,
bytes, devices); they are rounded only when they are written to a status.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from kube.errors import BadValueError
from kube.keys import (
    AMD_GPU,
    EXTENDED_RESOURCE_CLAIM,
    GPU_FRACTION,
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_MIB,
    MIG_PREFIX,
    NODE_GPU_MEMORY,
    NVIDIA_GPU,
    RECEIVED_TYPE,
)
from kube.objects.devices import DeviceRequest, ExactRequest, ResourceClaim
from kube.objects.node import Node
from kube.objects.pod import Container, Pod, Quantity
from kube.values.numbers import int_or_none, parse_float
from kube.values.quantity import format_binary, format_decimal, parse_quantity

WHOLE_GPUS = (NVIDIA_GPU, AMD_GPU)
_MIG_SLICE = re.compile(r"nvidia\.com/mig-(\d+)g\.(\d+)gb")
GPU_MEMORY = "run.ai/gpu.memory"
AMD_MEMORY_PREFIX = "beta.amd.com/gpu.vram"

MAX_INT64 = 2**63 - 1
_BINARY_NAMES = ("memory", "ephemeral-storage", "hugepages-")
_AMD_MEMORY = re.compile(r"([0-9]{1,12})([MGT])")
_AMD_UNITS = {"M": 1, "G": 1000, "T": 1_000_000}

ResourceAmounts = dict[str, Fraction]


class AccountingError(Exception):
    """The GPU request of a pod, or the GPU labels of a node, cannot be counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDemand:
    """The requests of one pod; at most one of whole devices, fraction and device memory is set.

    Attributes
    ----------
    amounts : everything but GPUs and MIG slices, overhead included, native units (cpu in cores)
    overhead : the part of `amounts` that is pod overhead
    gpus : whole devices
    gpu_fraction : part of each of `gpu_devices` devices, in (0, 1]
    gpu_memory_mib : memory on each of `gpu_devices` devices
    mig : MIG resource name -> slices
    device_classes : GPU device class -> devices requested through resource claims
    legacy_mig : the MIG slices come from the old annotation, which no node serves any more
    """

    amounts: Mapping[str, Fraction]
    overhead: Mapping[str, Fraction] = field(default_factory=dict)
    gpus: Fraction = Fraction(0)
    gpu_fraction: Fraction = Fraction(0)
    gpu_memory_mib: int = 0
    gpu_devices: int = 1
    mig: Mapping[str, Fraction] = field(default_factory=dict)
    device_classes: Mapping[str, int] = field(default_factory=dict)
    legacy_mig: bool = False

    @property
    def mig_gpus(self) -> Fraction:
        """Return the MIG slices counted as GPUs, as in quota."""
        return sum((quota_gpus(name) * count for name, count in self.mig.items()), Fraction(0))

    @property
    def is_shared(self) -> bool:
        """Return whether the pod requests part of a device, by fraction or by memory."""
        return bool(self.gpu_fraction or self.gpu_memory_mib)


def pod_demand(pod: Pod, claims: Sequence[ResourceClaim] = ()) -> PodDemand:
    """Return the requests of a pod.

    Parameters
    ----------
    claims : the resource claims of the pod, see `claim_names`; none if DRA is not served

    Raises
    ------
    ValueError : a request that is no quantity
    """
    amounts = _container_amounts(pod)
    overhead = {name: parse_quantity(value) for name, value in pod.spec.overhead.items()}
    _add(amounts, overhead)
    whole = sum((amounts.pop(name, Fraction(0)) for name in WHOLE_GPUS), Fraction(0))
    mig = {name: amounts.pop(name) for name in [n for n in amounts if n.startswith(MIG_PREFIX)]}
    annotations = pod.metadata.annotations
    fraction, memory = gpu_fraction(annotations), _positive(annotations.get(GPU_MEMORY_MIB))
    shared = bool(fraction or memory)
    legacy = _legacy_mig(annotations)
    return PodDemand(
        amounts=amounts,
        overhead=overhead,
        gpus=Fraction(0) if shared or legacy else whole,
        gpu_fraction=Fraction(0) if legacy else fraction,
        gpu_memory_mib=0 if fraction or legacy else memory,
        gpu_devices=(_positive(annotations.get(GPU_FRACTION_DEVICES)) or 1) if shared else 1,
        mig=legacy or mig,
        device_classes=claimed_devices(claims),
        legacy_mig=bool(legacy),
    )


def requested_resources(demand: PodDemand) -> ResourceAmounts:
    """Return a demand as the resources of a status: fractions count as devices, device memory has its own name."""
    amounts: ResourceAmounts = {name: value for name, value in demand.amounts.items() if value}
    devices = demand.gpus + demand.gpu_fraction * demand.gpu_devices
    _add(amounts, {NVIDIA_GPU: _stated(devices)} if devices else {})
    if demand.gpu_memory_mib:
        amounts[GPU_MEMORY] = Fraction(demand.gpu_memory_mib * demand.gpu_devices)
    _add(amounts, demand.mig)
    _add(amounts, {name: Fraction(count) for name, count in demand.device_classes.items()})
    return amounts


def allocated_resources(
    pod: Pod, demand: PodDemand, gpu_memory_mib: int | None = None
) -> ResourceAmounts:
    """Return what a placed pod holds: its requests, but a shared device only after the binder assigned it.

    Parameters
    ----------
    gpu_memory_mib : memory of one device of the pod's node; needed for `gpu-memory` pods only

    Raises
    ------
    AccountingError : a `gpu-memory` pod on a node whose device memory is unknown
    """
    amounts = requested_resources(demand)
    amounts.pop(GPU_MEMORY, None)
    if not demand.is_shared:
        return amounts
    amounts.pop(NVIDIA_GPU, None)
    if pod.metadata.annotations.get(RECEIVED_TYPE) != "Fraction":
        return amounts
    part = demand.gpu_fraction
    if not part:
        if not gpu_memory_mib:
            raise AccountingError(
                f"pod {pod.key} holds gpu-memory on node {pod.spec.node_name}, whose GPU memory is unknown"
            )
        part = Fraction(demand.gpu_memory_mib, gpu_memory_mib)
    amounts[NVIDIA_GPU] = _stated(part * demand.gpu_devices)
    return amounts


def claim_names(pod: Pod) -> list[str]:
    """Return the names of the pod's resource claims that exist (claims of a template are created later)."""
    if not pod.spec.resource_claims:
        return []
    generated = {s.name: s.resource_claim_name for s in pod.status.resource_claim_statuses}
    claim_names_of_pod = (
        c.resource_claim_name or generated.get(c.name, "") for c in pod.spec.resource_claims
    )
    return [name for name in claim_names_of_pod if name]


def claimed_devices(claims: Iterable[ResourceClaim]) -> dict[str, int]:
    """Return GPU device class -> devices; all devices of a claim count under its first GPU class.

    A claim that has its devices counts what it holds. Before that, a request counts what it requests, one
    for all devices, and of alternatives the largest. Admin access holds nothing.
    """
    devices: dict[str, int] = {}
    for claim in claims:
        if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true":
            continue  # already counted as a container request
        first, total = "", 0
        held_by_request = _held_by_request(claim)
        for request in claim.spec.devices.requests:
            parts = _gpu_parts(request)
            if not parts:
                continue
            first = first or next(iter(parts.values())).device_class_name
            count = sum(held_by_request[name] for name in parts)
            if not count and (request.exact or not held_by_request):
                count = max(_requested_count(part) for part in parts.values())
            total += count
        if total:
            devices[first] = min(MAX_INT64, devices.get(first, 0) + total)
    return devices


def quota_gpus(resource: str) -> int:
    """Return as how many GPUs one unit of a resource counts in quota: 1 for a device, 3 for `mig-3g.20gb`."""
    if resource in WHOLE_GPUS:
        return 1
    slice_name = _MIG_SLICE.fullmatch(resource)
    return int(slice_name[1]) if slice_name else 0


def _gpu_parts(request: DeviceRequest) -> dict[str, ExactRequest]:
    """Return the request, or its alternatives, as far as they hold GPUs; by the names in an allocation."""
    parts: dict[str, ExactRequest] = {
        f"{request.name}/{part.name}": part for part in request.first_available
    }
    if request.exact:
        parts = {request.name: request.exact}
    return {
        name: part
        for name, part in parts.items()
        if "gpu" in part.device_class_name.lower() and not part.admin_access
    }


def _requested_count(request: ExactRequest) -> int:
    if request.allocation_mode in ("ExactCount", ""):
        return max(1, request.count)
    return 1 if request.allocation_mode == "All" else 0


def _held_by_request(claim: ResourceClaim) -> Counter[str]:
    """Return how many devices each request of an allocated claim has."""
    results = ((claim.status.allocation or {}).get("devices") or {}).get("results") or ()
    return Counter(str(item.get("request", "")) for item in results if isinstance(item, dict))


def node_gpu_memory(node: Node) -> int:
    """Return the MiB of one device of a node, from the labels of either vendor.

    Raises
    ------
    AccountingError : both vendors' labels, none, or one that is no number
    """
    labels = node.metadata.labels
    amd = next((key for key in labels if key.startswith(AMD_MEMORY_PREFIX)), "")
    nvidia = labels.get(NODE_GPU_MEMORY)
    name = node.metadata.name
    if nvidia is not None and amd:
        raise AccountingError(
            f"the node {name} has both nvidia and amd gpu labels. "
            "Such nodes aren't supported for fraction resource requests"
        )
    if nvidia is not None:
        memory_mib = int_or_none(nvidia, smallest=0)
        if memory_mib is None:
            raise AccountingError(f"node {name}: label {NODE_GPU_MEMORY} is no number: {nvidia!r}")
        return memory_mib
    match = _AMD_MEMORY.search(amd.removeprefix(AMD_MEMORY_PREFIX)) if amd else None
    if match is None:
        raise AccountingError(f"the node {name} has no label with its GPU memory")
    return int(match[1]) * _AMD_UNITS[match[2]]


def add_amounts(total: ResourceAmounts, more: Mapping[str, Fraction]) -> None:
    """Add amounts to a running total, in place."""
    _add(total, more)


def take_amounts(total: ResourceAmounts, less: Mapping[str, Fraction]) -> None:
    """Take amounts off a running total, in place."""
    for name, value in less.items():
        total[name] = total.get(name, Fraction(0)) - value


def parse_list(resources: Mapping[str, Quantity]) -> ResourceAmounts:
    """Return a ResourceList of a status as exact amounts; values that are no quantities are left out."""
    amounts: ResourceAmounts = {}
    for name, value in resources.items():
        try:
            amounts[name] = parse_quantity(value)
        except BadValueError:
            continue
    return amounts


def format_list(amounts: Mapping[str, Fraction]) -> dict[str, str]:
    """Return amounts as a ResourceList in canonical form, sorted by name."""
    return {name: _text(name, amounts[name]) for name in sorted(amounts)}


def _stated(value: Fraction) -> Fraction:
    """Round up to billionths, the smallest unit of a quantity, so that the status holds exactly what was counted."""
    return Fraction(math.ceil(value * 10**9), 10**9)


def _text(name: str, value: Fraction) -> str:
    return format_binary(value) if name.startswith(_BINARY_NAMES) else format_decimal(value)


def _container_amounts(pod: Pod) -> ResourceAmounts:
    total: ResourceAmounts = {}
    for container in pod.spec.containers:
        _add(total, _requests(container))
    if not pod.spec.init_containers:
        return total
    peak: ResourceAmounts = {}
    sidecars: ResourceAmounts = {}
    for container in pod.spec.init_containers:
        requests = _requests(container)
        if container.is_sidecar:
            _add(sidecars, requests)
            _raise_to(peak, sidecars)
        else:
            _add(requests, sidecars)
            _raise_to(peak, requests)
    _add(total, sidecars)
    _raise_to(total, peak)
    return total


def _requests(container: Container) -> ResourceAmounts:
    resources = container.resources
    # The API server defaults missing requests to the limits; objects from files and fakes did not pass through it.
    merged = {**resources.limits, **resources.requests} if resources.limits else resources.requests
    return {name: parse_quantity(value) for name, value in merged.items()}


def _add(total: ResourceAmounts, more: Mapping[str, Fraction]) -> None:
    for name, value in more.items():
        total[name] = total[name] + value if name in total else value


def _raise_to(total: ResourceAmounts, floor: Mapping[str, Fraction]) -> None:
    for name, value in floor.items():
        if value > total.get(name, 0):
            total[name] = value


def gpu_fraction(annotations: Mapping[str, str]) -> Fraction:
    """Return the part of a device that annotations request; 0 if they request none, or one outside (0, 1]."""
    text = annotations.get(GPU_FRACTION)
    if not text:
        return Fraction(0)
    try:
        value = parse_float(text)
    except BadValueError:
        return Fraction(0)
    return Fraction(repr(value)) if 0 < value <= 1 else Fraction(0)


def _positive(text: str | None) -> int:
    return int_or_none(text, smallest=0) or 0


def _legacy_mig(annotations: Mapping[str, str]) -> ResourceAmounts:
    slices = {
        key: int_or_none(value, smallest=0)
        for key, value in annotations.items()
        if key.startswith(MIG_PREFIX)
    }
    return {key: Fraction(count) for key, count in slices.items() if count is not None}
