"""`kaiweb run_scheduler`: one shard's scheduler in a loop, without Celery, as KAI's binary runs.

With `--leader-elect` several may run; a Lease in the cluster decides which one schedules, and losing it
ends the process.
"""

from __future__ import annotations

import os
import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from kube.lease import Elector, candidate_identity
from kube.process import progress
from kube.process.fatal import end_process
from queues.cluster import gateway
from scheduler.loop.debug_server import PluginServer, metrics_page, plugin_pages
from scheduler.loop.report import Reporter
from scheduler.loop.worker import ShardWorker

LOST_LEASE_EXIT = 4


class Command(BaseCommand):
    help = "Schedule one shard until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--shard", default="default")
        parser.add_argument("--leader-elect", action="store_true")
        parser.add_argument("--namespace", default="kai-scheduler", help="where the Lease lives")
        parser.add_argument(
            "--listen-address", default="", help="host:port of /metrics; off if empty"
        )
        parser.add_argument(
            "--plugin-server-port", type=int, default=-1, help="loopback port; 0 = a free one"
        )
        parser.add_argument("--cycles", type=int, default=0, help="end after so many; 0 = never")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run cycles at every change that matters, and at least once per period."""
        stop, due = threading.Event(), threading.Event()

        def end(*_: object) -> None:
            stop.set()
            due.set()

        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, end)
        progress.start(f"scheduling-{options['shard']}", Path(settings.KAIWEB_HOME))
        worker = ShardWorker(options["shard"], gateway(), end_process, folder=settings.KAIWEB_HOME)
        reporter = Reporter(options["shard"])
        worker.start(wake=due.set)
        reporter.start()
        elector = self._elect(options, worker, stop) if options["leader_elect"] else None
        servers = self._serve(options, worker)
        self.stdout.write(f"scheduler of shard {options['shard']} is ready")
        cycles_to_run = options["cycles"] or -1
        while not stop.is_set() and cycles_to_run != 0:
            due.clear()
            if worker.is_ready() and (elector is None or elector.is_leader):
                reporter.offer(worker.cycle())
                cycles_to_run -= 1
            if cycles_to_run != 0:
                period_s = worker.settings.params.schedule_period_s
                progress.track().beat("waiting for changes", progress.WAIT_S + period_s)
                due.wait(period_s)
        progress.stop()
        for server in servers:
            server.stop()
        worker.stop()
        reporter.stop()
        if elector is not None:
            elector.release(datetime.now(UTC))

    def _serve(self, options: dict[str, Any], worker: ShardWorker) -> list[PluginServer]:
        servers = []
        if options["listen_address"]:
            host, _, port = options["listen_address"].rpartition(":")
            servers.append(PluginServer(host, int(port), {"/metrics": metrics_page}))
        if options["plugin_server_port"] >= 0:
            pages = plugin_pages(worker)
            port, token = options["plugin_server_port"], settings.KAIWEB_DEBUG_TOKEN
            servers.append(PluginServer("127.0.0.1", port, pages, token=token))
        for server in servers:
            self.stdout.write(f"{', '.join(server.pages)} on port {server.start()}")
        return servers

    def _elect(
        self, options: dict[str, Any], worker: ShardWorker, stop: threading.Event
    ) -> Elector:
        params = worker.settings.params
        name = "-".join(filter(None, (params.scheduler_name, params.partition_value)))
        elector = Elector(gateway(), options["namespace"], name, candidate_identity())
        threading.Thread(
            target=elector.run,
            args=(stop,),
            kwargs={"on_lost": lambda: os._exit(LOST_LEASE_EXIT)},
            name="lease",
            daemon=True,
        ).start()
        return elector
