"""A database of an earlier version opens after `migrate`, with its rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper as SQLite
from django.db.migrations.executor import MigrationExecutor

from queues.models import ApiToken, Queue, QuotaChange
from scheduler.models import SessionRecord

#: The last migrations of the first published version.
FIRST_VERSION = [("queues", "0003_standings"), ("scheduler", "0002_standings")]
AT = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def old_database(tmp_path: Path, django_db_blocker: Any) -> Iterator[MigrationExecutor]:
    """An SQLite file with the tables of the first version and no rows, in place of the tests' database."""
    current = connections["default"]
    old = SQLite({**current.settings_dict, "NAME": str(tmp_path / "old.sqlite3")})
    connections["default"] = old
    try:
        with django_db_blocker.unblock():
            executor = MigrationExecutor(old)
            executor.migrate(FIRST_VERSION)
            yield executor
            old.close()
    finally:
        connections["default"] = current


def test_rows_of_the_first_version_are_read_after_migrating(
    old_database: MigrationExecutor,
) -> None:
    apps = old_database.loader.project_state(FIRST_VERSION).apps
    apps.get_model("scheduler", "Cycle").objects.create(
        shard="default", number=7, started_at=AT, duration_ms=1.5, bound=3, actions=[{"ms": 1}]
    )
    apps.get_model("queues", "Queue").objects.create(
        name="q", uid="u", version=1, created_at=AT, firm_gpu=2, firm_cpu=500, firm_memory=1024
    )
    user = apps.get_model("auth", "User").objects.create(username="ada", password="hash")
    apps.get_model("queues", "ApiToken").objects.create(
        name="ci", user=user, prefix="kai_abc", digest="d" * 64, created_at=AT
    )
    apps.get_model("queues", "QuotaChange").objects.create(
        queue="q", action="update", actor="ada", at=AT, reason="project start"
    )
    newer = MigrationExecutor(connections["default"])
    newer.migrate(newer.loader.graph.leaf_nodes())
    again = MigrationExecutor(connections["default"])
    assert again.migration_plan(again.loader.graph.leaf_nodes()) == []
    assert ApiToken.objects.get(digest="d" * 64).user.username == "ada"
    edit = QuotaChange.objects.get(queue="q")
    assert (edit.actor, edit.at, edit.reason, edit.kind) == ("ada", AT, "project start", "queue")
    session = SessionRecord.objects.get(number=7)
    queue = Queue.objects.get(name="q")
    assert (session.shard, session.bound, session.actions) == ("default", 3, [{"ms": 1}])
    assert session.started_at == AT
    assert (queue.non_preemptible_gpu, queue.non_preemptible_cpu, queue.non_preemptible_memory) == (
        2,
        500,
        1024,
    )
