"""`kaiweb mirror_cluster`: run the mirror until a signal comes or the credentials are refused."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connection

from kaiweb.mirror import follow
from kube.process import progress
from queues.cluster import gateway
from queues.mirror.feed import HEARTBEAT
from queues.mirror.part import Part

#: How long a connection to the database is used. Without this, SQLite is opened anew for each batch.
CONNECTION_S = 10


class Command(BaseCommand):
    """Keep the database in step with the cluster."""

    help = "Mirror the cluster's objects into the database (nothing else writes mirror rows)."
    # System checks load every view, and a start should not wait for that; CI runs them.
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare which of how many workers this is."""
        parser.add_argument(
            "--worker", type=int, default=0, metavar="NUMBER", help="0 or above, below --workers"
        )
        parser.add_argument(
            "--workers",
            type=int,
            default=1,
            metavar="COUNT",
            help="how many processes divide the mirror; more than one need PostgreSQL",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Follow the cluster until a signal comes; end with an error if that has become impossible."""
        part = _part(options["worker"], options["workers"])
        progress.start(part.named(HEARTBEAT), Path(settings.KAIWEB_HOME))
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        connection.settings_dict["CONN_MAX_AGE"] = CONNECTION_S
        error = follow(gateway(), stop, part)
        progress.stop()
        if error is not None:
            raise CommandError(f"the mirror cannot go on: {error}")


def _part(worker: int, workers: int) -> Part:
    try:
        part = Part(worker, workers)
    except ValueError as error:
        raise CommandError(f"--worker, --workers: {error}") from error
    if not part.is_alone and connection.vendor != "postgresql":
        raise CommandError(
            f"--workers {workers}: more than one worker need PostgreSQL (DATABASE_URL), because {connection.display_name}"
            " has one writer at a time"
        )
    return part
