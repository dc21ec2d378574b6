"""`kaiweb check_cluster`: prove that no GPU is given twice, gangs are whole, and bind requests are true."""

from __future__ import annotations

import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from queues.cluster import gateway
from scheduler.tools.check import Violation, read_picture, violations


class Command(BaseCommand):
    help = "Check the cluster's invariants; ends with 1 and names the objects when one is broken."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--settled",
            action="store_true",
            help="nothing may be on its way: pending pods have reasons, bind requests are finished",
        )
        parser.add_argument(
            "--confirm",
            type=float,
            default=1.0,
            metavar="SECONDS",
            help="look twice, this far apart: objects are read one kind after the other, so what is "
            "seen only once was a change in between (default 1)",
        )
        parser.add_argument("--json", action="store_true", help="print a JSON list")

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the cluster, check it, print the violations."""
        is_settled = options["settled"]
        broken = violations(read_picture(gateway()), is_settled=is_settled)
        if broken and options["confirm"] > 0:
            time.sleep(options["confirm"])
            second_look = set(violations(read_picture(gateway()), is_settled=is_settled))
            broken = [item for item in broken if item in second_look]
        if options["json"]:
            self.stdout.write(json.dumps([_as_dict(item) for item in broken], indent=2))
        else:
            for item in broken:
                self.stdout.write(f"{item.rule}: {item.text} [{', '.join(item.objects)}]")
        if broken:
            raise CommandError(f"{len(broken)} violations", returncode=1)
        if not options["json"]:
            self.stdout.write("no violations")


def _as_dict(item: Violation) -> dict[str, object]:
    return {"rule": item.rule, "objects": list(item.objects), "text": item.text}
