"""An installation on PostgreSQL, as the README offers it, with two workers of the mirror."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
import requests

from tests.integration.postgres import postgres_or_skip
from tests.integration.stack import Stack, running_stack, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]

POD = """
apiVersion: v1
kind: Pod
metadata: {name: on-postgres, labels: {kai.scheduler/queue: default-queue}}
spec:
  schedulerName: kai-scheduler
  containers: [{name: main, image: busybox, resources: {limits: {nvidia.com/gpu: "1"}}}]
"""


def test_everything_starts_on_postgresql_and_rest_answers_from_it(tmp_path: Path) -> None:
    with (
        postgres_or_skip() as url,
        running_stack(
            tmp_path / "home", {"DATABASE_URL": url, "KAIWEB_MIRROR_WORKERS": "2"}
        ) as stack,
        requests.Session() as session,
    ):
        assert {"mirror", "mirror-1"} <= stack.pids().keys()
        ready = session.get(f"{stack.url}/readyz", timeout=10)
        checks = ready.json()["checks"]
        assert (ready.status_code, checks["database"], checks["mirror"]) == (200, "ok", "ok")
        log_in(session, stack)
        stack.kubectl("apply", "-f", "-", stdin=POD)
        workload = wait_until(
            lambda: running_workload(session, stack), what="the workload in REST", stack=stack
        )
        assert workload["queue"] == "default-queue"
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT username FROM auth_user").fetchall() == [("admin",)]
        assert not (stack.home / "kaiweb.sqlite3").exists()
        check_that_the_audit_log_is_kept(url)


def check_that_the_audit_log_is_kept(url: str) -> None:
    """The database refuses edits of completed entries (in queues_quotachange), whichever program asks for them."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO queues_quotachange (kind, queue, target, action, state, actor, at, diff, reason, request_id,"
            " version_before, version_after, generation_before, uid)"
            " VALUES ('queue', 'q', '', 'update', 'done', 'ada', now(), '[]', '', '', '', '', 0, '')"
        )
        for statement in (
            "UPDATE queues_quotachange SET actor = 'eve'",
            "DELETE FROM queues_quotachange",
            "TRUNCATE queues_quotachange",
        ):
            with pytest.raises(psycopg.IntegrityError, match="audit entries cannot be edited"):
                connection.execute(statement)


def log_in(session: requests.Session, stack: Stack) -> None:
    page = session.get(f"{stack.url}/login", timeout=10)
    token = page.cookies["csrftoken"]
    form = {"username": "admin", "password": stack.password}
    headers = {"X-CSRFToken": token, "Referer": page.url}
    response = session.post(page.url, data=form, headers=headers, timeout=10)
    assert response.status_code == 200, response.text


def running_workload(session: requests.Session, stack: Stack) -> dict[str, object] | None:
    answer = session.get(f"{stack.url}/api/v1/workloads", timeout=10)
    assert answer.status_code == 200, answer.text
    items = [item for item in answer.json()["items"] if item["state"] == "running"]
    return items[0] if items else None
