"""Extended resources that a device class provides, by a claim that is created when the pod is placed.

A container may request such a resource like any other. On nodes whose device plugins do not offer it, the
scheduler creates a claim that provides it. The requests of the claim are named after container and
resource, so that the binder can map devices to containers.
"""

from __future__ import annotations

from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.constraints import ContainerRequest
from scheduler.core.cluster.device_backed import device_backed
from scheduler.core.cluster.device_inputs import (
    EXTENDED_CLAIM,
    DeviceClaim,
    DeviceInputs,
    DeviceRequest,
)
from scheduler.core.cluster.inputs import GPU, NodeInput

#: Amounts of other resources are kept in thousandths.
UNITS_PER_ITEM = 1000.0


class ExtendedResources:
    """Which resource names device classes provide, and the claims that tasks need for them."""

    def __init__(self, inputs: DeviceInputs) -> None:
        self._class_of = device_backed(inputs)

    def __contains__(self, resource: str) -> bool:
        return resource in self._class_of

    def __bool__(self) -> bool:
        return bool(self._class_of)

    def are_wanted_by(self, task_class: TaskClass) -> bool:
        """Return whether tasks of a class request a resource that a device class provides."""
        return bool(self._wanted(task_class))

    def missing_on(self, task_class: TaskClass, node: NodeInput) -> frozenset[str]:
        """Return the resources a task wants that the node's device plugins do not offer."""
        return frozenset(
            name
            for name in self._wanted(task_class)
            if node.allocatable.get(name, 0) - (node.dra_gpus if name == GPU else 0) <= 0
        )

    def claim(self, task_class: TaskClass, missing: frozenset[str]) -> DeviceClaim:
        """Build the claim for the missing resources of a task.

        Init containers may use the devices of containers that start later. What they need beyond these
        is requested once for all init containers.
        """
        requests: list[DeviceRequest] = []
        containers = task_class.constraints.containers or (_whole(task_class, missing),)
        later: dict[str, float] = {}
        for index, container in enumerate(containers):
            if container.kind == "init":
                continue
            for number, (name, amount) in enumerate(container.requests):
                if name in missing and amount > 0:
                    later[name] = later.get(name, 0.0) + _items(name, amount)
                    requests.append(self._request(index, number, name, _items(name, amount)))
        requests += self._init_requests(containers, missing, later)
        return DeviceClaim(
            name=EXTENDED_CLAIM,
            namespace=task_class.namespace,
            requests=tuple(requests),
            is_extended_resource=True,
        )

    def _init_requests(
        self,
        containers: tuple[ContainerRequest, ...],
        missing: frozenset[str],
        later: dict[str, float],
    ) -> list[DeviceRequest]:
        """Return requests for what the largest init container lacks.

        Parameters
        ----------
        later : resource -> devices of the containers that start after the init containers; changed
        """
        largest: dict[str, tuple[float, int, int]] = {}
        for index, container in enumerate(containers):
            for number, (name, amount) in enumerate(container.requests):
                if name not in missing:
                    continue
                if container.kind == "sidecar":  # it keeps its devices from now on
                    later[name] = later.get(name, 0.0) - _items(name, amount)
                elif container.kind == "init":
                    lack = (_items(name, amount) - later.get(name, 0.0), -index, number)
                    largest[name] = max(largest.get(name, lack), lack)
        return [
            self._request(-index, number, name, lacking)
            for name, (lacking, index, number) in sorted(largest.items())
            if lacking > 0
        ]

    def _request(self, container: int, number: int, resource: str, count: float) -> DeviceRequest:
        return DeviceRequest(
            name=f"container-{container}-request-{number}",
            device_class=self._class_of[resource],
            count=count,
        )

    def _wanted(self, task_class: TaskClass) -> list[str]:
        names = [name for name, amount in task_class.request.other if amount > 0]
        if task_class.request.gpus > 0:
            names.append(GPU)
        return [name for name in names if name in self._class_of]


def _items(resource: str, amount: float) -> float:
    return amount if resource == GPU else amount / UNITS_PER_ITEM


def _whole(task_class: TaskClass, missing: frozenset[str]) -> ContainerRequest:
    """Return one container that requests everything, for tasks whose containers are not known."""
    requests = [(name, amount) for name, amount in task_class.request.other if name in missing]
    if GPU in missing:
        requests.append((GPU, task_class.request.gpus))
    return ContainerRequest(requests=tuple(requests))
