"""The price list over REST: who edits it, and what the audit log keeps."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pytest
from rest_framework.test import APIClient

from kaiweb.usage.models import GpuPrice
from queues.models import Node

pytestmark = pytest.mark.django_db
URL = "/api/v1/prices"
H100 = {"model": "NVIDIA-H100", "price": 2.5, "validFrom": "2026-12-01"}
TODAY = datetime(2026, 12, 15, tzinfo=UTC)


@pytest.fixture(autouse=True)
def today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kaiweb.api.views.prices.timezone.now", lambda: TODAY)


def create(client: APIClient, query: str = "", **values: Any) -> Any:
    return client.post(URL + query, {**H100, **values}, format="json")


def slug(response: Any) -> str:
    return str(response.json()["type"].removeprefix("https://kaiweb.dev/problems/"))


def test_the_list_has_the_prices_of_the_settings_and_stored_ones(
    client: APIClient, viewer: APIClient, settings: Any
) -> None:
    settings.KAIWEB_GPU_PRICES = {"*": 1.0}
    for name in ("n1", "n2"):
        Node.objects.create(name=name, model="NVIDIA-H100", uid=name, version=1, created_at=TODAY)
    create(client)
    create(client, price=3, validFrom="2026-12-10")
    create(client, price=4, validFrom="2027-01-01")
    body = viewer.get(URL).json()
    assert (body["currency"], body["defaults"]) == ("EUR", [{"model": "*", "price": 1}])
    assert body["models"] == ["NVIDIA-H100"]
    prices = [(item["price"], item["validFrom"], item["state"]) for item in body["items"]]
    assert prices == [
        (2.5, "2026-12-01", "replaced"), (3, "2026-12-10", "valid"), (4, "2027-01-01", "later"),
    ]  # fmt: skip


def test_only_admins_write_and_the_audit_log_says_what(
    client: APIClient, viewer: APIClient, editor: APIClient
) -> None:
    for other in (viewer, editor):
        assert create(other).status_code == 403
    created = create(client, "?reason=contract")
    assert (created.status_code, created.json()["state"]) == (201, "valid")
    assert slug(create(client)) == "conflict"
    price, tag = f"{URL}/{created.json()['id']}", {"If-Match": created["ETag"]}
    assert client.patch(price, {"price": 3}, format="json").status_code == 428
    edited = client.patch(price, {"price": 3}, format="json", headers=tag)
    assert (edited.status_code, edited.json()["price"]) == (200, 3)
    stale = client.patch(price, {"price": 4}, format="json", headers=tag)
    assert (stale.status_code, stale.json()["current"]["price"]) == (412, 3)
    assert client.delete(price, headers=tag).status_code == 412
    assert client.delete(price, headers={"If-Match": edited["ETag"]}).status_code == 204
    assert client.delete(price, headers=tag).status_code == 404
    entries = {
        entry["action"]: entry for entry in client.get("/api/v1/audit?kind=price").json()["items"]
    }
    assert set(entries) == {"create", "update", "delete"}
    assert entries["update"]["target"] == "NVIDIA-H100 from 2026-12-01"
    assert entries["update"]["diff"] == [{"pointer": "/price", "before": 2.5, "after": 3.0}]
    assert (entries["create"]["reason"], entries["create"]["actor"]) == ("contract", "ada")


def test_a_price_moves_to_another_day_unless_there_is_one(client: APIClient) -> None:
    create(client)
    later = create(client, price=3, validFrom="2026-12-20")
    price, tag = f"{URL}/{later.json()['id']}", {"If-Match": later["ETag"]}
    refused = client.patch(price, {"validFrom": "2026-12-01"}, format="json", headers=tag)
    assert slug(refused) == "conflict"
    moved = client.patch(price, {"validFrom": "2026-12-10"}, format="json", headers=tag)
    assert moved.json()["state"] == "valid"
    assert GpuPrice.objects.get(price=3).valid_from == date(2026, 12, 10)


def test_without_a_day_a_price_holds_from_today_and_a_repeated_request_makes_one(
    client: APIClient,
) -> None:
    body, key = {"model": "*", "price": 1}, {"Idempotency-Key": "once"}
    first = client.post(URL, body, format="json", headers=key)
    again = client.post(URL, body, format="json", headers=key)
    assert (first.json()["validFrom"], again.json()) == ("2026-12-15", first.json())
    assert GpuPrice.objects.count() == 1


@pytest.mark.parametrize(
    ("values", "pointer"),
    [
        ({"price": -1}, "/price"),
        ({"price": "2.5"}, "/price"),
        ({"model": ""}, "/model"),
        ({"model": "two words"}, "/model"),
        ({"validFrom": "tomorrow"}, "/validFrom"),
        ({"color": "red"}, ""),
    ],
)
def test_a_price_that_is_none_is_refused(
    client: APIClient, values: dict[str, Any], pointer: str
) -> None:
    refused = create(client, **values)
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["pointer"] == pointer
    assert not GpuPrice.objects.exists()


def test_the_currency_is_edited_by_its_version(client: APIClient) -> None:
    tag = {"If-Match": client.get(URL)["ETag"]}
    dry = client.patch(f"{URL}?dryRun=true", {"currency": "USD"}, format="json", headers=tag)
    assert (dry.json()["currency"], client.get(URL).json()["currency"]) == ("USD", "EUR")
    assert client.patch(URL, {"currency": "USD"}, format="json", headers=tag).status_code == 200
    stale = client.patch(URL, {"currency": "CHF"}, format="json", headers=tag)
    assert (stale.status_code, stale.json()["current"]["currency"]) == (412, "USD")
    entry = client.get("/api/v1/audit?kind=price").json()["items"][0]
    assert (entry["target"], entry["diff"][0]["before"]) == ("currency", "EUR")
