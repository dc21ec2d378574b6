"""`kaiweb doctor --cluster`: examine the cluster and say what to do about each finding."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser

from kaiweb.doctor.examination import CHECKS, Result, examine, has_fault
from kaiweb.doctor.finding import ClusterContext
from kube.keys import SCHEDULER_NAME
from queues.cluster import gateway


class Command(BaseCommand):
    """Examine the cluster; nothing is written."""

    help = "Examine the cluster: definitions, rights, other schedulers, webhooks, clocks, queues."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--cluster",
            action="store_true",
            help="examine the cluster; without it `kaiweb doctor` asks the server over REST",
        )
        parser.add_argument("--output", choices=("text", "json"), default="text")
        parser.add_argument(
            "--only",
            action="append",
            choices=tuple(CHECKS),
            help="make only this check (repeatable)",
        )
        parser.add_argument(
            "--scheduler-name",
            default=os.environ.get("KAIWEB_SCHEDULER_NAME") or SCHEDULER_NAME,
            help="of the pods that are ours",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the findings; end with 1 if one of them is a fault."""
        accounts = os.environ.get("KAIWEB_ACCOUNTS")
        context = ClusterContext(
            gateway=gateway(),
            deploy=Path(settings.KAIWEB_DEPLOY),
            accounts=Path(accounts) if accounts else None,
            scheduler_name=options["scheduler_name"],
        )
        checks = {name: CHECKS[name] for name in options["only"] or CHECKS}
        results = []
        for result in examine(context, checks):
            results.append(result)
            if options["output"] == "text":
                self._print(result)
        if options["output"] == "json":
            self.stdout.write(json.dumps([result.as_json() for result in results], indent=2))
        if has_fault(results):
            sys.exit(1)

    def _print(self, result: Result) -> None:
        if not result.findings:
            self.stdout.write(f"ok       {result.check}")
        for finding in result.findings:
            self.stdout.write(f"{finding.severity:<8} {finding.subject} {finding.text}")
            if finding.remedy:
                self.stdout.write(f"         -> {finding.remedy}")
