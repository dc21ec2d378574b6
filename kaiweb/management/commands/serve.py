"""`kaiweb serve`: run the web process (uvicorn with pages, REST and the live socket) and the webhook server."""

from __future__ import annotations

import gc
import socket
import sys
from pathlib import Path
from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from kube.process import progress
from queues.access.http_guard import ConnectionLimits, affordable, guarded, raise_file_limit
from queues.admission.server.embedded import admission_server

DRAIN_S = 3
KEEP_ALIVE_S = 5
# The exit code of uvicorn's own command if the application cannot be loaded or the port is taken.
STARTUP_FAILURE = 3


class Server(uvicorn.Server):
    """A uvicorn server that gives ten signs of life a second from its main loop."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and exempt what was loaded from garbage collection: a pass over it stops all requests for a tenth of a second."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()

    async def on_tick(self, counter: int) -> bool:
        """Give a sign of life; uvicorn calls this from its main loop."""
        progress.track().beat("serving")
        return await super().on_tick(counter)


class Command(BaseCommand):
    """Serve on loopback unless told otherwise."""

    help = "Serve the dashboard and the REST API."
    # System checks load every view, and a start should not wait for that; CI runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options for the address."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=settings.KAIWEB_PORT)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve until a signal comes."""
        progress.start("web", Path(settings.KAIWEB_HOME))
        admission = admission_server()
        admission.start()
        try:
            self._serve(options["host"], options["port"])
        finally:
            admission.stop()

    def _serve(self, host: str, port: int) -> None:
        """Run uvicorn; at the end open connections get a few seconds."""
        proxies = settings.KAIWEB_TRUSTED_PROXIES
        limits = ConnectionLimits(
            total=affordable(settings.KAIWEB_MAX_CONNECTIONS, raise_file_limit()),
            per_address=settings.KAIWEB_MAX_CONNECTIONS_PER_ADDRESS,
            proxies=frozenset(proxies),
        )
        config = uvicorn.Config(
            "kaiweb.asgi:application",
            host=host,
            port=port,
            log_config=None,
            access_log=False,
            lifespan="off",
            http=guarded(limits),
            ws_max_size=1 << 20,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=DRAIN_S,
            # Anybody can send X-Forwarded-For, so limits by address accept it from trusted proxies only.
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies,
        )
        server = Server(config)
        server.run()
        progress.stop()
        if not server.started:
            sys.exit(STARTUP_FAILURE)
