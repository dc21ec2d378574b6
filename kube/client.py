"""The Gateway over HTTP.

A 401 reloads the credentials once (a rotated token, a new certificate); a second one is final.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
from urllib3.exceptions import HTTPError

from kube.answers import decode_event, decode_list, decode_object
from kube.errors import (
    DISRUPTION_BUDGET,
    BadValueError,
    ForbiddenError,
    KubeError,
    NotFoundError,
    ServerError,
    UnauthorizedError,
    error_of,
)
from kube.gateway import (
    EVERYTHING,
    NO_OPTIONS,
    Body,
    Listing,
    PatchOptions,
    PatchType,
    Selectors,
    WatchEvent,
)
from kube.link import JSON, Link, Target, exchange, load_link
from kube.objects.meta import ApiGroup, Status, StatusDetails, decode
from kube.resources import PODS, SERVICE_ACCOUNTS, Resource
from kube.served import ServedVersions, body_for
from kube.wire import Answer

T = TypeVar("T")

# How long after its announced end a watch may still send.
WATCH_SLACK_S = 15.0
# How long a watch may be silent: servers send a bookmark each minute while nothing changes. A connection that was lost
# without being closed, or that a proxy keeps open, shows no other sign.
WATCH_SILENCE_S = 90.0


def connect(target: Target | Path | str | None = None) -> HttpGateway:
    """Return a gateway to the target (or to the cluster of a kubeconfig file).

    Nothing is read or sent before the first request.

    Parameters
    ----------
    target : a target, or the path of a kubeconfig file; None for the pod's service account or KUBECONFIG

    Raises
    ------
    ServerError : raised by the first request, not here, when there is no usable configuration
    """
    if isinstance(target, (Path, str)):
        target = Target(kubeconfig=Path(target))
    return HttpGateway(target or Target())


@dataclass(slots=True)
class HttpGateway:
    """`kube.gateway.Gateway` over one connection pool; safe to share between threads."""

    target: Target
    _link: Link | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _served: ServedVersions = field(init=False)

    def __post_init__(self) -> None:
        self._served = ServedVersions(self._versions_of)

    def get(self, resource: Resource, name: str, *, as_type: type[T], namespace: str = "") -> T:
        return decode_object(
            self._send("GET", self._served.of(resource).path(namespace, name)),
            as_type,
            resource.kind,
        )

    def list(
        self,
        resource: Resource,
        *,
        as_type: type[T],
        namespace: str = "",
        selectors: Selectors = EVERYTHING,
    ) -> Listing[T]:
        query = _query(labelSelector=selectors.labels, fieldSelector=selectors.fields)
        raw = self._send("GET", self._served.of(resource).path(namespace) + query)
        return decode_list(raw, as_type, resource.kind)

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
        query = _query(
            watch="1",
            allowWatchBookmarks="true",
            resourceVersion=resource_version,
            timeoutSeconds=str(timeout_s),
            labelSelector=selectors.labels,
            fieldSelector=selectors.fields,
        )
        path = self._served.of(resource).path(namespace) + query
        silence_s = min(timeout_s + WATCH_SLACK_S, WATCH_SILENCE_S)
        response = self._open("GET", path, None, "", read_timeout_s=silence_s)
        try:
            for line in _lines(response):
                event = decode_event(line, as_type, resource.kind)
                if event is not None:
                    yield event
        except HTTPError as error:
            raise ServerError(f"watch {path}: {error}") from error
        finally:
            response.close()

    def create(
        self, resource: Resource, body: Body, *, namespace: str = "", dry_run: bool = False
    ) -> dict[str, Any]:
        query = _query(dryRun="All" if dry_run else "")
        served_resource = self._served.of(resource)
        return self._write(
            "POST", served_resource.path(namespace) + query, body_for(served_resource, body)
        )

    def replace(
        self, resource: Resource, name: str, body: Body, *, namespace: str = "", sub: str = ""
    ) -> dict[str, Any]:
        served_resource = self._served.of(resource)
        return self._write(
            "PUT", served_resource.path(namespace, name, sub), body_for(served_resource, body)
        )

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
        query = _query(
            fieldManager=options.field_manager,
            force="true" if options.force else "",
            dryRun="All" if options.dry_run else "",
        )
        path = self._served.of(resource).path(namespace, name, sub) + query
        return self._write("PATCH", path, body, content_type=patch_type.value)

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
        # As kubectl does: without this, some kinds (Jobs) leave their dependents behind.
        options: dict[str, Any] = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
        }
        if grace_period_s is not None:
            options["gracePeriodSeconds"] = grace_period_s
        preconditions = {"resourceVersion": resource_version, "uid": uid}
        nonempty = {key: value for key, value in preconditions.items() if value}
        if nonempty:
            options["preconditions"] = nonempty
        self._send("DELETE", self._served.of(resource).path(namespace, name), options)

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
        metadata: dict[str, Any] = {"name": pod, "namespace": namespace, "uid": pod_uid}
        if resource_version:
            metadata["resourceVersion"] = resource_version
        if annotations:
            metadata["annotations"] = dict(annotations)
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": metadata,
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        }
        self._send("POST", PODS.path(namespace, pod, "binding"), body)

    def evict(self, namespace: str, pod: str, *, pod_uid: str) -> None:
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": pod, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": pod_uid}},
        }
        self._send("POST", PODS.path(namespace, pod, "eviction"), body)

    def create_token(self, namespace: str, account: str, *, audience: str, lifetime_s: int) -> str:
        """Return a new token of a ServiceAccount, which nobody but the audience accepts."""
        body = {"spec": {"audiences": [audience], "expirationSeconds": lifetime_s}}
        path = f"{SERVICE_ACCOUNTS.path(namespace, account)}/token"
        token: str = self._write("POST", path, body)["status"]["token"]
        return token

    def bearer_token(self) -> str:
        """Return the bearer token that the requests carry; empty where they do not have one."""
        header = self._current_link().headers("").get("authorization", "")
        return header.partition(" ")[2] if header.lower().startswith("bearer ") else ""

    def close(self) -> None:
        """Close all open connections; the next request opens new ones."""
        link, self._link = self._link, None
        if link is not None:
            link.close()

    def _versions_of(self, group: str) -> frozenset[str]:
        """Return the versions of a group that the server has; none if it does not know the group."""
        try:
            answer = decode_object(self._send("GET", f"/apis/{group}"), ApiGroup, group)
        except (NotFoundError, ForbiddenError):
            return frozenset()
        return frozenset(item.version for item in answer.versions)

    def _write(
        self, method: str, path: str, body: Any, *, content_type: str = JSON
    ) -> dict[str, Any]:
        return decode_object(self._send(method, path, body, content_type), dict, path)

    def _send(self, method: str, path: str, body: Any = None, content_type: str = JSON) -> bytes:
        response = self._open(method, path, body, content_type if body is not None else "")
        data: bytes = response.data
        return data

    def _open(
        self,
        method: str,
        path: str,
        body: Any,
        content_type: str,
        *,
        read_timeout_s: float | None = None,
    ) -> Any:
        """Send one request; the body of the answer has been read unless `read_timeout_s` is given."""
        encoded = None if body is None else msgspec.json.encode(body)
        link = self._current_link()
        for attempt in (1, 2):
            response = exchange(link, method, path, encoded, content_type, read_timeout_s)
            if response.status < 400:
                return response
            if response.status != 401 or attempt == 2:
                break
            link = self._reload(link.generation)
        raise _refusal(response, method, path)

    def _current_link(self) -> Link:
        link = self._link
        return link if link is not None else self._reload(0)

    def _reload(self, stale_generation: int) -> Link:
        """Return a link with fresh credentials; read them unless another thread has just done so."""
        with self._lock:
            old = self._link
            if old is not None and old.generation != stale_generation:
                return old
            link = self._link = load_link(self.target, stale_generation + 1)
            if old is not None and old.wire is not None:
                old.wire.close()
            return link


def _refusal(response: Any, method: str, path: str) -> KubeError:
    """Return the error that an answer with status 400 or above stands for."""
    data = response.data
    if not isinstance(response, Answer):
        response.close()
    try:
        status = decode(data, Status)
    except BadValueError:
        status = Status(message=data[:300].decode(errors="replace"))
    message = f"{method} {path}: {response.status} {status.message}"
    if response.status == 401:
        return UnauthorizedError(message, status=401, reason=status.reason)
    details = status.details or StatusDetails()
    return error_of(
        response.status,
        status.reason,
        message,
        retry_after_s=details.retry_after_seconds,
        budget_text=next((c.message for c in details.causes if c.reason == DISRUPTION_BUDGET), ""),
    )


def _lines(response: Any) -> Iterator[bytes]:
    """Yield the lines of a stream as bytes arrive; unlike `read`, `read1` does not wait for 64 KiB."""
    partial_line = b""
    while True:
        data = response.read1(65536)
        if not data:
            return
        *lines, partial_line = (partial_line + data).split(b"\n")
        yield from (line for line in lines if line)


def _query(**parameters: str) -> str:
    """Return the query string of the parameters that have a value, with its question mark; "" if none has."""
    nonempty = {key: value for key, value in parameters.items() if value}
    return f"?{urlencode(nonempty)}" if nonempty else ""
