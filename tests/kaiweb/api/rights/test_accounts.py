"""Users and role bindings over REST: written by admins, audited, and an admin always remains."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from queues.access import tokens
from queues.models import ApiToken, QuotaChange, Role, RoleBinding
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import token_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]
USERS, BINDINGS = "/api/v1/users", "/api/v1/role-bindings"


@pytest.fixture
def browser(admin: User) -> APIClient:
    """The admin, logged in."""
    client = APIClient()
    client.force_login(admin)
    return client


def post(client: APIClient, path: str, **body: Any) -> Any:
    return client.post(path, body, format="json")


def test_a_new_user_may_log_in_and_read_and_is_in_the_audit_log(browser: APIClient) -> None:
    password = "correct horse battery"
    created = post(browser, f"{USERS}?reason=joins", username="emmy", displayName="Emmy Noether", password=password)  # fmt: skip
    assert (created.status_code, created["Location"]) == (201, "/api/v1/users/emmy")
    assert created.json()["displayName"] == "Emmy Noether"
    assert created.json()["roles"] == []
    assert APIClient().login(username="emmy", password=password)
    entry = browser.get("/api/v1/audit?kind=user").json()["items"][0]
    assert (entry["target"], entry["action"], entry["actor"], entry["reason"]) == (
        "emmy", "create", "ada", "joins",
    )  # fmt: skip
    assert password not in str(list(QuotaChange.objects.values()))


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"username": ""}, 422),
        ({"username": "a b"}, 422),
        ({"username": "x", "isAdmin": True}, 422),
        ({"username": "x", "password": "short"}, 422),
        ({"username": "x", "displayName": "a\u0000"}, 422),
        ({"username": "x", "isActive": False}, 422),
        ({"username": "ada"}, 409),
    ],
)
def test_a_user_that_cannot_be_is_refused(
    browser: APIClient, body: dict[str, Any], status: int
) -> None:
    assert post(browser, USERS, **body).status_code == status
    assert User.objects.count() == 1


def test_a_locked_user_loses_session_and_tokens(browser: APIClient) -> None:
    emmy = User.objects.create_user("emmy", password="a-long-password")
    theirs = APIClient()
    theirs.force_login(emmy)
    script = token_client(emmy, ["read"])
    assert (theirs.get("/api/v1/me").status_code, script.get("/api/v1/me").status_code) == (200, 200)  # fmt: skip
    locked = browser.patch(f"{USERS}/emmy", {"isActive": False}, format="json")
    assert (locked.status_code, locked.json()["isActive"]) == (200, False)
    assert (theirs.get("/api/v1/me").status_code, script.get("/api/v1/me").status_code) == (401, 401)  # fmt: skip


def test_the_last_admin_stays(browser: APIClient, admin: User) -> None:
    refused = browser.patch(f"{USERS}/ada", {"isActive": False}, format="json")
    assert refused.status_code == 409
    admin.refresh_from_db()
    assert admin.is_active
    other = User.objects.create_user("grace")
    binding = post(browser, BINDINGS, username="grace", role="admin").json()["id"]
    assert browser.patch(f"{USERS}/ada", {"isActive": False}, format="json").status_code == 200
    second = APIClient()
    second.force_login(other)
    assert second.delete(f"{BINDINGS}/{binding}").status_code == 409
    assert RoleBinding.objects.filter(pk=binding).exists()


def test_a_binding_gives_its_rights_at_once_and_takes_them_again(
    browser: APIClient, viewer: APIClient
) -> None:
    emmy = User.objects.create_user("emmy")
    script = token_client(emmy, ["read", "queues:write"])
    queue = {"name": "chem", "parent": "science"}
    assert post(script, "/api/v1/queues?dryRun=true", **queue).status_code == 403
    created = post(browser, BINDINGS, username="emmy", role="editor", subtree="science")
    assert created.status_code == 201
    assert post(script, "/api/v1/queues?dryRun=true", **queue).status_code == 201
    assert browser.get(f"{BINDINGS}?username=emmy,other").json()["items"] == [created.json()]
    assert browser.delete(f"{BINDINGS}/{created.json()['id']}").status_code == 204
    assert post(script, "/api/v1/queues?dryRun=true", **queue).status_code == 403
    actions = [row["action"] for row in browser.get("/api/v1/audit?kind=roleBinding").json()["items"]]  # fmt: skip
    assert actions == ["delete", "create"]


def test_a_forced_apply_needs_an_admin_and_the_scope_for_it(
    admin: User, cluster: FakeGateway
) -> None:
    address = "/api/v1/queues/physics?fieldManager=ci&force=true"
    emmy = User.objects.create_user("emmy")
    RoleBinding.objects.create(user=emmy, role=Role.EDITOR, subtree="science")
    scopes = ["queues:write", "apply:force"]
    callers = {
        "editor": token_client(emmy, scopes),
        "no scope": token_client(admin, ["queues:write"]),
        "no right to edit": token_client(admin, ["apply:force"]),
        "both": token_client(admin, scopes),
    }
    statuses = {
        name: caller.put(address, {"priority": 5}, format="json").status_code
        for name, caller in callers.items()
    }
    assert statuses == {"editor": 403, "no scope": 403, "no right to edit": 403, "both": 200}


def test_a_dry_run_shows_no_secret_and_no_number(browser: APIClient) -> None:
    token = browser.post("/api/v1/tokens?dryRun=true", {"name": "ci"}, format="json")
    assert (token.status_code, token.json()["token"], token.json()["id"]) == (201, "", 0)
    assert not ApiToken.objects.exists()
    body = {"username": "ada", "role": "viewer"}
    key = {"Idempotency-Key": "k1"}
    binding = browser.post(f"{BINDINGS}?dryRun=true", body, format="json", headers=key)
    assert (binding.status_code, binding.json()["id"]) == (201, 0)
    made = browser.post(BINDINGS, body, format="json", headers=key)
    assert (made.status_code, made.headers.get("Idempotent-Replayed")) == (201, None)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"username": "ada", "role": "owner"}, 422),
        ({"username": "nobody", "role": "viewer"}, 422),
        ({"username": "ada", "role": "editor", "subtree": "none"}, 422),
        ({"username": "ada", "role": "editor", "subtree": "a\u0000"}, 422),
        ({"username": "ada", "role": "admin", "subtree": "science"}, 422),
    ],
)
def test_a_binding_that_cannot_be_is_refused(
    browser: APIClient, body: dict[str, Any], status: int
) -> None:
    assert post(browser, BINDINGS, **body).status_code == status
    assert not RoleBinding.objects.exists()


def test_a_binding_exists_once(browser: APIClient) -> None:
    body = {"username": "ada", "role": "editor", "subtree": "science"}
    assert [post(browser, BINDINGS, **body).status_code for _ in range(2)] == [201, 409]


def test_an_admin_sees_and_revokes_the_tokens_of_all_users(browser: APIClient) -> None:
    emmy = User.objects.create_user("emmy")
    row, _secret = tokens.create(
        user=emmy, name="ci", scopes=["read"], subtree="", expires_at=None, now=timezone.now()
    )
    theirs = APIClient()
    theirs.force_login(emmy)
    assert theirs.get("/api/v1/tokens?all=true").status_code == 403
    assert browser.get("/api/v1/tokens").json()["items"] == []
    listed = browser.get("/api/v1/tokens?all=true").json()["items"]
    assert [(item["owner"], item["name"]) for item in listed] == [("emmy", "ci")]
    assert browser.delete(f"/api/v1/tokens/{row.pk}").status_code == 204
    entry = browser.get("/api/v1/audit?kind=token").json()["items"][0]
    assert (entry["action"], entry["target"]) == ("delete", f"emmy/{row.prefix}")
