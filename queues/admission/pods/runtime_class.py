"""Set the runtime class of fraction pods, so that the runtime exposes the shared device to containers."""

from __future__ import annotations

from queues.admission.bodies import Json
from queues.admission.pods.gpu_sharing import is_fraction_pod
from queues.admission.settings import AdmissionSettings


def mutate(pod: Json, settings: AdmissionSettings) -> None:
    """Set the configured runtime class on fraction pods without one."""
    if not settings.fraction_runtime_class or not is_fraction_pod(pod):
        return
    spec = pod.setdefault("spec", {})
    if not spec.get("runtimeClassName"):
        spec["runtimeClassName"] = settings.fraction_runtime_class


def validate(pod: Json, settings: AdmissionSettings) -> None:
    """Refuse nothing: users may choose another class."""
    del pod, settings
