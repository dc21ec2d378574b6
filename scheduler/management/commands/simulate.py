"""`kaiweb simulate fair-share FILE` and `kaiweb simulate time FILE`; `-` reads standard input."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml
from django.core.management.base import BaseCommand, CommandError

from scheduler.tools.simulate.fair_share import SimulationInputError, simulate_fair_share
from scheduler.tools.simulate.over_time import read_time_input, simulate_over_time, write_csv


class Command(BaseCommand):
    """Divide a cluster among queues, once or over many cycles."""

    help = "Simulate fair shares: 'fair-share' divides once, 'time' runs many cycles."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django reads it so; no database needed
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the two simulators."""
        kinds = parser.add_subparsers(dest="kind", required=True)
        shares = kinds.add_parser("fair-share", help="JSON in, shares per queue out")
        shares.add_argument("file", help="a JSON file, or - for standard input")
        over_time = kinds.add_parser("time", help="YAML in, CSV of allocation and share out")
        over_time.add_argument("file", help="a YAML file, or - for standard input")
        over_time.add_argument(
            "--output", default="simulation_results.csv", help="CSV file, or - for standard output"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the chosen simulator."""
        try:
            text = _read(options["file"])
            if options["kind"] == "fair-share":
                shares = simulate_fair_share(json.loads(text))
                self.stdout.write(json.dumps(shares, indent=2))
                return
            rows = simulate_over_time(read_time_input(yaml.safe_load(text)))
        except (SimulationInputError, OSError, ValueError, yaml.YAMLError) as error:
            raise CommandError(str(error)) from error
        if options["output"] == "-":
            self.stdout.write(write_csv(rows), ending="")
        else:
            Path(options["output"]).write_text(write_csv(rows))
            self.stdout.write(f"{len(rows)} rows written to {options['output']}")


def _read(name: str) -> str:
    return sys.stdin.read() if name == "-" else Path(name).read_text()
