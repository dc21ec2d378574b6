"""Edits of queues over REST, as tests send them."""

from __future__ import annotations

from typing import Any

from rest_framework.test import APIClient

from kube.resources import QUEUES
from queues.editing.tags import tag_of_body
from tests.fakes.gateway import FakeGateway

URL = "/api/v1/queues"


def etag(cluster: FakeGateway, name: str) -> str:
    return f'"{tag_of_body(cluster.raw(QUEUES, name))}"'


def patch(client: APIClient, cluster: FakeGateway, name: str, edit: Any, query: str = "") -> Any:
    return client.patch(
        f"{URL}/{name}{query}", edit, format="json", headers={"If-Match": etag(cluster, name)}
    )


def slug(response: Any) -> str:
    assert response["Content-Type"] == "application/problem+json"
    return str(response.json()["type"].removeprefix("https://kaiweb.dev/problems/"))
