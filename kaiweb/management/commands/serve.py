"""`kaiweb serve`: the web process (HTTP and the live socket) on uvicorn."""

from __future__ import annotations

from typing import Any

import uvicorn
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

DRAIN_S = 3


class Command(BaseCommand):
    """Serve on loopback unless told otherwise."""

    help = "Serve the dashboard and the REST API."

    def add_arguments(self, parser: CommandParser) -> None:
        """Say where to listen."""
        parser.add_argument("--host", default="127.0.0.1")
        parser.add_argument("--port", type=int, default=settings.KAIWEB_PORT)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run until a signal comes; sockets get a few seconds to end."""
        uvicorn.run(
            "kaiweb.asgi:application",
            host=options["host"],
            port=options["port"],
            log_config=None,
            access_log=False,
            lifespan="off",
            ws_max_size=1 << 20,
            timeout_graceful_shutdown=DRAIN_S,
        )
