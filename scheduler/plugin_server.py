"""What a scheduling process tells over HTTP, as KAI's does: metrics, a snapshot, the order of work.

Two ports as there: `/metrics` for Prometheus on one, and on a loopback-only one `/get-snapshot` (the
input of a cycle as `snapshot.zip`) and, with plugin `reflectjoborder`, `/get-job-order`.
"""

from __future__ import annotations

import json
import logging
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from kube.errors import KubeError
from scheduler.metrics import METRICS
from scheduler.shards import ShardSettings
from scheduler.snapshot.archive import read_objects, write_archive
from scheduler.worker import JOB_ORDER_PLUGIN, ShardWorker

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer."""

    status: int
    content_type: str
    body: bytes
    filename: str = ""


Page = Callable[[], Reply]


@dataclass(slots=True)
class PluginServer:
    """Serves pages by path from a thread; port 0 takes a free one."""

    host: str
    port: int
    pages: Mapping[str, Page]
    missing: str = "plugin not found"
    _server: ThreadingHTTPServer | None = None
    _thread: threading.Thread | None = field(default=None)

    def start(self) -> int:
        """Begin to serve; return the port."""
        self._server = ThreadingHTTPServer((self.host, self.port), _handler(self))
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

    def answer(self, path: str) -> Reply:
        """Return the answer to a GET."""
        page = self.pages.get(path)
        return page() if page is not None else _text(404, self.missing)


def metrics_page() -> Reply:
    """Return all metrics of this process."""
    return Reply(200, CONTENT_TYPE_LATEST, METRICS.exposition())


def snapshot_page(gateway: Any, settings: Callable[[], ShardSettings]) -> Page:
    """Return the page that takes a snapshot of the cluster as the shard sees it."""

    def page() -> Reply:
        current = settings()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "snapshot.zip"
            try:
                objects = read_objects(gateway, current.params)
            except KubeError as error:
                return _text(503, str(error))
            write_archive(path, objects, current, time.time())
            return Reply(200, "application/zip", path.read_bytes(), "snapshot.zip")

    return page


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
    pages = {"/get-snapshot": snapshot_page(worker.gateway, lambda: worker.settings)}
    if worker.settings.core.has_plugin(JOB_ORDER_PLUGIN):
        pages["/get-job-order"] = job_order_page(lambda: worker.order)
    return pages


def _text(status: int, text: str) -> Reply:
    return Reply(status, "text/plain; charset=utf-8", text.encode())


def _handler(server: PluginServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            reply = server.answer(self.path.split("?", 1)[0])
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            if reply.filename:
                disposition = f"attachment; filename={reply.filename}"
                self.send_header("Content-Disposition", disposition)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            log.debug(format, *args)

    return Handler
