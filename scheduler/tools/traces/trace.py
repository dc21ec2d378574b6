"""A trace: nodes, and pods in the order in which they arrive; and how it becomes a snapshot."""

from __future__ import annotations

from dataclasses import dataclass

from scheduler.core.cluster.constraints import (
    NO_CONSTRAINTS,
    Expression,
    NodeTerm,
    Operator,
    TaskConstraints,
)
from scheduler.core.cluster.inputs import (
    UNLIMITED_AMOUNTS,
    ClusterInput,
    NodeInput,
    PodGroupInput,
    QueueInput,
    TaskInput,
    TaskRequest,
)

PRODUCT_LABEL = "nvidia.com/gpu.product"
#: One device, in the thousandths in which traces count shares.
WHOLE_DEVICE = 1000
#: The traces know no limit of pods per node.
POD_SLOTS = 10_000.0
DEPARTMENT, QUEUE, NAMESPACE = "trace", "pods", "trace"
MIB = 1024.0 * 1024.0


class TraceError(ValueError):
    """A trace cannot be read; the text names the file, what was expected and what is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceNode:
    """One node of a trace."""

    name: str
    cpu_milli: int
    memory_mib: int
    devices: int
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodShape:
    """What one pod requests; `device_milli` is the share of each of its devices in thousandths."""

    cpu_milli: int
    memory_mib: int
    devices: int = 0
    device_milli: int = 0
    models: tuple[str, ...] = ()

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of devices that the pod takes in all."""
        return self.devices * self.device_milli


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Nodes, and the shapes of pods in the order of their arrival."""

    name: str
    nodes: tuple[TraceNode, ...]
    pods: tuple[PodShape, ...]

    @property
    def gpu_milli(self) -> int:
        """Return the thousandths of devices that the nodes have in all."""
        return WHOLE_DEVICE * sum(node.devices for node in self.nodes)


def pod_name(position: int) -> str:
    """Return the name of the pod at a position of the trace."""
    return f"pod-{position:06}"


def snapshot_of(trace: Trace) -> ClusterInput:
    """Return the snapshot in which all pods of a trace wait, each a pod group, the first one oldest."""
    requests = {shape: request_of(shape) for shape in dict.fromkeys(trace.pods)}
    by_models = {shape.models: constraints_of(shape.models) for shape in requests}
    return ClusterInput(
        nodes=tuple(node_input(node) for node in trace.nodes),
        queues=(
            unlimited_queue(DEPARTMENT, parent=""),
            unlimited_queue(QUEUE, parent=DEPARTMENT),
        ),
        pod_groups=tuple(
            _pod_group(
                pod_name(position),
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


def node_input(node: TraceNode) -> NodeInput:
    """Return a node as the scheduler sees it."""
    return NodeInput(
        name=node.name,
        labels={PRODUCT_LABEL: node.model} if node.model else {},
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
    term = NodeTerm(labels=(Expression(PRODUCT_LABEL, Operator.IN, models),))
    return TaskConstraints(node_affinity=(term,))


def _pod_group(
    name: str, created: float, request: TaskRequest, constraints: TaskConstraints
) -> PodGroupInput:
    task = TaskInput(
        name=name, uid=name, namespace=NAMESPACE, request=request, constraints=constraints
    )
    return PodGroupInput(
        name=name, namespace=NAMESPACE, uid=name, queue=QUEUE, created=created, tasks=(task,)
    )
