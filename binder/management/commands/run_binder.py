"""`kaiweb run_binder`: the binder without Celery, until a signal or refused credentials."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from binder.params import BinderParams
from binder.process import binder, stop_binder
from kube.process import progress

PULSE_S = 1.0


class Command(BaseCommand):
    help = "Carry out bind requests until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--max-concurrent-reconciles", type=int, default=16)

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the binder and wait for a signal."""
        progress.start("binding", Path(settings.KAIWEB_HOME))
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        binder(BinderParams(concurrency=options["max_concurrent_reconciles"]))
        self.stdout.write("binder is ready")
        while not stop.wait(PULSE_S):
            progress.track().beat("binder runs")
        progress.stop()
        stop_binder()
