"""`kaiweb run_operator`: say which schedulers run and how everything stands, until a signal comes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import close_old_connections

from kaiweb.history import forget_shards
from kaiweb.operator.operator import Operator
from kaiweb.operator.probe import Probe
from kube.errors import UnauthorizedError
from queues.cluster import gateway


class Command(BaseCommand):
    """Follow Config kai-config and the SchedulingShards."""

    help = "Ask the supervisor for a scheduler per SchedulingShard; write conditions of Config and shards."
    requires_system_checks = ()

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Run until told to stop; refused credentials end it with an error."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        home = Path(settings.KAIWEB_HOME)
        probe = Probe(home, settings.KAIWEB_PORT)
        operator = Operator(gateway(), home, probe, os.environ, _forget)
        try:
            operator.run(stop)
        except UnauthorizedError as error:
            operator.failure = str(error)
        if operator.failure:
            raise CommandError(f"the operator cannot go on: {operator.failure}")


def _forget(kept: Collection[str]) -> None:
    close_old_connections()
    forget_shards(kept)
