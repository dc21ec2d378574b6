"""`kaiweb restore FILE`: load a backup into an empty database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from kaiweb.backup.restore import RestoreError, restore
from kaiweb.management.commands.backup import STANDARD_OUTPUT


class Command(BaseCommand):
    """Load a backup. No process of kaiweb may run on the database meanwhile."""

    help = "Load a file of `kaiweb backup` into an empty database."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the file and the option to overwrite."""
        parser.add_argument("file", help="a file of `kaiweb backup`, or - for standard input")
        parser.add_argument(
            "--replace",
            action="store_true",
            help="delete users, rights, audit, change sets and history that are there",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load all rows or none."""
        try:
            if options["file"] == STANDARD_OUTPUT:
                count = restore(sys.stdin.buffer, replaces=options["replace"])
            else:
                with Path(options["file"]).open("rb") as stream:
                    count = restore(stream, replaces=options["replace"])
        except (RestoreError, DatabaseError, OSError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"restored {count} rows")
