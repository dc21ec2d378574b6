"""Webhooks over REST: for admins only, and without their secrets."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from rest_framework.test import APIClient

from kaiweb.notifications import signing
from kaiweb.notifications.models import Delivery, Webhook
from tests.fakes.gateway import FakeGateway

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]
URL = "/api/v1/notifications"
SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode()
BODY = {
    "name": "ops", "url": "https://hooks.example/T0/very-secret", "secret": SECRET,
    "events": ["workloadWaits", "workloadEvicted"], "subtree": "science", "waitMinutes": 15,
}  # fmt: skip


def create(client: APIClient, **values: Any) -> Any:
    return client.post(URL, {**BODY, **values}, format="json")


def test_a_webhook_is_created_read_edited_and_deleted_and_its_secret_is_never_answered(
    client: APIClient, editor: APIClient, viewer: APIClient, cluster: FakeGateway
) -> None:
    created = create(client)
    assert created.status_code == 201, created.content
    item = created.json()
    path, tag = created["Location"], {"If-Match": created["ETag"]}
    assert (item["hasSecret"], item["subtree"], item["lastDelivery"]) == (True, "science", None)
    for other in (editor, viewer):
        assert other.get(URL).status_code == 403
        assert other.get(path).status_code == 403
    assert client.patch(path, {"enabled": False}, format="json").status_code == 428
    edited = client.patch(path, {"enabled": False, "events": ["shardNotReady"]}, format="json", headers=tag)  # fmt: skip
    assert (edited.json()["enabled"], edited.json()["hasSecret"]) == (False, True)
    assert signing.decrypted(Webhook.objects.get().secret) == SECRET
    stale = client.patch(path, {"enabled": True}, format="json", headers=tag)
    assert (stale.status_code, stale.json()["current"]["enabled"]) == (412, False)
    tag = {"If-Match": edited["ETag"]}
    without = client.patch(path, {"secret": None}, format="json", headers=tag)
    assert without.json()["hasSecret"] is False
    assert client.delete(path, headers={"If-Match": without["ETag"]}).status_code == 204
    audit = client.get("/api/v1/audit?kind=notification")
    assert len(audit.json()["items"]) == 4
    answers = (created, edited, stale, without, audit, client.get(URL))
    assert not any(SECRET in answer.content.decode() for answer in answers)
    assert "very-secret" not in audit.content.decode()
    assert "https://hooks.example" in audit.content.decode()


def test_a_test_is_stored_for_the_worker(client: APIClient) -> None:
    path = create(client)["Location"]
    assert client.post(f"{path}:test?dryRun=true").status_code == 202
    assert not Delivery.objects.exists()
    answer = client.post(f"{path}:test")
    assert (answer.status_code, answer.json()["state"]) == (202, "pending")
    assert client.get(f"{path}/deliveries").json()["items"] == [answer.json()]
    assert client.get(path).json()["lastDelivery"]["event"] == "test"
    entry = client.get("/api/v1/audit?kind=notification").json()["items"]
    assert {item["action"] for item in entry} == {"create", "test"}
    assert client.post(f"{URL}/999:test").status_code == 404


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"url": "http://10.0.0.1/"}, "/url"),
        ({"url": "file:///etc/passwd"}, "/url"),
        ({"secret": "short"}, "/secret"),
        ({"events": []}, "/events"),
        ({"events": ["coffee"]}, "/events/0"),
        ({"subtree": "nowhere"}, "/subtree"),
        ({"waitMinutes": 0}, "/waitMinutes"),
        ({"report": "daily"}, "/report"),
        ({"name": ""}, "/name"),
    ],
)
def test_what_is_no_webhook_is_refused(
    client: APIClient, values: dict[str, Any], pointer: str
) -> None:
    refused = create(client, **values)
    assert refused.status_code == 422, refused.content
    assert refused.json()["errors"][0]["pointer"].rstrip("/.") in (pointer, "/events/0", "/events")
    assert SECRET not in refused.content.decode()
    assert not Webhook.objects.exists()


def test_the_setting_allows_private_networks(client: APIClient, settings: Any) -> None:
    settings.KAIWEB_NOTIFY_NETWORKS = ["10.0.0.0/8"]
    assert create(client, url="http://10.0.0.1/").status_code == 201
    assert create(client, url="http://192.168.0.1/", name="b").status_code == 422
    assert create(client).status_code == 409
