"""Triggers in the database that refuse edits of the audit log, whichever program makes them.

An entry is written `intended` and completed once (`queues.editing.audit`); from then on it can be neither changed nor
deleted. Before that, only its state, its differences and the version written may change. Installed by a migration, and
again after every `migrate`, because SQLite makes tables anew when a column changes, without their triggers.

Whoever owns the tables can drop the triggers, as `kaiweb restore --replace` does; that is then to be seen in the
database, and not done by accident.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "queues_quotachange"
#: What stays as it was written, also while an entry is `intended`.
WRITTEN_ONCE = (
    "id", "kind", "queue", "target", "action", "actor", "at", "reason", "request_id", "version_before",
    "generation_before", "uid",
)  # fmt: skip
TEXT = "audit entries cannot be edited or deleted"

_IS_EDIT = "OLD.state <> 'intended' OR " + " OR ".join(
    f"NEW.{column} IS {{distinct}} OLD.{column}" for column in WRITTEN_ONCE
)
_SQLITE_ABORT = f"BEGIN SELECT RAISE(ABORT, '{TEXT}'); END"
_SQLITE = {
    # REPLACE INTO deletes without asking the trigger for deletions.
    "audit_replace": f"BEFORE INSERT ON {TABLE} WHEN EXISTS (SELECT 1 FROM {TABLE} WHERE id = NEW.id)",
    "audit_update": f"BEFORE UPDATE ON {TABLE} WHEN {_IS_EDIT.format(distinct='NOT')}",
    "audit_delete": f"BEFORE DELETE ON {TABLE} WHEN OLD.state <> 'intended'",
}
_POSTGRES = {
    "audit_update": (
        f"BEFORE UPDATE ON {TABLE} FOR EACH ROW WHEN ({_IS_EDIT.format(distinct='DISTINCT FROM')})"
    ),
    "audit_delete": f"BEFORE DELETE ON {TABLE} FOR EACH ROW WHEN (OLD.state <> 'intended')",
    "audit_truncate": f"BEFORE TRUNCATE ON {TABLE} FOR EACH STATEMENT",
}
_POSTGRES_FUNCTION = f"""
CREATE OR REPLACE FUNCTION kaiweb_refuse_audit_edit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '{TEXT}' USING ERRCODE = 'integrity_constraint_violation';
END $$
"""


def install(connection: BaseDatabaseWrapper) -> None:
    """Create the triggers; those that are there are replaced. Other databases than the two are left alone."""
    remove(connection)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name, when in _SQLITE.items():
                cursor.execute(f"CREATE TRIGGER {name} {when} {_SQLITE_ABORT}")
        elif connection.vendor == "postgresql":
            cursor.execute(_POSTGRES_FUNCTION)
            for name, when in _POSTGRES.items():
                cursor.execute(
                    f"CREATE TRIGGER {name} {when} EXECUTE FUNCTION kaiweb_refuse_audit_edit()"
                )


def remove(connection: BaseDatabaseWrapper) -> None:
    """Drop the triggers."""
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            for name in _SQLITE:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name}")
        elif connection.vendor == "postgresql":
            for name in _POSTGRES:
                cursor.execute(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}")


@contextmanager
def lifted(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """Let entries be deleted in the block, for a restore that replaces all of them."""
    remove(connection)
    try:
        yield
    finally:
        install(connection)


def install_after_migrate(using: str = "default", **_signal: Any) -> None:
    """Install the triggers where the table is, as a receiver of `post_migrate`."""
    connection = connections[using]
    with connection.cursor() as cursor:
        if TABLE not in connection.introspection.table_names(cursor):
            return
        description = connection.introspection.get_table_description(cursor, TABLE)
        columns = {column.name for column in description}
    # An older state of the schema lacks some of the columns.
    if columns >= {*WRITTEN_ONCE, "state"}:
        install(connection)
