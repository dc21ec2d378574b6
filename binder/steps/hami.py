"""Set the limit on device memory that the isolation library (HAMi-core) enforces for the pod.

The limit goes into the ConfigMap that the GPU sharing step created. Admission has made it an optional
variable, so a pod on a node without a label for its device memory simply has no limit.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation

from binder.params import StepConfig
from binder.steps.base import BindJob
from binder.steps.shared_container import map_names
from kube.errors import NotFoundError
from kube.gateway import Gateway
from kube.keys import NODE_GPU_MEMORY
from kube.objects.node import Node
from kube.resources import CONFIGMAPS, NODES

MEMORY_LIMIT = "CUDA_DEVICE_MEMORY_LIMIT"


class HamiCore:
    """The step for `Fraction` requests where the library is installed."""

    def __init__(self, gateway: Gateway, config: StepConfig) -> None:
        del config
        self._gateway = gateway

    def concerns(self, job: BindJob) -> bool:
        return job.is_fraction

    def prepare(self, job: BindJob) -> None:
        limit = self._limit_mib(job)
        if limit:
            body = {"data": {MEMORY_LIMIT: f"{limit}m"}}
            namespace = job.pod.metadata.namespace
            self._gateway.patch(CONFIGMAPS, map_names(job.pod)[0], body, namespace=namespace)

    def roll_back(self, job: BindJob) -> None:
        """Do nothing: the GPU sharing step deletes the map."""

    def _limit_mib(self, job: BindJob) -> int:
        """Return the pod's part of one device in whole MiB; 0 if it is not known."""
        received = job.request.spec.received_gpu
        try:
            node = self._gateway.get(NODES, job.node, as_type=Node)
            memory = Decimal(node.metadata.labels.get(NODE_GPU_MEMORY, ""))
            part = Decimal(received.portion if received is not None else "")
        except (NotFoundError, InvalidOperation):
            return 0
        limit = memory * part
        return int(limit) if limit.is_finite() and limit > 0 else 0
