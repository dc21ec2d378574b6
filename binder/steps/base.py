"""What a preparation step is given and what it promises."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from kube.objects.bindrequest import BindRequest
from kube.objects.pod import Pod


@dataclass(slots=True)
class BindJob:
    """One attempt to bind one pod.

    Attributes
    ----------
    devices : ids of the devices reserved for it, in the order of its GPU groups
    annotations : what the pod gets together with its node
    """

    request: BindRequest
    pod: Pod
    node: str
    devices: tuple[str, ...] = ()
    annotations: dict[str, str] = field(default_factory=dict)

    @property
    def is_fraction(self) -> bool:
        return self.request.spec.received_resource_type == "Fraction"

    @property
    def pod_key(self) -> str:
        return self.pod.metadata.key


class PrepareStep(Protocol):
    """Something a pod needs before it is bound."""

    def concerns(self, job: BindJob) -> bool:
        """Tell whether the step has anything to do for this job."""
        ...

    def prepare(self, job: BindJob) -> None:
        """Do it; raises `BindError`, or `kube.errors.KubeError` from a request."""
        ...

    def roll_back(self, job: BindJob) -> None:
        """Undo whatever of it was done; safe to call when nothing was."""
        ...
