"""A creation that is sent again under its key is done once and answered alike."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from kaiweb.api import idempotency
from kaiweb.models import IdempotentAnswer
from kube.errors import ServerError
from kube.resources import QUEUES
from tests.fakes.gateway import FakeGateway
from tests.kaiweb.api.conftest import token_client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync")]
URL = "/api/v1/queues"
CHEM = {"name": "chem", "parent": "science"}


def create(client: APIClient, body: Any, key: str = "run-1") -> Any:
    return client.post(URL, body, format="json", headers={"Idempotency-Key": key})


def slug(response: Any) -> str:
    return str(response.json()["type"].rpartition("/")[2])


def age(by: timedelta) -> None:
    IdempotentAnswer.objects.update(at=timezone.now() - by)


def test_the_same_request_gets_the_same_answer_and_is_done_once(
    client: APIClient, cluster: FakeGateway
) -> None:
    first, again = create(client, CHEM), create(client, CHEM)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    assert [again[name] for name in ("ETag", "Location")] == [first["ETag"], first["Location"]]
    assert (again["Idempotent-Replayed"], "Idempotent-Replayed" in first) == ("true", False)
    assert [call for call in cluster.calls if call[1] == "queues"] == [("create", "queues", "chem")]


def test_another_request_under_the_key_is_refused(
    client: APIClient, admin: User, cluster: FakeGateway
) -> None:
    create(client, CHEM)
    other = create(client, {"name": "bio"})
    assert (other.status_code, slug(other)) == (422, "idempotency-mismatch")
    assert create(token_client(admin, ["admin"]), CHEM).status_code == 422
    assert "bio" not in cluster.names(QUEUES)


def test_keys_belong_to_their_user(
    client: APIClient, editor: APIClient, cluster: FakeGateway
) -> None:
    assert create(client, CHEM).status_code == 201
    assert create(editor, {"name": "sub", "parent": "science"}).status_code == 201


def test_what_was_refused_may_be_tried_again(client: APIClient, cluster: FakeGateway) -> None:
    cluster.fail_next("create", "queues", ServerError("connection refused"))
    assert create(client, CHEM).status_code == 503
    assert create(client, {"name": "Bad"}).status_code == 422
    assert create(client, CHEM).status_code == 201


def test_a_request_still_at_work_is_waited_for_and_a_dead_one_is_not(
    client: APIClient, cluster: FakeGateway
) -> None:
    create(client, CHEM)
    cluster.delete(QUEUES, "chem")
    IdempotentAnswer.objects.update(status=None)
    busy = create(client, CHEM)
    assert (busy.status_code, busy["Retry-After"]) == (503, "1")
    age(idempotency.STUCK_AFTER + timedelta(seconds=1))
    assert create(client, CHEM).status_code == 201


def test_a_key_is_free_again_after_a_day(client: APIClient) -> None:
    create(client, CHEM)
    age(idempotency.STORED_FOR + timedelta(seconds=1))
    assert create(client, {"name": "bio"}).status_code == 201
    age(idempotency.STORED_FOR + timedelta(seconds=1))
    assert (idempotency.trim(), IdempotentAnswer.objects.count()) == (1, 0)


@pytest.mark.parametrize("key", ["", "a b", "x" * 256, "ä"])
def test_a_malformed_key_is_refused(client: APIClient, cluster: FakeGateway, key: str) -> None:
    response = client.post(URL, CHEM, format="json", HTTP_IDEMPOTENCY_KEY=key)
    assert (response.status_code, cluster.calls) == (400, [])


@pytest.mark.parametrize("path", ["tokens", "live/tickets"])
def test_secrets_are_never_kept(admin: User, path: str) -> None:
    browser = APIClient()
    browser.force_login(admin)
    response = browser.post(
        f"/api/v1/{path}", {"name": "ci"}, format="json", headers={"Idempotency-Key": "k"}
    )
    assert (response.status_code, IdempotentAnswer.objects.count()) == (400, 0)
