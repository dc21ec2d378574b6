"""One running API server: build its parts, load the saved objects, serve, and stop without losing writes."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import uvicorn

from kube.process import progress
from kube.process.files import private_folder, restrict
from sandbox.apiserver.access.admission import Admission
from sandbox.apiserver.access.authn import ADMIN, Authenticator
from sandbox.apiserver.access.pki import Pki, write_kubeconfig
from sandbox.apiserver.access.rbac import Authorizer
from sandbox.apiserver.access.webhooks import Webhooks
from sandbox.apiserver.app import Application
from sandbox.apiserver.data.bundle import bundle
from sandbox.apiserver.handlers.parts import ServerParts
from sandbox.apiserver.lifecycle.bootstrap import ensure_defaults
from sandbox.apiserver.lifecycle.deletion import Deleter
from sandbox.apiserver.lifecycle.gc import GarbageCollector
from sandbox.apiserver.lifecycle.namespaces import NamespaceController
from sandbox.apiserver.lifecycle.writes import Writer
from sandbox.apiserver.model import clock
from sandbox.apiserver.model.entry import Entry
from sandbox.apiserver.model.resources import Registry
from sandbox.apiserver.schema.crds import CRDS, CustomKinds
from sandbox.apiserver.schema.openapi import OpenApi
from sandbox.apiserver.schema.rules import Rules
from sandbox.apiserver.storage.persistence import Persistence, Row
from sandbox.apiserver.storage.store import Store
from sandbox.apiserver.tables.render import Tables

log = logging.getLogger(__name__)

HOST = "127.0.0.1"
_COMPACTION_INTERVAL_S = 10.0
_KEEP_ALIVE_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Where the server keeps its state and on which port it listens; 0 chooses a free port.

    With `serves_gangs` it serves Workloads (`scheduling.k8s.io/v1alpha1`) as a real server with that feature gate.
    """

    home: Path
    port: int = 0
    persistent: bool = True
    bookmark_interval_s: float = 60.0
    serves_gangs: bool = False


class Server:
    """Builds the parts of the server, starts and stops them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        home = settings.home
        restrict(private_folder(home))
        self.pki = Pki(home)
        self.pki.ensure(clock.now())
        self.journal = Persistence(home / "objects.sqlite3") if settings.persistent else None
        version, rows = self.journal.load() if self.journal else (1, [])
        self.store = Store(version)
        self._assemble(Authenticator(home))
        self._restore(rows)
        if self.journal:
            self.store.journal = self.journal.record
        ensure_defaults(self.store, self.registry)

    @property
    def kubeconfig(self) -> Path:
        return self.settings.home / "kubeconfig"

    async def serve(self, on_ready: Callable[[int], None] | None = None) -> None:
        """Serve until cancelled or stopped; call `on_ready` with the port."""
        listener = socket.create_server((HOST, self.settings.port), backlog=512)
        # Accepted connections inherit it; asyncio sets it only for sockets that it makes itself.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        port = listener.getsockname()[1]
        write_kubeconfig(
            self.kubeconfig,
            server=f"https://{HOST}:{port}",
            ca_file=self.pki.ca_file,
            token=self.parts.authenticator.admin_token(),
            user=ADMIN,
        )
        config = uvicorn.Config(
            Application(self.parts),
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            ssl_certfile=self.pki.cert_file,
            ssl_keyfile=self.pki.key_file,
            timeout_keep_alive=_KEEP_ALIVE_S,
            timeout_graceful_shutdown=1,
            backlog=512,
        )
        self._uvicorn = _Quiet(config, lambda: on_ready(port) if on_ready else None)
        if self.journal:
            self.journal.start()
        workers = [asyncio.create_task(work) for work in self.controllers()]
        try:
            await self._uvicorn.serve(sockets=[listener])
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await self._webhooks.close()
            if self.journal:
                self.journal.stop(self.store.version)

    def controllers(self) -> list[Coroutine[Any, Any, None]]:
        """Return the background tasks: garbage collection, namespaces, compaction of history."""
        return [self._collector.run(), self._namespaces.run(), self._compact()]

    def stop(self) -> None:
        """End all watches and let `serve` return. Call it on the event loop."""
        for collection in self.store.collections():
            for watcher in list(collection.log.watchers):
                watcher.stop()
        self._uvicorn.should_exit = True

    def _assemble(self, authenticator: Authenticator) -> None:
        store, rules = self.store, Rules()
        self.registry = Registry(bundle(with_gangs=self.settings.serves_gangs))
        kinds = CustomKinds(store, self.registry, rules)
        self._webhooks = Webhooks(store, rules)
        admission = Admission(store, self._webhooks)
        writer = Writer(store, self.registry, admission, rules)
        writer.checks[CRDS] = kinds.check
        deleter = Deleter(store, admission)
        self._collector = GarbageCollector(store, self.registry, deleter)
        self._namespaces = NamespaceController(store, self.registry, deleter)
        self.parts = ServerParts(
            store=store,
            registry=self.registry,
            authenticator=authenticator,
            authorizer=Authorizer(store),
            writer=writer,
            deleter=deleter,
            openapi=OpenApi(self.registry),
            tables=Tables(self.registry),
            bookmark_interval_s=self.settings.bookmark_interval_s,
        )

    def _restore(self, rows: list[Row]) -> None:
        """Load the saved objects, CRDs first and namespaces last.

        CRDs define the kinds of others; a namespace without its service account would get a new one.
        """
        unknown = 0
        for storage, _, _, version, raw in sorted(rows, key=_load_order):
            resource = self.registry.stored(storage)
            if resource is None:
                unknown += 1
                continue
            self.store.load(Entry(resource, orjson.loads(raw), version))
        if unknown:
            log.warning("%d saved objects belong to kinds that no longer exist", unknown)

    async def _compact(self) -> None:
        while True:
            await asyncio.sleep(_COMPACTION_INTERVAL_S)
            for collection in self.store.collections():
                collection.log.compact(time.monotonic())


def _load_order(row: Row) -> int:
    return {CRDS: 0, "namespaces": 2}.get(row[0], 1)


class _Quiet(uvicorn.Server):
    """A uvicorn server that calls back when it listens and installs no signal handlers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()

    async def on_tick(self, counter: int) -> bool:
        """Note ten times a second that the loop turns."""
        progress.track().beat("serving")
        return await super().on_tick(counter)

    @contextlib.contextmanager
    def capture_signals(self):  # type: ignore[no-untyped-def]
        yield


def tune_collector() -> None:
    """Let Python's garbage collector run rarely: objects are bytes, so it would find little."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
