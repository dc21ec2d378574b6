"""Writes while the database or the cluster fails: done is answered as done, and nothing is done unseen."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.db.models import QuerySet
from django.utils import timezone
from rest_framework.test import APIClient

from kube.errors import ConflictError, ForbiddenError, ServerError, TooManyRequestsError
from kube.resources import QUEUES
from queues.editing import audit
from queues.editing.tags import tag_of_body
from queues.models import QuotaChange
from tests.fakes.gateway import FakeGateway

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("sync")]
URL = "/api/v1/queues"
LATER = timedelta(seconds=20)
MUCH_LATER = timedelta(minutes=3)


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaiweb.api.database_wait.WAIT_S", 0.05)


@contextmanager
def locked() -> Iterator[None]:
    """Hold SQLite's write lock from another connection, as a backup or a stuck process does."""
    if connection.vendor != "sqlite":
        pytest.skip("locks the file of SQLite")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


def patch(client: APIClient, cluster: FakeGateway, edit: Any) -> Any:
    tag = f'"{tag_of_body(cluster.raw(QUEUES, "physics"))}"'
    return client.patch(f"{URL}/physics", edit, format="json", headers={"If-Match": tag})


def states() -> list[tuple[str, str]]:
    return list(QuotaChange.objects.order_by("id").values_list("action", "state"))


def settled(cluster: FakeGateway, after: timedelta) -> list[tuple[str, str]]:
    audit.settle(cluster, timezone.now() + after)
    return states()


def fail_completion(monkeypatch: pytest.MonkeyPatch) -> None:
    def update(self: QuerySet[Any], **values: Any) -> int:
        raise OperationalError("database or disk is full")

    monkeypatch.setattr(QuerySet, "update", update)


def test_a_locked_database_refuses_the_edit_with_a_clear_error(
    client: APIClient, cluster: FakeGateway
) -> None:
    before = cluster.raw(QUEUES, "physics")
    started = time.monotonic()
    with locked():
        response = patch(client, cluster, {"priority": 3})
        created = client.post(URL, {"name": "new"}, format="json")
    assert (response.status_code, created.status_code) == (503, 503)
    assert response.json()["type"].endswith("/unavailable")
    assert response["Retry-After"] == "2"
    assert cluster.raw(QUEUES, "physics") == before
    assert "new" not in cluster.names(QUEUES)
    assert not QuotaChange.objects.exists()
    assert time.monotonic() - started < 5


def test_reading_goes_on_while_the_database_takes_no_writes(client: APIClient) -> None:
    with locked():
        assert client.get(f"{URL}/physics").status_code == 200


def test_what_was_done_before_the_lock_is_answered_as_done_and_completed_later(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, lock = FakeGateway.patch, locked()

    def and_lock(self: FakeGateway, *args: Any, **options: Any) -> Any:
        answer = real(self, *args, **options)
        lock.__enter__()
        return answer

    monkeypatch.setattr(FakeGateway, "patch", and_lock)
    try:
        response = patch(client, cluster, {"priority": 3})
    finally:
        lock.__exit__(None, None, None)
    assert response.status_code == 200
    assert [warning["code"] for warning in response.json()["warnings"]][-1] == "audit-pending"
    assert response["Warning"].startswith("199 kaiweb")
    assert cluster.raw(QUEUES, "physics")["spec"]["priority"] == 3
    assert states() == [("update", "intended")]
    assert settled(cluster, LATER) == [("update", "done")]
    assert settled(cluster, MUCH_LATER) == [("update", "done")]


def test_a_full_disk_after_a_creation_and_a_deletion_is_no_500(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        fail_completion(full)
        created = client.post(URL, {"name": "new"}, format="json")
        gone = client.delete(f"{URL}/new", headers={"If-Match": created["ETag"]})
    assert (created.status_code, gone.status_code) == (201, 204)
    assert gone["Warning"].startswith("199 kaiweb")
    assert states() == [("create", "intended"), ("delete", "intended")]
    # The creation is no longer to be seen, which its deletion explains.
    assert settled(cluster, MUCH_LATER)[1] == ("delete", "done")


def test_a_complete_write_is_done_at_once(client: APIClient, cluster: FakeGateway) -> None:
    assert patch(client, cluster, {"priority": 3}).status_code == 200
    change = QuotaChange.objects.get()
    version = cluster.raw(QUEUES, "physics")["metadata"]["resourceVersion"]
    assert (change.state, change.version_after) == ("done", version)


@pytest.mark.parametrize(
    "error",
    [ForbiddenError("no", status=403), ConflictError("modified", status=409)],
)
def test_a_write_that_the_cluster_refused_leaves_no_entry(
    client: APIClient, cluster: FakeGateway, error: Any
) -> None:
    for _ in range(8):
        cluster.fail_next("patch", "queues", error)
    assert patch(client, cluster, {"priority": 3}).status_code in (403, 503)
    assert states() == []


def test_an_answer_that_never_came_is_looked_up_in_the_cluster(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.fail_next("patch", "queues", ServerError("timed out"))
    assert patch(client, cluster, {"priority": 3}).status_code == 503
    assert states() == [("update", "intended")]
    assert settled(cluster, LATER) == [("update", "intended")]
    assert settled(cluster, MUCH_LATER) == [("update", "failed")]

    real = FakeGateway.patch

    def lose_answer(self: FakeGateway, *args: Any, **options: Any) -> Any:
        real(self, *args, **options)
        raise ServerError("connection reset")

    monkeypatch.setattr(FakeGateway, "patch", lose_answer)
    assert patch(client, cluster, {"priority": 4}).status_code == 503
    assert settled(cluster, LATER)[1] == ("update", "done")


def test_when_others_wrote_since_it_is_not_guessed(client: APIClient, cluster: FakeGateway) -> None:
    cluster.fail_next("patch", "queues", ServerError("timed out"))
    patch(client, cluster, {"priority": 3})
    cluster.patch(QUEUES, "physics", {"spec": {"priority": 9}})
    assert settled(cluster, MUCH_LATER) == [("update", "unclear")]


def test_a_request_still_at_work_is_left_alone(client: APIClient, cluster: FakeGateway) -> None:
    cluster.fail_next("delete", "queues", ServerError("timed out"))
    tag = f'"{tag_of_body(cluster.raw(QUEUES, "physics"))}"'
    assert client.delete(f"{URL}/physics", headers={"If-Match": tag}).status_code == 503
    assert settled(cluster, timedelta(seconds=5)) == [("delete", "intended")]
    assert settled(cluster, MUCH_LATER) == [("delete", "failed")]


def test_a_move_after_which_the_tree_could_not_be_seen_is_answered_as_done(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = FakeGateway.patch

    def then_slow_down(self: FakeGateway, *args: Any, **options: Any) -> Any:
        answer = real(self, *args, **options)
        cluster.fail_next("list", "queues", TooManyRequestsError("slow down"))
        return answer

    monkeypatch.setattr(FakeGateway, "patch", then_slow_down)
    response = patch(client, cluster, {"parent": "product"})
    assert response.status_code == 200
    assert "tree-unverified" in [warning["code"] for warning in response.json()["warnings"]]
    assert states() == [("update", "done")]
