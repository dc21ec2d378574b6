"""Which version of a kind to ask for, where a server may serve only older ones.

The claims and slices of resource.k8s.io are v1 since Kubernetes 1.34, and beta before that. Objects of all
versions are read into the same types; new objects are written in the version that the server serves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube.resources import Resource

#: How long the versions of a group are remembered; a cluster changes its versions only with an upgrade.
REMEMBERED_S = 300.0


@dataclass(slots=True)
class ServedVersions:
    """Finds out once in a while which versions of a group the server has.

    Parameters
    ----------
    versions_of : returns the versions of a group, none if the server does not know it
    """

    versions_of: Callable[[str], Collection[str]]
    clock: Callable[[], float] = time.monotonic
    #: Group -> (when to ask again by `clock`, its versions).
    _known: dict[str, tuple[float, Collection[str]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, resource: Resource) -> Resource:
        """Return the resource in its own version, or in the newest older one that is served instead."""
        if not resource.older_versions:
            return resource
        served_versions = self._versions(resource.group)
        choices = (resource.version, *resource.older_versions)
        version = next(
            (choice for choice in choices if choice in served_versions), resource.version
        )
        return resource if version == resource.version else resource.at_version(version)

    def _versions(self, group: str) -> Collection[str]:
        ask_at, versions = self._known.get(group, (0.0, ()))
        if self.clock() < ask_at:
            return versions
        versions = self.versions_of(group)
        with self._lock:
            self._known[group] = (self.clock() + REMEMBERED_S, versions)
        return versions


def body_for(resource: Resource, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the body of a new object in the version of a resource."""
    if "apiVersion" not in body or body["apiVersion"] == resource.api_version:
        return body
    written = {**body, "apiVersion": resource.api_version}
    # Only v1beta1 writes requests otherwise than v1; v1beta2 does not.
    if resource.version != "v1beta1" or "spec" not in body:
        return written
    devices = body["spec"].get("devices") or {}
    requests = [_as_v1beta1(request) for request in devices.get("requests") or ()]
    written["spec"] = {**body["spec"], "devices": {**devices, "requests": requests}}
    return written


def _as_v1beta1(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request as v1beta1 has it, without the level `exactly`."""
    others = {name: value for name, value in request.items() if name != "exactly"}
    return {**others, **(request.get("exactly") or {})}
