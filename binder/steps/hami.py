"""Tell the memory isolation library (HAMi-core) how much device memory the pod's part is.

The limit goes into the ConfigMap that the step before made; admission made it an optional variable, so a
node that does not say its device memory just sets no limit.
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
        """Leave it to the step that made the map, which deletes it."""

    def _limit_mib(self, job: BindJob) -> int:
        """Return the pod's part of one device in whole MiB; 0 if it cannot be told."""
        received = job.request.spec.received_gpu
        try:
            node = self._gateway.get(NODES, job.node, as_type=Node)
            memory = Decimal(node.metadata.labels.get(NODE_GPU_MEMORY, ""))
            part = Decimal(received.portion if received is not None else "")
        except (NotFoundError, InvalidOperation):
            return 0
        limit = memory * part
        return int(limit) if limit.is_finite() and limit > 0 else 0
