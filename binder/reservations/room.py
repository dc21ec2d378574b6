"""Whether a node has whole GPUs left, as the API server knows it now.

The scheduler does not count reservation pods, because their users are counted. So it gives away a device as soon
as its last user has ended, which this binder may not have seen yet: then the reservation pod still holds the
device, and the kubelet would refuse the pod.

Asking the server at each bind would cost as much as the bind, so only nodes are asked about that may have
reservation pods.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kube.gateway import Gateway, Selectors
from kube.keys import NVIDIA_GPU
from kube.objects.bindrequest import BindRequest
from kube.objects.node import Node
from kube.objects.pod import Container, Pod
from kube.resources import NODES, PODS
from kube.values.quantity import parse_quantity


@dataclass(slots=True)
class SharedNodes:
    """The nodes that have or had reservation pods, as far as that can be known; nodes only come in.

    A reservation pod is created for a bind request only. The requests come in order, so a request for a whole GPU is
    never seen before the one whose reservation may be in its way. `include` adds what came while a watch was
    interrupted.
    """

    _names: set[str] = field(default_factory=set)

    def __contains__(self, node: str) -> bool:
        return node in self._names

    def note(self, request: BindRequest) -> None:
        """Add the node of a request that needs a reservation pod."""
        if request.spec.selected_gpu_groups:
            self._names.add(request.spec.selected_node)

    def include(self, gateway: Gateway, namespace: str) -> None:
        """Add the nodes of the reservation pods that the server has now."""
        holders = gateway.list(PODS, as_type=Pod, namespace=namespace).items
        self._names.update(pod.spec.node_name for pod in holders)


def whole_gpus(pod: Pod) -> int:
    """Return how many GPUs a pod takes from the device plugin."""
    # Init containers run one after another, before the others.
    at_once = sum(_gpus(container) for container in pod.spec.containers)
    return max(at_once, *(_gpus(container) for container in pod.spec.init_containers), 0)


def reservations_in_the_way(
    gateway: Gateway, namespace: str, node: str, device_count: int
) -> list[Pod]:
    """Return the reservation pods of a node that has not so many GPUs left, or nothing if it has them.

    Parameters
    ----------
    namespace : the one of the reservation pods
    """
    on_node = Selectors(fields=f"spec.nodeName={node}")
    holders = gateway.list(PODS, as_type=Pod, namespace=namespace, selectors=on_node).items
    if not holders:
        return []
    pods = gateway.list(PODS, as_type=Pod, selectors=on_node).items
    taken = sum(whole_gpus(pod) for pod in pods if not pod.is_finished)
    existing = gateway.get(NODES, node, as_type=Node).status.allocatable.get(NVIDIA_GPU, "0")
    return list(holders) if taken + device_count > parse_quantity(existing) else []


def _gpus(container: Container) -> int:
    resources = container.resources
    quantity = resources.limits.get(NVIDIA_GPU) or resources.requests.get(NVIDIA_GPU) or "0"
    return int(parse_quantity(quantity))
