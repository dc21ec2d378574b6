"""What is saved is loaded as it was, into an empty database and from older versions."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connections

from kaiweb.backup.content import LEFT_OUT, saved_labels
from kaiweb.backup.restore import RestoreError, restore
from kaiweb.backup.save import save
from kaiweb.models import ChangeSet, ChangeStep
from queues.models import ApiToken, Queue, QuotaChange, RoleBinding
from tests.kaiweb.test_migrations import FIRST_VERSION

# A backup reads as of one moment in a transaction of its own; PostgreSQL refuses that within the one of a test.
pytestmark = pytest.mark.django_db(transaction=True)

AT = datetime(2026, 5, 1, 8, 30, 15, 123456, tzinfo=UTC)


@contextmanager
def empty_database(folder: Path) -> Iterator[None]:
    """Replace the database of the tests with one of the same kind without tables."""
    current = connections["default"]
    empty = current.copy()
    with ExitStack() as stack:
        if current.vendor == "postgresql":
            name = f"{current.settings_dict['NAME']}_empty"
            cursor = stack.enter_context(current._nodb_cursor())
            cursor.execute(f"CREATE DATABASE {name}")
            stack.callback(cursor.execute, f"DROP DATABASE {name}")
        else:
            name = str(folder / "other.sqlite3")
        empty.settings_dict["NAME"] = name
        stack.callback(empty.close)
        connections["default"] = empty
        try:
            yield
        finally:
            connections["default"] = current


def fill() -> None:
    ada = User.objects.create_superuser("ada", password="a password of Ada")
    bob = User.objects.create_user("bob", password="a password of Bob")
    bob.groups.add(Group.objects.create(name="ops"))
    RoleBinding.objects.create(user=bob, role="editor", subtree="research")
    ApiToken.objects.create(
        name="ci", user=bob, prefix="kai_abc", digest="d" * 64, scopes=["read"], created_at=AT
    )
    QuotaChange.objects.create(
        queue="vision", action="update", actor="ada", at=AT, diff=[{"field": "gpu", "after": 4}]
    )
    first = ChangeSet.objects.create(author=ada, title="grow", created_at=AT, changed_at=AT)
    ChangeSet.objects.create(author=ada, title="back", created_at=AT, changed_at=AT, reverts=first)


def saved_rows() -> dict[str, list[dict[str, Any]]]:
    """Return every saved row with all its columns."""
    return {
        label: list(apps.get_model(label)._default_manager.order_by("pk").values())
        for label in saved_labels()
    }


def backup() -> io.BytesIO:
    stream = io.BytesIO()
    save(stream)
    stream.seek(0)
    return stream


def lines_of(stream: io.BytesIO) -> list[dict[str, Any]]:
    stream.seek(0)
    return [json.loads(line) for line in gzip.decompress(stream.read()).splitlines()]


def packed(lines: list[dict[str, Any]]) -> io.BytesIO:
    return io.BytesIO(gzip.compress("".join(json.dumps(x) + "\n" for x in lines).encode()))


def test_every_saved_row_is_restored_with_all_its_columns(tmp_path: Path) -> None:
    fill()
    before = saved_rows()
    stream = backup()
    with empty_database(tmp_path):
        assert restore(stream) == sum(len(rows) for rows in before.values())
        assert saved_rows() == before
        assert [group.name for group in User.objects.get(username="bob").groups.all()] == ["ops"]
        # Numbers go on after the restored ones.
        assert User.objects.create_user("eve").pk > User.objects.get(username="bob").pk


def test_copies_of_the_cluster_and_log_ins_are_left_out() -> None:
    Queue.objects.create(name="q", uid="u", version=1, created_at=AT)
    stream = backup()
    models = {line["model"] for line in lines_of(stream) if "model" in line}
    assert not models & {"queues.queue", "sessions.session"}


def test_every_model_is_saved_or_left_out_on_purpose() -> None:
    labels = {model._meta.label_lower for model in apps.get_models()}
    for app, names in LEFT_OUT.items():
        for name in names or ():
            assert f"{app}.{name}" in labels
    assert {"auth.user", "queues.quotachange", "queues.apitoken", "kaiweb.changeset"} <= set(
        saved_labels()
    )


def test_a_row_comes_after_those_that_it_refers_to() -> None:
    labels = saved_labels()
    assert labels.index("auth.user") < labels.index("queues.apitoken")
    assert labels.index("kaiweb.changeset") < labels.index(ChangeStep._meta.label_lower)


def test_a_backup_of_the_first_version_is_read_and_migrated(tmp_path: Path) -> None:
    header = {
        "format": "kaiweb-backup",
        "formatVersion": 1,
        "version": "0.0.1",
        "migrations": {
            "auth": "0012_alter_user_first_name_max_length",
            "queues": FIRST_VERSION[0][1],
        },
    }
    user = {
        "model": "auth.user",
        "pk": 7,
        "fields": {
            "username": "ada", "password": "x", "is_superuser": True, "date_joined": AT.isoformat(),
            "groups": [], "user_permissions": [],
        },
    }  # fmt: skip
    change = {
        "model": "queues.quotachange",
        "pk": 3,
        "fields": {"queue": "vision", "action": "update", "actor": "ada", "at": AT.isoformat()},
    }
    with empty_database(tmp_path):
        assert restore(packed([header, user, change, {"rows": 2}])) == 2
        assert User.objects.get(pk=7).username == "ada"
        edit = QuotaChange.objects.get(pk=3)
        assert (edit.queue, edit.at, edit.kind) == ("vision", AT, "queue")


def test_a_database_with_rows_is_refused_unless_they_are_to_be_replaced() -> None:
    fill()
    stream = backup()
    before = saved_rows()
    with pytest.raises(RestoreError, match=r"has rows already .*auth\.user.*--replace"):
        restore(stream)
    User.objects.create_user("made since")
    stream.seek(0)
    restore(stream, replaces=True)
    assert saved_rows() == before


def test_another_version_is_restored_into_an_empty_database_only() -> None:
    lines = lines_of(backup())
    lines[0]["migrations"]["queues"] = "0003_standings"
    with pytest.raises(RestoreError, match=r"has migration queues 0003_standings, the database"):
        restore(packed(lines))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda header: {"format": "other"}, "expected a file written by"),
        (lambda header: {**header, "formatVersion": 2}, "by a newer kaiweb"),
        (
            lambda header: {**header, "migrations": {"queues": "9999_future"}},
            r"by a newer kaiweb: .*9999_future",
        ),
    ],
)
def test_a_file_that_we_cannot_read_changes_nothing(tmp_path: Path, change: Any, text: str) -> None:
    header, *rest = lines_of(backup())
    with empty_database(tmp_path):
        with pytest.raises(RestoreError, match=text):
            restore(packed([change(header), *rest]))
        assert connections["default"].introspection.table_names() == []


@pytest.mark.parametrize("lost", [1, -1])
def test_a_backup_that_is_cut_off_loads_nothing(lost: int) -> None:
    fill()
    before = saved_rows()
    lines = lines_of(backup())
    del lines[lost]
    with pytest.raises(RestoreError, match="is cut off: expected"):
        restore(packed(lines), replaces=True)
    assert saved_rows() == before


def test_a_file_that_is_no_backup_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RestoreError, match="cannot be read"):
        restore(io.BytesIO(b"something else"))


def test_the_command_writes_a_private_file_and_never_over_another(tmp_path: Path) -> None:
    fill()
    file = tmp_path / "kaiweb.backup"
    out = io.StringIO()
    call_command("backup", str(file), stdout=out)
    assert out.getvalue().startswith("saved ")
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="expected a new file"):
        call_command("backup", str(file))
    assert [path.name for path in tmp_path.iterdir()] == ["kaiweb.backup"]
    call_command("restore", str(file), "--replace", stdout=out)
    assert "restored " in out.getvalue()


def test_the_command_names_a_missing_file() -> None:
    with pytest.raises(CommandError, match="nowhere"):
        call_command("restore", "/nowhere/kaiweb.backup")
