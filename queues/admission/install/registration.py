"""Registering the webhooks, each asked only about what it can judge.

KAI asks its pod webhook about every pod of its scheduler and its pod group webhook about every pod group. With
the conditions here only pods that ask for a part of a GPU, and only pod groups with a tree, are sent: the rest
is not slowed down, and does not stand still, when the web process is gone. `docs/differences.md` says so too.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.errors import NotFoundError
from kube.gateway import Gateway, PatchOptions, PatchType
from kube.keys import (
    GPU_FRACTION,
    GPU_FRACTION_DEVICES,
    GPU_MEMORY_MIB,
    SCHEDULER_NAME,
    SYSTEM_NAMESPACE,
)
from kube.resources import Resource
from queues.admission import routes

Json = dict[str, Any]
GROUP = "admissionregistration.k8s.io"
MUTATING = Resource(
    group=GROUP,
    version="v1",
    plural="mutatingwebhookconfigurations",
    kind="MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING = Resource(
    group=GROUP,
    version="v1",
    plural="validatingwebhookconfigurations",
    kind="ValidatingWebhookConfiguration",
    namespaced=False,
)
FIELD_MANAGER = "kaiweb-admission"
SHARING_KEYS = (GPU_FRACTION, GPU_MEMORY_MIB, GPU_FRACTION_DEVICES, "mps")
POD_MUTATION = "mutating-kai-admission"
POD_VALIDATION = "validating-kai-admission"
QUEUE_VALIDATION = "kai-queue-validation-v2"
POD_GROUP_VALIDATION = "kai-podgroup-validation-v2alpha2"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTarget:
    """The webhooks behind a Service of the cluster."""

    namespace: str
    name: str = "admission"
    port: int = 443

    def client_config(self, path: str, bundle: str) -> Json:
        service = {"namespace": self.namespace, "name": self.name, "path": path, "port": self.port}
        return {"service": service, "caBundle": bundle}


@dataclass(frozen=True, slots=True, kw_only=True)
class UrlTarget:
    """The webhooks at an address, as in development: `https://127.0.0.1:9443`."""

    base: str

    def client_config(self, path: str, bundle: str) -> Json:
        return {"url": f"{self.base}{path}", "caBundle": bundle}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What to register, from the Config of the installation."""

    target: ServiceTarget | UrlTarget
    bundle: bytes
    namespace: str = SYSTEM_NAMESPACE
    scheduler_name: str = SCHEDULER_NAME
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    required_namespace_label: str = ""
    """The queue label key when only namespaces that carry it take part."""
    asks_about_every_pod: bool = False
    is_reachable: bool = True
    """Whether the API server can ask us at all; not when it lives elsewhere and our address is a loopback one."""
    timeout_s: int = 5

    @property
    def objects_policy(self) -> str:
        """What becomes of queues, pod groups and topologies while nobody answers.

        They wait, as in KAI: whoever writes them for us tries again, and a restart takes seconds. A server
        that can never ask us must not lock its queues for good; the scheduler copes with bad objects.
        """
        return "Fail" if self.is_reachable else "Ignore"


def configurations(wanted: Registration) -> list[tuple[Resource, Json]]:
    """Return the webhook configurations as they should be."""
    return [
        (MUTATING, _body(MUTATING, POD_MUTATION, [_pod_hook(wanted, is_mutating=True)])),
        (
            VALIDATING,
            _body(
                VALIDATING,
                POD_VALIDATION,
                [_pod_hook(wanted, is_mutating=False), _topology_hook(wanted)],
            ),
        ),
        (VALIDATING, _body(VALIDATING, QUEUE_VALIDATION, [_queue_hook(wanted)])),
        (VALIDATING, _body(VALIDATING, POD_GROUP_VALIDATION, [_pod_group_hook(wanted)])),
    ]


def install(gateway: Gateway, wanted: Registration) -> None:
    """Create or update the configurations; fields that others set on them are left alone."""
    for resource, body in configurations(wanted):
        gateway.patch(
            resource,
            body["metadata"]["name"],
            body,
            patch_type=PatchType.APPLY,
            options=PatchOptions(field_manager=FIELD_MANAGER, force=True),
        )


def uninstall(gateway: Gateway) -> None:
    """Remove the configurations, so that nobody waits for a server that is not coming back."""
    for resource, name in (
        (MUTATING, POD_MUTATION),
        (VALIDATING, POD_VALIDATION),
        (VALIDATING, QUEUE_VALIDATION),
        (VALIDATING, POD_GROUP_VALIDATION),
    ):
        try:
            gateway.delete(resource, name)
        except NotFoundError:
            continue


def _body(resource: Resource, name: str, hooks: list[Json]) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "webhooks": hooks,
    }


def _hook(wanted: Registration, name: str, path: str, rule: Json) -> Json:
    bundle = base64.b64encode(wanted.bundle).decode()
    return {
        "name": name,
        "clientConfig": wanted.target.client_config(path, bundle),
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "timeoutSeconds": wanted.timeout_s,
    }


def _pod_hook(wanted: Registration, *, is_mutating: bool) -> Json:
    operations = ["CREATE"] if is_mutating else ["CREATE", "UPDATE"]
    path = routes.MUTATE_POD if is_mutating else routes.VALIDATE_POD
    hook = _hook(
        wanted, f"admission.{wanted.namespace}.svc", path, _rule("", "v1", "pods", operations)
    )
    excluded = ["kube-system", wanted.namespace]
    expressions = [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded}]
    if wanted.required_namespace_label:
        expressions.append({"key": wanted.required_namespace_label, "operator": "Exists"})
    hook["namespaceSelector"] = {"matchExpressions": expressions}
    if wanted.namespace_labels:
        hook["namespaceSelector"]["matchLabels"] = dict(wanted.namespace_labels)
    if wanted.pod_labels:
        hook["objectSelector"] = {"matchLabels": dict(wanted.pod_labels)}
    hook["matchConditions"] = _pod_conditions(wanted, is_update=not is_mutating)
    if is_mutating:
        hook["reinvocationPolicy"] = "IfNeeded"
    return hook


def _pod_conditions(wanted: Registration, *, is_update: bool) -> list[Json]:
    conditions = [
        {
            "name": "scheduler-name-match",
            "expression": f"object.spec.schedulerName == '{wanted.scheduler_name}'",
        }
    ]
    if not wanted.asks_about_every_pod:
        conditions.append(
            {
                "name": "asks-for-part-of-a-gpu",
                "expression": "has(object.metadata.annotations) && ("
                + " || ".join(f"'{key}' in object.metadata.annotations" for key in SHARING_KEYS)
                + ")",
            }
        )
    if is_update:
        # Only a change of the request can break a rule; labels and status of running pods change often.
        conditions.append(
            {
                "name": "request-changed",
                "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec || "
                "!has(oldObject.metadata.annotations) || "
                "object.metadata.annotations != oldObject.metadata.annotations",
            }
        )
    return conditions


def _topology_hook(wanted: Registration) -> Json:
    rule = _rule("kai.scheduler", "v1alpha1", "topologies", ["CREATE", "UPDATE"], "Cluster")
    name = f"topology.admission.{wanted.namespace}.svc"
    hook = _hook(wanted, name, routes.VALIDATE_TOPOLOGY, rule)
    hook["failurePolicy"] = wanted.objects_policy
    return hook


def _queue_hook(wanted: Registration) -> Json:
    rule = _rule("scheduling.run.ai", "v2", "queues", ["CREATE", "UPDATE"], "Cluster")
    hook = _hook(wanted, "queue-validation.kai.scheduler", routes.VALIDATE_QUEUE, rule)
    hook["failurePolicy"] = wanted.objects_policy
    hook["matchConditions"] = [
        {
            "name": "spec-changed",
            "expression": "request.operation != 'UPDATE' || object.spec != oldObject.spec",
        }
    ]
    return hook


def _pod_group_hook(wanted: Registration) -> Json:
    rule = _rule("scheduling.run.ai", "v2alpha2", "podgroups", ["CREATE", "UPDATE"])
    hook = _hook(wanted, "podgroup-validation.kai.scheduler", routes.VALIDATE_POD_GROUP, rule)
    hook["failurePolicy"] = wanted.objects_policy
    hook["matchConditions"] = [
        {
            "name": "has-a-tree",
            "expression": "has(object.spec.subGroups) || has(object.spec.minSubGroup)",
        },
        {
            "name": "spec-changed",
            "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec",
        },
    ]
    return hook


def _rule(
    group: str, version: str, plural: str, operations: list[str], scope: str = "Namespaced"
) -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "resources": [plural],
        "operations": operations,
        "scope": scope,
    }
