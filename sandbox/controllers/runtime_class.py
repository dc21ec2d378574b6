"""The RuntimeClass that a GPU operator would install: pods with a part of a GPU ask for it.

A real API server refuses a pod that names a RuntimeClass it does not know, so the nodes alone are not enough.
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
    """Create it if it is missing; tell whether it was."""
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
