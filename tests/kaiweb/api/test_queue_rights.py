"""What editors, viewers and tokens may change of queues."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import token_client
from tests.kaiweb.api.queue_edits import URL, patch, slug

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]


def test_an_editor_changes_what_is_below_and_nothing_else(
    editor: APIClient, cluster: FakeGateway
) -> None:
    assert patch(editor, cluster, "physics", {"quota": {"gpu": 11}}).status_code == 200
    for name, edit in (
        ("science", {"priority": 1}),
        ("product", {"priority": 1}),
        ("physics", {"parent": "product"}),
        ("physics", {"parent": None}),
    ):
        response = patch(editor, cluster, name, edit)
        assert (response.status_code, slug(response)) == (403, "forbidden")
    created = editor.post(URL, {"name": "top"}, format="json")
    assert created.status_code == 403
    assert editor.post(URL, {"name": "sub", "parent": "science"}, format="json").status_code == 201


def test_an_editor_may_not_give_more_than_the_subtree_has(
    editor: APIClient, client: APIClient, cluster: FakeGateway
) -> None:
    response = patch(editor, cluster, "physics", {"quota": {"gpu": 13}})
    assert (response.status_code, slug(response)) == (422, "hierarchy")
    assert response.json()["errors"][0]["code"] == "children-over-parent"
    assert patch(client, cluster, "physics", {"quota": {"gpu": 13}}).status_code == 200


@pytest.mark.parametrize(
    ("edit", "code", "allowed"),
    [
        ({"priority": 101}, "priority-over-parent", 100),
        ({"reclaimMinRuntime": "1s"}, "runtime-over-parent", "0s"),
        ({"preemptMinRuntime": "1h1m"}, "runtime-over-parent", "1h"),
    ],
)
def test_only_an_admin_grants_more_priority_and_runtime_than_the_queues_above_have(
    editor: APIClient,
    client: APIClient,
    cluster: FakeGateway,
    edit: dict[str, Any],
    code: str,
    allowed: object,
) -> None:
    assert patch(client, cluster, "science", {"preemptMinRuntime": "1h"}).status_code == 200
    response = patch(editor, cluster, "physics", edit)
    assert (response.status_code, slug(response)) == (422, "hierarchy")
    (problem,) = response.json()["errors"]
    assert (problem["code"], problem["pointer"]) == (code, f"/{next(iter(edit))}")
    assert problem["allowed"] == allowed
    assert patch(client, cluster, "physics", edit).status_code == 200
    assert patch(editor, cluster, "physics", {**edit, "displayName": "Ph"}).status_code == 200
    within = {"priority": 100, "reclaimMinRuntime": "0s", "preemptMinRuntime": "60m"}
    assert patch(editor, cluster, "physics", within).status_code == 200


def test_a_viewer_and_a_reading_token_change_nothing(
    viewer: APIClient, admin: Any, cluster: FakeGateway
) -> None:
    reading = token_client(admin, ["read"])
    for caller in (viewer, reading):
        assert patch(caller, cluster, "physics", {"priority": 1}).status_code == 403
        assert caller.get(URL).status_code == 200
    assert cluster.calls == []


def test_a_token_for_a_subtree_stays_in_it(admin: Any, cluster: FakeGateway) -> None:
    narrow = token_client(admin, ["admin", "queues:write"], subtree="science")
    assert patch(narrow, cluster, "physics", {"priority": 1}).status_code == 200
    assert patch(narrow, cluster, "product", {"priority": 1}).status_code == 403
