"""Register the webhooks, each only for objects that it can refuse or change.

KAI's pod webhook is called for every pod of its scheduler, its pod group webhook for every pod group. With the match
conditions here, only pods that request a fraction of a GPU and only pod groups with subgroups are sent. All others
are not delayed, and do not depend on the web process (see `docs/differences.md`).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

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
from queues.admission.bodies import Json
from queues.tree.options import REST_NAMES

GROUP = "admissionregistration.k8s.io"
#: The CEL condition that an update changes annotations, for an object that has some.
ANNOTATIONS_CHANGED = (
    "!has(oldObject.metadata.annotations) || "
    "object.metadata.annotations != oldObject.metadata.annotations"
)
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
    """What to register."""

    target: ServiceTarget | UrlTarget
    bundle: bytes
    namespace: str = SYSTEM_NAMESPACE
    scheduler_name: str = SCHEDULER_NAME
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    required_namespace_label: str = ""
    """A label key that limits the pod webhooks to namespaces with it; "" for all."""
    asks_about_every_pod: bool = False
    is_reachable: bool = True
    """Whether the API server can reach us: not if it is on another host and our address is a loopback one."""
    timeout_s: int = 5
    off: frozenset[str] = frozenset()
    """Names of the configurations whose component is disabled."""

    @property
    def objects_policy(self) -> str:
        """Return the failure policy for queues, pod groups and topologies.

        As in KAI, writes fail while the webhook does not answer: our writers retry, and a restart takes seconds. A
        server that can never reach us must still accept writes; the scheduler copes with invalid objects.
        """
        return "Fail" if self.is_reachable else "Ignore"


def configurations(registration: Registration) -> list[tuple[Resource, Json]]:
    """Return the webhook configurations."""
    return [
        (MUTATING, _body(MUTATING, POD_MUTATION, [_pod_hook(registration, is_mutating=True)])),
        (
            VALIDATING,
            _body(
                VALIDATING,
                POD_VALIDATION,
                [_pod_hook(registration, is_mutating=False), _topology_hook(registration)],
            ),
        ),
        (VALIDATING, _body(VALIDATING, QUEUE_VALIDATION, [_queue_hook(registration)])),
        (VALIDATING, _body(VALIDATING, POD_GROUP_VALIDATION, [_pod_group_hook(registration)])),
    ]


def install(gateway: Gateway, registration: Registration) -> None:
    """Create or update the configurations, and delete those that are off; fields set by others stay."""
    for resource, body in configurations(registration):
        name = body["metadata"]["name"]
        if name in registration.off:
            _delete_own(gateway, resource, name)
            continue
        gateway.patch(
            resource,
            name,
            body,
            patch_type=PatchType.APPLY,
            options=PatchOptions(field_manager=FIELD_MANAGER, force=True),
        )


def withdraw(gateway: Gateway) -> None:
    """Delete all our configurations: without a web process behind them, every write they cover would be refused."""
    for resource, name in (
        (MUTATING, POD_MUTATION),
        (VALIDATING, POD_VALIDATION),
        (VALIDATING, QUEUE_VALIDATION),
        (VALIDATING, POD_GROUP_VALIDATION),
    ):
        _delete_own(gateway, resource, name)


def _delete_own(gateway: Gateway, resource: Resource, name: str) -> None:
    """Delete a configuration if we made it; KAI's own have the same names."""
    try:
        metadata = gateway.get(resource, name, as_type=dict)["metadata"]
        managers = {entry.get("manager") for entry in metadata.get("managedFields") or ()}
        if FIELD_MANAGER in managers:
            gateway.delete(resource, name, uid=metadata["uid"])
    except NotFoundError:
        return


def _body(resource: Resource, name: str, hooks: list[Json]) -> Json:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "webhooks": hooks,
    }


def _hook(registration: Registration, name: str, path: str, rule: Json) -> Json:
    bundle = base64.b64encode(registration.bundle).decode()
    return {
        "name": name,
        "clientConfig": registration.target.client_config(path, bundle),
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "failurePolicy": "Fail",
        "timeoutSeconds": registration.timeout_s,
    }


def _pod_hook(registration: Registration, *, is_mutating: bool) -> Json:
    operations = ["CREATE"] if is_mutating else ["CREATE", "UPDATE"]
    path = routes.MUTATE_POD if is_mutating else routes.VALIDATE_POD
    hook = _hook(
        registration,
        f"admission.{registration.namespace}.svc",
        path,
        _rule("", "v1", "pods", operations),
    )
    excluded = ["kube-system", registration.namespace]
    expressions = [{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": excluded}]
    if registration.required_namespace_label:
        expressions.append({"key": registration.required_namespace_label, "operator": "Exists"})
    hook["namespaceSelector"] = {"matchExpressions": expressions}
    if registration.namespace_labels:
        hook["namespaceSelector"]["matchLabels"] = dict(registration.namespace_labels)
    if registration.pod_labels:
        hook["objectSelector"] = {"matchLabels": dict(registration.pod_labels)}
    hook["matchConditions"] = _pod_conditions(registration, is_update=not is_mutating)
    if is_mutating:
        hook["reinvocationPolicy"] = "IfNeeded"
    return hook


def _pod_conditions(registration: Registration, *, is_update: bool) -> list[Json]:
    conditions = [
        {
            "name": "scheduler-name-match",
            "expression": f"object.spec.schedulerName == '{registration.scheduler_name}'",
        }
    ]
    if not registration.asks_about_every_pod:
        conditions.append(
            {
                "name": "asks-for-part-of-a-gpu",
                "expression": _has_annotation(SHARING_KEYS),
            }
        )
    if is_update:
        # Only a change of spec or annotations can violate a rule; labels and status of running pods change often.
        conditions.append(
            {
                "name": "request-changed",
                "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec || "
                + ANNOTATIONS_CHANGED,
            }
        )
    return conditions


def _has_annotation(keys: Iterable[str]) -> str:
    """Return the CEL condition that an object has one of these annotations."""
    alternatives = " || ".join(f"'{key}' in object.metadata.annotations" for key in keys)
    return f"has(object.metadata.annotations) && ({alternatives})"


def _topology_hook(registration: Registration) -> Json:
    rule = _rule("kai.scheduler", "v1alpha1", "topologies", ["CREATE", "UPDATE"], "Cluster")
    name = f"topology.admission.{registration.namespace}.svc"
    hook = _hook(registration, name, routes.VALIDATE_TOPOLOGY, rule)
    hook["failurePolicy"] = registration.objects_policy
    return hook


def _queue_hook(registration: Registration) -> Json:
    rule = _rule("scheduling.run.ai", "v2", "queues", ["CREATE", "UPDATE"], "Cluster")
    hook = _hook(registration, "queue-validation.kai.scheduler", routes.VALIDATE_QUEUE, rule)
    hook["failurePolicy"] = registration.objects_policy
    hook["matchConditions"] = [
        {
            "name": "spec-or-options-changed",
            "expression": "request.operation != 'UPDATE' || object.spec != oldObject.spec || "
            f"({_has_annotation(REST_NAMES)} && ({ANNOTATIONS_CHANGED}))",
        }
    ]
    return hook


def _pod_group_hook(registration: Registration) -> Json:
    rule = _rule("scheduling.run.ai", "v2alpha2", "podgroups", ["CREATE", "UPDATE"])
    hook = _hook(registration, "podgroup-validation.kai.scheduler", routes.VALIDATE_POD_GROUP, rule)
    hook["failurePolicy"] = registration.objects_policy
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
