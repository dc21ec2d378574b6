"""`kaiweb simulate fair-share|time|edit FILE`; `-` reads standard input."""

from __future__ import annotations

import json
import sys
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from kube.errors import KubeError
from queues.cluster import gateway
from scheduler.core.errors import CoreError
from scheduler.load.archive import ArchiveError, read_body
from scheduler.tools.simulate.fair_share import SimulationInputError, simulate_fair_share
from scheduler.tools.simulate.over_time import read_time_input, simulate_over_time, write_csv
from scheduler.tools.simulate.what_if.answer import answer_of
from scheduler.tools.simulate.what_if.picture import take_picture
from scheduler.tools.simulate.what_if.question import QuestionError, read_question
from scheduler.tools.simulate.what_if.run import simulate
from scheduler.tools.snapshots.picture import picture_of

REFUSALS = (ArchiveError, SimulationInputError, QuestionError, CoreError, KubeError)


class Command(BaseCommand):
    """Divide a cluster among queues, once or over many cycles; preview edits of the cluster."""

    help = (
        "Simulate fair shares: 'fair-share' divides once, 'time' runs many cycles; 'edit' shows what"
        " edits of the cluster would change."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django reads it so; no database needed
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the simulators."""
        kinds = parser.add_subparsers(dest="kind", required=True)
        shares = kinds.add_parser("fair-share", help="JSON in, shares per queue out")
        shares.add_argument("file", help="a JSON file, or - for standard input")
        over_time = kinds.add_parser("time", help="YAML in, CSV of allocation and share out")
        over_time.add_argument("file", help="a YAML file, or - for standard input")
        over_time.add_argument(
            "--output", default="simulation_results.csv", help="CSV file, or - for standard output"
        )
        edit = kinds.add_parser(
            "edit", help="YAML in, what the edits would change out; writes nothing"
        )
        edit.add_argument("file", help="the body of POST /api/v1/simulations, or -")
        edit.add_argument(
            "--snapshot",
            type=Path,
            help="on a cycle that `kaiweb snapshot save` kept, not the cluster",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the chosen simulator."""
        try:
            text = _read(options["file"])
            if options["kind"] == "fair-share":
                shares = simulate_fair_share(json.loads(text))
                self.stdout.write(json.dumps(shares, indent=2))
                return
            if options["kind"] == "edit":
                self.stdout.write(
                    json.dumps(_edit(yaml.safe_load(text), options["snapshot"]), indent=2)
                )
                return
            rows = simulate_over_time(read_time_input(yaml.safe_load(text)))
        except (*REFUSALS, OSError, ValueError, yaml.YAMLError) as error:
            raise CommandError(str(error)) from error
        if options["output"] == "-":
            self.stdout.write(write_csv(rows), ending="")
        else:
            Path(options["output"]).write_text(write_csv(rows))
            self.stdout.write(f"{len(rows)} rows written to {options['output']}")


def _edit(body: Any, snapshot: Path | None) -> dict[str, Any]:
    question = read_question(body)
    if snapshot is not None:
        return answer_of(simulate(picture_of(read_body(snapshot)), question))
    return answer_of(simulate(take_picture(gateway(), question.shard, time.time()), question))


def _read(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text()
