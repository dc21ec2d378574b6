"""The two pod webhooks: each rule may change or refuse a pod of our scheduler, in the order of `RULES`."""

from __future__ import annotations

from typing import Protocol

from queues.admission.bodies import Json, map_at
from queues.admission.pods import device_access, gpu_sharing, hami, runtime_class
from queues.admission.review import ALLOWED, DeniedError, ReviewRequest, Verdict
from queues.admission.settings import AdmissionSettings


class PodRule(Protocol):
    """A module with a rule for pods."""

    def mutate(self, pod: Json, settings: AdmissionSettings) -> None: ...

    def validate(self, pod: Json, settings: AdmissionSettings) -> None: ...


RULES: tuple[PodRule, ...] = (gpu_sharing, hami, device_access, runtime_class)


def mutate_pod(request: ReviewRequest, settings: AdmissionSettings) -> Verdict:
    """Return the pod as changed by the rules."""
    pod = request.object
    if not _is_ours(pod, settings):
        return ALLOWED
    _fill_namespace(pod, request.namespace)
    for rule in RULES:
        rule.mutate(pod, settings)
    return Verdict(changed=pod)


def validate_pod(request: ReviewRequest, settings: AdmissionSettings) -> Verdict:
    """Refuse a pod that violates a rule."""
    if _is_ours(request.object, settings):
        for rule in RULES:
            rule.validate(request.object, settings)
    return ALLOWED


def _is_ours(pod: Json, settings: AdmissionSettings) -> bool:
    spec = pod.get("spec")
    return isinstance(spec, dict) and spec.get("schedulerName") == settings.scheduler_name


def _fill_namespace(pod: Json, namespace: str) -> None:
    """Write the namespace of the request into the pod, which may leave it out; refuse a pod that states another."""
    metadata = pod["metadata"] = map_at(pod, "metadata")
    stated_namespace = metadata.get("namespace")
    if stated_namespace and stated_namespace != namespace:
        raise DeniedError(
            f"error: the namespace from the provided object {stated_namespace} does not match the namespace {namespace}"
        )
    if namespace:
        metadata["namespace"] = namespace
