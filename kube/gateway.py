"""The one door to the cluster, as a protocol: what every room may ask of the API server.

Reads name the struct to decode into, so that bytes become typed objects once (msgspec); writes take
plain dicts, because a patch is a fragment and not an object. `kube.client` implements it over HTTP,
`tests.fakes.gateway` in memory; one contract test runs against both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Generic, Protocol, TypeVar

from kube.resources import Resource

T = TypeVar("T")
Body = Mapping[str, Any]


class PatchType(StrEnum):
    """The four patch content types of the Kubernetes API."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    JSON = "application/json-patch+json"
    APPLY = "application/apply-patch+yaml"


class EventType(StrEnum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing(Generic[T]):
    """Items of one list call and the resourceVersion to watch from."""

    items: Sequence[T]
    resource_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent(Generic[T]):
    """One change; for a bookmark `object` carries only a resourceVersion."""

    type: EventType
    object: T
    resource_version: str


class Gateway(Protocol):
    """Requests to one API server. Every method raises `kube.errors.KubeError`."""

    def get(self, resource: Resource, name: str, *, as_type: type[T], namespace: str = "") -> T: ...

    def list(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
    ) -> Listing[T]: ...

    def watch(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        timeout_s: int = 300,
    ) -> Iterator[WatchEvent[T]]:
        """Yield events until the server ends the stream; `GoneError` asks for a new list."""
        ...

    def create(
        self, resource: Resource, body: Body, *, namespace: str = "", dry_run: bool = False
    ) -> dict[str, Any]: ...

    def replace(
        self, resource: Resource, name: str, body: Body, *, namespace: str = "", sub: str = ""
    ) -> dict[str, Any]: ...

    def patch(
        self,
        resource: Resource,
        name: str,
        body: Body | Sequence[Body],
        *,
        namespace: str = "",
        sub: str = "",
        patch_type: PatchType = PatchType.MERGE,
        field_manager: str = "",
        force: bool = False,
        dry_run: bool = False,
    ) -> dict[str, Any]: ...

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        grace_period_s: int | None = None,
        resource_version: str = "",
        uid: str = "",
    ) -> None: ...

    def bind(
        self,
        namespace: str,
        pod: str,
        *,
        pod_uid: str,
        node: str,
        annotations: Body | None = None,
    ) -> None:
        """POST the pod's binding subresource; the API server copies the annotations onto the pod."""
        ...
