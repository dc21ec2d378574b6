"""Load a backup into a database.

An empty database is first brought to the migrations that the backup was made with; then the rows are loaded, then it is
migrated to the present. So a backup of an older version can be read by every newer one.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.apps import apps as present_apps
from django.core.management.color import no_style
from django.db import connection, transaction
from django.db.migrations.exceptions import NodeNotFoundError
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.recorder import MigrationRecorder

from kaiweb.backup.content import saved_labels
from kaiweb.backup.save import FORMAT, FORMAT_VERSION, newest_migrations
from queues.editing import audit_guard


class RestoreError(Exception):
    """The backup or the database cannot be used; nothing was loaded."""


def restore(stream: IO[bytes], *, replaces: bool = False) -> int:
    """Load all rows of a backup; return how many.

    Parameters
    ----------
    replaces : delete the rows that are there first

    Raises
    ------
    RestoreError : no backup, one of a newer version, or a database that holds rows already
    """
    lines = _lines(stream)
    header = next(lines, {})
    if header.get("format") != FORMAT:
        raise RestoreError("expected a file written by `kaiweb backup`")
    if header["formatVersion"] > FORMAT_VERSION:
        raise RestoreError(f"the backup was made by a newer kaiweb ({header['version']})")
    migrations: dict[str, str] = header["migrations"]
    is_empty = not MigrationRecorder(connection).applied_migrations()
    if not is_empty:
        _check_present(migrations, replaces=replaces)
    try:
        models = _prepare(migrations) if is_empty else present_apps
    except (NodeNotFoundError, KeyError) as error:
        raise RestoreError(f"the backup was made by a newer kaiweb: {error}") from error
    with transaction.atomic():
        if replaces and not is_empty:
            with audit_guard.lifted(connection):
                _delete_rows()
        count = _load(lines, models)
        _continue_numbers()
    if is_empty:
        executor = MigrationExecutor(connection)
        executor.migrate(executor.loader.graph.leaf_nodes())
    return count


def _check_present(migrations: Mapping[str, str], *, replaces: bool) -> None:
    present = newest_migrations()
    if present != migrations:
        app = min(
            name for name in present | dict(migrations) if present.get(name) != migrations.get(name)
        )
        raise RestoreError(
            f"the backup has migration {app} {migrations.get(app)}, the database {present.get(app)}:"
            " restore into an empty database, which is then migrated to the present"
        )
    filled_tables = [
        label for label in saved_labels() if present_apps.get_model(label).objects.exists()
    ]
    if filled_tables and not replaces:
        raise RestoreError(
            f"the database has rows already ({', '.join(filled_tables)}): restore into an empty one,"
            " or replace them with --replace"
        )


def _prepare(migrations: Mapping[str, str]) -> Any:
    """Create the tables as they were; return the models of that time."""
    executor = MigrationExecutor(connection)
    targets = sorted(migrations.items())
    for target in targets:
        if target not in executor.loader.graph.nodes:
            raise KeyError(f"migration {target[0]} {target[1]} is not known")
    return executor.migrate(targets).apps


def _delete_rows() -> None:
    for label in reversed(saved_labels()):
        present_apps.get_model(label)._base_manager.all().delete()


def _load(lines: Iterator[dict[str, Any]], models: Any) -> int:
    count, expected = 0, None
    for line in lines:
        if "rows" in line:
            expected = line["rows"]
            break
        _insert(line, models)
        count += 1
    if count != expected:
        raise RestoreError(f"the backup is cut off: expected {expected} rows, got {count}")
    return count


def _insert(line: Mapping[str, Any], models: Any) -> None:
    """Insert one row as it was saved: no default and no `auto_now` changes it."""
    model = models.get_model(line["model"])
    row = model()
    row.pk = model._meta.pk.to_python(line["pk"])
    many: list[tuple[str, list[Any]]] = []
    for name, value in line["fields"].items():
        field = model._meta.get_field(name)
        if field.many_to_many:
            many.append((name, value))
        elif field.is_relation:
            setattr(row, field.attname, value)
        else:
            setattr(row, field.attname, field.to_python(value))
    row.save_base(raw=True, force_insert=True)
    for name, keys in many:
        # Permissions are made by migrate, and nobody is given one beside the roles of kaiweb.
        if name != "user_permissions" and name != "permissions":
            getattr(row, name).set(keys)


def _continue_numbers() -> None:
    """Let PostgreSQL number new rows after the loaded ones."""
    models = [present_apps.get_model(label) for label in saved_labels()]
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
        there = [model for model in models if model._meta.db_table in tables]
        for statement in connection.ops.sequence_reset_sql(no_style(), there):
            cursor.execute(statement)


def _lines(stream: IO[bytes]) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(stream, "rt", encoding="utf-8") as lines:
            for line in lines:
                yield json.loads(line)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise RestoreError(f"the backup cannot be read: {error}") from error
