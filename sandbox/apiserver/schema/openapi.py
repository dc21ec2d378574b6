"""OpenAPI documents, built from the data file and the stored CRDs.

kubectl uses the v3 documents for validation, `explain` and `apply`. It leaves validation to the server
only if the PATCH of a kind has the parameter `fieldValidation`. Paths are not in the data file, because
they follow from the resources. The v2 document holds the same schemas under the old names.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson

from sandbox.apiserver.model import errors
from sandbox.apiserver.model.resources import Registry, ServedResource
from sandbox.apiserver.model.shapes import REF_PREFIX

Obj = dict[str, Any]

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_ACTIONS = {"get": "get", "put": "put", "patch": "patch", "delete": "delete"}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_STRATEGIC = "application/strategic-merge-patch+json"
_PATCH_MEDIA = (
    "application/apply-patch+yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    _STRATEGIC,
)


class OpenApi:
    """Builds documents on demand and caches each until its kinds change."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = -1
        #: Path of a group and version -> its resources.
        self._resources: dict[str, list[ServedResource]] = {}
        #: Path of a group and version -> digest of its document.
        self._digests: dict[str, str] = {}
        self._documents: dict[tuple[str, str], bytes] = {}

    def index(self) -> bytes:
        """Return `/openapi/v3`: one path per group version, with a hash for caching."""
        self._refresh()
        paths = {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={digest}"}
            for key, digest in self._digests.items()
        }
        return orjson.dumps({"paths": paths})

    def document(self, key: str) -> bytes:
        """Return the document of `api/v1` or `apis/<group>/<version>`."""
        self._refresh()
        if key not in self._digests:
            raise errors.no_such_path()
        cache_key = (key, self._digests[key])
        if cache_key not in self._documents:
            self._documents[cache_key] = orjson.dumps(self._build(self._resources[key]))
        return self._documents[cache_key]

    def v2(self) -> bytes:
        """Return `/openapi/v2` as JSON."""
        self._refresh()
        cache_key = ("v2", _digest(sorted(self._digests.items())))
        if cache_key not in self._documents:
            document = self._build(self._registry.all())
            text = orjson.dumps(
                {
                    "swagger": "2.0",
                    "info": document["info"],
                    "paths": {},
                    "definitions": document["components"]["schemas"],
                }
            )
            self._documents[cache_key] = text.replace(REF_PREFIX.encode(), b"#/definitions/")
        return self._documents[cache_key]

    def _refresh(self) -> None:
        """Read the registry again if it changed, and forget the documents whose kinds changed."""
        if self._generation == self._registry.generation:
            return
        self._generation = self._registry.generation
        self._resources = {}
        for resource in self._registry.all():
            self._resources.setdefault(_path_of(resource.api_version), []).append(resource)
        version = self._registry.bundle.version.get("gitVersion", "")
        self._digests = {
            key: _digest([version, *(resource.custom or resource.plural for resource in resources)])
            for key, resources in sorted(self._resources.items())
        }
        current = set(self._digests.items())
        self._documents = {k: v for k, v in self._documents.items() if k in current}

    def _build(self, resources: list[ServedResource]) -> Obj:
        schemas: dict[str, Any] = {}
        paths: dict[str, Any] = {}
        for resource in resources:
            if resource.custom is not None:
                schemas.update(_custom_schemas(resource))
                self._include([f"{_META}.ObjectMeta", f"{_META}.ListMeta"], schemas)
            paths.update(self._paths(resource))
        kinds = {resource.api_version for resource in resources}
        names = [
            name
            for name, schema in self._registry.bundle.schemas.items()
            if any(
                _api_version(gvk) in kinds
                for gvk in schema.get("x-kubernetes-group-version-kind", ())
            )
        ]
        self._include([*names, f"{_META}.DeleteOptions", f"{_META}.Status"], schemas)
        version = self._registry.bundle.version.get("gitVersion", "")
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": version},
            "paths": paths,
            "components": {"schemas": schemas},
        }

    def _include(self, names: Iterable[str], schemas: dict[str, Any]) -> None:
        """Add the named schemas and all schemas that they refer to."""
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in schemas or name not in self._registry.bundle.schemas:
                continue
            schema = self._registry.bundle.schemas[name]
            schemas[name] = schema
            waiting += _references(schema)

    def _paths(self, resource: ServedResource) -> dict[str, Any]:
        base = f"/{_path_of(resource.api_version)}"
        scoped = f"{base}/namespaces/{{namespace}}" if resource.namespaced else base
        collection = f"{scoped}/{resource.plural}"
        gvk = _gvk(resource.group, resource.version, resource.kind)
        name, custom = _schema_ref(self._registry, resource), resource.custom is not None
        paths: dict[str, Any] = {}
        operations: Obj = {}
        if "create" in resource.verbs:
            operations["post"] = _operation("post", gvk, name, body=True)
        if "list" in resource.verbs:
            operations["get"] = _operation("list", gvk, name)
        paths[collection] = operations
        verbs = {"get": "get", "update": "put", "patch": "patch", "delete": "delete"}
        single = {
            method: _operation(
                _ACTIONS[method], gvk, name, body=method in ("put", "patch"), custom=custom
            )
            for verb, method in verbs.items()
            if verb in resource.verbs
        }
        if single:
            paths[f"{collection}/{{name}}"] = single
        for sub, entry in resource.subresources.items():
            kind = _gvk(
                entry.get("group", resource.group),
                entry.get("version", resource.version),
                entry["kind"],
            )
            verbs_of_sub = {
                verb: method for verb, method in verbs.items() if verb in entry["verbs"]
            }
            paths[f"{collection}/{{name}}/{sub}"] = {
                method: _operation(
                    _ACTIONS[method], kind, name, body=method in ("put", "patch"), custom=custom
                )
                for method in verbs_of_sub.values()
            }
        return paths


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value)).hexdigest()[:32].upper()


def _path_of(group_version: str) -> str:
    return f"apis/{group_version}" if "/" in group_version else f"api/{group_version}"


def _api_version(gvk: Obj) -> str:
    return f"{gvk['group']}/{gvk['version']}" if gvk["group"] else str(gvk["version"])


def _gvk(group: str, version: str, kind: str) -> Obj:
    return {"group": group, "version": version, "kind": kind}


def _schema_ref(registry: Registry, resource: ServedResource) -> str:
    if resource.custom is not None:
        return _custom_name(resource, resource.kind)
    return registry.schema_name(resource.group, resource.version, resource.kind) or ""


def _operation(
    action: str, gvk: Obj, schema: str, *, body: bool = False, custom: bool = False
) -> Obj:
    content = {"schema": {"$ref": REF_PREFIX + schema}} if schema else {}
    operation: Obj = {
        "responses": {"200": {"description": "OK", "content": {"application/json": content}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }
    if body:
        parameters = [*_WRITE_PARAMETERS, *(("force",) if action == "patch" else ())]
        operation["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in parameters
        ]
        media: tuple[str, ...] = _PATCH_MEDIA if action == "patch" else ("application/json",)
        # kubectl chooses the patch type from this list; custom kinds have no strategic merge.
        if custom:
            media = tuple(kind for kind in media if kind != _STRATEGIC)
        operation["requestBody"] = {"required": True, "content": dict.fromkeys(media, content)}
    return operation


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for child in node for name in _references(child)]
    if not isinstance(node, dict):
        return []
    names = [name for value in node.values() for name in _references(value)]
    if isinstance(node.get("$ref"), str):
        names.append(node["$ref"].removeprefix(REF_PREFIX))
    return names


def _custom_name(resource: ServedResource, kind: str) -> str:
    return ".".join([*reversed(resource.group.split(".")), resource.version, kind])


def _custom_schemas(resource: ServedResource) -> dict[str, Any]:
    """Return the schemas of a custom kind and of its list, with the standard metadata added."""
    body = dict(resource.shape.schema)
    body["type"] = "object"
    properties = {**body.get("properties", {})}
    properties["apiVersion"] = properties["kind"] = {"type": "string"}
    properties["metadata"] = {"allOf": [{"$ref": f"{REF_PREFIX}{_META}.ObjectMeta"}]}
    body["properties"] = properties
    body["x-kubernetes-group-version-kind"] = [
        _gvk(resource.group, resource.version, resource.kind)
    ]
    listing = {
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": f"{REF_PREFIX}{_META}.ListMeta"}]},
            "items": {
                "type": "array",
                "items": {"$ref": REF_PREFIX + _custom_name(resource, resource.kind)},
            },
        },
        "x-kubernetes-group-version-kind": [
            _gvk(resource.group, resource.version, resource.list_kind)
        ],
    }
    return {
        _custom_name(resource, resource.kind): body,
        _custom_name(resource, resource.list_kind): listing,
    }
