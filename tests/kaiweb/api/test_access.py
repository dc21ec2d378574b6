"""Access: sessions with CSRF, tokens with scopes and an end, and unauthenticated requests."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from queues.access import tokens
from queues.access.rights import Grant, Rights, rights_of
from queues.models import ApiToken, Role, RoleBinding
from tests.kaiweb.api.conftest import token_client

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "path", ["me", "queues", "workloads", "nodes", "gpus", "sessions", "tokens", "version"]
)
def test_unauthenticated_requests_get_401_and_a_challenge(path: str) -> None:
    response = APIClient().get(f"/api/v1/{path}")
    assert (response.status_code, response["WWW-Authenticate"]) == (401, 'Bearer realm="kaiweb"')
    assert response["Content-Type"] == "application/problem+json"


def test_a_session_needs_the_csrf_token_to_write(admin: User) -> None:
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(admin)
    refused = browser.post("/api/v1/live/tickets")
    assert refused.status_code == 403
    csrf = browser.get("/api/v1/me").json()["csrfToken"]
    allowed = browser.post("/api/v1/live/tickets", headers={"X-CSRFToken": csrf})
    assert (allowed.status_code, allowed.json()["expiresIn"]) == (201, 30)


def test_a_token_is_shown_once_kept_as_a_hash_and_can_be_revoked(admin: User) -> None:
    browser = APIClient()
    browser.force_login(admin)
    created_token = browser.post(
        "/api/v1/tokens", {"name": "ci", "scopes": ["read"]}, format="json"
    )
    assert created_token.status_code == 201
    secret = created_token.json()["token"]
    row = ApiToken.objects.get()
    assert secret.startswith("kw_")
    assert secret not in (row.digest, row.prefix)
    listed = browser.get("/api/v1/tokens").json()["items"]
    assert [("token" in item, item["prefix"]) for item in listed] == [(False, secret[:10])]
    script = APIClient()
    script.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    assert script.get("/api/v1/me").json()["kind"] == "token"
    assert script.get("/api/v1/tokens").status_code == 403
    assert browser.delete(f"/api/v1/tokens/{row.pk}").status_code == 204
    assert script.get("/api/v1/me").status_code == 401
    assert browser.delete(f"/api/v1/tokens/{row.pk}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "x", "scopes": []}, {"name": "x", "scopes": ["root"]},
     {"name": "x", "scopes": "read"}, {"name": "x", "expiresAt": "tomorrow"}, []],
)  # fmt: skip
def test_a_bad_token_request_is_refused(admin: User, body: object) -> None:
    browser = APIClient()
    browser.force_login(admin)
    assert browser.post("/api/v1/tokens", body, format="json").status_code == 422
    assert not ApiToken.objects.exists()


def test_an_expired_token_and_one_of_a_disabled_user_are_dead(admin: User) -> None:
    past = timezone.now() - timedelta(seconds=1)
    assert token_client(admin, ["read"], expires_at=past).get("/api/v1/me").status_code == 401
    living = token_client(admin, ["read"])
    assert living.get("/api/v1/me").status_code == 200
    admin.is_active = False
    admin.save()
    assert living.get("/api/v1/me").status_code == 401


@pytest.mark.parametrize("header", ["Bearer", "Bearer ", "Bearer nonsense", "bearer kw_x"])
def test_a_bad_bearer_header_is_a_401(header: str) -> None:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    assert client.get("/api/v1/me").status_code == 401


def test_a_ticket_is_used_up_and_runs_out(admin: User) -> None:
    now = timezone.now()
    secret = tokens.issue_ticket(user=admin, token=None, now=now)
    assert tokens.redeem_ticket(secret, now + timedelta(seconds=31)) is None
    ticket = tokens.redeem_ticket(secret, now + timedelta(seconds=29))
    assert ticket is not None
    assert ticket.user == admin
    assert tokens.redeem_ticket(secret, now) is None


def test_rights_of_an_editor_end_at_the_border_of_the_subtree() -> None:
    user = User.objects.create_user("emmy")
    RoleBinding.objects.create(user=user, role=Role.EDITOR, subtree="s")
    rights = rights_of(user)
    assert rights.may_edit(["low", "mid", "s", "top"])
    assert not rights.may_edit(["s", "top"])
    assert rights.may_place_under(["s", "top"])
    assert not rights.may_place_under(["top"])
    assert not rights.may_place_under([])
    assert not rights.is_admin


def test_a_token_narrows_what_its_owner_may() -> None:
    base = {"username": "a", "display_name": "a", "kind": "token", "grants": (Grant("admin"),)}
    assert Rights(**base).is_admin  # type: ignore[arg-type]
    assert not Rights(**base, scopes=frozenset({"read"})).may_write_queues  # type: ignore[arg-type]
    narrow = Rights(**base, scopes=frozenset({"queues:write"}), token_subtree="s")  # type: ignore[arg-type]
    assert (narrow.is_admin, narrow.may_edit(["x", "s"]), narrow.may_edit(["x", "t"])) == (
        False,
        True,
        False,
    )


def test_the_fingerprint_changes_with_the_rights() -> None:
    user = User.objects.create_user("emmy")
    before = rights_of(user).fingerprint
    assert rights_of(user).fingerprint == before
    RoleBinding.objects.create(user=user, role=Role.EDITOR, subtree="s")
    assert rights_of(user).fingerprint != before


def test_the_openapi_document_names_every_call(client: APIClient) -> None:
    document = client.get("/api/v1/openapi.json").json()
    assert document["openapi"] == "3.1.0"
    assert {"/api/v1/queues/{name}", "/api/v1/workloads/{namespace}/{name}/explain"} <= set(
        document["paths"]
    )
    patch = document["paths"]["/api/v1/queues/{name}"]["patch"]
    assert set(patch["responses"]) == {"200", "default"}
    assert "application/problem+json" in patch["responses"]["default"]["content"]
