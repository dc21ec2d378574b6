"""Conditional GET: who has an answer already gets a 304, and never one for another answer."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.models import ChangeSet
from queues.models import Node, PodGroup

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("mirrored", "renew")]
SINGLE = ["version", "settings", "nodes/n1", "workloads/team/in-physics", "queues/physics/access"]


@pytest.mark.parametrize("path", [*SINGLE, "users", "tokens", "role-bindings", "changes"])
def test_an_answer_that_the_caller_has_is_a_304_without_a_body(admin: User, path: str) -> None:
    browser = APIClient()
    browser.force_login(admin)
    first = browser.get(f"/api/v1/{path}")
    again = browser.get(f"/api/v1/{path}", headers={"If-None-Match": f'"x", {first["ETag"]}'})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    assert (again["ETag"], again["Cache-Control"]) == (first["ETag"], "private, no-cache")
    assert "Authorization" in again["Vary"]


def test_what_changes_without_a_new_version_of_the_object_is_a_new_answer(
    client: APIClient,
) -> None:
    paths = ("/api/v1/nodes/n1", "/api/v1/workloads/team/in-physics")
    tags = [client.get(path)["ETag"] for path in paths]
    Node.objects.update(used_gpu=3)
    PodGroup.objects.update(reason_text="a new text")
    for path, tag in zip(paths, tags, strict=True):
        assert client.get(path, headers={"If-None-Match": tag}).status_code == 200


def test_a_list_of_what_the_live_log_does_not_hold_has_the_tag_of_its_content(
    client: APIClient, admin: User
) -> None:
    now = timezone.now()
    change = ChangeSet.objects.create(author=admin, title="t", created_at=now, changed_at=now)
    tag = client.get("/api/v1/changes")["ETag"]
    assert client.get("/api/v1/changes", headers={"If-None-Match": tag}).status_code == 304
    ChangeSet.objects.filter(pk=change.pk).update(state="applied")
    changed = client.get("/api/v1/changes", headers={"If-None-Match": tag})
    assert (changed.status_code, changed.json()["items"][0]["state"]) == (200, "applied")


def test_a_csrf_token_and_a_refusal_are_not_kept(admin: User) -> None:
    browser = APIClient()
    browser.force_login(admin)
    for path in ("me", "queues/none"):
        answer = browser.get(f"/api/v1/{path}")
        assert ("ETag" in answer, answer["Cache-Control"]) == (False, "no-store")


def test_the_openapi_document_names_the_condition_and_its_answer(client: APIClient) -> None:
    paths = client.get("/api/v1/openapi.json").json()["paths"]
    for path in ("/api/v1/queues/{name}", "/api/v1/nodes/{name}", "/api/v1/workloads"):
        get = paths[path]["get"]
        assert "If-None-Match" in {parameter["name"] for parameter in get["parameters"]}
        assert {"200", "304", "default"} == set(get["responses"])
        assert "ETag" in get["responses"]["200"]["headers"]
    assert "304" not in paths["/api/v1/me"]["get"]["responses"]
