"""`kaiweb check_cluster`: prove that no GPU is given twice, gangs are whole, and bind requests are true."""

from __future__ import annotations

import json
import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from kube.errors import KubeError
from queues.cluster import gateway
from scheduler.tools.check import Violation, read_picture, violations


class Command(BaseCommand):
    help = (
        "Check the cluster's invariants; ends with 1 and names the objects when one is broken,"
        " with 2 when the cluster cannot be read."
    )

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
        try:
            broken = _broken(is_settled=options["settled"], confirm_s=options["confirm"])
        except KubeError as error:
            raise CommandError(f"the cluster could not be read: {error}", returncode=2) from error
        if options["json"]:
            self.stdout.write(json.dumps([_as_dict(item) for item in broken], indent=2))
        else:
            for item in broken:
                self.stdout.write(f"{item.rule}: {item.text} [{', '.join(item.objects)}]")
        if broken:
            raise CommandError(f"{len(broken)} violations", returncode=1)
        if not options["json"]:
            self.stdout.write("no violations")


def _broken(*, is_settled: bool, confirm_s: float) -> list[Violation]:
    """Return the violations that two looks agree on."""
    broken = violations(read_picture(gateway()), is_settled=is_settled)
    if broken and confirm_s > 0:
        time.sleep(confirm_s)
        second_look = set(violations(read_picture(gateway()), is_settled=is_settled))
        broken = [item for item in broken if item in second_look]
    return broken


def _as_dict(item: Violation) -> dict[str, object]:
    return {"rule": item.rule, "objects": list(item.objects), "text": item.text}
