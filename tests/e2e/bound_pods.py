"""Pods of many kinds of devices, once they are bound, and the node with MIG slices that some of them need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.integration.stack import Stack, wait_until

WITHIN_S = 90.0
Pods = dict[str, dict[str, Any]]


def pods_of(stack: Stack, namespace: str) -> Pods:
    """Return the pods of a namespace by name."""
    return {pod["metadata"]["name"]: pod for pod in stack.objects("pods", "-n", namespace)}


@contextmanager
def bound_pods(
    stack: Stack, namespace: str, manifests: str, *, node: str, strategy: str, slices: str
) -> Iterator[Pods]:
    """Create a namespace with everything in `manifests`, and yield its pods once each has a node.

    Parameters
    ----------
    node : the name of a further node, which is there until the pods are gone
    strategy : its MIG strategy, mixed or single
    slices : the resource of which it has seven
    """
    stack.kubectl("create", "namespace", namespace)
    _add_mig_node(stack, node, strategy, slices)
    stack.kubectl("apply", "-f", "-", stdin=manifests)

    def all_bound() -> Pods:
        pods = pods_of(stack, namespace)
        return pods if all(pod["spec"].get("nodeName") for pod in pods.values()) else {}

    try:
        yield wait_until(all_bound, what="a node for every kind", timeout_s=WITHIN_S, stack=stack)
    finally:
        stack.kubectl("delete", "pods", "--all", "-n", namespace, "--wait=false")
        wait_until(
            lambda: not pods_of(stack, namespace),
            what="the end of the pods",
            timeout_s=WITHIN_S,
            stack=stack,
        )
        stack.kubectl("delete", "node", node)


def _add_mig_node(stack: Stack, name: str, strategy: str, slices: str) -> None:
    labels = {"nvidia.com/mig.strategy": strategy, "kubernetes.io/hostname": name}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
    stack.kubectl("apply", "-f", "-", stdin=json.dumps(body))
    resources = {slices: "7", "cpu": "32", "memory": "128Gi", "pods": "110"}
    status = json.dumps({"status": {"allocatable": resources, "capacity": resources}})
    stack.kubectl("patch", "node", name, "--subresource=status", "-p", status)
    stack.kubectl("patch", "node", name, "-p", json.dumps({"spec": {"taints": None}}))
