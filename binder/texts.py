"""What the binder says about a bind request in conditions and events."""

from __future__ import annotations

from kube.keys import SELECTED_NODE_LABEL
from kube.objects.bindrequest import BindRequest
from queues.workloads.conditions import DEFAULT_POOL


def pool_of_request(request: BindRequest) -> str:
    """Return the node pool that a request was made for; its only other label is the node."""
    labels = request.metadata.labels.items()
    return next((value for key, value in labels if key != SELECTED_NODE_LABEL), DEFAULT_POOL)


def failure_text(request: BindRequest, node: str, error: str) -> str:
    """Return the text of the condition and the event after a failed attempt."""
    name = f"{request.metadata.namespace}/{request.spec.pod_name}"
    return f"Failed to bind pod {name} to node {node}: {error}"
