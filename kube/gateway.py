"""The requests that every package may send to the API server, as a protocol.

Reads name the struct to decode into, so that msgspec turns bytes into typed objects in one step; writes take
plain dicts, because a patch is a fragment and not an object. `kube.client` implements the protocol over
HTTP, `tests.fakes.gateway` in memory; one contract test runs against both.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Selectors:
    """Which objects a list or a watch returns, in the syntax of kubectl's `-l` and `--field-selector`."""

    labels: str = ""
    fields: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchOptions:
    """Query parameters of a patch.

    Attributes
    ----------
    field_manager : the owner that the server records for the patched fields
    force : take fields over from other owners (server-side apply only)
    dry_run : validate and answer, but store nothing
    """

    field_manager: str = ""
    force: bool = False
    dry_run: bool = False


EVERYTHING = Selectors()
NO_OPTIONS = PatchOptions()


class EventType(StrEnum):
    """The event types of a watch."""

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
    """Requests to one API server.

    Every method raises `kube.errors.KubeError`; its subclasses say what the server refused.
    """

    def get(self, resource: Resource, name: str, *, as_type: type[T], namespace: str = "") -> T:
        """Return one object, decoded into `as_type`; raises `NotFoundError` if there is none."""
        ...

    def list(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
    ) -> Listing[T]:
        """Return the objects of one kind, of all namespaces unless one is named."""
        ...

    def watch(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        resource_version: str,
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
        timeout_s: int = 300,
    ) -> Iterator[WatchEvent[T]]:
        """Yield changes after `resource_version` until the server ends the stream.

        Parameters
        ----------
        timeout_s : when the server should end the stream

        Raises
        ------
        GoneError : the version is too old; the caller has to list again
        """
        ...

    def create(
        self, resource: Resource, body: Body, *, namespace: str = "", dry_run: bool = False
    ) -> dict[str, Any]:
        """Create an object and return it as stored; raises `AlreadyExistsError` if the name is taken."""
        ...

    def replace(
        self, resource: Resource, name: str, body: Body, *, namespace: str = "", sub: str = ""
    ) -> dict[str, Any]:
        """Replace an object and return it; raises `ConflictError` if the body's resourceVersion is stale."""
        ...

    def patch(
        self,
        resource: Resource,
        name: str,
        body: Body | Sequence[Body],
        *,
        namespace: str = "",
        sub: str = "",
        patch_type: PatchType = PatchType.MERGE,
        options: PatchOptions = NO_OPTIONS,
    ) -> dict[str, Any]:
        """Change an object and return it as stored.

        Parameters
        ----------
        body : the fragment, or for a JSON patch its operations
        sub : a subresource such as `status`; the object itself if empty
        """
        ...

    def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str = "",
        grace_period_s: int | None = None,
        resource_version: str = "",
        uid: str = "",
    ) -> None:
        """Delete an object and, in the background, what depends on it.

        Parameters
        ----------
        grace_period_s : how long a pod may take to end; None for its own period
        resource_version, uid : preconditions; if the object differs, `ConflictError` is raised
        """
        ...

    def bind(
        self,
        namespace: str,
        pod: str,
        *,
        pod_uid: str,
        node: str,
        annotations: Body | None = None,
        resource_version: str = "",
    ) -> None:
        """Bind a pod to a node; the API server copies the annotations onto the pod.

        Parameters
        ----------
        resource_version : bind only if nobody has changed the pod since this version; "" for any

        Raises
        ------
        ConflictError : the pod has a node already, another uid, or another version
        """
        ...

    def evict(self, namespace: str, pod: str, *, pod_uid: str) -> None:
        """Evict a pod: delete it unless a disruption budget forbids that.

        Raises
        ------
        TooManyRequestsError : a budget forbids it now, or the server is overloaded
        NotFoundError : there is no such pod, or the server does not serve evictions
        ConflictError : the pod has another uid
        """
        ...
