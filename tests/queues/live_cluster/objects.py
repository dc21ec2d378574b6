"""Manifests as objects of a live cluster: minimal definitions of third-party kinds, owners before what they own.

Only metadata of built-in workloads matters for grouping, so their specs are replaced by the least that a server
accepts; custom kinds keep theirs. Real uids take the place of those in the files.
"""

from __future__ import annotations

from typing import Any

from kube.errors import AlreadyExistsError
from kube.gateway import Gateway
from kube.resources import Resource
from queues.grouping.engine.kinds import plural_of
from queues.grouping.offline.manifests import CLUSTER_SCOPED

Json = dict[str, Any]
BUILT_IN = {"", "apps", "batch", "scheduling.k8s.io", "resource.k8s.io"}
OURS = {"kai.scheduler", "scheduling.run.ai"}
_POD = {"containers": [{"name": "c", "image": "pause"}], "restartPolicy": "Never"}
_LABELS = {"matchLabels": {"app": "x"}}
_TEMPLATE = {
    "metadata": {"labels": {"app": "x"}},
    "spec": {k: v for k, v in _POD.items() if k != "restartPolicy"},
}
LEAST_SPECS: dict[str, Json] = {
    "Job": {"suspend": True, "template": {"spec": _POD}},
    "CronJob": {
        "schedule": "0 0 1 1 *",
        "suspend": True,
        "jobTemplate": {"spec": {"template": {"spec": _POD}}},
    },
    "Deployment": {"replicas": 0, "selector": _LABELS, "template": _TEMPLATE},
    "ReplicaSet": {"replicas": 0, "selector": _LABELS, "template": _TEMPLATE},
    "StatefulSet": {"replicas": 0, "serviceName": "x", "selector": _LABELS, "template": _TEMPLATE},
}


def resource_of(obj: Json) -> Resource:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = obj["kind"]
    return Resource(
        group=group,
        version=version,
        plural=plural_of(kind),
        kind=kind,
        namespaced=kind not in CLUSTER_SCOPED,
    )


def definitions_of(objects: list[Json]) -> list[Json]:
    """Return a definition for each custom kind, taking any content."""
    definitions: dict[str, Json] = {}
    for obj in objects:
        resource = resource_of(obj)
        if resource.group in BUILT_IN | OURS:
            continue
        name = f"{resource.plural}.{resource.group}"
        body = definitions.setdefault(name, _definition(name, resource))
        versions = body["spec"]["versions"]
        if all(version["name"] != resource.version for version in versions):
            versions.append(_version(resource.version, is_stored=not versions))
    return list(definitions.values())


def create_all(gateway: Gateway, objects: list[Json], namespace: str) -> dict[str, str]:
    """Create the objects, owners first; return the uids the server gave by those of the files."""
    uids: dict[str, str] = {}
    for obj in _owners_first(objects):
        live_object = _live(obj, namespace, uids)
        resource = resource_of(obj)
        try:
            answer = gateway.create(
                resource, live_object, namespace=namespace if resource.namespaced else ""
            )
        except AlreadyExistsError:
            continue
        uids[obj["metadata"]["uid"]] = answer["metadata"]["uid"]
        if obj.get("status") and resource.group not in BUILT_IN | OURS:
            body = {"status": obj["status"]}
            gateway.patch(
                resource, live_object["metadata"]["name"], body, namespace=namespace, sub="status"
            )
    return uids


def _live(obj: Json, namespace: str, uids: dict[str, str]) -> Json:
    metadata = {
        key: obj["metadata"][key]
        for key in ("name", "labels", "annotations")
        if key in obj["metadata"]
    }
    references = obj["metadata"].get("ownerReferences")
    if references:
        metadata["ownerReferences"] = [
            {**reference, "uid": uids.get(reference["uid"], reference["uid"])}
            for reference in references
        ]
    spec = LEAST_SPECS.get(obj["kind"]) if obj["apiVersion"].partition("/")[0] in BUILT_IN else None
    if obj["kind"] == "Pod":
        spec = {
            **_POD,
            **{k: v for k, v in obj["spec"].items() if k in ("schedulerName", "priorityClassName")},
        }
    body = {key: value for key, value in obj.items() if key not in ("metadata", "spec", "status")}
    return {**body, "metadata": metadata, "spec": spec or _moved(obj.get("spec", {}), namespace)}


def _moved(spec: Any, namespace: str) -> Any:
    """Let references to the files' namespace point at the test's."""
    if isinstance(spec, dict):
        return {
            key: namespace if key == "namespace" and value == "lab" else _moved(value, namespace)
            for key, value in spec.items()
        }
    return [_moved(item, namespace) for item in spec] if isinstance(spec, list) else spec


def _owners_first(objects: list[Json]) -> list[Json]:
    by_uid = {obj["metadata"]["uid"]: obj for obj in objects}
    ordered: dict[str, Json] = {}

    def visit(obj: Json) -> None:
        for reference in obj["metadata"].get("ownerReferences", []):
            if reference["uid"] in by_uid and reference["uid"] not in ordered:
                visit(by_uid[reference["uid"]])
        ordered.setdefault(obj["metadata"]["uid"], obj)

    for obj in objects:
        visit(obj)
    return list(ordered.values())


def _definition(name: str, resource: Resource) -> Json:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        # Groups below k8s.io are protected; the server requires an approval annotation.
        "metadata": {
            "name": name,
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
            },
            "versions": [],
        },
    }


def _version(name: str, *, is_stored: bool) -> Json:
    return {
        "name": name,
        "served": True,
        "storage": is_stored,
        "subresources": {"status": {}},
        "schema": {
            "openAPIV3Schema": {
                "type": "object",
                "properties": {
                    part: {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    for part in ("spec", "status")
                },
            }
        },
    }
