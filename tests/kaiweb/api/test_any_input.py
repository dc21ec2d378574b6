"""Whatever comes in, the answer is never a 5xx: lists with any cursor, filter and order, writes with any body."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient

from kaiweb.api.http import cursors
from kube.resources import QUEUES
from queues.editing.tags import tag_of_body
from queues.models import ApiToken, PodGroup
from scheduler.models import SessionRecord
from tests.fakes.gateway import FakeGateway

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sync", "rows")]
API = "/api/v1"
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
LISTS = {
    "queues": ["name", "createdAt"],
    "workloads": ["name", "createdAt", "gpu", "evictions"],
    "nodes": ["name", "createdAt"],
    "gpus": ["name", "createdAt"],
    "sessions": ["id"],
    "bind-requests": ["name", "createdAt"],
}
FILTERS = [
    "q", "parent", "root", "queue", "subtree", "state", "reason", "namespace", "owner", "pool",
    "model", "node", "phase", "shard",
]  # fmt: skip
PATHS = [
    *LISTS, "order", "queues/science/order", "cluster", "me", "version", "tokens", "queues/physics",
    "workloads/a/b", "workloads/a/b/explain", "workloads/a/b/pods", "nodes/n", "sessions/1",
]  # fmt: skip
EDGES = [
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01T00:00:00",
    "2026-11-29T12:00:00+00:00", "24:00", "a\x00b", "x" * 5000, "",
]  # fmt: skip
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(EDGES)
NUMBERS = st.integers() | st.floats() | st.sampled_from([10**30, -(10**30), 2**63, -1, 0])
SCALARS = st.none() | st.booleans() | NUMBERS | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=8,
)
FAST = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def rows(db: None) -> None:
    """Something to page through."""
    for number in range(3):
        SessionRecord.objects.create(
            shard="default", number=number, started_at=NOON, duration_ms=1.0, actions=[]
        )
        PodGroup.objects.create(
            uid=f"u{number}", version=1, created_at=NOON, key=f"a/{number}", namespace="a",
            name=f"{number}", gpu=number,
        )  # fmt: skip


@pytest.fixture
def person(admin: User) -> APIClient:
    browser = APIClient()
    browser.force_login(admin)
    return browser


def encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@st.composite
def list_query(draw: st.DrawFn, name: str) -> list[tuple[str, str]]:
    orders = [f"{sign}{column}" for column in LISTS[name] for sign in ("", "-")]
    order = draw(st.sampled_from(orders))
    near = st.tuples(st.just(order), SCALARS, SCALARS).map(list)
    cursor = draw(TEXTS | (near | JSON).map(encoded))
    query = [("sort", order), ("cursor", cursor)]
    query += draw(
        st.lists(
            st.tuples(st.sampled_from(["limit", "count", "sort"]), TEXTS | NUMBERS.map(str))
            | st.tuples(st.sampled_from(FILTERS) | TEXTS, TEXTS),
            max_size=2,
        )
    )
    return query


def fits(response: Any) -> bool:
    """Return whether it is an answer or a refusal that says what is wrong."""
    if response.status_code < 400:
        return True
    body = response.json()
    return response.status_code < 500 and bool(body["type"] and body["title"] and body["detail"])


def ask(client: APIClient, path: str, query: list[tuple[str, str]]) -> Any:
    data: dict[str, list[str]] = {}
    for name, value in query:
        data.setdefault(name, []).append(value)
    return client.get(f"{API}/{path}", data)


@pytest.mark.parametrize("name", LISTS)
@FAST
@given(data=st.data())
def test_no_list_fails_on_any_query(client: APIClient, name: str, data: st.DataObject) -> None:
    query = data.draw(list_query(name))
    assert fits(ask(client, name, query)), query


@FAST
@given(path=st.sampled_from(PATHS), query=st.lists(st.tuples(TEXTS, TEXTS), max_size=2))
def test_no_read_fails_on_any_query(
    person: APIClient, path: str, query: list[tuple[str, str]]
) -> None:
    assert fits(ask(person, path, query))


@st.composite
def queue_edit(draw: st.DrawFn) -> Any:
    """Return a body that is mostly an edit, with odd values in it."""
    amounts = st.dictionaries(st.sampled_from(["gpu", "cpuMilli", "memoryBytes"]), SCALARS | JSON)
    fields = {
        "name": TEXTS, "displayName": SCALARS, "parent": st.sampled_from(["science", "x"]) | SCALARS,
        "priority": SCALARS, "preemptMinRuntime": SCALARS, "reclaimMinRuntime": SCALARS,
        "quota": amounts | JSON, "limit": amounts | JSON, "weight": amounts | JSON,
        "labels": st.dictionaries(TEXTS, SCALARS, max_size=3) | JSON,
    }  # fmt: skip
    chosen = draw(st.lists(st.sampled_from(sorted(fields)), max_size=4, unique=True))
    return {name: draw(fields[name]) for name in chosen}


@FAST
@given(
    method=st.sampled_from(["post", "put", "patch", "delete"]),
    name=st.sampled_from(["physics", "science", "new", "..", "a" * 300]) | TEXTS,
    body=queue_edit() | JSON,
    query=st.dictionaries(
        st.sampled_from(["dryRun", "reason", "fieldManager", "force"]), TEXTS | st.just("true")
    ),
)
def test_no_write_of_a_queue_fails_on_any_body(
    client: APIClient,
    cluster: FakeGateway,
    method: str,
    name: str,
    body: Any,
    query: dict[str, str],
) -> None:
    names = cluster.names(QUEUES)
    tag = f'"{tag_of_body(cluster.raw(QUEUES, name))}"' if name in names else '"1"'
    headers = {} if method == "post" else {"If-Match": tag}
    path = f"{API}/queues" if method == "post" else f"{API}/queues/{quote(name, safe='')}"
    raw = json.dumps(body, allow_nan=True).encode()
    response = getattr(client, method)(
        f"{path}?{urlencode(query)}", raw, content_type="application/json", headers=headers
    )
    assert fits(response)


@FAST
@given(
    body=JSON
    | st.fixed_dictionaries(
        {"name": TEXTS | st.just("ci")},
        optional={
            "scopes": st.lists(st.sampled_from(["read", "admin"]) | JSON) | JSON,
            "subtree": st.just("science") | JSON,
            "expiresAt": st.datetimes().map(lambda d: f"{d.isoformat()}Z") | JSON,
        },
    )
)
def test_no_token_request_fails_on_any_body(person: APIClient, body: Any) -> None:
    raw = json.dumps(body).encode()
    response = person.post(f"{API}/tokens", raw, content_type="application/json")
    assert fits(response)


@pytest.mark.parametrize("path", ["queues", "tokens", "live/tickets"])
@FAST
@given(raw=st.binary(max_size=60), kind=st.sampled_from(["application/json", "text/plain", "x"]))
def test_no_post_fails_on_any_bytes(person: APIClient, path: str, raw: bytes, kind: str) -> None:
    assert fits(person.post(f"{API}/{path}", raw, content_type=kind))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("workloads?sort=gpu", ["gpu", "abc", "x"]),
        ("workloads?sort=gpu", ["gpu", None, None]),
        ("workloads?sort=gpu", ["abc", "x"]),
        ("workloads?sort=evictions", ["evictions", 1.5, "x"]),
        ("workloads?sort=evictions", ["evictions", True, "x"]),
        ("workloads?sort=createdAt", ["createdAt", "0001-01-01T00:00:00+23:59", "x"]),
        ("workloads?sort=createdAt", ["createdAt", "2026-01-01T00:00:00", "x"]),
        ("workloads?sort=createdAt", ["createdAt", 3, "x"]),
        ("queues?sort=name", ["name", "a\x00", "a\x00"]),
        ("queues?sort=name", ["-name", "a", "a"]),
        ("sessions", ["-id", "x", "y"]),
        ("sessions", ["-id", 2**64, 1]),
        ("sessions", {"a": 1, "b": 2}),
        ("nodes", [["name"], "a", "a"]),
    ],
)
def test_a_cursor_that_no_answer_has_held_is_refused_by_name(
    client: APIClient, path: str, value: object
) -> None:
    sign = "&" if "?" in path else "?"
    response = client.get(f"{API}/{path}{sign}cursor={encoded(value)}")
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "?cursor"


@pytest.mark.parametrize("name", ["workloads", "sessions"])
@pytest.mark.parametrize("sign", ["", "-"])
def test_pages_of_every_order_give_every_row_once(client: APIClient, name: str, sign: str) -> None:
    for column in LISTS[name]:
        path = f"{API}/{name}?limit=1&sort={sign}{column}"
        items, cursor = [], ""
        for _page in range(3):
            body = client.get(f"{path}&cursor={cursor}" if cursor else path).json()
            items += [item["name" if name == "workloads" else "id"] for item in body["items"]]
            cursor = body["next"]
        assert (len(set(items)), cursor) == (3, None)


def test_a_cursor_holds_for_its_own_order_only(client: APIClient) -> None:
    cursor = client.get(f"{API}/workloads?limit=1&sort=gpu").json()["next"]
    assert client.get(f"{API}/workloads?sort=gpu&cursor={cursor}").status_code == 200
    assert client.get(f"{API}/workloads?sort=-gpu&cursor={cursor}").status_code == 400
    assert cursors.encode("gpu", 0.0, "a/0") == cursor


@pytest.mark.parametrize("limit", ["9" * 5000, "0", "1001", "-1", "1.0", "٣", "", " 5"])
def test_a_limit_out_of_bounds_is_refused_by_name(client: APIClient, limit: str) -> None:
    response = client.get(f"{API}/queues", {"limit": limit})
    assert response.status_code == 400
    assert response.json()["errors"][0]["pointer"] == "?limit"


def test_a_body_beyond_the_limit_is_413(person: APIClient, client: APIClient) -> None:
    raw = b'{"name": "x", "displayName": "' + b"a" * 3_000_000 + b'"}'
    for caller in (person, client):
        response = caller.post(f"{API}/queues", raw, content_type="application/json")
        assert response.status_code == 413
        assert response.json()["type"].endswith("/payload-too-large")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("expiresAt", "9999-12-31T23:59:59-23:59"), ("expiresAt", "0001-01-01T00:00:00+23:59"),
        ("expiresAt", "2020-01-01T00:00:00Z"), ("expiresAt", "2999-01-01T00:00:00Z"),
        ("expiresAt", "2026-13-45T00:00:00Z"), ("expiresAt", 7), ("name", "a\x00b"),
        ("subtree", ["lab"]), ("subtree", "a" * 300), ("subtree", "nowhere"), ("subtree", ""),
        ("expires_at", "2030-01-01T00:00:00Z"), ("scopes/0", ["everything"]),
        ("scopes/1", ["read", 3]), ("scopes", "read"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_a_token_request_is_named_and_makes_no_token(
    person: APIClient, field: str, value: object
) -> None:
    body = {"name": "ci", field.split("/")[0]: value}
    response = person.post(f"{API}/tokens", body, format="json")
    assert response.status_code == 422
    assert [error["pointer"] for error in response.json()["errors"]] == [f"/{field}"]
    assert not ApiToken.objects.filter(name="ci").exists()


def test_a_token_without_an_end_gets_the_longest_life(person: APIClient, settings: Any) -> None:
    def life() -> timedelta | None:
        response = person.post(f"{API}/tokens", {"name": "ci", "subtree": "science"}, format="json")
        assert response.status_code == 201
        row = ApiToken.objects.get(pk=response.json()["id"])
        return row.expires_at and row.expires_at - row.created_at

    settings.KAIWEB_TOKEN_MAX_DAYS = 30
    assert life() == timedelta(days=30)
    settings.KAIWEB_TOKEN_MAX_DAYS = 0
    assert life() is None
