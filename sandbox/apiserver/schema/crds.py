"""Custom kinds: the resources that a CustomResourceDefinition adds to the registry."""

from __future__ import annotations

from typing import Any

from sandbox.apiserver.model import clock, errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.errors import Cause
from sandbox.apiserver.model.resources import Registry, ServedResource
from sandbox.apiserver.model.shapes import Schema, Shape
from sandbox.apiserver.schema.rules import Rules
from sandbox.apiserver.storage.store import Store

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_SUB_VERBS = ["get", "patch", "update"]
_OPEN: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class CustomKinds:
    """Updates the registry when a stored CRD changes."""

    def __init__(self, store: Store, registry: Registry, rules: Rules) -> None:
        self._store = store
        self._registry = registry
        self._rules = rules
        store.listeners.append(self._on_change)

    def check(self, crd: Obj, old: Obj | None) -> list[Cause]:
        """Validate a CRD that is being written, and fill in its defaults and status."""
        causes = _check_definition(crd)
        if causes:
            return causes
        complete(crd)
        for index, version in enumerate(crd["spec"]["versions"]):
            schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
            path = _schema_path(crd, index)
            causes += _check_structural(schema, path)
            if not causes:
                causes += self._rules.check_shape(Shape(schema, _no_references), path)
        return causes

    def _on_change(self, storage: str, before: Entry | None, after: Entry | None) -> None:
        if storage != CRDS:
            return
        entry = after or before
        if entry is None:
            return
        if after is None:
            self._drop_objects(entry)
            self._registry.replace_custom(entry.name, [])
            return
        if after.terminating:
            self._drop_objects(after)
            return
        crd = after.load()
        if before is not None and before.load()["spec"] == crd["spec"]:
            return
        self._registry.replace_custom(after.name, _resources(crd))

    def _drop_objects(self, definition: Entry) -> None:
        """Delete all objects of a deleted definition, even those with finalizers."""
        for custom in list(self._store.collection(definition.name).entries.values()):
            self._store.remove(custom)


def complete(crd: Obj) -> None:
    """Fill in the defaults of a definition and its status (names accepted, established)."""
    spec = crd["spec"]
    names = spec["names"]
    names.setdefault("singular", names["kind"].lower())
    names.setdefault("listKind", f"{names['kind']}List")
    spec.setdefault("conversion", {"strategy": "None"})
    status = crd.setdefault("status", {})
    status["acceptedNames"] = dict(names)
    stored = [version["name"] for version in spec["versions"] if version["storage"]]
    previous = status.get("storedVersions") or []
    status["storedVersions"] = previous + [name for name in stored if name not in previous]
    if not status.get("conditions"):
        status["conditions"] = [
            _condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            _condition(
                "Established", "InitialNamesAccepted", "the initial names have been accepted"
            ),
        ]


def _condition(kind: str, reason: str, message: str) -> Obj:
    return {
        "type": kind,
        "status": "True",
        "lastTransitionTime": clock.stamp(),
        "reason": reason,
        "message": message,
    }


def _resources(crd: Obj) -> list[ServedResource]:
    spec = crd["spec"]
    group, names = spec["group"], spec["names"]
    storage = next(version["name"] for version in spec["versions"] if version["storage"])
    resources = []
    for version in spec["versions"]:
        if not version["served"]:
            continue
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or _OPEN
        if spec.get("preserveUnknownFields"):
            schema = {**schema, "x-kubernetes-preserve-unknown-fields": True}
        selectable = version.get("selectableFields") or ()
        resources.append(
            ServedResource(
                group=group,
                version=version["name"],
                plural=names["plural"],
                singular=names["singular"],
                kind=names["kind"],
                namespaced=spec["scope"] == "Namespaced",
                verbs=_VERBS,
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=_subresources(version, names),
                storage=f"{names['plural']}.{group}",
                storage_version=storage,
                shape=Shape(schema, _no_references),
                selectable=tuple(field["jsonPath"].lstrip(".") for field in selectable),
                custom={**version, "names": names},
                crd_name=crd["metadata"]["name"],
            )
        )
    return resources


def _subresources(version: Obj, names: Obj) -> dict[str, Obj]:
    declared: dict[str, Any] = version.get("subresources") or {}
    plural, subresources = names["plural"], {}
    if "status" in declared:
        subresources["status"] = {
            "name": f"{plural}/status",
            "kind": names["kind"],
            "verbs": _SUB_VERBS,
        }
    if "scale" in declared:
        subresources["scale"] = {
            "name": f"{plural}/scale",
            "kind": "Scale",
            "group": "autoscaling",
            "version": "v1",
            "verbs": _SUB_VERBS,
            "paths": declared["scale"],
        }
    return subresources


def _check_definition(crd: Obj) -> list[Cause]:
    spec = crd.get("spec") or {}
    names = spec.get("names") or {}
    causes = [
        errors.required(f"spec.{field}")
        for field in ("group", "scope", "versions")
        if not spec.get(field)
    ]
    causes += [
        errors.required(f"spec.names.{field}")
        for field in ("plural", "kind")
        if not names.get(field)
    ]
    if causes:
        return causes
    expected = f"{names['plural']}.{spec['group']}"
    if crd["metadata"]["name"] != expected:
        detail = 'must be spec.names.plural+"."+spec.group'
        causes.append(errors.invalid_value("metadata.name", crd["metadata"]["name"], detail))
    if spec["scope"] not in ("Cluster", "Namespaced"):
        causes.append(errors.unsupported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    if sum(bool(version.get("storage")) for version in spec["versions"]) != 1:
        detail = "must have exactly one version marked as storage version"
        causes.append(errors.invalid_value("spec.versions", spec["versions"], detail))
    for index, version in enumerate(spec["versions"]):
        version.setdefault("served", False)
        version.setdefault("storage", False)
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            path = f"spec.versions[{index}].schema.openAPIV3Schema"
            causes.append(errors.required(path))
    return causes


def _schema_path(crd: Obj, index: int) -> str:
    """Return the path that the real server reports: with one version, that of a common schema."""
    if len(crd["spec"]["versions"]) == 1:
        return "spec.validation.openAPIV3Schema"
    return f"spec.versions[{index}].schema.openAPIV3Schema"


def _check_structural(schema: Any, path: str) -> list[Cause]:
    """Check that every node has a type, the rule of structural schemas that other code relies on."""
    causes: list[Cause] = []
    loose = schema.get("x-kubernetes-int-or-string") or schema.get(
        "x-kubernetes-preserve-unknown-fields"
    )
    if not schema.get("type") and not loose:
        causes.append(
            errors.required(f"{path}.type", "must not be empty for specified object fields")
        )
    if schema.get("type") == "array" and "items" not in schema:
        causes.append(errors.required(f"{path}.items", "must be specified"))
    for name, child in (schema.get("properties") or {}).items():
        causes += _check_structural(child, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        causes += _check_structural(schema["items"], f"{path}.items")
    if isinstance(schema.get("additionalProperties"), dict):
        causes += _check_structural(schema["additionalProperties"], f"{path}.additionalProperties")
    return causes


def _no_references(name: str) -> Schema:
    raise errors.bad_request(f"structural schemas may not contain references, got {name}")
