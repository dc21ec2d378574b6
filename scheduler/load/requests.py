"""Convert what a pod requests into the core's units.

The count itself is `queues.workloads.accounting`'s, shared with quotas and status; here its exact fractions become
the floats the core works on: millicores, bytes, devices, thousandths for everything else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

from kube.keys import MIG_PREFIX
from kube.objects.devices import ResourceClaim
from kube.objects.pod import Container, Pod, Quantity
from kube.values.quantity import parse_quantity
from queues.workloads.accounting import WHOLE_GPUS, pod_demand
from scheduler.core.cluster.constraints import ContainerRequest
from scheduler.core.cluster.inputs import CPU, GPU, MEMORY, PODS, TaskRequest

BYTES = ("ephemeral-storage", "storage")

AmountByResource = dict[str, float]


def amounts_of(quantities: Mapping[str, Quantity]) -> AmountByResource:
    """Convert a resource list; the two vendors' GPUs are one resource."""
    return core_amounts({name: parse_quantity(quantity) for name, quantity in quantities.items()})


def core_amounts(exact: Mapping[str, Fraction]) -> AmountByResource:
    """Convert exact amounts in native units, leaving out zeros."""
    amounts: AmountByResource = {}
    for name, value in exact.items():
        if value:
            key, amount = _amount(name, value)
            amounts[key] = amounts.get(key, 0.0) + amount
    return amounts


def task_request(pod: Pod, claims: Sequence[ResourceClaim] = ()) -> TaskRequest:
    """Return what a pod asks for; `claims` are its resource claims as far as they exist."""
    demand = pod_demand(pod, claims)
    amounts = core_amounts(demand.amounts)
    has_mig = bool(demand.mig)
    return TaskRequest(
        cpu_milli=amounts.pop(CPU, 0.0),
        memory_bytes=amounts.pop(MEMORY, 0.0),
        gpus=float(demand.gpus),
        gpu_fraction=0.0 if has_mig else float(demand.gpu_fraction),
        gpu_memory_mib=0 if has_mig else demand.gpu_memory_mib,
        gpu_devices=1 if has_mig else demand.gpu_devices,
        mig=tuple(sorted((name, float(count)) for name, count in demand.mig.items())),
        device_classes=tuple(
            sorted((name, float(count)) for name, count in demand.device_classes.items())
        ),
        other=tuple(sorted(item for item in amounts.items() if item[0] not in (GPU, PODS))),
        legacy_mig=demand.legacy_mig,
        overhead=tuple(sorted(core_amounts(demand.overhead).items())),
        overhead_text="".join(
            f" {name}: {text}" for name, text in sorted(pod.spec.overhead.items())
        ),
    )


def container_requests(pod: Pod) -> tuple[ContainerRequest, ...]:
    """Return the requests container by container, in order of start."""
    init_containers = [
        _container(item, "sidecar" if item.is_sidecar else "init")
        for item in pod.spec.init_containers
    ]
    return (*init_containers, *(_container(item, "app") for item in pod.spec.containers))


def _container(container: Container, kind: str) -> ContainerRequest:
    resources = container.resources
    merged = {**resources.limits, **resources.requests}
    amounts: AmountByResource = {}
    for name in sorted(merged):  # zeros too: a request is known by its place among the names
        key, amount = _amount(name, parse_quantity(merged[name]))
        amounts[key] = amounts.get(key, 0.0) + amount
    return ContainerRequest(container.name, kind, tuple(amounts.items()))


def _amount(name: str, value: Fraction) -> tuple[str, float]:
    if name == "cpu":
        return CPU, float(_ceil(value * 1000))
    if name == "memory":
        return MEMORY, float(_ceil(value))
    if name in WHOLE_GPUS:
        return GPU, float(_ceil(value))
    if name == "pods":
        return PODS, float(_ceil(value))
    if name in BYTES or name.startswith(MIG_PREFIX):
        return name, float(_ceil(value))
    return name, float(_ceil(value * 1000))


def _ceil(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)
