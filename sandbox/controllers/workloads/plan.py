"""The plan of one pass of a controller: what to create, patch and delete, and when to look again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.objects.meta import KubeObject
from kube.resources import PODS, Resource
from sandbox.controllers.workloads.objects import Json, WorkPod

_SAFE = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(frozen=True, slots=True, kw_only=True)
class Create:
    resource: Resource
    namespace: str
    body: Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    resource: Resource
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """A merge patch; `sub` is the subresource."""

    resource: Resource
    namespace: str
    name: str
    body: Json
    sub: str = ""


Write = Create | Delete | Patch


@dataclass(slots=True)
class Plan:
    """The writes of one pass, and the time of the next pass if nothing changes before."""

    writes: list[Write] = field(default_factory=list)
    again_after_s: float | None = None

    def look_again_after(self, seconds: float) -> None:
        """Plan another pass after some seconds, unless an earlier one is planned."""
        soonest = seconds if self.again_after_s is None else min(seconds, self.again_after_s)
        self.again_after_s = max(0.0, soonest)

    def delete(self, resource: Resource, target: KubeObject) -> None:
        meta = target.metadata
        self.writes.append(
            Delete(resource=resource, namespace=meta.namespace, name=meta.name, uid=meta.uid)
        )

    def delete_pods(self, pods: Iterable[WorkPod]) -> None:
        for pod in pods:
            self.delete(PODS, pod)

    def create(self, resource: Resource, namespace: str, body: Json) -> None:
        self.writes.append(Create(resource=resource, namespace=namespace, body=body))

    def patch(self, resource: Resource, target: KubeObject, body: Json, sub: str = "") -> None:
        meta = target.metadata
        self.writes.append(
            Patch(resource=resource, namespace=meta.namespace, name=meta.name, body=body, sub=sub)
        )

    def set_status(
        self, resource: Resource, target: KubeObject, current: Json, desired: Json
    ) -> None:
        """Write the status fields that differ from what is stored; None removes a field."""
        changed = {key: value for key, value in desired.items() if current.get(key) != value}
        if changed:
            self.patch(resource, target, {"status": changed}, "status")


def owner_reference(resource: Resource, owner: KubeObject) -> Json:
    """Return the reference that makes `owner` the controller of a new object."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def pod_body(
    resource: Resource,
    owner: KubeObject,
    template: Json,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    name: str = "",
) -> Json:
    """Return a pod of a template, owned by `owner`; without a name, the server generates one."""
    template_meta = template.get("metadata", {})
    metadata: Json = {
        "labels": {**template_meta.get("labels", {}), **(labels or {})},
        "annotations": {**template_meta.get("annotations", {}), **(annotations or {})},
        "ownerReferences": [owner_reference(resource, owner)],
    }
    if name:
        metadata["name"] = name
    else:
        metadata["generateName"] = f"{owner.metadata.name}-"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": template.get("spec", {}),
    }


def template_hash(template: Json) -> str:
    """Return the hash of a template, ten letters as in the name of a ReplicaSet."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).digest()
    return "".join(_SAFE[byte % len(_SAFE)] for byte in digest[:10])


def first_to_go(pods: Iterable[WorkPod]) -> list[WorkPod]:
    """Return pods in the order in which scaling down deletes them: unbound and young ones first."""
    return sorted(
        pods,
        key=lambda pod: (
            bool(pod.spec.node_name),
            pod.status.phase == "Running",
            pod.is_ready,
            -pod.metadata.created,
            pod.metadata.name,
        ),
    )


def condition(
    kind: str, conditions: Iterable[Any], *, is_true: bool, reason: str, message: str, at: str
) -> Json:
    """Return a condition; its transition time changes only with its status."""
    status = "True" if is_true else "False"
    for stored in conditions:
        if stored["type"] == kind and stored["status"] == status:
            at = stored.get("lastTransitionTime", at)
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": at,
    }
