"""The RuntimeClass that a GPU operator would install; pods with a fraction of a GPU use it.

A real API server refuses a pod with an unknown RuntimeClass.
"""

from __future__ import annotations

from kube.errors import AlreadyExistsError
from kube.gateway import Gateway
from kube.resources import Resource

NAME = "nvidia"
RUNTIME_CLASSES = Resource(
    group="node.k8s.io",
    version="v1",
    plural="runtimeclasses",
    kind="RuntimeClass",
    namespaced=False,
)


def ensure_runtime_class(gateway: Gateway) -> bool:
    """Create the RuntimeClass if it is missing; return whether it was."""
    body = {
        "apiVersion": RUNTIME_CLASSES.api_version,
        "kind": RUNTIME_CLASSES.kind,
        "metadata": {"name": NAME},
        "handler": NAME,
    }
    try:
        gateway.create(RUNTIME_CLASSES, body)
    except AlreadyExistsError:
        return False
    return True
