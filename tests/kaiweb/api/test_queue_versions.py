"""The version of a queue is that of what people edit: status writes never make an edit stale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from kaiweb.items.queues import queue_items
from kube.errors import ConflictError
from kube.resources import QUEUES
from queues.models import Queue
from tests.fakes.gateway import FakeGateway

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]
URL = "/api/v1/queues"
PHYSICS = f"{URL}/physics"


def write_status(cluster: FakeGateway, name: str, requested: int) -> None:
    cluster.patch(QUEUES, name, {"status": {"requested": {"cpu": str(requested)}}}, sub="status")


def send(client: APIClient, method: str, edit: Any, tag: str, query: str = "") -> Any:
    call = getattr(client, method)
    return call(f"{PHYSICS}{query}", edit, format="json", headers={"If-Match": tag})


def test_a_busy_queue_is_edited_forty_times_in_a_row(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    for number in range(40):
        tag = client.get(PHYSICS)["ETag"]
        write_status(cluster, "physics", number + 1)
        assert send(client, "patch", {"priority": number}, tag).status_code == 200
        sync()
    assert cluster.raw(QUEUES, "physics")["spec"]["priority"] == 39


def test_of_two_editors_of_a_field_the_second_sees_what_the_first_did(
    client: APIClient, cluster: FakeGateway
) -> None:
    tag = client.get(PHYSICS)["ETag"]
    assert send(client, "patch", {"quota": {"gpu": 10}}, tag).status_code == 200
    write_status(cluster, "physics", 7)
    refused = send(client, "patch", {"quota": {"gpu": 11}}, tag)
    assert (refused.status_code, refused.json()["current"]["quota"]["gpu"]) == (412, 10)
    again = send(client, "patch", {"quota": {"gpu": 11}}, refused["ETag"])
    assert (again.status_code, again.json()["queue"]["quota"]["gpu"]) == (200, 11)


@pytest.mark.parametrize(
    "change",
    [{"spec": {"displayName": "P"}}, {"metadata": {"labels": {"team": "x"}}},
     {"spec": {"resources": {"cpu": {"quota": 5}}}}],
)  # fmt: skip
def test_an_edit_by_somebody_else_makes_the_version_stale(
    client: APIClient, cluster: FakeGateway, change: dict[str, Any]
) -> None:
    tag = client.get(PHYSICS)["ETag"]
    cluster.patch(QUEUES, "physics", change)
    for method in ("patch", "put", "delete"):
        assert send(client, method, {"priority": 3}, tag).status_code == 412


def test_an_edit_that_comes_between_read_and_patch_is_not_overwritten(
    client: APIClient, cluster: FakeGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = client.get(PHYSICS)["ETag"]
    real = FakeGateway.patch

    def late(self: FakeGateway, *args: Any, **options: Any) -> Any:
        monkeypatch.setattr(FakeGateway, "patch", real)
        real(self, QUEUES, "physics", {"spec": {"priority": 50}})
        return real(self, *args, **options)

    monkeypatch.setattr(FakeGateway, "patch", late)
    assert send(client, "patch", {"priority": 3}, tag).status_code == 412
    assert cluster.raw(QUEUES, "physics")["spec"]["priority"] == 50


def test_the_etag_of_a_creation_outlives_status_writes(
    client: APIClient, cluster: FakeGateway
) -> None:
    created = client.post(URL, {"name": "chem", "parent": "science"}, format="json")
    for number in range(5):
        write_status(cluster, "chem", number + 1)
    gone = client.delete(f"{URL}/chem", headers={"If-Match": created["ETag"]})
    assert (created.status_code, gone.status_code) == (201, 204)


def test_a_queue_made_anew_under_the_same_name_is_another_version(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    tag = client.get(PHYSICS)["ETag"]
    body = cluster.raw(QUEUES, "physics")
    cluster.delete(QUEUES, "physics")
    cluster.create(QUEUES, body)
    assert send(client, "patch", {"priority": 3}, tag).status_code == 412


def test_rest_writes_and_live_rows_carry_the_same_version(
    client: APIClient, cluster: FakeGateway, sync: Callable[[], None]
) -> None:
    response = send(client, "patch", {"priority": 3}, client.get(PHYSICS)["ETag"])
    write_status(cluster, "physics", 9)
    sync()
    (row,) = queue_items(["physics"])
    read = client.get(PHYSICS)
    assert row["etag"] == response["ETag"] == read.json()["etag"]
    assert read["ETag"].startswith(f"{row['etag'][:-1]}.")
    assert response["ETag"].startswith('"2-')


def test_a_read_of_a_queue_is_unchanged_until_its_use_changes(client: APIClient) -> None:
    tag = client.get(PHYSICS)["ETag"]
    again = client.get(PHYSICS, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
    Queue.objects.filter(name="physics").update(allocated_gpu=3)
    changed = client.get(PHYSICS, headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["allocated"]["gpu"]) == (200, 3)
    assert send(client, "patch", {"priority": 4}, tag).status_code == 200


def test_an_apply_needs_no_version_and_checks_one_that_is_sent(
    client: APIClient, cluster: FakeGateway
) -> None:
    tag = client.get(PHYSICS)["ETag"]
    query = "?fieldManager=ci"
    free = client.put(f"{PHYSICS}{query}", {"priority": 5}, format="json")
    assert (free.status_code, free.json()["changed"]) == (200, True)
    again = client.put(f"{PHYSICS}{query}", {"priority": 5}, format="json")
    assert (again.status_code, again.json()["changed"]) == (200, False)
    assert send(client, "put", {"priority": 6}, tag, query).status_code == 412
    assert send(client, "put", {"priority": 6}, again["ETag"], query).status_code == 200


def test_a_forced_apply_that_lost_a_race_is_tried_again_and_not_called_field_owned(
    client: APIClient, cluster: FakeGateway
) -> None:
    stale = ConflictError("the object has been modified", status=409, reason="Conflict")
    cluster.fail_next("patch", "queues", stale)
    query = "?fieldManager=ci&force=true"
    answer = client.put(f"{PHYSICS}{query}", {"priority": 5}, format="json")
    assert (answer.status_code, answer.json()["queue"]["priority"]) == (200, 5)


def test_a_field_of_another_manager_is_field_owned(client: APIClient, cluster: FakeGateway) -> None:
    owned = ConflictError(
        'Apply failed with 1 conflict: conflict with "argo": .spec.priority', status=409
    )
    cluster.fail_next("patch", "queues", owned)
    answer = client.put(f"{PHYSICS}?fieldManager=ci", {"priority": 5}, format="json")
    assert answer.status_code == 409
    assert answer.json()["type"].endswith("/field-owned")
