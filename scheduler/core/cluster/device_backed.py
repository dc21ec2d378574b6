"""Extended resources that device classes provide, under the names tasks and nodes use for them."""

from __future__ import annotations

from scheduler.core.cluster.inputs import GPU, DeviceInputs

#: Every class provides a resource of its own name.
IMPLICIT = "deviceclass.resource.kubernetes.io/"
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")


def device_backed(given: DeviceInputs) -> dict[str, str]:
    """Return resource name -> device class; of several classes for one resource the newest wins."""
    found: dict[str, str] = {}
    for one in sorted(given.classes, key=lambda c: c.created):
        found[f"{IMPLICIT}{one.name}"] = one.name
        if one.extended_resource:
            found[GPU if one.extended_resource in GPU_RESOURCES else one.extended_resource] = (
                one.name
            )
    return found
