"""GET: one object, or a list with selectors and pages."""

from __future__ import annotations

from sandbox.apiserver.handlers.listing import check_options
from sandbox.apiserver.handlers.paging import Page
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.handlers.views import render_list, render_object, view_of
from sandbox.apiserver.model import errors, selectors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.selectors import Predicate
from sandbox.apiserver.wire.request import Reply, Request, Target


def find(parts: ServerParts, target: Target) -> Entry:
    """Return the stored object of a target, or raise 404."""
    resource = target.resource
    entry = parts.store.get(resource.storage, target.namespace, target.name)
    if entry is None:
        raise errors.not_found(resource.group, resource.plural, target.name)
    return entry


async def get_object(parts: ServerParts, request: Request, target: Target) -> Reply:
    view = view_of(request)
    entry = find(parts, target)
    check_version(parts, request)
    return Reply(render_object(parts, view, target.resource, entry))


async def list_objects(parts: ServerParts, request: Request, target: Target) -> Reply:
    view = view_of(request)
    check_options(request, is_watch=False)
    page = _page(parts, request, target)
    meta: Obj = {"resourceVersion": str(page.version)}
    if page.token:
        meta["continue"] = page.token
        if not request.params.get("labelSelector") and not request.params.get("fieldSelector"):
            meta["remainingItemCount"] = page.remaining
    return Reply(render_list(parts, view, target.resource, page.entries, meta))


def selection(request: Request, target: Target) -> tuple[Predicate | None, Predicate | None]:
    """Return the label selector and the field selector of a request."""
    selectable = {"metadata.name", "metadata.namespace", *target.resource.selectable}
    labels = selectors.label_selector(request.params.get("labelSelector", ""))
    custom = target.resource.custom is not None
    fields = selectors.field_selector(
        request.params.get("fieldSelector", ""), selectable, custom=custom
    )
    return labels, fields


def select(parts: ServerParts, request: Request, target: Target) -> list[Entry]:
    """Return the entries that a request selects, sorted by key."""
    labels, fields = selection(request, target)
    collection = parts.store.collection(target.resource.storage)
    name = selectors.required_field(request.params.get("fieldSelector", ""), "metadata.name")
    if name and (target.namespace or not target.resource.namespaced):
        only = collection.entries.get((target.namespace, name))
        entries = [only] if only else []
    else:
        entries = collection.listing(target.namespace)
    if labels is not None:
        entries = [entry for entry in entries if labels(entry.labels)]
    if fields is not None:
        entries = [entry for entry in entries if fields(entry.fields)]
    return entries


def _page(parts: ServerParts, request: Request, target: Target) -> Page:
    limit = request.number("limit", 0)
    params = request.params
    scope = "\n".join(
        (request.path, params.get("labelSelector", ""), params.get("fieldSelector", ""))
    )
    if token := params.get("continue"):
        if params.get("resourceVersion") not in (None, "", "0"):
            raise errors.bad_request(
                "specifying resource version is not allowed when using continue"
            )
        return parts.snapshots.following(token, scope, limit)
    check_version(parts, request)
    entries = select(parts, request, target)
    return parts.snapshots.first(entries, parts.store.version, scope, limit)


def check_version(parts: ServerParts, request: Request) -> int:
    """Return the `resourceVersion` of a request; refuse future versions and exact past ones."""
    text = request.params.get("resourceVersion", "")
    if not text:
        return 0
    if not text.isdigit():
        raise errors.bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{text}": '
            f'strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    version = int(text)
    if version > parts.store.version:
        message = f"Timeout: Too large resource version: {version}, current: {parts.store.version}"
        details = {
            "causes": [
                {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
            ]
        }
        raise errors.ApiError(504, "Timeout", message, details={**details, "retryAfterSeconds": 1})
    if request.params.get("resourceVersionMatch") == "Exact" and version != parts.store.version:
        raise errors.expired(f"The resourceVersion for the provided list is too old: {version}")
    return version
