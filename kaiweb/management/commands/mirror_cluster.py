"""`kaiweb mirror_cluster`: run the mirror until a signal comes or the credentials are refused."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from kaiweb.mirror import follow
from kube.process import progress
from queues.cluster import gateway

#: How long a connection to the database is used. Without this, SQLite is opened anew for each batch.
CONNECTION_S = 10


class Command(BaseCommand):
    """Keep the database in step with the cluster."""

    help = "Mirror the cluster's objects into the database (the only writer of mirror rows)."
    # System checks load every view, and a start should not wait for that; CI runs them.
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Follow the cluster until a signal comes; end with an error if that has become impossible."""
        progress.start("mirror", Path(settings.KAIWEB_HOME))
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        connection.settings_dict["CONN_MAX_AGE"] = CONNECTION_S
        error = follow(gateway(), stop)
        progress.stop()
        if error is not None:
            raise CommandError(f"the mirror cannot go on: {error}")
