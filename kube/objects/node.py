# ruff: noqa: RUF012 - msgspec gives every struct its own copy of an empty default
"""Nodes: their resources, taints and conditions."""

from __future__ import annotations

from kube.objects.meta import Condition, KubeObject, KubeStruct
from kube.objects.pod import Quantity


class Taint(KubeStruct, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(KubeStruct, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeStatus(KubeStruct, frozen=True, kw_only=True):
    capacity: dict[str, Quantity] = {}
    allocatable: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()


class Node(KubeObject, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of that type, if the node has it."""
        return next((item for item in self.status.conditions if item.type == kind), None)
