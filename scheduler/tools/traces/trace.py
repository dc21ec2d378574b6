"""A trace: nodes, and pods in the order in which they arrive; and how it becomes a snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kube.keys import NODE_GPU_PRODUCT
from scheduler.core.cluster.constraints import (
    NO_CONSTRAINTS,
    Expression,
    NodeTerm,
    Operator,
    TaskConstraints,
)
from scheduler.core.cluster.inputs import (
    SINGLE_TASK,
    UNLIMITED_AMOUNTS,
    ClusterInput,
    NodeInput,
    PodGroupInput,
    PodSetInput,
    QueueInput,
    SubGroupInput,
    TaskInput,
    TaskRequest,
    TopologyConstraint,
    TopologyInput,
)

#: One device, in the thousandths in which traces count shares.
WHOLE_DEVICE = 1000
#: The traces know no limit of pods per node.
POD_SLOTS = 10_000.0
DEPARTMENT, QUEUE, NAMESPACE, TOPOLOGY = "trace", "pods", "trace", "network"
MIB = 1024.0 * 1024.0


class TraceError(ValueError):
    """A trace cannot be read; the text names the file, what was expected and what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNode:
    """One node of a trace; `domains` are its values for the topology levels of the trace."""

    name: str
    cpu_milli: int
    memory_mib: int
    devices: int
    model: str = ""
    domains: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodShape:
    """What one pod requests, and how many such pods form a gang.

    Attributes
    ----------
    device_milli : the share of each of its devices in thousandths
    models : GPU models that the pod may have; none: any
    pods : how many such pods start together or not at all
    level : the topology level at which all of them must be in one domain; empty: anywhere
    """

    cpu_milli: int
    memory_mib: int
    devices: int = 0
    device_milli: int = 0
    models: tuple[str, ...] = ()
    pods: int = 1
    level: str = ""

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of devices that the pods take in all."""
        return self.pods * self.devices * self.device_milli


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Nodes, and the shapes of pods in the order of their arrival.

    Attributes
    ----------
    levels : keys of the node labels that are the levels of the topology, coarsest first
    """

    name: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[PodShape, ...]
    levels: tuple[str, ...] = ()

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of devices that the nodes have in all."""
        return WHOLE_DEVICE * sum(node.devices for node in self.nodes)


def pod_name(position: int, number: int = 0) -> str:
    """Return the name of a pod at a position of the trace; `number` counts those of a gang."""
    return f"pod-{position:06}" if number == 0 else f"pod-{position:06}-{number}"


def snapshot_of(trace: Trace) -> ClusterInput:
    """Return the snapshot in which all pods of a trace wait, each a pod group, the first one oldest."""
    requests = {shape: request_of(shape) for shape in dict.fromkeys(trace.pods)}
    by_models = {shape.models: constraints_of(shape.models) for shape in requests}
    return ClusterInput(
        nodes=tuple(node_input(node, trace.levels) for node in trace.nodes),
        topologies=(TopologyInput(name=TOPOLOGY, levels=trace.levels),) if trace.levels else (),
        queues=(
            unlimited_queue(DEPARTMENT, parent=""),
            unlimited_queue(QUEUE, parent=DEPARTMENT),
        ),
        pod_groups=tuple(
            _pod_group(
                position,
                shape,
                float(position - len(trace.pods)),
                requests[shape],
                by_models[shape.models],
            )
            for position, shape in enumerate(trace.pods)
        ),
    )


def unlimited_queue(name: str, parent: str) -> QueueInput:
    """Return a queue without limits or quotas to keep to."""
    return QueueInput(
        name=name,
        parent=parent,
        cpu=UNLIMITED_AMOUNTS,
        memory=UNLIMITED_AMOUNTS,
        gpu=UNLIMITED_AMOUNTS,
    )


def node_input(node: TraceNode, levels: Sequence[str] = ()) -> NodeInput:
    """Return a node as the scheduler sees it; `levels` are the labels that its domains become."""
    labels = dict(zip(levels, node.domains, strict=True))
    if node.model:
        labels[NODE_GPU_PRODUCT] = node.model
    return NodeInput(
        name=node.name,
        labels=labels,
        allocatable={
            "cpu": float(node.cpu_milli),
            "memory": node.memory_mib * MIB,
            "gpu": float(node.devices),
            "pods": POD_SLOTS,
        },
    )


def request_of(shape: PodShape) -> TaskRequest:
    """Return the request of a pod."""
    is_part = 0 < shape.device_milli < WHOLE_DEVICE
    return TaskRequest(
        cpu_milli=float(shape.cpu_milli),
        memory_bytes=shape.memory_mib * MIB,
        gpus=0.0 if is_part else float(shape.devices),
        gpu_fraction=shape.device_milli / WHOLE_DEVICE if is_part else 0.0,
        gpu_devices=shape.devices if is_part else 1,
    )


def constraints_of(models: tuple[str, ...]) -> TaskConstraints:
    """Return the constraints of a pod that must have one of some models; none: any."""
    if not models:
        return NO_CONSTRAINTS
    term = NodeTerm(labels=(Expression(NODE_GPU_PRODUCT, Operator.IN, models),))
    return TaskConstraints(node_affinity=(term,))


def _pod_group(
    position: int,
    shape: PodShape,
    created: float,
    request: TaskRequest,
    constraints: TaskConstraints,
) -> PodGroupInput:
    names = [pod_name(position, number) for number in range(shape.pods)]
    return PodGroupInput(
        name=names[0],
        namespace=NAMESPACE,
        uid=names[0],
        queue=QUEUE,
        created=created,
        root=_root(shape),
        tasks=tuple(
            TaskInput(
                name=name, uid=name, namespace=NAMESPACE, request=request, constraints=constraints
            )
            for name in names
        ),
    )


def _root(shape: PodShape) -> SubGroupInput:
    """Return the gang that the pods of a shape form."""
    if shape.pods == 1:
        return SINGLE_TASK
    topology = (
        TopologyConstraint(topology=TOPOLOGY, required_level=shape.level) if shape.level else None
    )
    return SubGroupInput(topology=topology, pod_sets=(PodSetInput(min_available=shape.pods),))
