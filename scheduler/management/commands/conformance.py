"""`kaiweb conformance DIR`: judge the core by scenarios and tables read from outside the project."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduler.tools.conformance.runner import Report, run_folder


class Command(BaseCommand):
    """Run every scenario below a folder and print those that fail."""

    help = "Run conformance scenarios and tables; print failing cases and 'N of M'."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django reads it so; no database needed
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the arguments."""
        parser.add_argument("folder", type=Path, help="folder (or one file) with scenarios")
        parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
        parser.add_argument("--actual", action="store_true", help="print what came, as JSON")
        parser.add_argument(
            "--observed",
            action="store_true",
            help="also compare every task with what the reference was seen to do",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the folder and print the report."""
        try:
            report = run_folder(options["folder"], judge_observations=options["observed"])
        except (FileNotFoundError, json.JSONDecodeError) as error:
            raise CommandError(str(error)) from error
        if options["actual"]:
            self.stdout.write(json.dumps(report.actual, indent=1, sort_keys=True))
        elif options["json"]:
            self.stdout.write(json.dumps(_as_dict(report), indent=1))
        else:
            self._print_text(report)
        if report.failing and not options["actual"]:
            sys.exit(1)

    def _print_text(self, report: Report) -> None:
        for verdict in report.failing:
            self.stdout.write(f"FAIL {verdict.case}")
            for miss in verdict.mismatches:
                self.stdout.write(f"  {miss.as_text()}")
        self.stdout.write(report.summary)


def _as_dict(report: Report) -> dict[str, Any]:
    return {
        "passed": len(report.judged) - len(report.failing),
        "total": len(report.judged),
        "summary": report.summary,
        "failing": [verdict.as_dict() for verdict in report.failing],
        "cases": {verdict.case: verdict.passed for verdict in report.judged},
    }
