"""The kinds that the server serves: the built-in ones from the data file and those of CRDs.

A `ServedResource` is one (group, version, plural). Versions of one kind share its stored objects and
therefore its `storage` key; so do the two Event kinds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sandbox.apiserver.data.bundle import Bundle
from sandbox.apiserver.model.shapes import REF_PREFIX, Schema, Shape

# Fields that a field selector may name, besides metadata.name and metadata.namespace (as in the real server).
_SELECTABLE: dict[str, tuple[str, ...]] = {
    "pods": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
    "events": (
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
    "jobs.batch": ("status.successful",),
    "replicasets.apps": ("status.replicas",),
    "resourceslices.resource.k8s.io": ("spec.nodeName", "spec.driver"),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedResource:
    """One served kind: its names, its verbs and the shape of its objects."""

    group: str
    version: str
    plural: str
    singular: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, dict[str, Any]] = field(default_factory=dict)
    storage: str
    storage_version: str
    shape: Shape
    selectable: tuple[str, ...] = ()
    custom: dict[str, Any] | None = None
    crd_name: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        if self.custom:
            return str(self.custom["names"]["listKind"])
        return f"{self.kind}List"


class Registry:
    """All served resources; `generation` grows whenever the set changes."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle
        self.generation = 0
        #: By the name of the schema.
        self._shapes: dict[str, Shape] = {}
        self._served: dict[tuple[str, str, str], ServedResource] = {}
        #: (Group, version, kind) -> resource.
        self._by_kind: dict[tuple[str, str, str], ServedResource] = {}
        self._kinds = _kinds_of_schemas(bundle)
        self.meta_shape = self.shape("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")
        for group_version, entries in bundle.groups.items():
            group, _, version = group_version.rpartition("/")
            for resource in self._built_in(group, version, entries):
                self._add(resource)

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._served.get((group, version, plural))

    def of_kind(self, group: str, version: str, kind: str) -> ServedResource | None:
        return self._by_kind.get((group, version, kind))

    def stored(self, storage: str) -> ServedResource | None:
        """Return the resource that reads and writes the stored form of `storage`."""
        candidates = [r for r in self._served.values() if r.storage == storage]
        for resource in candidates:
            if resource.version == resource.storage_version and resource.qualified == storage:
                return resource
        return candidates[0] if candidates else None

    def all(self) -> list[ServedResource]:
        return list(self._served.values())

    def persistent(self) -> list[ServedResource]:
        """Return one resource per stored collection: the one of the stored version."""
        return [
            resource
            for resource in self._served.values()
            if "list" in resource.verbs
            and resource.qualified == resource.storage
            and resource.version == resource.storage_version
        ]

    def shape(self, schema_name: str) -> Shape:
        if schema_name not in self._shapes:
            schema = {"$ref": REF_PREFIX + schema_name}
            self._shapes[schema_name] = Shape(schema, self._schema)
        return self._shapes[schema_name]

    def shape_of_kind(self, group: str, version: str, kind: str) -> Shape | None:
        name = self.schema_name(group, version, kind)
        return self.shape(name) if name else None

    def schema_name(self, group: str, version: str, kind: str) -> str | None:
        return self._kinds.get((group, version, kind))

    def replace_custom(self, crd_name: str, resources: list[ServedResource]) -> None:
        """Replace the served versions of one CRD."""
        for resource in [r for r in self._served.values() if r.crd_name == crd_name]:
            del self._served[resource.group, resource.version, resource.plural]
            del self._by_kind[resource.group, resource.version, resource.kind]
        for resource in resources:
            self._add(resource)
        self.generation += 1

    def _add(self, resource: ServedResource) -> None:
        self._served[resource.group, resource.version, resource.plural] = resource
        self._by_kind[resource.group, resource.version, resource.kind] = resource

    def _schema(self, name: str) -> Schema:
        return self.bundle.schemas[name]

    def _built_in(
        self, group: str, version: str, entries: list[dict[str, Any]]
    ) -> list[ServedResource]:
        subresources: dict[str, dict[str, dict[str, Any]]] = {}
        for entry in entries:
            plural, slash, name = entry["name"].partition("/")
            if slash:
                subresources.setdefault(plural, {})[name] = entry
        resources = []
        for entry in entries:
            if "/" in entry["name"]:
                continue
            plural, kind = entry["name"], entry["kind"]
            shape = self.shape_of_kind(
                entry.get("group", group), entry.get("version", version), kind
            )
            storage = "events" if plural == "events" else f"{plural}.{group}" if group else plural
            resources.append(
                ServedResource(
                    group=group,
                    version=version,
                    plural=plural,
                    singular=entry["singularName"],
                    kind=kind,
                    namespaced=entry["namespaced"],
                    verbs=tuple(entry["verbs"]),
                    short_names=tuple(entry.get("shortNames", ())),
                    categories=tuple(entry.get("categories", ())),
                    subresources=subresources.get(plural, {}),
                    storage=storage,
                    storage_version=version,
                    shape=shape or Shape({}, self._schema),
                    selectable=_SELECTABLE.get(storage, ()),
                )
            )
        return resources


def _kinds_of_schemas(bundle: Bundle) -> dict[tuple[str, str, str], str]:
    kinds: dict[tuple[str, str, str], str] = {}
    for name, schema in bundle.schemas.items():
        for gvk in schema.get("x-kubernetes-group-version-kind", ()):
            kinds.setdefault((gvk["group"], gvk["version"], gvk["kind"]), name)
    return kinds
