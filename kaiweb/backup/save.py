"""Write a backup: gzipped lines of JSON, first a header, then one line for each row, at last a count."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import IO, Any
from uuid import UUID

from django.apps import apps
from django.core import serializers
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from kaiweb import __version__
from kaiweb.backup.content import apps_with_saved_rows, saved_labels

FORMAT = "kaiweb-backup"
FORMAT_VERSION = 1


def save(stream: IO[bytes]) -> int:
    """Write all saved rows as of one moment; return how many.

    Raises
    ------
    django.db.DatabaseError : the database cannot be read
    """
    count = 0
    with gzip.open(stream, "wt", encoding="utf-8") as lines, transaction.atomic():
        _freeze()
        lines.write(json.dumps(_header()) + "\n")
        for label in saved_labels():
            rows = apps.get_model(label)._default_manager.order_by("pk")
            for row in rows.iterator(chunk_size=1000):
                lines.write(json.dumps(_line(row), ensure_ascii=False, default=_text) + "\n")
                count += 1
        lines.write(json.dumps({"rows": count}) + "\n")
    return count


def _freeze() -> None:
    """Read everything as of one moment; SQLite does so in any transaction."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")


def _header() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "formatVersion": FORMAT_VERSION,
        "version": __version__,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "migrations": newest_migrations(),
    }


def newest_migrations() -> dict[str, str]:
    """Return the last applied migration of each app with saved rows."""
    names = set(apps_with_saved_rows())
    newest: dict[str, str] = {}
    for app, name in sorted(MigrationRecorder(connection).applied_migrations()):
        if app in names:
            newest[app] = max(newest.get(app, ""), name)
    return newest


def _line(row: Any) -> Any:
    """Return the row as Django's serializers have it: model, key and fields."""
    (line,) = serializers.serialize("python", [row])
    return line


def _text(value: Any) -> str:
    """Return what JSON does not know. Django's own encoder would cut times to milliseconds."""
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | timedelta):
        return str(value)
    raise TypeError(f"expected a value that a backup can hold, got {value!r}")
