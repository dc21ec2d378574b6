"""`kaiweb serve`: the web process on uvicorn: pages, REST and the live socket; beside it, the webhooks."""

from __future__ import annotations

from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from queues.admission.embedded import admission_server
from queues.http_guard import ConnectionLimits, affordable, guarded, raise_file_limit

DRAIN_S = 3
KEEP_ALIVE_S = 5


class Command(BaseCommand):
    """Serve on loopback unless told otherwise."""

    help = "Serve the dashboard and the REST API."
    # The checks load every view; CI runs them, a start need not wait for them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Say where to listen."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=settings.KAIWEB_PORT)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run until a signal comes."""
        admission = admission_server()
        if admission:
            admission.start()
        try:
            self._serve(options["host"], options["port"])
        finally:
            if admission:
                admission.stop()

    def _serve(self, host: str, port: int) -> None:
        """Serve; sockets get a few seconds to end."""
        proxies = settings.KAIWEB_TRUSTED_PROXIES
        limits = ConnectionLimits(
            total=affordable(settings.KAIWEB_MAX_CONNECTIONS, raise_file_limit()),
            per_address=settings.KAIWEB_MAX_CONNECTIONS_PER_ADDRESS,
            proxies=frozenset(proxies),
        )
        uvicorn.run(
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
            # Anybody can send X-Forwarded-For; limits by address must not believe it.
            proxy_headers=bool(proxies),
            forwarded_allow_ips=proxies,
        )
