"""The interface of a preparation step, and the data that it works on."""

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
    devices : ids of the devices reserved for the pod, in the order of its GPU groups
    annotations : set on the pod together with its node
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
        """Return whether the step has anything to do for this job."""
        ...

    def prepare(self, job: BindJob) -> None:
        """Prepare the binding.

        Raises
        ------
        BindError : the preparation failed
        kube.errors.KubeError : a request to the API server failed
        """
        ...

    def roll_back(self, job: BindJob) -> None:
        """Undo whatever part of the preparation was done, possibly none."""
        ...
