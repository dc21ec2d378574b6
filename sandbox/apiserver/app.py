"""The ASGI application: authenticate, find the resource of a path, authorize, and call the handler."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from sandbox.apiserver.access.rbac import AccessAttributes
from sandbox.apiserver.handlers import discovery, eviction, mutations, reads, reviews, subresources
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.handlers.watching import WatchReply
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.model.user import AUTHENTICATED, User
from sandbox.apiserver.wire.request import (
    Address,
    Receive,
    Reply,
    Request,
    Scope,
    Send,
    Target,
    error_reply,
    parse_path,
)

log = logging.getLogger(__name__)

Handler = Callable[[ServerParts, Request, Target], Awaitable[Reply]]

_REVIEW_GROUPS = ("authorization.k8s.io", "authentication.k8s.io")
_STREAMING = frozenset({"exec", "attach", "log", "portforward", "proxy"})
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_COLLECTION_VERBS = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
#: Answered without authentication.
_OPEN_PATHS = ("/healthz", "/livez", "/readyz", "/version")
_OBJECT_HANDLERS: dict[str, Handler] = {
    "GET": reads.get_object,
    "PUT": mutations.replace_object,
    "PATCH": mutations.patch_object,
    "DELETE": mutations.delete_object,
}
_COLLECTION_HANDLERS: dict[str, Handler] = {
    "GET": reads.list_objects,
    "POST": mutations.create_object,
    "DELETE": mutations.delete_collection,
}
_SUBRESOURCE_HANDLERS: dict[tuple[str, str], Handler] = {
    ("binding", "POST"): subresources.bind_pod,
    ("eviction", "POST"): eviction.evict_pod,
    ("token", "POST"): subresources.create_token,
    ("finalize", "PUT"): subresources.finalize_namespace,
    ("scale", "GET"): subresources.get_scale,
    ("scale", "PUT"): subresources.write_scale,
    ("scale", "PATCH"): subresources.write_scale,
}


class Application:
    """Authenticates, routes and authorizes requests, and turns errors into `Status` replies."""

    def __init__(self, parts: ServerParts) -> None:
        self.parts = parts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            reply = await self._answer(request)
        except errors.ApiError as error:
            reply = error_reply(error)
        except Exception:
            # Catches everything, so that a bug in one handler does not end the process.
            log.exception("%s %s failed", request.method, request.path)
            reply = error_reply(
                errors.internal(f"{request.method} {request.path}: see the server's log")
            )
        if isinstance(reply, WatchReply):
            await reply.send(send, receive)
        else:
            await reply.send(send)

    async def _answer(self, request: Request) -> Reply | WatchReply:
        path = request.path
        if path.startswith(_OPEN_PATHS):
            if path.rstrip("/") == "/version":
                return await discovery.version(self.parts, request)
            return await discovery.health(self.parts, request)
        request.user = self.parts.authenticator.authenticate(request.header(b"authorization"))
        self._impersonate(request)
        address = parse_path(path)
        if address is None:
            return await self._answer_path(request)
        # As on a real server, who may not use a path does not learn whether it exists.
        self._authorize(request, address)
        target = self._target(address)
        if request.method == "GET" and request.flag("watch"):
            return self._watch(request, target)
        return await self._handler(request, target)(self.parts, request, target)

    async def _answer_path(self, request: Request) -> Reply:
        """Return the reply for a path that names no resource: discovery and OpenAPI documents."""
        path = request.path
        self.parts.authorizer.require(
            request.user, AccessAttributes(verb=_VERBS.get(request.method, "get"), path=path)
        )
        if path.startswith(("/api", "/apis")):
            return await discovery.discover(self.parts, request)
        if path.rstrip("/") == "/openapi/v3":
            return await discovery.openapi_index(self.parts, request)
        if path.startswith("/openapi/v3/"):
            return await discovery.openapi_document(self.parts, request)
        if path == "/openapi/v2":
            return await discovery.openapi_v2(self.parts, request)
        raise errors.no_such_path(is_known=False)

    def _serves_version(self, address: Address) -> bool:
        resources = self.parts.registry.all()
        return any(r.group == address.group and r.version == address.version for r in resources)

    def _target(self, address: Address) -> Target:
        resource = self.parts.registry.find(address.group, address.version, address.plural)
        if resource is None:
            raise errors.no_such_path(is_known=self._serves_version(address))
        if address.sub and address.sub.partition("/")[0] not in resource.subresources:
            raise errors.no_such_path()
        if resource.namespaced and address.name and not address.namespace:
            raise errors.no_such_path()
        return Target(
            resource=resource,
            namespace=address.namespace if resource.namespaced else "",
            name=address.name,
            sub=address.sub,
        )

    def _watch(self, request: Request, target: Target) -> WatchReply:
        if target.name:  # the old way to watch one object: select it by name
            request.params["fieldSelector"] = f"metadata.name={target.name}"
        if "watch" not in target.resource.verbs:
            raise errors.method_not_allowed()
        return WatchReply(self.parts, request, target)

    def _handler(self, request: Request, target: Target) -> Handler:
        method = "GET" if request.method == "HEAD" else request.method
        resource = target.resource
        if resource.group in _REVIEW_GROUPS:
            if method != "POST" or target.name:
                raise errors.method_not_allowed()
            return reviews.review
        if resource.plural == "bindings" and not resource.group and method == "POST":
            return subresources.bind_by_collection
        if target.sub:
            return self._sub_handler(method, target)
        table = _OBJECT_HANDLERS if target.name else _COLLECTION_HANDLERS
        if method not in table or not _serves(resource, method, target):
            raise errors.method_not_allowed()
        return table[method]

    def _sub_handler(self, method: str, target: Target) -> Handler:
        sub = target.sub.partition("/")[0]
        if sub in _STREAMING:
            return subresources.refuse_streaming
        if (sub, method) in _SUBRESOURCE_HANDLERS:
            return _SUBRESOURCE_HANDLERS[sub, method]
        shows_object = sub in ("status", "ephemeralcontainers", "resize", "approval")
        if shows_object and method in ("GET", "PUT", "PATCH"):
            return _OBJECT_HANDLERS[method]
        raise errors.method_not_allowed()

    def _authorize(self, request: Request, address: Address) -> None:
        if "system:masters" in request.user.groups:
            return
        verbs = _VERBS if address.name else _COLLECTION_VERBS
        verb = verbs.get(request.method, "get")
        if request.method == "GET" and request.flag("watch"):
            verb = "watch"
        access = AccessAttributes(
            verb=verb,
            group=address.group,
            resource=address.plural,
            namespace=address.namespace,
            name=address.name,
            sub=address.sub.partition("/")[0],
        )
        self.parts.authorizer.require(request.user, access)

    def _impersonate(self, request: Request) -> None:
        """Replace the user by the one of `kubectl --as`, if the caller may impersonate it."""
        name = request.header(b"impersonate-user")
        if not name:
            return
        authorizer = self.parts.authorizer
        authorizer.require(
            request.user, AccessAttributes(verb="impersonate", resource="users", name=name)
        )
        groups = request.headers(b"impersonate-group")
        for group in groups:
            authorizer.require(
                request.user, AccessAttributes(verb="impersonate", resource="groups", name=group)
            )
        request.user = User(name, frozenset({*groups, AUTHENTICATED}))


def _serves(resource: ServedResource, method: str, target: Target) -> bool:
    verbs = _VERBS if target.name else _COLLECTION_VERBS
    return verbs[method] in resource.verbs
