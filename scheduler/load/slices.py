"""Devices that drivers publish: resource slices and device classes, in core terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from kube.objects import devices as api
from kube.objects.pod import Quantity
from kube.values.quantity import parse_quantity
from scheduler.core.cluster.constraints import Taint
from scheduler.core.cluster.device_inputs import (
    Attribute,
    CounterSet,
    Device,
    DeviceCapacity,
    DeviceClass,
    DeviceSlice,
    Quantities,
    Version,
)
from scheduler.load.terms import node_terms


def device_class(item: api.DeviceClass) -> DeviceClass:
    """Read a device class."""
    return DeviceClass(
        name=item.metadata.name,
        selectors=tuple(cel(item.spec.selectors)),
        extended_resource=item.spec.extended_resource_name,
        created=item.metadata.created,
        settings=tuple(config.opaque for config in item.spec.config if config.opaque),
    )


def device_slice(item: api.ResourceSlice) -> DeviceSlice:
    """Read a resource slice."""
    spec = item.spec
    return DeviceSlice(
        driver=spec.driver,
        pool=spec.pool.name,
        node=spec.node_name,
        devices=tuple(_device(device) for device in spec.devices),
        all_nodes=spec.all_nodes,
        node_terms=node_terms(spec.node_selector),
        generation=spec.pool.generation,
        pool_slices=spec.pool.resource_slice_count,
        is_per_device=spec.per_device_node_selection,
        counter_sets=tuple(
            CounterSet(name=counter_set.name, counters=_counters(counter_set.counters))
            for counter_set in spec.shared_counters
        ),
    )


def quantities(amounts: Mapping[str, Quantity]) -> Quantities:
    """Read amounts by name."""
    return tuple((name, parse_quantity(amount)) for name, amount in sorted(amounts.items()))


def cel(selectors: Iterable[api.DeviceSelector]) -> Iterator[str]:
    """Yield the CEL expressions of selectors."""
    return (item.cel["expression"] for item in selectors if item.cel.get("expression"))


def dra_gpus(slices: Iterable[api.ResourceSlice]) -> dict[str, float]:
    """Return the number of GPUs published through slices, by node.

    Only the newest generation of each pool counts. Devices that draw from one counter set are parts of one
    GPU and count as one together.
    """
    gpu_specs = [item.spec for item in slices if "gpu" in item.spec.driver.lower()]
    newest: dict[tuple[str, str], int] = {}
    for spec in gpu_specs:
        pool = (spec.driver, spec.pool.name)
        newest[pool] = max(spec.pool.generation, newest.get(pool, 0))
    #: Node -> its GPUs: each is known by its counter set, or by its own name if it is not divided.
    gpus: dict[str, set[tuple[str, ...]]] = {}
    for spec in gpu_specs:
        pool = (spec.driver, spec.pool.name)
        if spec.pool.generation < newest[pool]:
            continue
        for device in spec.devices:
            content = device.content
            node = content.node_name if spec.per_device_node_selection else spec.node_name
            if not node:
                continue
            gpus_of_node = gpus.setdefault(node, set())
            for item in content.consumes_counters:
                gpus_of_node.add((*pool, "counter set", item.counter_set))
            if not content.consumes_counters:
                gpus_of_node.add((*pool, "device", device.name))
    return {node: float(len(gpus_of_node)) for node, gpus_of_node in gpus.items()}


def _device(device: api.Device) -> Device:
    content = device.content
    return Device(
        name=device.name,
        attributes={name: _attribute(value) for name, value in content.attributes.items() if value},
        capacity={name: _capacity(value) for name, value in content.capacity.items()},
        taints=tuple(Taint(item.key, item.value, item.effect) for item in content.taints),
        draws=tuple(
            CounterSet(name=item.counter_set, counters=_counters(item.counters))
            for item in content.consumes_counters
        ),
        node=content.node_name,
        all_nodes=content.all_nodes,
        node_terms=node_terms(content.node_selector),
        is_shareable=content.allow_multiple_allocations,
        binds_to_node=content.binds_to_node,
        binding_conditions=content.binding_conditions,
        binding_failure_conditions=content.binding_failure_conditions,
    )


def _attribute(value_by_type: Mapping[str, Attribute]) -> Attribute:
    """Return the value of an attribute, which the API writes as one entry: type -> value."""
    kind, value = next(iter(value_by_type.items()))
    return Version(value) if kind == "version" else value


def _capacity(capacity: api.DeviceCapacity) -> DeviceCapacity:
    value = parse_quantity(capacity.value)
    policy = capacity.request_policy
    if policy is None:
        return DeviceCapacity(value=value)
    bounds = policy.valid_range or api.CapacityRange()
    return DeviceCapacity(
        value=value,
        default=_optional(policy.default),
        valid_values=tuple(sorted(parse_quantity(item) for item in policy.valid_values)),
        minimum=_optional(bounds.min),
        maximum=_optional(bounds.max),
        step=_optional(bounds.step),
    )


def _optional(quantity: Quantity | None) -> Fraction | None:
    return None if quantity is None else parse_quantity(quantity)


def _counters(counters: Mapping[str, api.Counter]) -> Quantities:
    return quantities({name: counter.value for name, counter in counters.items()})
