"""`kaiweb run_operator`: run the operator until a signal comes or the credentials are refused."""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Collection
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, close_old_connections

from kaiweb.health.checks import CyclesCheck
from kaiweb.history import forget_shards
from kaiweb.operator.deployments import ClusterDeployments
from kaiweb.operator.operator import Operator
from kaiweb.operator.probe import ProcessProbe
from kube.errors import UnauthorizedError
from kube.process import progress
from queues.cluster import gateway

log = logging.getLogger(__name__)


class Command(BaseCommand):
    """Follow Config kai-config and the SchedulingShards."""

    help = "Ask the supervisor for a scheduler per SchedulingShard; write conditions of Config and shards."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the option for a cluster."""
        parser.add_argument(
            "--deployments",
            action="store_true",
            help="make a Deployment for each shard, from the chart's template, instead of a process",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run until told to stop; refused credentials end it with an error."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        home = Path(settings.KAIWEB_HOME)
        progress.start("operator", home)
        deployments = ClusterDeployments(gateway()) if options["deployments"] else None
        operator = Operator(
            gateway(),
            home,
            deployments or ProcessProbe(home, settings.KAIWEB_PORT),
            os.environ,
            _forget,
            _cycle_fault,
            deployments=deployments,
        )
        try:
            operator.run(stop)
        except UnauthorizedError as error:
            operator.failure = str(error)
        progress.stop()
        if operator.failure:
            raise CommandError(f"the operator cannot go on: {operator.failure}")


CYCLES = CyclesCheck()


def _cycle_fault(shard: str) -> str:
    """Return why a shard has no cycles; "" if the database cannot be read."""
    close_old_connections()
    try:
        return CYCLES.of(shard)
    except DatabaseError as error:
        log.warning("the cycles of shard %s cannot be read: %s", shard, error)
        return ""


def _forget(remaining: Collection[str]) -> None:
    close_old_connections()
    forget_shards(remaining)
