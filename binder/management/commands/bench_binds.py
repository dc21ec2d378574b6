"""`kaiweb bench_binds`: how many pods a second one binder binds on the cluster, and where the time goes."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from binder.params import BinderParams
from binder.tools.bench import measure_binds
from kube.errors import KubeError
from queues.cluster import gateway


class Command(BaseCommand):
    """Bind pods of a namespace made for it, and delete everything again."""

    help = "Measure binds per second on the cluster of KAIWEB_KUBECONFIG; stop other binders first."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--pods", type=int, default=1000)
        parser.add_argument("--threads", type=int, default=BinderParams().concurrency)

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and print."""
        pods, threads = options["pods"], options["threads"]
        if pods < 1 or threads < 1:
            raise CommandError(f"expected 1 or more pods and threads, got {pods} and {threads}")
        try:
            measurement = measure_binds(gateway(), pods=pods, concurrency=threads)
        except KubeError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(measurement.text())
