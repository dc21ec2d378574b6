"""GET with `watch=true`: a stream of events, from a version on or after a full list."""

from __future__ import annotations

import asyncio
import random
import time

import orjson

from sandbox.apiserver.handlers.listing import check_options
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.handlers.reads import select, selection
from sandbox.apiserver.handlers.views import Form, View, metadata_only, view_of
from sandbox.apiserver.model import errors
from sandbox.apiserver.model.entry import Entry, Obj
from sandbox.apiserver.model.resources import ServedResource
from sandbox.apiserver.schema import conversion
from sandbox.apiserver.storage.watchlog import Render, Watcher, event_line
from sandbox.apiserver.wire.request import Receive, Request, Send, Target

_DEFAULT_TIMEOUT_S = (1800, 3600)
INITIAL_EVENTS_END = "k8s.io/initial-events-end"


class WatchReply:
    """Streams the changes of one collection to one client, until the timeout or a disconnect."""

    def __init__(self, parts: ServerParts, request: Request, target: Target) -> None:
        self._parts = parts
        self._target = target
        self._view = view_of(request)
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._timeout_s = request.number("timeoutSeconds", 0) or random.randint(*_DEFAULT_TIMEOUT_S)
        labels, fields = selection(request, target)
        render = _renderer(parts, self._view, target.resource)
        self._watcher = Watcher(
            namespace=target.namespace, labels=labels, fields=fields, render=render
        )
        self._is_expired = False
        self._log = parts.store.collection(target.resource.storage).log
        self._start(request)

    async def send(self, send: Send, receive: Receive) -> None:
        headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]
        disconnection = asyncio.ensure_future(_disconnected(receive))
        disconnection.add_done_callback(lambda _: self._watcher.stop())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"", "more_body": True})
            await self._stream(send, disconnection)
        finally:
            self._log.watchers.discard(self._watcher)
            disconnection.cancel()

    async def _stream(self, send: Send, disconnection: asyncio.Future[None]) -> None:
        end = time.monotonic() + self._timeout_s
        bookmark_at = time.monotonic() + self._parts.bookmark_interval_s
        while not self._watcher.is_finished:
            now = time.monotonic()
            if now >= end:
                break
            lines = await self._watcher.take(min(end, bookmark_at) - now)
            if time.monotonic() >= bookmark_at:
                bookmark_at += self._parts.bookmark_interval_s
                if self._bookmarks:
                    lines += self._bookmark()
            if lines and not disconnection.done():
                await send({"type": "http.response.body", "body": lines, "more_body": True})
        if not disconnection.done():
            last = self._watcher.drain()
            if self._bookmarks and not self._watcher.is_finished and not self._is_expired:
                last += self._bookmark()
            await send({"type": "http.response.body", "body": last, "more_body": False})

    def _start(self, request: Request) -> None:
        """Queue the events before the live ones: the missed changes, or all objects."""
        check_options(request, is_watch=True)
        version = request.params.get("resourceVersion", "")
        if request.params.get("sendInitialEvents") and not request.flag("sendInitialEvents"):
            version = version or str(self._parts.store.version)
        if version and not version.isdigit():
            cause = errors.invalid_value("resourceVersion", version, "must be a number")
            raise errors.invalid("meta.k8s.io", "ListOptions", "", [cause])
        if request.flag("sendInitialEvents"):
            self._send_initial(request)
            self._watcher.push(self._bookmark(initial_end=True))
        elif version in ("", "0"):
            self._send_initial(request)
        elif int(version) < self._log.dropped:
            message = f"too old resource version: {version} ({self._log.dropped})"
            self._watcher.push(event_line("ERROR", orjson.dumps(errors.expired(message).status)))
            self._timeout_s = 0
            self._is_expired = True
        else:
            for change in self._log.since(int(version)):
                self._watcher.offer(change)
        # There is no await since the log was read, so no change is missed in between.
        self._log.watchers.add(self._watcher)

    def _send_initial(self, request: Request) -> None:
        for entry in select(self._parts, request, self._target):
            self._watcher.initial(entry)

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        resource = self._target.resource
        meta: Obj = {"resourceVersion": str(self._parts.store.version)}
        if initial_end:
            meta["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj: Obj = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
        if self._view.form is Form.METADATA:
            obj.update(kind="PartialObjectMetadata", apiVersion="meta.k8s.io/v1")
        elif self._view.form is Form.TABLE:
            obj = self._parts.tables.bookmark(meta)
        return event_line("BOOKMARK", orjson.dumps(obj))


def _renderer(parts: ServerParts, view: View, resource: ServedResource) -> Render | None:
    """Return how to render this client's events; None if it gets the shared lines."""
    if view.form is Form.TABLE:
        sent_columns = False

        def as_table(kind: str, entry: Entry) -> bytes:
            nonlocal sent_columns
            table = parts.tables.table(
                resource, [entry], view.include_object, with_columns=not sent_columns
            )
            sent_columns = True
            return event_line(kind, orjson.dumps(table))

        return as_table
    if view.form is Form.METADATA:
        return lambda kind, entry: event_line(kind, orjson.dumps(metadata_only(resource, entry)))
    stored = parts.registry.stored(resource.storage)
    if stored is not None and stored.api_version != resource.api_version:
        return lambda kind, entry: event_line(kind, conversion.raw_as(resource, entry))
    return None


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
