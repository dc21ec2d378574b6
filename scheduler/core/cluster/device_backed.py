"""Extended resources that device classes provide (dynamic resource allocation)."""

from __future__ import annotations

from scheduler.core.cluster.device_inputs import DeviceInputs
from scheduler.core.cluster.inputs import GPU

#: Every device class provides a resource of this prefix and its own name.
IMPLICIT = "deviceclass.resource.kubernetes.io/"
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")


def device_backed(devices: DeviceInputs) -> dict[str, str]:
    """Return resource name -> name of the device class that provides it.

    Of several classes for one resource the newest wins. Resources have the names that the axis uses.
    """
    class_of_resource: dict[str, str] = {}
    for device_class in sorted(devices.classes, key=lambda each: each.created):
        class_of_resource[f"{IMPLICIT}{device_class.name}"] = device_class.name
        extended = device_class.extended_resource
        if extended:
            class_of_resource[GPU if extended in GPU_RESOURCES else extended] = device_class.name
    return class_of_resource
