"""`kaiweb run_controllers`: pod grouper, pod group and queue status, node scale adjuster, in one process."""

from __future__ import annotations

import signal
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kube.process import progress
from queues import cluster
from queues.controllers import arguments
from queues.controllers.assembly import Controllers


class Command(BaseCommand):
    """Run the controllers until a signal comes."""

    help = "Group pods, keep the status of pod groups and queues, adjust node scale."
    requires_system_checks = ()
    keeps_status = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        arguments.add_common(parser)
        arguments.add_pod_grouper(parser)
        if self.keeps_status:
            arguments.add_status(parser)
            arguments.add_adjuster(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            parsed = arguments.options_of(options, keeps_status=self.keeps_status)
        except ValueError as error:
            raise CommandError(str(error)) from error
        progress.start("controllers", Path(settings.KAIWEB_HOME))
        controllers = Controllers(cluster.gateway(), parsed)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: controllers.stop.set())
        code = controllers.run()
        progress.stop()
        if code:
            sys.exit(code)
