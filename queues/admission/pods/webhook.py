"""The two pod webhooks: each step may change or refuse a pod of our scheduler, in the order of the table."""

from __future__ import annotations

from typing import Protocol

from queues.admission.bodies import Json, map_at
from queues.admission.pods import device_access, gpu_sharing, hami, runtime_class
from queues.admission.review import ALLOWED, DeniedError, Request, Verdict
from queues.admission.settings import AdmissionSettings


class Step(Protocol):
    """A module with a rule about pods."""

    def mutate(self, pod: Json, settings: AdmissionSettings) -> None: ...

    def validate(self, pod: Json, settings: AdmissionSettings) -> None: ...


STEPS: tuple[Step, ...] = (gpu_sharing, hami, device_access, runtime_class)


def mutate_pod(request: Request, settings: AdmissionSettings) -> Verdict:
    """Return the pod as the steps want it."""
    pod = request.object
    if not _is_ours(pod, settings):
        return ALLOWED
    _fill_namespace(pod, request.namespace)
    for step in STEPS:
        step.mutate(pod, settings)
    return Verdict(changed=pod)


def validate_pod(request: Request, settings: AdmissionSettings) -> Verdict:
    """Refuse a pod at the first rule it breaks."""
    if _is_ours(request.object, settings):
        for step in STEPS:
            step.validate(request.object, settings)
    return ALLOWED


def _is_ours(pod: Json, settings: AdmissionSettings) -> bool:
    spec = pod.get("spec")
    return isinstance(spec, dict) and spec.get("schedulerName") == settings.scheduler_name


def _fill_namespace(pod: Json, namespace: str) -> None:
    metadata = pod["metadata"] = map_at(pod, "metadata")
    own = metadata.get("namespace")
    if own and own != namespace:
        raise DeniedError(
            f"error: the namespace from the provided object {own} does not match the namespace {namespace}"
        )
    if namespace:
        metadata["namespace"] = namespace
