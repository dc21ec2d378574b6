"""`kaiweb run_operator`: say which schedulers run and how everything stands, until a signal comes."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

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
        operator = Operator(gateway(), home, Probe(home, settings.KAIWEB_PORT), os.environ)
        try:
            operator.run(stop)
        except UnauthorizedError as error:
            operator.failure = str(error)
        if operator.failure:
            raise CommandError(f"the operator cannot go on: {operator.failure}")
