"""The database refuses edits of the audit log, whoever makes them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from queues.editing import audit_guard
from queues.models import AuditAction, ChangeState, QuotaChange

pytestmark = pytest.mark.django_db

AT = datetime(2026, 1, 1, tzinfo=UTC)


def entry(state: ChangeState) -> QuotaChange:
    return QuotaChange.objects.create(
        queue="q", action=AuditAction.UPDATE, state=state, actor="ada", at=AT, reason="start"
    )


@pytest.mark.parametrize("state", [ChangeState.DONE, ChangeState.FAILED, ChangeState.UNCLEAR])
@pytest.mark.parametrize(
    "values", [{"actor": "eve"}, {"reason": ""}, {"diff": [1]}, {"state": ChangeState.INTENDED}]
)
def test_a_completed_entry_cannot_be_changed(state: ChangeState, values: dict[str, Any]) -> None:
    row = entry(state)
    with (
        pytest.raises(IntegrityError, match="audit entries cannot be edited"),
        transaction.atomic(),
    ):
        QuotaChange.objects.filter(pk=row.pk).update(**values)
    assert QuotaChange.objects.get(pk=row.pk).actor == "ada"


def test_a_completed_entry_cannot_be_deleted_by_plain_sql() -> None:
    entry(ChangeState.DONE)
    with (
        pytest.raises(IntegrityError, match="audit entries cannot be edited"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("DELETE FROM queues_quotachange")
    assert QuotaChange.objects.count() == 1


@pytest.mark.skipif(connection.vendor != "sqlite", reason="REPLACE INTO is of SQLite")
def test_a_completed_entry_cannot_be_replaced() -> None:
    row = entry(ChangeState.DONE)
    with (
        pytest.raises(IntegrityError, match="audit entries cannot be edited"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(
            "REPLACE INTO queues_quotachange SELECT * FROM queues_quotachange WHERE id = %s",
            [row.pk],
        )
    assert QuotaChange.objects.get(pk=row.pk).actor == "ada"


@pytest.mark.parametrize("values", [{"actor": "eve"}, {"at": datetime(2020, 1, 1, tzinfo=UTC)}])
def test_an_announced_entry_keeps_what_was_announced(values: dict[str, Any]) -> None:
    row = entry(ChangeState.INTENDED)
    with pytest.raises(IntegrityError), transaction.atomic():
        QuotaChange.objects.filter(pk=row.pk).update(**values)


def test_an_announced_entry_is_completed_once() -> None:
    row = entry(ChangeState.INTENDED)
    rows = QuotaChange.objects.filter(pk=row.pk)
    assert rows.update(state=ChangeState.DONE, diff=[{"pointer": "/x"}], version_after="7") == 1
    with pytest.raises(IntegrityError), transaction.atomic():
        rows.update(state=ChangeState.FAILED)


def test_a_change_that_was_not_made_leaves_no_entry() -> None:
    row = entry(ChangeState.INTENDED)
    assert QuotaChange.objects.filter(pk=row.pk).delete()[0] == 1


def test_the_guard_is_there_again_after_it_was_lifted() -> None:
    entry(ChangeState.DONE)
    with audit_guard.lifted(connection):
        assert QuotaChange.objects.all().delete()[0] == 1
    row = entry(ChangeState.DONE)
    with pytest.raises(IntegrityError), transaction.atomic():
        row.delete()
