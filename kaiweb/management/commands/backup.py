"""`kaiweb backup FILE`: save users, rights, audit, change sets and history."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from kaiweb.backup.save import save
from kube.process.files import FILE_MODE

STANDARD_OUTPUT = "-"


class Command(BaseCommand):
    """Write a backup; kaiweb may run meanwhile."""

    help = "Save what only the database holds: users, rights, audit, change sets, history."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the file."""
        parser.add_argument("file", help="a new file, or - for standard output")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write to a file beside the named one first, so that a failure leaves no half backup."""
        if options["file"] == STANDARD_OUTPUT:
            count = self._save(sys.stdout.buffer)
            self.stderr.write(f"saved {count} rows")
            return
        file = Path(options["file"])
        if file.exists():
            raise CommandError(f"{file}: expected a new file, it exists already")
        part = file.with_name(f"{file.name}.part")
        try:
            with os.fdopen(
                os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, FILE_MODE), "wb"
            ) as stream:
                count = self._save(stream)
            part.rename(file)
        except OSError as error:
            raise CommandError(f"{file}: cannot be written: {error}") from error
        finally:
            part.unlink(missing_ok=True)
        self.stdout.write(f"saved {count} rows to {file}")

    def _save(self, stream: Any) -> int:
        try:
            return save(stream)
        except DatabaseError as error:
            raise CommandError(f"the database cannot be read: {error}") from error
