"""Filters that depend on the node's description only: conditions, labels, taints, kinds of GPU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from scheduler.core.arrays import Bools
from scheduler.core.cluster.classes import TaskClass
from scheduler.core.cluster.inputs import GPU, NodeInput
from scheduler.core.cluster.matching import matches_node, tolerates_node
from scheduler.core.cluster.nodes import Nodes
from scheduler.core.session.fit import NodeReason, NodeReasonKind
from scheduler.core.session.hooks import Scope

#: What is wrong with a node for a class of tasks; None if nothing.
StaticVerdict = Callable[[TaskClass, NodeInput], NodeReason | None]


class StaticFilter:
    """A filter made of one verdict about a node's description.

    The verdict may depend on the kind and the constraints of a task, not on its amounts: a cluster has
    few kinds of tasks and many sizes, so all sizes of a kind share one answer.
    """

    scope = Scope.CLASS

    def __init__(
        self,
        name: str,
        nodes: Nodes,
        verdict: StaticVerdict,
        concerns: Callable[[TaskClass], bool] = lambda _: True,
    ) -> None:
        self.name = name
        self._nodes = nodes
        self._verdict = verdict
        self._concerns = concerns
        #: Kind of a class -> mask of shape (nodes,): which nodes pass.
        self._masks: dict[tuple[object, ...], Bools] = {}

    def concerns(self, task_class: TaskClass) -> bool:
        """Return whether the filter applies to tasks of this class."""
        return self._concerns(task_class)

    def mask(self, task: int, task_class: TaskClass) -> Bools:
        """Return shape (nodes,): which nodes pass."""
        del task
        mask = self._masks.get(task_class.kind)
        if mask is None:
            mask = self._masks[task_class.kind] = np.fromiter(
                (self._verdict(task_class, node) is None for node in self._nodes.inputs),
                dtype=np.bool_,
                count=len(self._nodes),
            )
        return mask

    def passes(self, task: int, task_class: TaskClass, node: int) -> bool:
        """Return whether one node passes."""
        del task
        return self._verdict(task_class, self._nodes.inputs[node]) is None

    def reasons(self, task: int, task_class: TaskClass, node: int) -> tuple[NodeReason, ...]:
        """Return why a node does not pass."""
        del task
        reason = self._verdict(task_class, self._nodes.inputs[node])
        return () if reason is None else (reason,)


def resource_type_verdict(task_class: TaskClass, node: NodeInput) -> NodeReason | None:
    """Keep kinds of GPU request off nodes that cannot serve them."""
    if task_class.is_legacy_mig:
        return NodeReason(NodeReasonKind.LEGACY_MIG, node=node.name)
    if task_class.is_cpu_only:
        return None
    if task_class.is_shared and node.dra_gpus > 0:
        return NodeReason(NodeReasonKind.FRACTION_ON_DRA_NODE)
    if task_class.is_mig and not node.mig_enabled:
        return NodeReason(NodeReasonKind.MIG_ON_PLAIN_NODE)
    if (
        node.mig_enabled
        and node.mig_strategy == "single"
        and (task_class.is_mig or task_class.is_shared)
    ):
        return NodeReason(NodeReasonKind.NOT_WHOLE_ON_SINGLE)
    if node.mig_enabled and node.mig_strategy == "mixed" and not task_class.is_mig:
        return NodeReason(NodeReasonKind.NOT_MIG_ON_MIXED)
    return None


def device_plugin_verdict(task_class: TaskClass, node: NodeInput) -> NodeReason | None:
    """Keep requests for whole GPUs off nodes that offer theirs to device claims only.

    For clusters without a device class that provides GPUs as a plain resource: the kubelet would refuse the pod.
    """
    del task_class
    if node.dra_gpus > 0 and node.allocatable.get(GPU, 0) <= node.dra_gpus:
        return NodeReason(NodeReasonKind.WHOLE_ON_DRA_NODE)
    return None


def gpu_memory_verdict(task_class: TaskClass, node: NodeInput) -> NodeReason | None:
    """Refuse requests for GPU memory where the size of devices is not known."""
    del task_class
    if node.gpu_memory_known:
        return None
    return NodeReason(NodeReasonKind.GPU_MEMORY_UNKNOWN, node=node.name)


def condition_verdict(task_class: TaskClass, node: NodeInput) -> NodeReason | None:
    """Refuse nodes that are cordoned, not ready, or under pressure."""
    del task_class
    if node.unschedulable:
        return NodeReason(NodeReasonKind.UNSCHEDULABLE)
    if not node.ready:
        return NodeReason(NodeReasonKind.NOT_READY)
    if node.pressures:
        return NodeReason(NodeReasonKind.CONDITION, node.pressures[0])
    return None


def taint_verdict(task_class: TaskClass, node: NodeInput) -> NodeReason | None:
    """Refuse nodes with a taint the task does not tolerate."""
    if tolerates_node(node, task_class.constraints):
        return None
    return NodeReason(NodeReasonKind.TAINT)


def affinity_verdict(task_class: TaskClass, node: NodeInput) -> NodeReason | None:
    """Refuse nodes outside the node selector or the required node affinity."""
    if matches_node(node, task_class.constraints):
        return None
    return NodeReason(NodeReasonKind.NODE_AFFINITY)


def worker_verdict(task_class: TaskClass, node: NodeInput) -> NodeReason | None:
    """Keep tasks with GPUs on GPU workers and the others on CPU workers."""
    if task_class.is_cpu_only:
        if node.is_cpu_worker:
            return None
        return NodeReason(NodeReasonKind.NOT_CPU_WORKER, node=node.name)
    if node.is_gpu_worker:
        return None
    return NodeReason(NodeReasonKind.NOT_GPU_WORKER, node=node.name)


def wants_node_by_label(task_class: TaskClass) -> bool:
    """Return whether a class has a node selector or required node affinity."""
    return (
        bool(task_class.constraints.node_selector)
        or task_class.constraints.node_affinity is not None
    )
