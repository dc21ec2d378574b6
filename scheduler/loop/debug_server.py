"""Serve metrics, a snapshot and the order of work over HTTP, as KAI's scheduler does.

KAI uses two ports: `/metrics` for Prometheus on one, and on a loopback-only one `/get-snapshot` (the
input of a cycle as `snapshot.zip`) and, with plugin `reflectjoborder`, `/get-job-order`.

Loopback is open to every user of the machine, and a snapshot holds every pod as it was submitted: all
pages but `/metrics` ask for a bearer token, and without one configured they are off.
"""

from __future__ import annotations

import hmac
import json
import logging
import math
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from kube.errors import KubeError
from scheduler.load.archive import read_objects, write_archive
from scheduler.loop.cycle import JOB_ORDER_PLUGIN
from scheduler.loop.worker import ShardWorker
from scheduler.metrics import METRICS

log = logging.getLogger(__name__)

OPEN_PAGES = frozenset({"/metrics"})
MAX_CONNECTIONS = 16
SILENCE_S = 5.0
SNAPSHOT_PAUSE_S = 5.0
IDLE_WAIT_S = 5.0


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    content_type: str
    body: bytes
    filename: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


Page = Callable[[], Reply]


@dataclass(slots=True)
class PluginServer:
    """Serves pages by path from a thread; port 0 takes a free one.

    Parameters
    ----------
    token : what callers of all but `OPEN_PAGES` must send; "": these pages are off
    """

    host: str
    port: int
    pages: Mapping[str, Page]
    token: str = ""
    missing: str = "plugin not found"
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = field(default=None)

    def start(self) -> int:
        """Start serving; return the port."""
        self._server = _BoundedServer((self.host, self.port), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever, name=f"http-{self.port}", daemon=True
        )
        self._thread.start()
        return int(self._server.server_address[1])

    def stop(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join(timeout=2)
            self._server.server_close()

    def answer(self, path: str, authorization: str = "") -> Reply:
        """Return the answer to a GET."""
        page = self.pages.get(path)
        if page is None:
            return _text(404, self.missing)
        return (None if path in OPEN_PAGES else self._refusal(authorization)) or page()

    def _refusal(self, authorization: str) -> Reply | None:
        if not self.token:
            return _text(403, "this page is off; KAIWEB_DEBUG_TOKEN switches it on")
        scheme, _, token = authorization.partition(" ")
        is_right = hmac.compare_digest(token.strip().encode(), self.token.encode())
        if scheme.lower() == "bearer" and is_right:
            return None
        return _text(401, "send the debug token as bearer token", {"WWW-Authenticate": "Bearer"})


def metrics_page() -> Reply:
    """Return all metrics of this process."""
    return Reply(200, CONTENT_TYPE_LATEST, METRICS.exposition())


@dataclass(slots=True)
class Turns:
    """Lets one snapshot be taken at a time, and the next one only after a pause."""

    pause_s: float = SNAPSHOT_PAUSE_S
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _due_at: float = 0.0

    @contextmanager
    def take(self) -> Iterator[float]:
        """Yield 0, or in how many seconds to try again."""
        if not self._lock.acquire(blocking=False):
            yield 1.0
            return
        try:
            rest_s = max(0.0, self._due_at - time.monotonic())
            yield rest_s
            if not rest_s:
                self._due_at = time.monotonic() + self.pause_s
        finally:
            self._lock.release()


# The pages are rebuilt with the shard's settings; the pause between snapshots must outlive them.
TURNS = Turns()


def snapshot_page(worker: ShardWorker, turns: Turns = TURNS) -> Page:
    """Return the page that takes a snapshot of the cluster as the shard sees it."""

    def page() -> Reply:
        with turns.take() as rest_s:
            if rest_s:
                retry = {"Retry-After": str(math.ceil(rest_s))}
                return _text(429, "one snapshot at a time, and not all the time", retry)
            # A snapshot slows a running cycle, so wait for its end; but if the cycle hangs, take it all the same.
            worker.wait_until_idle(IDLE_WAIT_S)
            return _snapshot(worker)

    return page


def _snapshot(worker: ShardWorker) -> Reply:
    current = worker.settings
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.zip"
        try:
            objects = read_objects(worker.gateway, current.params)
        except KubeError as error:
            return _text(503, str(error))
        now = time.time()
        write_archive(path, objects, current, now, worker.runner.past_requests(now))
        return Reply(200, "application/zip", path.read_bytes(), "snapshot.zip")


def job_order_page(latest: Callable[[], dict[str, Any] | None]) -> Page:
    """Return the page with the order in which the last cycle would serve pod groups."""

    def page() -> Reply:
        order = latest()
        if order is None:
            return _text(503, "Job order data not ready")
        return Reply(200, "application/json", json.dumps(order).encode())

    return page


def plugin_pages(worker: ShardWorker) -> dict[str, Page]:
    """Return the pages of the loopback port; the order of work only where its plugin is on."""
    pages = {"/get-snapshot": snapshot_page(worker)}
    if worker.settings.core.has_plugin(JOB_ORDER_PLUGIN):
        pages["/get-job-order"] = job_order_page(lambda: worker.order)
    return pages


def _text(status: int, text: str, headers: Mapping[str, str] | None = None) -> Reply:
    return Reply(status, "text/plain; charset=utf-8", text.encode(), headers=headers or {})


class _BoundedServer(ThreadingHTTPServer):
    """Answers a few connections at once, each in a thread; closes those beyond."""

    def __init__(self, *args: Any) -> None:
        self._free = threading.BoundedSemaphore(MAX_CONNECTIONS)
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if one is free."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the error, unless the client only closed the connection."""
        error = sys.exception()
        if isinstance(error, OSError):
            log.debug("no answer to %s: %s", client_address, error)
        else:
            log.error("no answer to %s", client_address, exc_info=error)


def _handler(server: PluginServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = SILENCE_S

        def do_GET(self) -> None:
            path = self.path.split("?", 1)[0]
            reply = server.answer(path, self.headers.get("Authorization", ""))
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            if reply.filename:
                disposition = f"attachment; filename={reply.filename}"
                self.send_header("Content-Disposition", disposition)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            log.debug(format, *args)

    return Handler
