"""Discovery: the served groups, versions and resources, in the old and the aggregated form."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.schema import openapi_v2_protobuf
from sandbox.apiserver.wire.request import Reply, Request, json_reply

Obj = dict[str, Any]

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


async def discover(parts: ServerParts, request: Request) -> Reply:
    """Answer `/api`, `/apis` and the paths below them, down to one group version."""
    segments = request.path.strip("/").split("/")
    if segments == ["api"]:
        return _aggregated(parts, core=True) if _wants_aggregated(request) else _core_versions()
    if segments == ["apis"]:
        return _aggregated(parts, core=False) if _wants_aggregated(request) else _groups(parts)
    if segments[0] == "apis" and len(segments) == 2:
        return _group(parts, segments[1])
    group, version = ("", segments[1]) if segments[0] == "api" else (segments[1], segments[2])
    return _resource_list(parts, group, version)


async def version(parts: ServerParts, request: Request) -> Reply:
    return json_reply(parts.registry.bundle.version)


async def health(parts: ServerParts, request: Request) -> Reply:
    return Reply(b"ok", media=b"text/plain; charset=utf-8")


async def openapi_index(parts: ServerParts, request: Request) -> Reply:
    return Reply(parts.openapi.index())


async def openapi_document(parts: ServerParts, request: Request) -> Reply:
    return Reply(parts.openapi.document(request.path.removeprefix("/openapi/v3/")))


async def openapi_v2(parts: ServerParts, request: Request) -> Reply:
    if openapi_v2_protobuf.is_wanted(request.header(b"accept")):
        media = openapi_v2_protobuf.MEDIA.encode()
        return Reply(openapi_v2_protobuf.encode(parts.registry), media=media)
    return Reply(parts.openapi.v2())


def _wants_aggregated(request: Request) -> bool:
    accept = request.header(b"accept").replace(" ", "")
    return any(
        "as=APIGroupDiscoveryList" in choice and "v=v2" in choice.split(";")
        for choice in accept.split(",")
    )


def _core_versions() -> Reply:
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1"}]
    body = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}
    return json_reply(body)


def _by_group(parts: ServerParts) -> dict[str, dict[str, list[ServedResource]]]:
    groups: dict[str, dict[str, list[ServedResource]]] = defaultdict(dict)
    for resource in parts.registry.all():
        groups[resource.group].setdefault(resource.version, []).append(resource)
    # Groups that serve only reviews have no resource in the registry.
    for group in parts.registry.bundle.groups:
        name, _, version_name = group.rpartition("/")
        groups[name].setdefault(version_name, [])
    return groups


def _group_entry(group: str, versions: dict[str, list[ServedResource]]) -> Obj:
    entries = [{"groupVersion": f"{group}/{name}", "version": name} for name in _ranked(versions)]
    return {"name": group, "versions": entries, "preferredVersion": entries[0]}


def _groups(parts: ServerParts) -> Reply:
    groups = [_group_entry(g, versions) for g, versions in _by_group(parts).items() if g]
    return json_reply({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})


def _group(parts: ServerParts, group: str) -> Reply:
    versions = _by_group(parts).get(group) if group else None
    if not versions:
        raise errors.no_such_path()
    return json_reply({"kind": "APIGroup", "apiVersion": "v1", **_group_entry(group, versions)})


def _resource_list(parts: ServerParts, group: str, version_name: str) -> Reply:
    resources = _by_group(parts).get(group, {}).get(version_name)
    if resources is None:
        raise errors.no_such_path()
    entries = [entry for resource in resources for entry in _legacy_entries(resource)]
    body = {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version_name}" if group else version_name,
        "resources": entries,
    }
    return json_reply(body)


def _legacy_entries(resource: ServedResource) -> list[Obj]:
    entry: Obj = {
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    subresources = [
        {
            "name": f"{resource.plural}/{name}",
            "singularName": "",
            "namespaced": resource.namespaced,
            **{key: sub[key] for key in ("group", "version", "kind", "verbs") if key in sub},
        }
        for name, sub in resource.subresources.items()
    ]
    return [entry, *subresources]


def _aggregated(parts: ServerParts, *, core: bool) -> Reply:
    items = []
    for group, versions in _by_group(parts).items():
        if (group == "") != core:
            continue
        entries = [
            {
                "version": name,
                "freshness": "Current",
                "resources": [_aggregated_entry(resource) for resource in versions[name]],
            }
            for name in _ranked(versions)
        ]
        items.append({"metadata": {"name": group, "creationTimestamp": None}, "versions": entries})
    body = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }
    reply = json_reply(body)
    reply.media = _AGGREGATED.encode()
    return reply


def _aggregated_entry(resource: ServedResource) -> Obj:
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": _kind(resource.group, resource.version, resource.kind),
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": list(resource.verbs),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [
            {
                "subresource": name,
                "responseKind": _kind(
                    sub.get("group", resource.group),
                    sub.get("version", resource.version),
                    sub["kind"],
                ),
                "verbs": sub["verbs"],
            }
            for name, sub in resource.subresources.items()
        ]
    return entry


def _kind(group: str, version_name: str, kind: str) -> Obj:
    return {"group": group, "version": version_name, "kind": kind}


def _ranked(versions: dict[str, list[ServedResource]]) -> list[str]:
    """Order versions as Kubernetes does: stable before beta before alpha, higher numbers first."""

    def rank(name: str) -> tuple[int, list[int]]:
        stage = 0 if "alpha" in name else 1 if "beta" in name else 2
        digits = [int(text) for text in "".join(c if c.isdigit() else " " for c in name).split()]
        return stage, digits

    return sorted(versions, key=rank, reverse=True)
